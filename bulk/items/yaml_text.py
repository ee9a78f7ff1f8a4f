"""YAML 1.2 as plain data with the line of everything. ruamel.yaml parses, we build and refuse what is dangerous.

Anchors, aliases, tags, merge keys, further documents and other YAML versions are refused before anything is built
(failures.md row 60); `no` and `2026-11-21` stay strings; numbers that JSON can't carry are refused. Nothing is
constructed but None, bool, int, float, str, dict and list.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from bulk.flaws import name_shown

MOST_DEPTH = 64
"""How deep lists and objects may be nested (count)."""

Scalar: TypeAlias = bool | int | float | str | None

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_DIGITS = 400


class YamlFlaw(ValueError):
    """The text is not YAML that we take.

    Attributes:
        line: where, counted from 1.
        field: dotted name of the field, as far as it is known.
        message: what is wrong.
    """

    def __init__(self, line: int, message: str, field: str = "") -> None:
        super().__init__(f"line {line}: {message}")
        self.line, self.field, self.message = line, field, message


@dataclass(slots=True)
class Node:
    """A value and its line (from 1): the line of its key within an object, of its own start within a list."""

    value: "Scalar | dict[str, Node] | list[Node]"
    line: int

    def plain(self) -> Any:
        """The value as JSON knows it, without lines."""
        match self.value:
            case dict():
                return {name: child.plain() for name, child in self.value.items()}
            case list():
                return [child.plain() for child in self.value]
            case _:
                return self.value

    def places(self, prefix: str = "") -> dict[str, int]:
        """The line of every field within, keyed by its dotted name as in `rules[0].type`; `""` is the value itself."""
        found = {prefix: self.line}
        match self.value:
            case dict():
                for name, child in self.value.items():
                    found |= child.places(f"{prefix}.{name}" if prefix else name)
            case list():
                for number, child in enumerate(self.value):
                    found |= child.places(f"{prefix}[{number}]")
        return found


class TextSource(Protocol):
    """What text is read from."""

    def read(self, size: int = -1, /) -> str:
        """Up to `size` characters; empty at the end."""


def flaw_of_text(text: str, line: int = 1) -> YamlFlaw | None:
    """The first character that no YAML text may hold, where there is one; `line` is that of the text's first."""
    found = _UNPRINTABLE.search(text)
    if found is None:
        return None
    char = found[0]
    what = "a NUL character" if char == "\0" else f"the character U+{ord(char):04X}"
    return YamlFlaw(line + text.count("\n", 0, found.start()), f"holds {what}, which no YAML text may hold")


def read_document(text: str) -> tuple[Node | None, list[YamlFlaw]]:
    """The one document in `text`, or None where it is empty, and the keys that were given twice.

    Raises:
        YamlFlaw: it can't be read.
    """
    flaw = flaw_of_text(text)
    if flaw:
        raise flaw
    builder = _Builder()
    root: Node | None = None
    for event in _events(text):
        built = builder.take(event)
        root = root if built is None else built
    return root, builder.flaws


def stream_list(source: TextSource) -> Iterator[tuple[Node, list[YamlFlaw]]]:
    """The elements of a list that is the whole document, one at a time, each with its keys that were given twice.

    Raises:
        YamlFlaw: it can't be read, or is not a list.
    """
    builder = _Builder(is_list_streamed=True)
    for event in _events(source):
        built = builder.take(event)
        if built is not None:
            yield built, builder.flaws
            builder.flaws = []


def _events(source: "str | TextSource") -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        yield from YAML(typ="safe", pure=True).parse(source)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        context = f"{error.context}: " if error.context else ""
        raise YamlFlaw((mark.line if mark else 0) + 1, f"not YAML: {context}{error.problem}") from None
    except YAMLError as error:
        raise YamlFlaw(1, f"not YAML: {str(error).splitlines()[0]}") from None
    except (ValueError, OverflowError) as error:
        if type(error) is not ValueError and not isinstance(error, OverflowError):
            raise  # the source's own
        raise YamlFlaw(1, "not YAML: an escape or a directive can't be read") from None


@dataclass(slots=True)
class _Open:
    """A list or an object that is being built. `key` is the name whose value comes next."""

    node: Node
    name: str
    is_root_list: bool = False
    key: str | None = None
    key_line: int = 0
    count: int = 0


