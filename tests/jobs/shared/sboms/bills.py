"""Bills of materials of many sizes, made from a seed: CycloneDX as JSON and XML, and SPDX."""

import json
import random
from typing import Any
from xml.sax.saxutils import escape, quoteattr

TIME = "2026-11-24T08:00:00Z"
KINDS = ("npm", "pypi", "maven", "golang", "deb")


def package_url(kind: str, number: int, dice: random.Random) -> str:
    """A package URL; some have a namespace, qualifiers or letters that are escaped."""
    version = f"{dice.randrange(9)}.{number}.{dice.randrange(9)}"
    match kind:
        case "npm":
            scope = "%40acme/" if dice.random() < 0.3 else ""
            return f"pkg:npm/{scope}package-{number}@{version}"
        case "maven":
            return f"pkg:maven/org.acme.group/artifact-{number}@{version}?type=jar"
        case "golang":
            return f"pkg:golang/example.com/acme/module-{number}@v{version}"
        case "deb":
            return f"pkg:deb/debian/library{number}@{version}?arch=amd64&distro=debian-12"
        case _:
            return f"pkg:{kind}/package-{number}@{version}"


def graph(packages: int, seed: int) -> dict[str, Any]:
    """Packages, some of them without URL, and who depends on whom; `root` depends on the first few."""
    dice = random.Random(seed)
    found = []
    for number in range(packages):
        url = package_url(dice.choice(KINDS), number, dice) if dice.random() > 0.05 or number == 0 else ""
        children = sorted({dice.randrange(packages) for _ in range(dice.randrange(4))} - {number})
        found.append({"url": url, "children": children, "is_dev": dice.random() < 0.1})
    return {"packages": found, "direct": list(range(min(packages, 5)))}


def cyclonedx_json(graph: dict[str, Any]) -> bytes:
    """The same as CycloneDX JSON; every tenth component lies inside another one."""
    components: list[dict[str, Any]] = []
    for number, package in enumerate(graph["packages"]):
        component: dict[str, Any] = {"type": "library", "bom-ref": f"ref-{number}", "name": f"package {number}"}
        component |= {"purl": package["url"]} if package["url"] else {}
        component |= {"scope": "optional"} if package["is_dev"] else {}
        if number % 10 == 9:
            components[-1].setdefault("components", []).append(component)
        else:
            components.append(component)
    dependencies = [{"ref": "root", "dependsOn": [f"ref-{number}" for number in graph["direct"]]}]
    dependencies += [
        {"ref": f"ref-{number}", "dependsOn": [f"ref-{child}" for child in package["children"]]}
        for number, package in enumerate(graph["packages"])
    ]
    root = {"type": "application", "bom-ref": "root", "name": "app"}
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "metadata": {"timestamp": TIME, "component": root}}
    return json.dumps({**head, "components": components, "dependencies": dependencies}).encode()


def cyclonedx_xml(graph: dict[str, Any]) -> bytes:
    """The same as CycloneDX XML."""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?><bom xmlns="http://cyclonedx.org/schema/bom/1.5" version="1">',
        f"<metadata><timestamp>{TIME}</timestamp>",
        '<component type="application" bom-ref="root"><name>app</name></component></metadata><components>',
    ]
    for number, package in enumerate(graph["packages"]):
        parts.append(f'<component type="library" bom-ref="ref-{number}"><name>package {number}</name>')
        parts.append("<scope>optional</scope>" if package["is_dev"] else "")
        parts.append(f"<purl>{escape(package['url'])}</purl>" if package["url"] else "")
        parts.append("</component>")
    parts.append("</components><dependencies>")
    edges = [("root", graph["direct"])]
    edges += [(f"ref-{number}", package["children"]) for number, package in enumerate(graph["packages"])]
    for reference, children in edges:
        inner = "".join(f'<dependency ref="ref-{child}"/>' for child in children)
        parts.append(f"<dependency ref={quoteattr(reference)}>{inner}</dependency>")
    return "".join([*parts, "</dependencies></bom>"]).encode()


def spdx_json(graph: dict[str, Any], version: str = "SPDX-2.3") -> bytes:
    """The same as SPDX: half of the edges as DEPENDS_ON, half as DEPENDENCY_OF."""
    common = {"downloadLocation": "NOASSERTION", "filesAnalyzed": False}
    packages: list[dict[str, Any]] = [{"SPDXID": "SPDXRef-root", "name": "app", **common}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-root")]
    relations += [("SPDXRef-root", "DEPENDS_ON", f"SPDXRef-{number}") for number in graph["direct"]]
    for number, package in enumerate(graph["packages"]):
        entry: dict[str, Any] = {"SPDXID": f"SPDXRef-{number}", "name": f"package-{number}", **common}
        if package["url"]:
            reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl"}
            entry["externalRefs"] = [{**reference, "referenceLocator": package["url"]}]
        packages.append(entry)
        for child in package["children"]:
            if child % 2:
                relations.append((f"SPDXRef-{number}", "DEPENDS_ON", f"SPDXRef-{child}"))
            else:
                relations.append((f"SPDXRef-{child}", "DEPENDENCY_OF", f"SPDXRef-{number}"))
    return json.dumps(
        {
            "spdxVersion": version,
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": "app",
            "dataLicense": "CC0-1.0",
            "documentNamespace": "https://example.com/app",
            "creationInfo": {"created": TIME, "creators": ["Tool: test"]},
            "packages": packages,
            "relationships": [
                {"spdxElementId": first, "relationshipType": kind, "relatedSpdxElement": second}
                for first, kind, second in relations
            ],
        }
    ).encode()


FORMS = {"cyclonedx.json": cyclonedx_json, "cyclonedx.xml": cyclonedx_xml, "spdx.json": spdx_json}
