"""CycloneDX as XML, by way of the tree that the parser makes, unless `plain_xml.py` can read it.

Source: the CycloneDX specification, 1.2 to 1.7. Only the elements that a snapshot needs are taken.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from xml.parsers import expat

from bulk_jobs.shared.sboms.bill import Bill, BillFlaw
from bulk_jobs.shared.sboms.cyclonedx import NOT_AT_RUN_TIME
from bulk_jobs.shared.sboms.plain_xml import Unplain, read_plain

NAMESPACE = "http://cyclonedx.org/schema/bom/"
STEP_BYTES = 64 * 1024
"""How much XML is parsed before its elements are taken and dropped (bytes): they need seven times as much memory."""


def read_xml(data: bytes) -> Bill:
    """Read CycloneDX XML; a document type, which could name other files or grow without end, is refused.

    Raises:
        BillFlaw: the data is not well-formed, or not CycloneDX.
    """
    try:
        space = _space_of(data)
        with suppress(Unplain):
            return read_plain(data, space, lambda head: read_tree(head, space))
        return read_tree(data, space)
    except BillFlaw:
        raise
    except (
        expat.ExpatError,
        ParseError,
        LookupError,
        ValueError,
    ) as error:  # the last two come from the encoding that the data names
        raise BillFlaw(f"is not XML that can be read: {error}") from None


def read_tree(data: bytes, space: str) -> Bill:
    """Read CycloneDX XML by way of a tree, whether it is plain or not; `space`: its namespace.

    Raises:
        ParseError: the data is not well-formed. LookupError, ValueError: its encoding can't be read.
    """
    return _Xml(space).read(data)


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
    """One pass over the elements. The parser makes a tree of them, which takes half the time of two calls for each
    element; the part of the tree that was taken is dropped while the tree grows.
    """

    def __init__(self, space: str) -> None:
        self._bill = Bill()
        self._prefix = f"{{{space}}}"  # elements of other namespaces may have the same names
        self._component, self._components = self._prefix + "component", self._prefix + "components"
        self._name, self._purl, self._scope = (self._prefix + name for name in ("name", "purl", "scope"))

    def read(self, data: bytes) -> Bill:
        """Parse the data and return the bill."""
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
        """Take the elements that have been parsed, and drop them.

        The first `whole` sections have been parsed to their end; of a further section, the last element may be
        incomplete.
        """
        for place, section in enumerate(bom):
            read = section[:] if place < whole else section[:-1]
            match section.tag.removeprefix(self._prefix):
                case "metadata":
                    self._take_metadata(read)
                case "components":
                    self._bill.add(self._all(read))
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
                self._bill.add(self._all(element.iterfind(f"{self._components}/{self._component}")))
            elif element.tag == self._prefix + "timestamp":
                self._bill.created = (element.text or "").strip()

    def _all(self, elements: Iterable[Element]) -> Iterator[tuple[str, str, bool]]:
        component, left = self._component, [iter(elements)]  # a stack, so that components may be nested to any depth
        while left:
            for element in left[-1]:
                if element.tag != component:
                    continue
                url, scope = element.findtext(self._purl, ""), element.findtext(self._scope, "")
                yield element.get("bom-ref", ""), url.strip(), scope.strip() in NOT_AT_RUN_TIME
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
