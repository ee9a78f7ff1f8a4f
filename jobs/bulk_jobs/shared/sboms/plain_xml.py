"""CycloneDX as XML in the plain form that most tools write, taken from its text: no object is made of an element.

Plain means: no comments, instructions or CDATA, the usual encoding, and one namespace of its own, which is the default
one. Once expat has found such a text well-formed, `<` begins tags and nothing else, and three rules hold:

- A tag that begins an element, text, and a tag that ends one belong together.
- The first `</component>` after a `<component` ends it, unless another one begins between.
- What follows the end of a component, and no more than white space, lies in the same list.

What is written in another way is `Unplain`, and a tree is made of it.
"""

import re
from collections.abc import Callable, Iterator
from typing import NoReturn
from xml.parsers import expat

from bulk_jobs.shared.sboms.bill import Bill
from bulk_jobs.shared.sboms.cyclonedx import NOT_AT_RUN_TIME

STEP_BYTES = 64 * 1024
"""So much is decoded at once (bytes), or one component where it is larger."""

_BOM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?[^>]*>)?\s*<bom(?:\s[^>]*)?(?<!/)>")
_SECTION = re.compile(rb"\s*<([A-Za-z]+)(?:\s[^>]*|/)?>")
_END = re.compile(rb"\s*</bom\s*>\s*")

_ATTRIBUTES = r'(?:\s(?!bom-ref)[^\s=">]++="[^"]*+")*+'
_FLAT = r"(?:<(?!component|purl|scope)[^/>][^>]*+(?<!/)>[^<]*+</[^>]*+>\s*+)*+"
"""Children that hold a text and no more. Possessive, as all repetitions: what does not match takes no more time."""
_COMPONENT = re.compile(
    rf'<component{_ATTRIBUTES}(?:\sbom-ref="([^"]*+)")?+{_ATTRIBUTES}>\s*+'
    rf"{_FLAT}(?:<scope>([^<]*+)</scope>\s*+)?+{_FLAT}((?:<(?!/?component|purl)[^<]*+)*+)"
    r"(?:<purl>([^<]*+)</purl>\s*+)?+((?:<(?!/?component|scope)[^<]*+)*+)(?:</component>|(<components>))"
)
_LISTS_CLOSED = re.compile(r"\s*+(?:</components>\s*+</component>\s*+)*+")

_CLOSE, _NEXT = r"(?:/|>\s*</dependency\s*)>", r"\s*<dependency\s+ref="
_FIRST, _CHILD, _SIBLING = re.compile(_NEXT), re.compile(f">{_NEXT}"), re.compile(f"{_CLOSE}{_NEXT}")
_ABOVE = re.compile(rf"{_CLOSE}\s*</dependency\s*>{_NEXT}")
_LAST = re.compile(rf"{_CLOSE}\s*(?:</dependency\s*>\s*)?|\s*")
"""What stands before the reference of a dependency: of the first, of the first child, of others; after the last."""


_ENTITIES = ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")


class Unplain(Exception):
    """A bill is written in another way."""


def read_plain(data: bytes, space: str, read_head: Callable[[bytes], Bill]) -> Bill:
    """Read a bill.

    Args:
        space: the namespace of its first element.
        read_head: reads a bill that has metadata alone.

    Raises:
        Unplain: it is written in another way. ExpatError: it is not well-formed.
    """
    _look_at(data, space)
    sections = dict(_sections(data))
    bill = read_head(data[: sections["metadata"][1]] + b"</metadata></bom>") if "metadata" in sections else Bill()
    if "components" in sections:
        _take_components(_pieces(data, *sections["components"], b"<component "), bill)
    if "dependencies" in sections:
        _take_dependencies(_pieces(data, *sections["dependencies"], b"<dependency "), bill)
    return bill


def _look_at(data: bytes, space: str) -> None:
    """Have it parsed, which makes nothing of it."""
    parser, defaults = expat.ParserCreate(namespace_separator=" "), 0

    def declared(prefix: str | None, name: str) -> None:
        nonlocal defaults
        defaults += prefix is None
        if defaults > 1 or (prefix is None) != (name == space):
            raise Unplain

    def encoded(_version: str, encoding: str | None, _is_alone: int) -> None:
        if encoding and encoding.casefold() not in ("utf-8", "us-ascii"):
            raise Unplain

    parser.StartNamespaceDeclHandler = declared
    parser.XmlDeclHandler = encoded
    parser.CommentHandler = parser.ProcessingInstructionHandler = parser.StartCdataSectionHandler = _refuse
    parser.Parse(data, True)


def _refuse(*_: object) -> NoReturn:
    raise Unplain


