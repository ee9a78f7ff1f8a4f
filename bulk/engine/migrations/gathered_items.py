"""The items that take a run back, between their gathering and the manifest: files of JSON lines, one for each job.

Items that take back the same thing are found with rows on disk, and joined. In memory are those that share a thing, one
such group at a time, and what has become of them.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeAlias

import msgspec

from bulk.bundle.index import short_63
from bulk.engine.migrations.joined_items import PlacedItem, join
from bulk.engine.migrations.undo_items import Taken
from bulk.manifest.manifest import Job
from bulk.storage.temporary_rows import TemporaryRows
from bulk.undo import FileBefore, Undo

UNREAD = ".part"
"""Suffix of files with items whose bytes are still to be read."""

Line: TypeAlias = dict[str, Any]

_SCHEMA = "CREATE TABLE changed (thing INTEGER, line INTEGER, part INTEGER, start INTEGER);"
_REPEATED = """
    SELECT first, line, part, start FROM (SELECT *, count(*) OVER things AS items, min(line) OVER things AS first
    FROM changed WINDOW things AS (PARTITION BY thing)) WHERE items > 1"""
"""Lines with a thing that other lines have too, and the first of these lines."""


@dataclass(slots=True)
class Part:
    """The items of one operation that take a job back."""

    name: str
    job: Job
    operation: str
    number: int
    items: int = 0


@dataclass(slots=True)
class GatheredItems:
    """The lines of all parts. A context manager while they are added; at its end they are joined, and can be read.

    Attributes:
        folder: where the files are. count: items that were added (count).
    """

    folder: Path
    count: int = 0
    _parts: dict[tuple[int, str], Part] = field(default_factory=dict)
    _outs: dict[str, BinaryIO] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)
    _rows: TemporaryRows = field(init=False)
    _instead: dict[int, bytes | None] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._rows = self._open.enter_context(TemporaryRows(_SCHEMA, "changed"))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._open:
            for out in self._outs.values():
                out.flush()
            if kind is None:
                self._join()

    @property
    def parts(self) -> list[Part]:
        """The parts, in the order in which they run."""
        return list(self._parts.values())

    def add(self, taken: Taken, way: Undo, more: Line) -> None:
        """Add the item `way` behind those that were added before; `more`: further members of its line."""
        part = self._part(taken.job, way.operation)
        things = [] if way.comes_anew else sorted(taken.things)
        line = {"line": self.count, "things": things, **more, **_members(way, taken.job.credential)}
        if part.name not in self._outs:
            self._outs[part.name] = self._open.enter_context(self._path(part).open("wb"))
        start = self._outs[part.name].tell()
        self._outs[part.name].write(msgspec.json.encode(line) + b"\n")
        for thing in things:
            self._rows.keep((short_63(*thing), self.count, part.number, start))
        part.items += 1
        self.count += 1

    def lines(self, part: Part) -> Iterator[Line]:
        """Yield the lines of a part."""
        with self._path(part).open("rb") as lines:
            for line in map(msgspec.json.decode, lines):
                if line["line"] not in self._instead:
                    yield line
                elif (left := self._instead[line["line"]]) is not None:
                    yield msgspec.json.decode(left)

    def files(self) -> Iterator[tuple[str, FileBefore]]:
        """Yield the files whose bytes are needed, each with the name of the credential that reads it."""
        for part in self.parts:
            for line in self.lines(part):
                if "file" in line:
                    yield msgspec.convert(line["file"], tuple[str, FileBefore])

    def remove(self) -> None:
        """Remove the files."""
        for part in self.parts:
            self._path(part).unlink()

    def _part(self, job: Job, operation: str) -> Part:
        found = self._parts.get((job.number, operation))
        if found is None:
            name = f"undo-{job.name}"
            is_own = operation == job.operation.name
            if any(part.name == name for part in self.parts):
                name = f"{name}-{operation.partition('.')[2]}"
            found = self._parts[job.number, operation] = Part(name, job, operation, len(self._parts))
            if is_own:  # a thing that a job has changed twice is changed back before it is removed
                self._parts = {(job.number, operation): found, **self._parts}
        return found

    def _join(self) -> None:
        """Join the lines that take back the same thing."""
        places, groups = dict[int, tuple[int, int]](), _Groups()
        for first, line, part, start in self._rows.select(_REPEATED):
            places[line] = part, start
            groups.unite(first, line)
        parts = {part.number: part for part in self.parts}
        with ExitStack() as stack:
            files = {part.number: stack.enter_context(self._path(part).open("rb")) for part in self.parts}
            for group in groups.found():
                lines = dict[int, tuple[Part, Line]]()
                for place in group:
                    number, start = places[place]
                    files[number].seek(start)
                    lines[place] = parts[number], msgspec.json.decode(files[number].readline())
                self._join_group(lines)

    def _join_group(self, lines: dict[int, tuple[Part, Line]]) -> None:
        items = {place: _placed(part, line) for place, (part, line) in lines.items()}
        join(items)
        for place, (part, line) in lines.items():
            item = items.get(place)
            if item is None:
                part.items -= 1
                self._instead[place] = None
            else:
                line.pop("file", None)
                self._instead[place] = msgspec.json.encode({**line, **_members(item.way, item.file_credential)})

    def _path(self, part: Part) -> Path:
        return self.folder / f"{part.name}{UNREAD}"


class _Groups:
    """Numbers in groups that grow together."""

    def __init__(self) -> None:
        self._leads: dict[int, int] = {}

    def unite(self, one: int, other: int) -> None:
        """Put two numbers, and all that are in a group with them, into one group."""
        self._leads[self._lead(one)] = self._lead(other)

    def found(self) -> list[list[int]]:
        """Return the groups."""
        groups: dict[int, list[int]] = {}
        for number in list(self._leads):
            groups.setdefault(self._lead(number), []).append(number)
        return list(groups.values())

    def _lead(self, number: int) -> int:
        lead = self._leads.setdefault(number, number)
        while self._leads[lead] != lead:
            lead = self._leads[lead]
        self._leads[number] = lead
        return lead


def _members(way: Undo, credential: str) -> Line:
    """Return the members of a line that come from an item."""
    found = {"item": way.item, "loses": way.loses}
    return found if way.file is None else {**found, "file": [credential, msgspec.to_builtins(way.file)]}


def _placed(part: Part, line: Line) -> PlacedItem:
    credential, file = msgspec.convert(line["file"], tuple[str, FileBefore]) if "file" in line else ("", None)
    way = Undo(operation=part.operation, item=line["item"], loses=line["loses"], file=file)
    return PlacedItem(way, part.job.operation, frozenset(map(tuple, line["things"])), credential)
