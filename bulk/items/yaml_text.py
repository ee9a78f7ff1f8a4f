"""YAML 1.2 as plain data with the line of each value. ruamel.yaml parses; this module builds, and refuses dangers.

Anchors, aliases, tags, merge keys, further documents and other YAML versions are refused before anything is built
(failures.md row 60); `no` and `2026-11-21` stay strings; numbers that JSON can't carry are refused. Only None, bool,
int, float, str, dict and list are constructed.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from bulk.flaws import name_shown
from bulk.items.lines import MOST_LINE_BYTES, TOO_LONG, Bad, Given, Read, Row, SourceFlaw, decoded, lines
from bulk.items.yaml_lines import SimpleItems
from bulk.operation import ItemFlaw

MOST_DEPTH = 64
"""How deep lists and objects may be nested (count)."""

Scalar: TypeAlias = bool | int | float | str | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(
    r"(?P<whole>[-+]?[0-9]+)|(?P<based>0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|(?P<real>[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)"
    r"|(?P<none>[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))"
)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_DIGITS = 400


@dataclass(slots=True)
class Node:
    """A value and its line (from 1): the line of its key within an object, or of its own start within a list."""

    value: "Scalar | dict[str, Node] | list[Node]"
    line: int

    def plain(self) -> Any:
        """Return the value as JSON knows it, without lines."""
        match self.value:
            case dict():
                return {name: child.plain() for name, child in self.value.items()}
            case list():
                return [child.plain() for child in self.value]
            case _:
                return self.value

    def places(self, prefix: str = "") -> dict[str, int]:
        """Return the line of every field within the value, keyed by its dotted name as in `rules[0].type`; `""` is the
        value itself."""
        found = {prefix: self.line}
        match self.value:
            case dict():
                for name, child in self.value.items():
                    found |= child.places(f"{prefix}.{name}" if prefix else name)
            case list():
                for number, child in enumerate(self.value):
                    found |= child.places(f"{prefix}[{number}]")
        return found


def read_document(read: Read) -> tuple[Node | None, list[tuple[int, ItemFlaw]]]:
    """Return the one document in the text that `read` gives, or None if that is empty, and its repeated keys: (line,
    flaw) each.

    Raises:
        SourceFlaw: the text can't be read.
    """
    builder = _Builder(_Text(read))
    root = builder.node(event) if (event := builder.next()) else None
    builder.next()
    return root, builder.repeated


def stream_list(read: Read) -> Iterator[list[Row]]:
    """Yield the elements of a list that is the whole document, one at a time; an element with keys that were given
    twice is `Bad`.

    Raises:
        SourceFlaw: the text can't be read, or is not a list.
    """
    simple, text = SimpleItems(_resolved), _Text(read)
    if (yield from simple.stream(text.batches)):
        return
    text.begin(simple.rows)
    builder = _Builder(text)
    root = builder.next()
    if root is None:
        return
    builder.refuse_special(root, "")
    if not _is(root, "SequenceStart"):
        got = "an object" if _is(root, "MappingStart") else "a single value"
        raise SourceFlaw(f"expected a list of items, got {got}", builder.line(root))
    while not _is(event := builder.next(), "SequenceEnd"):
        builder.begin_item()
        node = builder.node(event, depth=1)
        repeated = tuple(builder.repeated)
        yield [(node.line, 0, Bad(repeated) if repeated else Given(node.plain(), node.places()))]
    builder.next()


class _Text:
    """The text that ruamel reads, line by line: so the line of a flaw is known, and memory is bounded by one item.

    Attributes:
        batches: the lines that were not read yet.
        before: how many lines ruamel does not see, because they were read without it.
    """

    def __init__(self, read: Read) -> None:
        self._read, self._last = read, b""
        self.batches = lines(self._noting_last)
        self._texts = self._lines()
        self.line, self.item_bytes, self.before = 1, 0, 0

    def begin(self, rows: list[Row]) -> None:
        """Let ruamel read from these rows on, which were taken out of `batches`."""
        if rows:
            self.batches = chain([rows], self.batches)
            self.line, self.before = rows[0][0], rows[0][0] - 1

    def read(self, _size: int = -1, /) -> str:
        return next(self._texts, "")

    def _lines(self) -> Iterator[str]:
        text: str | None = None
        for line, _, data in chain.from_iterable(self.batches):
            if text is not None:
                self.line = line - 1
                yield text + "\n"
            if not isinstance(data, bytes) or self.item_bytes + len(data) >= MOST_LINE_BYTES:
                raise SourceFlaw(f"an item is {TOO_LONG}", line)
            self.item_bytes += len(data) + 1
            text = decoded(data, line)
            if found := _UNPRINTABLE.search(text):
                raise SourceFlaw(f"holds the character U+{ord(found[0]):04X}, which no YAML text may hold", line)
        if text is not None:
            yield text + ("\n" if self._last == b"\n" else "")  # the newline may belong to the last value

    def _noting_last(self, count: int) -> bytes:
        data = self._read(count)
        self._last = data[-1:] or self._last
        return data


class _Builder:
    """Builds nodes from the events of ruamel's parser. `repeated`: the keys of the item that were given twice."""

    def __init__(self, text: _Text) -> None:
        self._text = text
        self._events = _events(text)
        self.repeated: list[tuple[int, ItemFlaw]] = []

    def begin_item(self) -> None:
        """Note that the events that follow belong to the next item."""
        self._text.item_bytes = 0
        self.repeated.clear()

    def next(self) -> Any:
        """Return the next event; None at the end."""
        return next(self._events, None)

    def line(self, event: Any) -> int:
        """Return the line of an event in the whole text."""
        return _line(event, self._text)

    def node(self, event: Any, name: str = "", depth: int = 0) -> Node:
        """Return the value that begins with `event`; `name`: its dotted name. `depth`: in how many lists and
        objects it is nested."""
        self.refuse_special(event, name)
        line = self.line(event)
        if _is(event, "Scalar"):
            text = _characters(event.value, line, name)
            return Node(_resolved(text, line, name) if event.implicit[0] else text, line)
        if depth >= MOST_DEPTH:
            raise SourceFlaw(f"nested more than {MOST_DEPTH} deep", line, re.split(r"[.\[]", name)[0])
        if _is(event, "MappingStart"):
            return Node(self._fields(name, depth), line)
        entries: list[Node] = []
        while not _is(inner := self.next(), "SequenceEnd"):
            entries.append(self.node(inner, f"{name}[{len(entries)}]", depth + 1))
        return Node(entries, line)

    def _fields(self, name: str, depth: int) -> dict[str, Node]:
        fields: dict[str, Node] = {}
        while not _is(event := self.next(), "MappingEnd"):
            self.refuse_special(event, name)
            line = self.line(event)
            if not _is(event, "Scalar"):
                raise SourceFlaw("a key must be a word, not a list or an object", line, name)
            if event.value == "<<" and event.implicit[0]:
                raise SourceFlaw("merge keys (<<) are refused; write the fields out", line, name)
            key = _characters(event.value, line, name)
            full_name = f"{name}.{name_shown(key)}" if name else name_shown(key)
            node = self.node(self.next(), full_name, depth + 1)
            node.line = line
            if fields.setdefault(key, node) is not node:
                message = f"given twice; first on line {fields[key].line}"
                self.repeated.append((line, ItemFlaw(full_name, message)))
        return fields

    def refuse_special(self, event: Any, name: str) -> None:
        """Refuse an event that would copy another value, or make an object of a class."""
        if _is(event, "Alias"):
            raise SourceFlaw("aliases (*name) are refused; write the value out", self.line(event), name)
        if event.anchor is not None:
            message = "anchors (&name) are refused; write the value out where it is used"
            raise SourceFlaw(message, self.line(event), name)
        if event.tag is not None:
            raise SourceFlaw("tags (!name) are refused; put text in quotes to keep it text", self.line(event), name)


