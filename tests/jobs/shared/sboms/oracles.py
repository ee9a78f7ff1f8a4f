"""What the reference libraries find in a bill of materials: its package URLs, and who depends on whom.

They are imported where they are used: that takes half a second, and every process collects all tests.
"""

import io
import json
from typing import Any
from xml.etree import ElementTree


def edges_of(text: bytes) -> dict[str, list[str]]:
    """The package URLs that each package URL depends on, of a bill in any of the forms."""
    from cyclonedx.model import bom as reference
    from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser

    form: Any = reference.Bom
    if text.startswith(b"<"):
        return edges_of_cyclonedx(form.from_xml(ElementTree.parse(io.BytesIO(text)).getroot()))
    found = json.loads(text)
    if "spdxVersion" in found:
        return edges_of_spdx(JsonLikeDictParser().parse(found))
    return edges_of_cyclonedx(form.from_json(found))


def edges_of_cyclonedx(bom: Any) -> dict[str, list[str]]:
    """Packages and edges, by package URL."""
    urls = {str(each.bom_ref): str(each.purl) for each in bom._get_all_components() if each.purl is not None}
    edges: dict[str, set[str]] = {url: set() for url in urls.values()}
    for dependency in bom.dependencies:
        url = urls.get(str(dependency.ref))
        if url is not None:
            edges[url] |= {urls[str(child.ref)] for child in dependency.dependencies if str(child.ref) in urls}
    return {url: sorted(children - {url}) for url, children in edges.items()}


def edges_of_spdx(document: Any) -> dict[str, list[str]]:
    """Packages and edges, by package URL."""
    from spdx_tools.spdx.model.package import ExternalPackageRefCategory
    from spdx_tools.spdx.model.relationship import RelationshipType

    urls = {
        package.spdx_id: reference.locator
        for package in document.packages
        for reference in package.external_references
        if reference.category is ExternalPackageRefCategory.PACKAGE_MANAGER
    }
    edges: dict[str, set[str]] = {url: set() for url in urls.values()}
    for relation in document.relationships:
        first, second = relation.spdx_element_id, str(relation.related_spdx_element_id)
        if relation.relationship_type is RelationshipType.DEPENDENCY_OF:
            first, second = second, first
        elif relation.relationship_type is not RelationshipType.DEPENDS_ON:
            continue
        if first in urls and second in urls:
            edges[urls[first]].add(urls[second])
    return {url: sorted(children - {url}) for url, children in edges.items()}
