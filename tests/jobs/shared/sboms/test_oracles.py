"""What the reference libraries find in a bill of materials is what we find: `make soak`."""

import io
import json
import random
from typing import Any
from xml.etree import ElementTree

import pytest
from cyclonedx.model import bom as reference
from spdx_tools.spdx.model.package import ExternalPackageRefCategory
from spdx_tools.spdx.model.relationship import RelationshipType
from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser

from bulk_jobs.shared.sboms.bill import graph_of
from bulk_jobs.shared.sboms.reading import read_bill
from tests.jobs.shared.sboms.bills import cyclonedx_json, cyclonedx_xml, graph, spdx_json

pytestmark = pytest.mark.soak
BILLS = 200
Bom: Any = reference.Bom


def sizes():
    """From a few packages to some hundreds."""
    dice = random.Random(3)
    return [min(3_000, int(2 ** dice.uniform(1, 9))) for _ in range(BILLS)]


def edges_of_cyclonedx(bom):
    """Packages and edges, by package URL."""
    urls = {str(each.bom_ref): str(each.purl) for each in bom._get_all_components() if each.purl is not None}
    edges: dict[str, set[str]] = {url: set() for url in urls.values()}
    for dependency in bom.dependencies:
        url = urls.get(str(dependency.ref))
        if url is not None:
            edges[url] |= {urls[str(child.ref)] for child in dependency.dependencies if str(child.ref) in urls}
    return {url: sorted(children - {url}) for url, children in edges.items()}


def edges_of_spdx(document):
    """Packages and edges, by package URL."""
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


@pytest.mark.timeout(3_600)
def test_packages_and_edges_are_those_of_the_reference_libraries():
    """200 bills of every size in three forms: the same package URLs, the same edges."""
    for seed, packages in enumerate(sizes()):
        made = graph(packages, seed)
        as_json, as_xml, as_spdx = cyclonedx_json(made), cyclonedx_xml(made), spdx_json(made)
        expected = edges_of_cyclonedx(Bom.from_json(json.loads(as_json)))
        assert graph_of(read_bill(as_json)).edges == expected
        assert graph_of(read_bill(as_xml)).edges == edges_of_cyclonedx(
            Bom.from_xml(ElementTree.parse(io.BytesIO(as_xml)).getroot())
        )
        spdx = edges_of_spdx(JsonLikeDictParser().parse(json.loads(as_spdx)))
        assert graph_of(read_bill(as_spdx)).edges == spdx
