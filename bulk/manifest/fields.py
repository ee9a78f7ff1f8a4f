"""The fields of one object in the manifest, read one by one; a field that no caller asks for is unknown.

Each method that reads a value notes a flaw and returns its default if the value can't be used, so that reading goes on
and finds all flaws.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from bulk.flaws import Flaws, name_shown, unknown_name
from bulk.items.yaml_text import Node
from bulk.quantities import kind_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names of manifests, jobs and credentials: they become file names and words of messages."""

R = TypeVar("R")
T = TypeVar("T")


class Fields:
    """One object: `name` is its own dotted name (empty for the whole manifest), `line` the line on which it begins."""

    def __init__(self, path: str, node: Node | None, name: str, flaws: Flaws) -> None:
        self.path, self.name, self.flaws = path, name, flaws
        self.line = node.line if node else 1
        self._known: set[str] = set()
        self._fields: Mapping[str, Node] = {}
        self.is_object = node is not None and isinstance(node.value, dict)
        if node is not None and isinstance(node.value, dict):
            self._fields = node.value
        elif node is not None:
            self.flaw("", f"expected an object (name: value), got {kind_of(node.value)}")

    def __contains__(self, field: str) -> bool:
        return field in self._fields

    def flaw(self, field: str, message: str, line: int | None = None) -> None:
        """Note a flaw of `field` (empty: of the object itself)."""
        self.flaws.add(self.path, line or self.line_of(field), self.full_name(field), message)

    def line_of(self, field: str) -> int:
        """Return the line of `field`, or that of the object if the field was not given."""
        node = self._fields.get(field)
        return node.line if node else self.line

    def line_at(self, *names: str) -> int:
        """Return the line of the innermost of these fields, each of which is within the one before, that was given."""
        line, inner = self.line, self._fields
        for name in names:
            if name not in inner:
                break
            line, value = inner[name].line, inner[name].value
            inner = value if isinstance(value, dict) else {}
        return line

    def full_name(self, field: str) -> str:
        """Return the full dotted name of `field`: `jobs.readmes.items` for `items`."""
        return ".".join(part for part in (self.name, name_shown(field) if field else "") if part)

    def names(self) -> list[str]:
        """Return the names that were given, in the order of the file."""
        return list(self._fields)

    def node(self, field: str) -> Node | None:
        """Return the value of `field` as it stands, or None if it was not given."""
        self._known.add(field)
        return self._fields.get(field)

    def inner(self, field: str) -> "Fields":
        """Return the object that `field` holds, or an object without fields if it was not given."""
        node = self.node(field)
        return Fields(self.path, node or Node({}, self.line), self.full_name(field), self.flaws)

    def text(self, field: str, default: T, read: Callable[[Any], str] = str) -> str | T:
        """Return the string in `field`, as `read` converts it; `read` raises ValueError with what was expected."""
        node = self.node(field)
        if node is None:
            return default
        if not isinstance(node.value, str) or not node.value:
            got = "an empty one" if node.value == "" else kind_of(node.value)
            hint = " (put it in quotes)" if isinstance(node.value, bool | int | float) else ""
            self.flaw(field, f"expected a string, got {got}{hint}")
            return default
        return self._read(field, node.value, default, read)

    def choice(self, field: str, default: str, choices: tuple[str, ...]) -> str:
        """Return the value of `field`, which has to be one of `choices`."""
        return self.scalar(field, default, lambda given: one_of(given, choices))

    def flag(self, field: str) -> bool:
        """Return the value of `field`, which has to be true or false; False where it is not given."""
        return self.scalar(field, False, _flag)

    def scalar(self, field: str, default: T, read: Callable[[object], T]) -> T:
        """Return the value of `field`, as `read` converts it; `read` raises ValueError with what was expected."""
        node = self.node(field)
        return default if node is None else self._read(field, node.plain(), default, read)

    def unasked(self) -> list[str]:
        """Return the names of the given fields that no caller has asked for yet."""
        return [name for name in self._fields if name not in self._known]

    def finish(self) -> None:
        """Note a flaw for each given field that no caller has asked for."""
        for field in self.unasked():
            # an explanation takes time, and nobody would read it
            why = "unknown field" if self.flaws.is_full else unknown_name(field, self._known)
            self.flaw(field, why, self._fields[field].line)

    def _read(self, field: str, given: object, default: T, read: Callable[[Any], R]) -> R | T:
        try:
            return read(given)
        except ValueError as error:
            self.flaw(field, str(error))
            return default


def one_of(given: object, choices: tuple[str, ...]) -> str:
    """Return `given` if it is one of `choices`.

    Raises:
        ValueError: `given` is none of them.
    """
    if isinstance(given, str) and given in choices:
        return given
    raise ValueError(
        f"expected {' or '.join(choices)}, got {repr(given)[:40] if isinstance(given, str) else kind_of(given)}"
    )


def _flag(given: object) -> bool:
    if isinstance(given, bool):
        return given
    raise ValueError(f"expected true or false, got {kind_of(given)}")
