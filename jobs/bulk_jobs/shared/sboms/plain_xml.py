"""CycloneDX as XML in the plain form that most tools write, taken from its text: no object is made of an element.

Plain means: no comments, instructions or CDATA, the usual encoding, and one namespace of its own, which is the default
one. Dependencies are told by their whole text: what does not follow their form to the last character is refused, so
that expat need not look at them. Once it has found the rest well-formed, `<` begins tags and nothing else, and three
rules hold:

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

_SPACE = r"[ \n\t]"
"""White space as XML has it, once its lines end as everywhere."""
_ATTRIBUTES = rf'(?:{_SPACE}[^b \n\t/>][^=]*+="[^"]*+")*+'
"""No other attribute of a component begins with a b."""
_FLAT = rf"(?:<(?!component|purl|scope)[^/>][^>]*+(?<!/)>[^<]*+</[^>]*+>{_SPACE}*+)*+"
"""Children that hold a text and no more. Possessive, as all repetitions: what does not match takes no more time."""
_COMPONENT = re.compile(
    rf'<component{_ATTRIBUTES}(?:{_SPACE}bom-ref="([^"\n\t]*+)"{_ATTRIBUTES})?+>{_SPACE}*+'
    rf"{_FLAT}(?:<scope>([^<]*+)</scope>{_SPACE}*+{_FLAT})?+((?:<(?!/?component|purl)[^<]*+)*+)"
    rf"(?:<purl>([^<]*+)</purl>{_SPACE}*+)?+"
    r"(?:</component>|((?:<(?!/?component|scope)[^<]*+)*+)(?:</component>|(<components>)))"
)
_LISTS_CLOSED = re.compile(rf"{_SPACE}*+(?:</components>{_SPACE}*+</component>{_SPACE}*+)*+")

_CLOSE, _NEXT = rf"(?:/|>{_SPACE}*</dependency{_SPACE}*)>", rf"{_SPACE}*<dependency{_SPACE}+ref="
_CHILD, _SIBLING = re.compile(f">{_NEXT}"), re.compile(f"{_CLOSE}{_NEXT}")
_ABOVE = re.compile(rf"{_CLOSE}{_SPACE}*</dependency{_SPACE}*>{_NEXT}")
"""What stands before the reference of a dependency: of the first child, of others, and after the last child."""
_LAST, _LAST_CHILD = (re.compile(rf"{_CLOSE}{_SPACE}*{end}") for end in ("", rf"</dependency{_SPACE}*>{_SPACE}*"))
"""What stands after the last dependency, and where it is a child."""

_ENTITIES = ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")


class Unplain(Exception):
    """A bill is written in another way."""


def read_plain(data: bytes, space: str, read_head: Callable[[bytes], Bill]) -> Bill:
    """Read a bill.

    Args:
        space: the namespace of its first element.
        read_head: reads a bill that has metadata alone.

    Raises:
        Unplain: it is written in another way, or not well-formed.
    """
    sections = dict(_sections(data))
    _look_at(data, space, *sections.get("dependencies", (0, 0)))
    bill = read_head(data[: sections["metadata"][1]] + b"</metadata></bom>") if "metadata" in sections else Bill()
    if "components" in sections:
        _take_components(_pieces(data, *sections["components"], b"<component "), bill)
    if "dependencies" in sections:
        _take_dependencies(_pieces(data, *sections["dependencies"], b"<dependency "), bill)
    return bill


def _look_at(data: bytes, space: str, start: int, end: int) -> None:
    """Have it parsed but for what lies there, which makes nothing of it."""
    parser, defaults = expat.ParserCreate(namespace_separator=" "), 0

    def declared(prefix: str | None, name: str) -> None:
        nonlocal defaults
        defaults += prefix is None
        if defaults > 1 or (prefix is None) != (name == space):
            raise Unplain

    def encoded(_version: str, encoding: str | None, _is_alone: int) -> None:
        if encoding and encoding.casefold() != "utf-8" and not (encoding.casefold() == "us-ascii" and data.isascii()):
            raise Unplain

    parser.StartNamespaceDeclHandler = declared
    parser.XmlDeclHandler = encoded
    parser.CommentHandler = parser.ProcessingInstructionHandler = parser.StartCdataSectionHandler = _refuse
    whole = memoryview(data)
    try:
        parser.Parse(b"".join((whole[:start], whole[end:])), True)
    except expat.ExpatError:  # the tree says where
        raise Unplain from None


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
            if name != b"dependencies" and data.find(b"<" + name, start, at) >= 0:
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
        try:
            text = data[start:stop].decode()
        except UnicodeDecodeError:
            raise Unplain from None
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
            scopes = [scope or _scope(before) for scope, before in zip(scopes, deep, strict=True)]
        urls = [url.strip() if url else "" for url in urls]
        if "&" in text:
            urls = [_value(url) if "&" in url else url for url in urls]
            references = [
                _value(reference) if reference and "&" in reference else reference for reference in references
            ]
        is_development = [scope is not None and scope.strip() in NOT_AT_RUN_TIME for scope in scopes]
        bill.add(zip(references, urls, is_development, strict=False))
    if depth:
        raise Unplain


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
    if text.count("&") == text.count("&amp;"):
        return text.replace("&amp;", "&")
    if text.count("&") != sum(text.count(entity) for entity, _ in _ENTITIES):
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
    """Take dependencies, and what each depends on; expat has not seen them, and all that it would refuse is."""
    kinds, before = _Kinds(), "/>"  # as if one had ended, with which the first one is as the others
    is_child, children, sibling = False, list[str](), _SIBLING
    for text in pieces:
        parts = (before + text).split('"')
        before = parts.pop()
        references = parts[1::2]
        joined = "".join(references)
        if len(parts) % 2 or "<" in joined or not joined.isprintable():
            raise Unplain
        if "&" in joined:
            references = [_value(reference) for reference in references]
        for kind, reference in zip(map(kinds.__getitem__, parts[::2]), references, strict=True):
            if kind is not sibling:
                if (kind is _ABOVE) is not is_child:
                    raise Unplain
                is_child = not is_child
            if is_child:
                children.append(reference)
            else:
                children = bill.depends_on.setdefault(reference, [])
    if not (_LAST_CHILD if is_child else _LAST).fullmatch(before):
        raise Unplain


class _Kinds(dict[str, "re.Pattern[str]"]):
    """What stands between two references, told once for each way in which it is written."""

    def __missing__(self, between: str) -> "re.Pattern[str]":
        for kind in (_SIBLING, _CHILD, _ABOVE):
            if kind.fullmatch(between):
                self[between] = kind
                return kind
        raise Unplain
