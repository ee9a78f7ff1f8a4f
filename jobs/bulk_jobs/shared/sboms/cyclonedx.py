"""CycloneDX, as JSON and as XML: components, in each other too, and their dependencies.

Source: the CycloneDX specification, 1.2 to 1.7. Only what a snapshot needs is decoded; the rest is passed over.
"""

from collections.abc import Iterable, Mapping
from xml.parsers import expat

import msgspec

from bulk_jobs.shared.sboms.bill import Bill, BillFlaw
from bulk_jobs.shared.sboms.decoding import decode

NAMESPACE = "http://cyclonedx.org/schema/bom/"
_NOT_AT_RUN_TIME = ("optional", "excluded")
_TEXTS = frozenset({"name", "purl", "scope"})
_DOCTYPE = "has a document type declaration, which is refused"


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
        return _Xml().read(data)
    except BillFlaw:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:  # the latter for an encoding that it says to have
        raise BillFlaw(f"is no XML that can be read: {error}") from None


class _Xml:
    """One pass over the elements, of which nothing is kept but what a snapshot needs."""

    def __init__(self) -> None:
        self._bill = Bill()
        self._open: list[str] = []
        self._tools = 0  # that are open: what was used to make the bill is no part of it
        self._components: list[dict[str, str]] = []  # those that are open
        self._reference, self._children = "", list[str]()  # of the dependency that is open
        self._field, self._said = "", list[str]()  # the text that is wanted now, and all text since the last start
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._said.append
        self._parser.StartDoctypeDeclHandler = _refuse

    def read(self, data: bytes) -> Bill:
        """Return the bill."""
        self._parser.Parse(data, True)
        return self._bill

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        (space, _, name), inside = tag.rpartition(" "), self._open
        is_own = space.startswith(NAMESPACE)
        if not inside and (name != "bom" or not is_own):
            where = "" if is_own else f", and {space[:60] or 'none'} its namespace"
            raise BillFlaw(f"is XML, and no CycloneDX: its first element is {name[:60]}{where}")
        if not is_own:  # elements of others may have the same names
            name = ""
        self._field = ""  # text behind an element within is none of its own
        self._said.clear()
        if name == "component":
            self._components.append({"bom-ref": attributes.get("bom-ref", "")})
        elif name in _TEXTS and inside[-1] == "component":
            if name not in self._components[-1]:  # the first one counts
                self._components[-1][name] = ""
                self._field = name
        elif name == "dependency":
            if inside[-1] == "dependencies":
                self._reference, self._children = attributes.get("ref", ""), []
            elif inside[-2:] == ["dependencies", "dependency"]:
                self._children.append(attributes.get("ref", ""))
        elif name == "timestamp" and inside == ["bom", "metadata"]:
            self._field = name
        elif name == "tools":
            self._tools += 1
        inside.append(name)

    def _end(self, _tag: str) -> None:
        inside = self._open
        name = inside.pop()
        if self._field:
            text = "".join(self._said).strip()
            if name == "timestamp":
                self._bill.created = text
            else:
                self._components[-1][name] = text
            self._field = ""
        elif name == "component":
            self._take(self._components.pop())
        elif name == "tools":
            self._tools -= 1
        elif name == "dependency" and inside[-1] == "dependencies":
            self._bill.link(self._reference, self._children)

    def _take(self, found: Mapping[str, str]) -> None:
        bill, inside = self._bill, self._open
        if inside[-2:] == ["bom", "metadata"]:
            bill.name = found.get("name", "")
            bill.roots = [found["bom-ref"] or found.get("purl", "")]
        elif inside[-1] == "components" and not self._tools:
            _add(bill, found["bom-ref"], found.get("purl", ""), found.get("scope", ""))


def _refuse(*_: object) -> None:
    raise BillFlaw(_DOCTYPE)
