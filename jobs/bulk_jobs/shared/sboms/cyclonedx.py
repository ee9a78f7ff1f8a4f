"""CycloneDX, as JSON and as XML: components, in each other too, and their dependencies.

Source: the CycloneDX specification, 1.2 to 1.7. Only what a snapshot needs is decoded; the rest is passed over.
"""

import io
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable

import msgspec

from bulk_jobs.shared.sboms.bill import Bill, BillFlaw
from bulk_jobs.shared.sboms.decoding import decode

NAMESPACE = "http://cyclonedx.org/schema/bom/"
_NOT_AT_RUN_TIME = ("optional", "excluded")


class _Component(msgspec.Struct, rename={"bom_ref": "bom-ref"}):
    name: str = ""
    bom_ref: str = ""
    purl: str = ""
    scope: str = ""
    components: list["_Component"] = []


class _Dependency(msgspec.Struct, rename="camel"):
    ref: str
    depends_on: list[str] = []


class _Metadata(msgspec.Struct, frozen=True):
    timestamp: str = ""
    component: _Component | None = None


class _Bom(msgspec.Struct):
    metadata: _Metadata = _Metadata()
    components: list[_Component] = []
    dependencies: list[_Dependency] = []


_DECODER = msgspec.json.Decoder(_Bom)


def read_json(data: bytes) -> Bill:
    """Read CycloneDX JSON.

    Raises:
        BillFlaw: a field that is needed has another type.
    """
    bom = decode(_DECODER, data, "CycloneDX")
    bill = Bill(created=bom.metadata.timestamp)
    root = bom.metadata.component
    if root is not None:
        bill.name = root.name
        bill.roots = [root.bom_ref or root.purl]
        _take(root.components, bill)
    _take(bom.components, bill)
    for dependency in bom.dependencies:
        bill.link(dependency.ref, dependency.depends_on)
    return bill


def _take(components: Iterable[_Component], bill: Bill) -> None:
    for component in components:
        bill.add(component.bom_ref, component.purl, is_development=component.scope in _NOT_AT_RUN_TIME)
        if component.components:
            _take(component.components, bill)


def read_xml(data: bytes) -> Bill:
    """Read CycloneDX XML; a document type, which could name other files or grow without end, is refused.

    Raises:
        BillFlaw: it is not well-formed, or no CycloneDX.
    """
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise BillFlaw("has a document type declaration, which is refused")
    try:
        return _Xml().read(data)
    except ElementTree.ParseError as error:
        raise BillFlaw(f"is no XML that can be read: {error}") from None


class _Xml:
    """One pass over the elements; each is dropped as soon as it has ended."""

    def __init__(self) -> None:
        self._bill = Bill()
        self._open: list[str] = []

    def read(self, data: bytes) -> Bill:
        """Return the bill."""
        for event, element in ElementTree.iterparse(io.BytesIO(data), ("start", "end")):
            name = _local(element.tag)
            if event == "start":
                if not self._open and (name != "bom" or not element.tag.startswith("{" + NAMESPACE)):
                    raise BillFlaw(f"is XML, and no CycloneDX: its first element is {name[:60]}")
                self._open.append(name)
                continue
            self._open.pop()
            self._end(name, element)
        return self._bill

    def _end(self, name: str, element: ElementTree.Element) -> None:
        bill, inside = self._bill, self._open
        if name == "component":
            if inside[-2:] == ["bom", "metadata"]:
                bill.name = _text(element, "name")
                bill.roots = [element.get("bom-ref", "") or _text(element, "purl")]
            elif inside[-1] == "components" and "tools" not in inside:
                is_development = _text(element, "scope") in _NOT_AT_RUN_TIME
                bill.add(element.get("bom-ref", ""), _text(element, "purl"), is_development=is_development)
            element.clear()
        elif name == "timestamp" and inside == ["bom", "metadata"]:
            bill.created = (element.text or "").strip()
        elif name == "dependency" and inside[-1] == "dependencies":
            children = [child.get("ref", "") for child in element if _local(child.tag) == "dependency"]
            bill.link(element.get("ref", ""), children)
            element.clear()
        elif name in ("services", "vulnerabilities", "properties", "externalReferences", "licenses", "hashes"):
            element.clear()


def _text(element: ElementTree.Element, name: str) -> str:
    return next((child.text or "" for child in element if _local(child.tag) == name), "").strip()


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
