"""CycloneDX, as JSON and as XML: components, in each other too, and their dependencies.

Source: the CycloneDX specification, 1.2 to 1.7. Only what a snapshot needs is decoded; the rest is passed over.
"""

from collections.abc import Iterable
from contextlib import suppress
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from xml.parsers import expat

import msgspec

from bulk_jobs.shared.sboms.bill import Bill, BillFlaw
from bulk_jobs.shared.sboms.decoding import decode

NAMESPACE = "http://cyclonedx.org/schema/bom/"
_NOT_AT_RUN_TIME = ("optional", "excluded")
STEP_BYTES = 64 * 1024
"""So much of XML is read before what it holds is taken (bytes): its elements take seven times as much memory."""


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
        _add(bill, component.bom_ref, component.purl, component.scope)
        if component.components:
            _take(component.components, bill)


def _add(bill: Bill, reference: str, url: str, scope: str) -> None:
    if (reference or url) not in bill.roots:  # what the bill is about is no part of itself, also where it is listed
        bill.add(reference, url, is_development=scope in _NOT_AT_RUN_TIME)


def read_xml(data: bytes) -> Bill:
    """Read CycloneDX XML; a document type, which could name other files or grow without end, is refused.

    Raises:
        BillFlaw: it is not well-formed, or no CycloneDX.
    """
    try:
        return _Xml(_space_of(data)).read(data)
    except BillFlaw:
        raise
    except (expat.ExpatError, ParseError, LookupError, ValueError) as error:  # the last two: an encoding that it names
        raise BillFlaw(f"is no XML that can be read: {error}") from None


class _FirstElement(Exception):
    """The first element begins; a document type can only stand before it."""


def _space_of(data: bytes) -> str:
    """Return the namespace of the first element."""
    space = ""

    def begin(tag: str, _attributes: object) -> None:
        nonlocal space
        space, _, name = tag.rpartition(" ")
        is_own = space.startswith(NAMESPACE)
        if name != "bom" or not is_own:
            where = "" if is_own else f", and {space[:60] or 'none'} its namespace"
            raise BillFlaw(f"is XML, and no CycloneDX: its first element is {name[:60]}{where}")
        raise _FirstElement

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = _refuse
    with suppress(_FirstElement):
        parser.Parse(data, True)
    return space


class _Xml:
    """One pass over the elements. The parser makes a tree of them by itself, which takes half the time of two calls for
    each, and what is read of it is dropped while it grows.
    """

    def __init__(self, space: str) -> None:
        self._bill = Bill()
        self._prefix = f"{{{space}}}"  # elements of others may have the same names
        self._component, self._components = self._prefix + "component", self._prefix + "components"
        self._name, self._purl, self._scope = (self._prefix + name for name in ("name", "purl", "scope"))

    def read(self, data: bytes) -> Bill:
        """Return the bill."""
        builder = TreeBuilder()
        document = builder.start("document", {})
        parser = XMLParser(target=builder)
        for start in range(0, len(data), STEP_BYTES):
            parser.feed(data[start : start + STEP_BYTES])
            for bom in document:
                self._take(bom, len(bom) - 1)
        parser.close()
        self._take(document[0], len(document[0]))
        return self._bill

    def _take(self, bom: Element, whole: int) -> None:
        """Take what has been read and drop it. The first `whole` sections have been read to their end, and another one
        but for its last element.
        """
        for place, section in enumerate(bom):
            read = section[:] if place < whole else section[:-1]
            match section.tag.removeprefix(self._prefix):
                case "metadata":
                    self._take_metadata(read)
                case "components":
                    self._take_components(read)
                case "dependencies":
                    self._take_dependencies(read)
                case _:
                    pass
            del section[: len(read)]

    def _take_metadata(self, elements: Iterable[Element]) -> None:
        for element in elements:
            if element.tag == self._component:
                self._bill.name = element.findtext(self._name, "").strip()
                self._bill.roots = [element.get("bom-ref") or element.findtext(self._purl, "").strip()]
                self._take_components(element.iterfind(f"{self._components}/{self._component}"))
            elif element.tag == self._prefix + "timestamp":
                self._bill.created = (element.text or "").strip()

    def _take_components(self, elements: Iterable[Element]) -> None:
        bill, component = self._bill, self._component
        left = [iter(elements)]  # however deep they lie in each other
        while left:
            for element in left[-1]:
                if element.tag != component:
                    continue
                url, scope = element.findtext(self._purl, ""), element.findtext(self._scope, "")
                _add(bill, element.get("bom-ref", ""), url.strip(), scope.strip())
                within = element.find(self._components)
                if within is not None:
                    left.append(iter(within))
                    break
            else:
                left.pop()

    def _take_dependencies(self, elements: Iterable[Element]) -> None:
        dependency = self._prefix + "dependency"
        for element in elements:
            if element.tag == dependency:
                children = [child.get("ref", "") for child in element if child.tag == dependency]
                self._bill.link(element.get("ref", ""), children)


def _refuse(*_: object) -> None:
    raise BillFlaw("has a document type declaration, which is refused")
