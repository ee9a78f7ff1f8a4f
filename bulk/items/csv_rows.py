"""CSV rows as mappings. A header names the fields, dots reach into objects, and a cell becomes what its field is.

Quoting is read strictly: a quote within a cell that is not quoted is an error, because guessing would send something
else than what was meant; only a cell of JSON may hold quotes as it stands. Source: interface.md §2.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from bulk.capabilities import secret_fields
from bulk.flaws import MOST_FLAWS, name_shown, shown, unknown_name
from bulk.items.lines import MOST_LINE_BYTES, TOO_LONG, Bad, Given, Row, bad
from bulk.operation import AnyOperation, ItemFlaw

_CELL = re.compile(r'"((?:[^"]++|"")*+)"(?=,|\Z)|([^",]*+)(?=,|\Z)', re.DOTALL)
_JSON_CELL = re.compile(r"[\[{][^,]*+")
_WHOLE = re.compile(r"[-+]?[0-9]{1,400}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NOT_CLOSED = "is not closed; close it, and double each quote that belongs to the cell"
_FLAGS = {"true": True, "false": False}

Cell = Callable[[str], Any]
"""Makes a value of a cell's text, or raises ValueError with what was expected."""


MOST_DEPTH = 64
"""How deep the name of a column may reach into objects (count)."""


class CsvFlaw(ValueError):
    """A row is no CSV; the message says why.

    Attributes:
        at: where in the row (characters).
    """

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at


def rows(batches: Iterable[list[Row]], operation: AnyOperation) -> Iterator[list[Row]]:
    """The rows of the CSV text whose lines are `batches` (see `lines.lines`), as mappings for `operation`."""
    columns: _Columns | None = None
    for batch in _joined(batches):
        found: list[Row] = []
        for line, offset, data in batch:
            if not isinstance(data, bytes):
                found.append((line, offset, data if isinstance(data, Bad) else bad(line, "can't be read")))
                continue
            try:
                text = data.removesuffix(b"\r").decode("utf-8")
                if "\0" in text:
                    raise CsvFlaw("holds a NUL character")
                if not text.strip():
                    continue
                cells = split(text)
            except UnicodeDecodeError as error:
                found.append((line, offset, bad(line, f"not UTF-8: the byte 0x{data[error.start]:02X}")))
                continue
            except CsvFlaw as error:
                found.append((line, offset, bad(line + text.count("\n", 0, error.at), str(error))))
                continue
            if columns is not None:
                found.append((line, offset, columns.value(cells, line)))
                continue
            columns = _Columns(cells, operation)
            if columns.flaws:
                found.append((line, offset, Bad(tuple((line, flaw) for flaw in columns.flaws))))
                break
        if found:
            yield found
        if columns is not None and columns.flaws:
            return  # no row can be understood without its header


def split(text: str) -> list[str]:
    """The cells of a row, without its line end.

    Raises:
        CsvFlaw: the quoting is wrong.
    """
    if '"' not in text:
        return text.split(",")
    cells: list[str] = []
    at = 0
    while True:
        found = _CELL.match(text, at) or (_JSON_CELL.match(text, at) if text[at : at + 1] in ("[", "{") else None)
        if found is None:
            raise CsvFlaw(_why(text, at, len(cells) + 1), at)
        if found.re is _JSON_CELL:
            cells.append(found[0])
        else:
            cells.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        at = found.end()
        if at == len(text):
            return cells
        at += 1


def _why(text: str, at: int, number: int) -> str:
    if not text.startswith('"', at):
        return f'cell {number} holds a quote (") but does not begin with one; quote the whole cell and double it within'
    if _closed(text, at):
        return f'cell {number} goes on behind its closing quote ("); expected a comma'
    return f'the quote (") that opens cell {number} {_NOT_CLOSED}'


def _closed(text: str, at: int) -> bool:
    return text[at + 1 :].replace('""', "").find('"') >= 0