def _sections(data: bytes) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name of each element within the first one, and where its content begins and ends."""
    seen, begin = set[bytes](), _BOM.match(data)
    at = begin.end() if begin else 0
    while section := _SECTION.match(data, at):
        name, at = section[1], section.end()
        if name in seen:
            raise Unplain
        seen.add(name)
        if data[at - 2 : at] == b"/>":
            continue
        start, close = at, b"</%b>" % name
        if name == b"components":  # there are others in it, which are looked at as they are taken
            at = data.rfind(close, start)
        else:
            at = data.find(close, start)
            if data.find(b"<" + name, start, at) >= 0:
                raise Unplain
        if at < 0:
            raise Unplain
        yield name.decode(), (start, at)
        at += len(close)
    if not _END.fullmatch(data, at):
        raise Unplain


def _pieces(data: bytes, start: int, end: int, mark: bytes) -> Iterator[str]:
    """Yield the text there in pieces, all of which begin with `mark` but the first."""
    while start < end:
        stop = end
        if start + STEP_BYTES < end:
            stop = data.rfind(mark, start + 1, start + STEP_BYTES)
            stop = data.find(mark, start + STEP_BYTES, end) if stop < 0 else stop
            stop = end if stop < 0 else stop
        text = data[start:stop].decode()
        yield text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        start = stop


def _take_components(pieces: Iterator[str], bill: Bill) -> None:
    """Take components, and those in each other: a bill does not tell them apart."""
    depth = 0
    for text in pieces:
        parts = _COMPONENT.split(text)
        between, references, scopes, deep, urls, rest, parents = (
            parts[place :: _COMPONENT.groups + 1] for place in range(_COMPONENT.groups + 1)
        )
        depth += len(list(filter(None, parents))) - sum(map(_lists_closed, filter(None, between)))
        if any(deep) or any(parents):
            _refuse_deeper(deep, urls, rest, parents)
            scopes = [scope or _scope(text) for scope, text in zip(scopes, deep, strict=True)]
        urls = [url.strip() if url else "" for url in urls]
        if "&" in text:
            urls = [_value(url) if "&" in url else url for url in urls]
            references = [
                _value(reference) if reference and "&" in reference else reference for reference in references
            ]
        bill.add(zip(references, urls, map(_is_development, scopes), strict=False))
    if depth:
        raise Unplain


def _is_development(scope: str | None) -> bool:
    return scope is not None and scope.strip() in NOT_AT_RUN_TIME


def _refuse_deeper(deep: list[str], urls: list[str | None], rest: list[str], parents: list[str | None]) -> None:
    """Refuse package URLs, and lists of components, that do not lie in the component itself."""
    for before, url, after, parent in zip(deep, urls, rest, parents, strict=True):
        if (before and (url or parent) and _is_deeper(before)) or (parent and after and _is_deeper(after)):
            raise Unplain


def _scope(deep: str) -> str | None:
    """Return the scope that stands after children which hold others."""
    before, found, after = deep.partition("<scope")
    if not found:
        return None
    if after[0] != ">" or _is_deeper(before):
        raise Unplain
    return after[1:].partition("<")[0]


def _value(text: str) -> str:
    """Return what a text or the value of an attribute says."""
    if "&" not in text:
        return text
    if "&#" in text:
        raise Unplain
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def _is_deeper(text: str) -> bool:
    """Return whether the end of `text` lies deeper than its beginning: so many tags begin in it, and do not end."""
    tags, ends = text.count("<"), text.count("</")
    if tags == 2 * ends:
        return False
    if tags != text.count(">"):  # one stands in a text or an attribute, and could look like the end of a tag
        raise Unplain
    return tags != 2 * ends + text.count("/>")


def _lists_closed(tail: str) -> int:
    """Return how many lists of components, and what they lie in, end after a component."""
    if not _LISTS_CLOSED.fullmatch(tail):
        raise Unplain
    return tail.count("</components>")


def _take_dependencies(pieces: Iterator[str], bill: Bill) -> None:
    """Take dependencies, and what each depends on."""
    kinds, before = _Kinds(), ""
    is_child, children = False, list[str]()
    for text in pieces:
        parts = (before + text).split('"')
        before = parts.pop()
        references = parts[1::2]
        if "&" in text:
            references = [_value(reference) for reference in references]
        for kind, reference in zip(map(kinds.__getitem__, parts[::2]), references, strict=True):
            if kind is not _SIBLING:
                if kind is _CHILD and is_child:
                    raise Unplain
                is_child = kind is _CHILD
            if is_child:
                children.append(reference)
            else:
                children = bill.depends_on.setdefault(reference, [])
    if not _LAST.fullmatch(before):
        raise Unplain


class _Kinds(dict[str, "re.Pattern[str]"]):
    """What stands between two references, told once for each way in which it is written."""

    def __missing__(self, between: str) -> "re.Pattern[str]":
        expected = (_SIBLING, _CHILD, _ABOVE) if self else (_FIRST,)
        for kind in expected:
            if kind.fullmatch(between):
                self[between] = kind
                return kind
        raise Unplain