@dataclass(slots=True)
class _Builder:
    """Events in, finished nodes out, with a stack of our own: no nesting of the text can exhaust Python's."""

    is_list_streamed: bool = False
    flaws: list[YamlFlaw] = field(default_factory=list)
    _stack: list[_Open] = field(default_factory=list)
    _documents: int = 0

    def take(self, event: Any) -> Node | None:
        """The root, or with `is_list_streamed` an element of the root list, when `event` finishes one."""
        kind, line = type(event).__name__, event.start_mark.line + 1 if event.start_mark else 1
        match kind:
            case "ScalarEvent":
                self._refuse_special(event, line)
                return self._put_scalar(event, line)
            case "MappingStartEvent" | "SequenceStartEvent":
                self._refuse_special(event, line)
                self._open(kind == "MappingStartEvent", line)
            case "MappingEndEvent" | "SequenceEndEvent":
                top = self._stack.pop()
                return None if top.is_root_list else self._put(top.node)
            case "AliasEvent":
                raise YamlFlaw(line, "aliases (*name) are refused; write the value out", self._where())
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise YamlFlaw(line, "a second document (---) is refused; one file holds one")
                if event.version not in (None, (1, 2)) or event.tags:
                    raise YamlFlaw(line, "directives are refused; the file is read as YAML 1.2")
        return None

    def _refuse_special(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            raise YamlFlaw(line, "anchors (&name) are refused; write the value out where it is used", self._where())
        if event.tag is not None:
            raise YamlFlaw(line, "tags (!name) are refused; put text in quotes to keep it text", self._where())

    def _where(self) -> str:
        """Dotted name of what comes next."""
        if not self._stack:
            return ""
        top = self._stack[-1]
        return top.name if top.key is None else _joined(top.name, top.key)

    def _open(self, is_object: bool, line: int) -> None:
        if self.is_list_streamed and not self._stack:
            if is_object:
                raise YamlFlaw(line, "expected a list of items, got an object")
            self._stack.append(_Open(Node([], line), "", is_root_list=True))
            return
        if len(self._stack) >= MOST_DEPTH:
            raise YamlFlaw(line, f"nested more than {MOST_DEPTH} deep", self._stack[1].name)
        name, at = "", line
        if self._stack:
            top = self._stack[-1]
            if isinstance(top.node.value, dict):
                if top.key is None:
                    raise YamlFlaw(line, "a key must be a word, not a list or an object", top.name)
                name, at = _joined(top.name, top.key), top.key_line
            elif not top.is_root_list:
                name = f"{top.name}[{len(top.node.value) if isinstance(top.node.value, list) else 0}]"
        value: dict[str, Node] | list[Node] = {} if is_object else []
        self._stack.append(_Open(Node(value, at), name))

    def _put_scalar(self, event: Any, line: int) -> Node | None:
        top = self._stack[-1] if self._stack else None
        if top is None and self.is_list_streamed:
            raise YamlFlaw(line, "expected a list of items")
        if top is not None and isinstance(top.node.value, dict) and top.key is None:
            if event.value == "<<" and event.implicit[0]:
                raise YamlFlaw(line, "merge keys (<<) are refused; write the fields out", top.name)
            top.key, top.key_line = _characters(event.value, line, top.name), line
            return None
        text = _characters(event.value, line, self._where())
        value = _resolved(text, line, self._where()) if event.implicit[0] else text
        return self._put(Node(value, line))

    def _put(self, node: Node) -> Node | None:
        if not self._stack:
            return node
        top = self._stack[-1]
        if top.is_root_list:
            return node
        if isinstance(top.node.value, list):
            top.node.value.append(node)
        elif isinstance(top.node.value, dict) and top.key is not None:
            node.line = top.key_line
            if top.key in top.node.value:
                first = top.node.value[top.key].line
                message = f"given twice; first on line {first}"
                self.flaws.append(YamlFlaw(top.key_line, message, _joined(top.name, top.key)))
            else:
                top.node.value[top.key] = node
            top.key = None
        return None


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name_shown(name)}" if prefix else name_shown(name)


def _characters(text: str, line: int, where: str) -> str:
    """`text` with the two halves of each surrogate pair joined, as JSON writes what lies beyond U+FFFF."""
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise YamlFlaw(line, "holds a lone surrogate (\\ud800 to \\udfff), which is no character", where) from None


def _resolved(text: str, line: int, where: str) -> Scalar:
    """What a scalar without quotes means in the core schema of YAML 1.2."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in "+-.0123456789":
        return text
    if len(text) <= _MOST_DIGITS:
        if _WHOLE.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text, 0)
        if _NUMBER.fullmatch(text):
            number = float(text)
            if number not in (float("inf"), float("-inf")):
                return number
            raise YamlFlaw(line, "the number is too large; put it in quotes to keep it text", where)
    if _NO_NUMBER.fullmatch(text):
        raise YamlFlaw(line, "JSON has no such number; put it in quotes to keep it text", where)
    return text