def _joined(batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Rows instead of lines: a row whose quotes are open goes on in the next line."""
    # of a row that goes on; one block, because millions of short lines would take fifty times their length
    open_row = bytearray()
    first, offset = 0, 0
    for batch in batches:
        found: list[Row] = []
        for row in batch:
            line, at, data = row
            if not isinstance(data, bytes):
                open_row.clear()
                found.append(row)
            elif open_row:
                open_row += b"\n" + data
                if len(open_row) > MOST_LINE_BYTES:
                    found.append((first, offset, _too_long(open_row, first)))
                    open_row.clear()
                elif data.count(b'"') % 2:
                    found.append((first, offset, bytes(open_row)))
                    open_row.clear()
            elif b'"' in data and data.count(b'"') % 2:
                open_row += data
                first, offset = line, at
            else:
                found.append(row)
        if found:
            yield found
    if open_row:
        yield [(first, offset, bytes(open_row))]


def _too_long(row: bytearray, first: int) -> Bad:
    """A row whose quotes are open, and which began in the line `first`: where the one that is open stands."""
    opened = first
    try:
        split(row.decode("utf-8", "replace"))
    except CsvFlaw as flaw:
        opened += row.decode("utf-8", "replace").count("\n", 0, flaw.at)
    why = f'the quote (") that opens a cell here is not closed within 16 MiB: {_NOT_CLOSED.partition("; ")[2]}'
    return bad(opened, f"{why}; or the row is {TOO_LONG}")


class _Columns:
    """The header: for each column where its cells go and what they become."""

    def __init__(self, header: list[str], operation: AnyOperation) -> None:
        self.flaws: list[ItemFlaw] = []
        self._names = [name.strip() for name in header]
        self._secret = secret_fields(operation)
        self._columns: list[tuple[tuple[str, ...], Cell]] = []
        given, seen = frozenset(self._names), set[str]()
        item_type = inspect.type_info(operation.Item)
        for number, name in enumerate(self._names, 1):
            self._add(number, name, item_type, given, seen)
            seen.add(name)

    def _add(self, number: int, name: str, item_type: inspect.Type, given: frozenset[str], seen: set[str]) -> None:
        """One column; `given` are the names of all, `seen` those of the columns before it."""
        flaw = ""
        if not name:
            flaw = f"column {number} has no name"
        elif name in seen:
            flaw = "a second column of this name"
        elif name.count(".") >= MOST_DEPTH:
            flaw = f"reaches more than {MOST_DEPTH} objects deep"
        elif any(outer in given for outer in _outer(name)):
            flaw = "a field of an object that another column gives whole"
        if flaw:
            self.flaws.append(ItemFlaw(name_shown(name) if name else "", flaw))
            return
        path = tuple(name.split("."))
        kind, known = _type_at(item_type, path)
        if kind is None:
            # an explanation takes time, and nobody would read it
            flaw = unknown_name(path[-1], known) if len(self.flaws) < MOST_FLAWS else "unknown field"
            if len(self._names) == 1 and ";" in name:
                flaw = "unknown field; cells are separated by commas, not by semicolons"
            self.flaws.append(ItemFlaw(name_shown(name), flaw))
            return
        self._columns.append((path, _cell_of(kind)))

    def value(self, cells: list[str], line: int) -> Given | Bad:
        """The item of a row."""
        if len(cells) > len(self._columns):
            return bad(
                line, f"{len(cells)} cells, but the header has {len(self._columns)}; quote a cell that holds commas"
            )
        item: dict[str, Any] = {}
        flaws: list[tuple[int, ItemFlaw]] = []
        for cell, (path, convert) in zip(cells, self._columns, strict=False):
            if not cell:
                continue
            try:
                value = convert(cell)
            except ValueError as error:
                name = ".".join(path)
                got = "" if name in self._secret else f", got {shown(cell)}"
                flaws.append((line, ItemFlaw(name, f"expected {error}{got}")))
                continue
            target = item
            for part in path[:-1]:
                target = target.setdefault(part, {})
            target[path[-1]] = value
        return Bad(tuple(flaws)) if flaws else Given(item)


def _outer(name: str) -> Iterator[str]:
    """The names of the objects that a dotted name reaches into."""
    at = name.find(".")
    while at >= 0:
        if at:
            yield name[:at]
        at = name.find(".", at + 1)


def _type_at(info: inspect.Type, path: tuple[str, ...]) -> tuple[inspect.Type | None, list[str]]:
    """The type of the field that `path` names within `info`; None and the names that are known where there is none."""
    if not path:
        return info, []
    known: list[str] = []
    for option in _options(info):
        if isinstance(option, inspect.AnyType):
            return option, []
        if isinstance(option, inspect.DictType):
            return _type_at(option.value_type, path[1:])
        if isinstance(option, inspect.StructType):
            fields = {field.encode_name: field.type for field in option.fields}
            if path[0] in fields:
                return _type_at(fields[path[0]], path[1:])
            known += fields
    return None, known


def _options(info: inspect.Type) -> list[inspect.Type]:
    """The types that `info` allows, without annotations and null."""
    while isinstance(info, inspect.Metadata):
        info = info.type
    if isinstance(info, inspect.UnionType):
        return [inner for option in info.types for inner in _options(option)]
    return [] if isinstance(info, inspect.NoneType) else [info]


def _cell_of(info: inspect.Type) -> Cell:
    """What makes a value of a cell for a field of this type. Text wins where text is allowed."""
    options = _options(info)
    kinds = {type(option) for option in options}
    takes_json = bool(kinds & _CONTAINERS)
    takes_text = bool(kinds - _CONTAINERS - _PLAIN) or inspect.AnyType in kinds
    if takes_json:
        return _json_or_text if takes_text else _json
    if takes_text:
        return str
    if inspect.FloatType in kinds:
        return _number
    if inspect.IntType in kinds:
        return _whole
    return _flag


_CONTAINERS = {
    inspect.AnyType,
    inspect.DictType,
    inspect.StructType,
    inspect.ListType,
    inspect.VarTupleType,
    inspect.TupleType,
    inspect.SetType,
    inspect.FrozenSetType,
}
_PLAIN = {inspect.IntType, inspect.FloatType, inspect.BoolType}


def _json(cell: str) -> Any:
    if cell[0] not in "[{":
        raise ValueError("JSON that begins with [ or {")
    try:
        return msgspec.json.decode(cell)
    except (msgspec.MsgspecError, RecursionError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        raise ValueError(f"JSON; it is not ({reason})") from None


def _json_or_text(cell: str) -> Any:
    return _json(cell) if cell[0] in "[{" else cell


def _whole(cell: str) -> int:
    text = cell.strip()
    if not _WHOLE.fullmatch(text):
        raise ValueError("a whole number")
    return int(text)


def _number(cell: str) -> float:
    text = cell.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError("a number")
    return float(text)


def _flag(cell: str) -> bool:
    try:
        return _FLAGS[cell.strip().lower()]
    except KeyError:
        raise ValueError("true or false") from None