def _is(event: Any, kind: str) -> bool:
    return type(event).__name__ == f"{kind}Event"


def _line(event: Any, text: _Text) -> int:
    return text.before + int(event.start_mark.line) + 1


def _events(text: _Text) -> Iterator[Any]:
    """Yield the events of the one document."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    documents = 0
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            if _is(event, "DocumentStart"):
                documents += 1
                if documents > 1:
                    raise SourceFlaw("a second document (---) is refused; one file holds one", _line(event, text))
                if event.version not in (None, (1, 2)) or event.tags:
                    raise SourceFlaw("directives are refused; the file is read as YAML 1.2", _line(event, text))
            elif not any(_is(event, kind) for kind in ("StreamStart", "StreamEnd", "DocumentEnd")):
                yield event
    except SourceFlaw:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if "'\\t'" in str(error.problem):
            message = f"there is a tab in column {mark.column + 1 if mark else 1}; YAML is indented with spaces alone"
            raise SourceFlaw(message, text.before + mark.line + 1 if mark else text.line) from None
        context = f"{error.context}: " if error.context else ""
        raise SourceFlaw(
            f"not YAML: {context}{error.problem}", text.before + mark.line + 1 if mark else text.line
        ) from None
    except (YAMLError, ValueError, OverflowError):
        raise SourceFlaw("not YAML: an escape or a directive can't be read", text.line) from None


def _characters(text: str, line: int, name: str) -> str:
    """Return `text` with the two halves of each surrogate pair joined, as JSON writes characters beyond U+FFFF."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise SourceFlaw("holds a lone surrogate (\\ud800 to \\udfff), which is not a character", line, name) from None


def _resolved(text: str, line: int, name: str) -> Scalar:
    """Return the value of a scalar without quotes in the core schema of YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    found = _NUMBER.fullmatch(text) if len(text) <= _MOST_DIGITS else None
    match found.lastgroup if found else None:
        case "whole":
            return int(text)
        case "based":
            return int(text, 0)
        case "real" if math.isfinite(float(text)):
            return float(text)
        case "real":
            raise SourceFlaw("the number is too large; put it in quotes to keep it text", line, name)
        case "none":
            raise SourceFlaw("JSON has no such number; put it in quotes to keep it text", line, name)
    return text
