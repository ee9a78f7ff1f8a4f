"""Which items of a job wait for which items of another: needs by key, as they were checked, in `index.db`.

For each need the keys that both sides have are numbered. In memory it is two arrays of 4 bytes for each item, and a
third where several items wait by one key, however long the keys are; what has ended is not in here, because the ledger
knows it.
"""

import contextlib
import sqlite3
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import msgspec

from bulk.bundle.index import INDEX, SCHEMA, opened
from bulk.errors import RunDirectoryError
from bulk.manifest.manifest import Job, KeyedNeed
from bulk.operation import Item

BETWEEN = "\x1f"


@dataclass(frozen=True, slots=True)
class Edge:
    """A need by key: its number in the manifest, the job that waits and the one that is needed (numbers)."""

    number: int
    waiting: int
    needed: int
    need: KeyedNeed


@dataclass(frozen=True, slots=True)
class Links:
    """The items at both ends of an edge. Keys are numbered from 0.

    Attributes:
        key_of: for each item that is needed its key; -1: nothing waits for it.
        starts: where in `items` those of each key begin; one more at the end. A range where each key has one.
        items: what waits (indexes), key after key.
    """

    edge: Edge
    key_of: "array[int]"
    starts: "array[int] | range"
    items: "array[int]"

    @property
    def keys(self) -> int:
        """How many keys there are (count)."""
        return len(self.starts) - 1


def edges_of(jobs: Sequence[Job]) -> list[Edge]:
    """Return all needs by key, in running order."""
    numbers = {job.name: job.number for job in jobs}
    pairs = [(job.number, numbers[need.job], need) for job in jobs for need in job.by_key]
    return [Edge(number, *pair) for number, pair in enumerate(pairs)]


def keyed_jobs(jobs: Sequence[Job]) -> frozenset[str]:
    """Return names of the jobs at either end of a need by key."""
    return frozenset(name for job in jobs for need in job.by_key for name in (job.name, need.job))


def key_reader(job: Job, fields: Sequence[str]) -> Callable[[Item], str | None]:
    """Return what gives the key of an item of `job`, folded; None: the item lacks one of the fields.

    It raises ValueError, with the name of the field, where one is no text and no number.
    """
    names = {field.encode_name: field.name for field in msgspec.structs.fields(job.operation.Item)}
    readers = [(field, attrgetter(names[field])) for field in fields]

    def key(item: Item) -> str | None:
        parts: list[str] = []
        for field, read in readers:
            part = _part(field, read(item))
            if part is None:
                return None
            parts.append(part)
        return BETWEEN.join(parts)

    if len(readers) > 1:
        return key
    only, read_only = readers[0]
    return lambda item: _part(only, read_only(item))


def _part(field: str, value: object) -> str | None:
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, int):
        return str(value)
    if value is None or value is msgspec.UNSET:
        return None
    raise ValueError(field)


def load_links(jobs: Sequence[Job], workspace: Path) -> list[Links]:
    """Return what the check has found of each need by key; blocks.

    Raises:
        RunDirectoryError: the index has not what it should have.
    """
    found: list[Links] = []
    edges = edges_of(jobs)
    with contextlib.closing(opened(workspace / INDEX, SCHEMA)) as database:
        for edge in edges:
            # one after the other, so that only one of them is there twice
            key_of, starts, items = (_column(database, workspace, edge, *each) for each in _COLUMNS)
            found.append(Links(edge, key_of, starts or range(len(items) + 1), items))
    return found


_COLUMNS = (("key_of", "i"), ("starts", "I"), ("items", "I"))


def _column(database: sqlite3.Connection, workspace: Path, edge: Edge, name: str, code: str) -> "array[int]":
    row = database.execute(f"SELECT {name} FROM links WHERE edge = ?", (edge.number,)).fetchone()
    if row is None:
        raise RunDirectoryError(f"{workspace / INDEX} lacks what items wait for; delete it: it is made again")
    found = array(code)
    found.frombytes(row[0])
    return found
