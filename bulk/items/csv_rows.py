"""CSV rows as mappings. A header names the fields, dots reach into objects, and a cell gets the type of its field.

Quoting is read strictly: a quote within a cell that is not quoted is an error, because a guess might send something
that was not meant; only a cell of JSON may hold quotes without being quoted. Source: interface.md §2.
"""

import csv
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import accumulate, chain
from typing import Any

import msgspec
from msgspec import inspect

from bulk.capabilities import secret_fields
from bulk.errors import UNDECODABLE
from bulk.flaws import MOST_FLAWS, name_shown, shown, unknown_name
from bulk.items.lines import CHUNK_BYTES, MOST_LINE_BYTES, TOO_LONG, Bad, Given, Row, SourceFlaw, bad, decoded
from bulk.items.type_errors import options
from bulk.operation import AnyOperation, ItemFlaw

_WHOLE = re.compile(r"[-+]?[0-9]{1,400}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WAY_OUT = "close it, and double each quote that belongs to the cell"
_FLAGS = {"true": True, "false": False}

Cell = Callable[[str], Any]
"""Turns a cell's text into a value, or raises ValueError with a message that says what was expected."""

MOST_DEPTH = 64
"""How deep the name of a column may reach into objects (count)."""

# for the whole process: the default of 131,072 characters is less than a file in Base64 needs
csv.field_size_limit(MOST_LINE_BYTES)


def rows(
    batches: Iterable[list[Row]], operation: AnyOperation, defaults: Collection[str] | None = None
) -> Iterator[list[Row]]:
    """Yield the rows of the CSV text whose lines are `batches` (see `lines.lines`), as mappings for `operation`.

    Args:
        defaults: fields that items need not give; a required field that has no column either is one flaw of the
            header. None: missing fields are not looked for.
    """
    text = _Text(chain.from_iterable(batches))
    columns: _Columns | None = None
    found: list[Row] = []
    size = 0
    for cells in text.rows():
        line, size = text.line, size + len(text.row)
        found += text.unreadable
        text.unreadable.clear()
        if isinstance(cells, SourceFlaw):
            found.append((cells.line, 0, bad(cells.line, cells.message)))
        elif columns is not None:
            found.append((line, 0, columns.value(cells, line)))
        else:
            columns = _Columns(cells, operation)
            if defaults is not None:
                columns.refuse_missing(operation, defaults)
            if columns.flaws:  # no row can be understood without its header
                yield [*found, (line, 0, Bad(tuple((line, flaw) for flaw in columns.flaws)))]
                return
        if size >= CHUNK_BYTES:
            yield found
            found, size = [], 0
    yield found + text.unreadable


class _Text:
    """Rows of cells. `csv` splits them; flaws that it lets pass are looked for in the bytes that it has read.

    Attributes:
        row: the bytes of the row, in one block: as millions of short lines they would take fifty times their length.
        line: where the row begins.
        unreadable: rows that stand for the lines that can't be read.
    """

    def __init__(self, lines: Iterator[Row]) -> None:
        self.row, self.line = bytearray(), 1
        self.unreadable: list[Row] = []
        self._lines = lines

    def rows(self) -> Iterator[list[str] | SourceFlaw]:
        """Yield the cells of each row that is not blank, or its flaw."""
        reader = csv.reader(self._read(), strict=True)
        while True:
            self.row.clear()
            try:
                cells = next(reader, None)
                if cells is None:
                    return
                text = decoded(self.row, self.line)
                if b'"' in self.row:
                    self._refuse_stray_quotes(cells, text)
                if not text.isspace():
                    yield cells
            except SourceFlaw as flaw:
                yield flaw
            except csv.Error as error:
                yield self._explained(str(error))

    def _read(self) -> Iterator[str]:
        for line, offset, data in self._lines:
            if not isinstance(data, bytes):
                self.unreadable.append((line, offset, data))
                continue
            if not self.row:
                self.line = line
            self.row += data
            self.row += b"\n"
            if len(self.row) > MOST_LINE_BYTES + 1:
                message = f'the quote (") that opens a cell here is not closed within 16 MiB: {_WAY_OUT}'
                raise SourceFlaw(f"{message}; or the row is {TOO_LONG}", self._line_of_last_quote())
            yield data.decode("utf-8", "surrogateescape") + "\n"

    def _refuse_stray_quotes(self, cells: list[str], text: str) -> None:
        for number, cell in enumerate(cells, 1):
            if '"' in cell and cell[0] not in "[{" and '"{}"'.format(cell.replace('"', '""')) not in text:
                message = f'cell {number} holds a quote (") but does not begin with one'
                line = self.line + text.count("\n", 0, text.find(cell))
                raise SourceFlaw(f"{message}; quote the whole cell and double it within", line)

    def _explained(self, error: str) -> SourceFlaw:
        try:
            decoded(self.row, self.line)
        except SourceFlaw as flaw:
            return flaw
        if error == "unexpected end of data":
            return SourceFlaw(f'the quote (") that opens a cell is not closed; {_WAY_OUT}', self._line_of_last_quote())
        message = 'a cell goes on after its closing quote ("); expected a comma'
        if "new-line" in error:
            message = "there is a carriage return within a cell; quote the whole cell"
        return SourceFlaw(message, self.line + self.row.count(b"\n") - 1)

    def _line_of_last_quote(self) -> int:
        """Return the line of the quote that is open, which is the last one that is not part of a pair."""
        return self.line + self.row.count(b"\n", 0, self.row.replace(b'""', b"  ").rfind(b'"'))


class _Columns:
    """The header: for each column, the field that its cells go to, and the conversion of its cells."""

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

    def refuse_missing(self, operation: AnyOperation, defaults: Collection[str]) -> None:
        """Note a flaw for each required field that no column can give."""
        if self.flaws:
            return  # a column with a wrong name may be the missing one
        given = {name.partition(".")[0] for name in self._names} | set(defaults)
        for field in msgspec.structs.fields(operation.Item):
            if field.required and field.encode_name not in given:
                self.flaws.append(ItemFlaw(field.encode_name, "is missing; the header needs a column of this name"))

    def _add(self, number: int, name: str, item_type: inspect.Type, given: frozenset[str], seen: set[str]) -> None:
        """Add one column; `given`: the names of all columns; `seen`: those of the columns before it."""
        path, flaw = tuple(name.split(".")), ""
        if not name:
            flaw = f"column {number} has no name"
        elif name in seen:
            flaw = "a second column of this name"
        elif name.count(".") >= MOST_DEPTH:
            flaw = f"reaches more than {MOST_DEPTH} objects deep"
        elif any(outer in given for outer in accumulate(path[:-1], "{}.{}".format)):
            flaw = "a field of an object that another column gives whole"
        if flaw:
            self.flaws.append(ItemFlaw(name_shown(name) if name else "", flaw))
            return
        kind, known = _type_at(item_type, path)
        if kind is None:
            # an explanation takes time, and would not be shown
            flaw = unknown_name(path[-1], known) if len(self.flaws) < MOST_FLAWS else "unknown field"
            for mark, marks in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
                if len(self._names) == 1 and mark in name:
                    flaw = f"unknown field; cells are separated by commas, not by {marks}"
            self.flaws.append(ItemFlaw(name_shown(name), flaw))
            return
        self._columns.append((path, _cell_of(kind)))

    def value(self, cells: list[str], line: int) -> Given | Bad:
        """Return the item of a row."""
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


def _type_at(info: inspect.Type, path: tuple[str, ...]) -> tuple[inspect.Type | None, list[str]]:
    """Return the type of the field that `path` names within `info`; if there is no such field, None and the names that
    are known."""
    if not path:
        return info, []
    known: list[str] = []
    for option in options(info):
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


def _cell_of(info: inspect.Type) -> Cell:
    """Return the conversion of cells for a field of this type. A field that allows text gets text."""
    kinds = {type(option) for option in options(info)}
    takes_text = bool(kinds & _TEXT)
    if inspect.AnyType in kinds or kinds - _TEXT - _PLAIN:
        return _json_or_text if takes_text else _json
    if takes_text:
        return str
    if inspect.FloatType in kinds:
        return _number
    return _whole if inspect.IntType in kinds else _flag


_TEXT = {inspect.AnyType, inspect.StrType, inspect.LiteralType, inspect.EnumType}
_PLAIN = {inspect.IntType, inspect.FloatType, inspect.BoolType}


def _json(cell: str) -> Any:
    if cell[0] not in "[{":
        raise ValueError("JSON that begins with [ or {")
    try:
        return msgspec.json.decode(cell)
    except UNDECODABLE as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        raise ValueError(f"JSON; it is not ({reason})") from None


def _json_or_text(cell: str) -> Any:
    return _json(cell) if cell[0] in "[{" else cell


def _whole(cell: str) -> int:
    if not _WHOLE.fullmatch(cell.strip()):
        raise ValueError("a whole number")
    return int(cell)


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
