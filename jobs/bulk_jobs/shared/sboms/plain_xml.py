"""CycloneDX as XML in the plain form that most tools write, read from its text without an object for each element.

Plain means: no comments, instructions or CDATA, the usual encoding, and the namespace of CycloneDX alone as the default
one. The text of the dependencies is matched to the last character: a text that does not follow their form is refused,
so that expat need not parse it. Once expat has found the rest well-formed, `<` begins tags and nothing else, and three
rules hold:

- A tag that begins an element, text, and a tag that ends an element, in this order, belong together.
- The first `</component>` after a `<component` ends it, unless another component begins between them.
- An element that follows the end of a component, with only white space between, lies in the same list.

A bill that is written in another way is `Unplain`, and is read by way of a tree.
"""

import re
from collections.abc import Callable, Iterator
from typing import NoReturn
from xml.parsers import expat

from bulk_jobs.shared.sboms.bill import Bill
from bulk_jobs.shared.sboms.cyclonedx import NOT_AT_RUN_TIME

STEP_BYTES = 64 * 1024
"""How much is decoded at once (bytes), or one component where that is larger."""

_BOM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?[^>]*>)?\s*<bom(?:\s[^>]*)?(?<!/)>")
_SECTION = re.compile(rb"\s*<([A-Za-z]+)(?:\s[^>]*|/)?>")
_END = re.compile(rb"\s*</bom\s*>\s*")

_SPACE = r"[ \n\t]"
"""White space of XML, once its line ends are line feeds."""
_ATTRIBUTES = rf'(?:{_SPACE}[^b \n\t/>][^=]*+="[^"]*+")*+'
"""The attributes of a component other than `bom-ref`, which alone begins with a b."""
_FLAT = rf"(?:<(?!component|purl|scope)[^/>][^>]*+(?<!/)>[^<]*+</[^>]*+>{_SPACE}*+)*+"
"""Children that hold only a text. All repetitions are possessive: a text that does not match takes no longer."""
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
"""The text before the reference of a dependency: of the first child, of a sibling, and of the parent's sibling after
the last child."""
_LAST, _LAST_CHILD = (re.compile(rf"{_CLOSE}{_SPACE}*{end}") for end in ("", rf"</dependency{_SPACE}*>{_SPACE}*"))
"""The text after the last dependency, where that is not a child, and where it is a child."""

_ENTITIES = ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")


class Unplain(Exception):
    """A bill is written in another way."""


def read_plain(data: bytes, space: str, read_head: Callable[[bytes], Bill]) -> Bill:
    """Read a bill in the plain form.

    Args:
        space: the namespace of its first element.
        read_head: reads a bill that has metadata alone.

    Raises:
        Unplain: the bill is written in another way, or is not well-formed.
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
    """Have expat check the data without the part from `start` to `end`; nothing is made from it."""
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
    except expat.ExpatError:  # reading by way of a tree reports where
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
        if name == b"components":  # others may be nested in it, which are checked when they are taken
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
    """Yield the text from `start` to `end` in pieces, each of which, except the first, begins with `mark`."""
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
    """Add components to the bill, nested ones too, which a bill does not tell apart."""
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
    """Return the scope of a component that follows children with elements in them; None where there is no scope."""
    before, found, after = deep.partition("<scope")
    if not found:
        return None
    if after[0] != ">" or _is_deeper(before):
        raise Unplain
    return after[1:].partition("<")[0]


def _value(text: str) -> str:
    """Return a text, or the value of an attribute, with its entities replaced."""
    if text.count("&") == text.count("&amp;"):
        return text.replace("&amp;", "&")
    if text.count("&") != sum(text.count(entity) for entity, _ in _ENTITIES):
        raise Unplain
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def _is_deeper(text: str) -> bool:
    """Return whether the end of `text` lies deeper than its beginning: more elements begin in it than end."""
    tags, ends = text.count("<"), text.count("</")
    if tags == 2 * ends:
        return False
    if tags != text.count(">"):  # a `>` in a text or an attribute could look like the end of a tag
        raise Unplain
    return tags != 2 * ends + text.count("/>")


def _lists_closed(tail: str) -> int:
    """Return how many lists of components, with the components that they belong to, end after a component."""
    if not _LISTS_CLOSED.fullmatch(tail):
        raise Unplain
    return tail.count("</components>")


def _take_dependencies(pieces: Iterator[str], bill: Bill) -> None:
    """Add dependencies to the bill. Expat has not checked this text, so all that expat would refuse is refused here."""
    kinds, before = _Kinds(), "/>"  # as if a dependency had ended before, so that the first one is like the others
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
    """Text between two references -> its kind, found out once for each way in which it is written."""

    def __missing__(self, between: str) -> "re.Pattern[str]":
        for kind in (_SIBLING, _CHILD, _ABOVE):
            if kind.fullmatch(between):
                self[between] = kind
                return kind
        raise Unplain
