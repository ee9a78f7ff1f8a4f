"""Needs by key, as they were checked, in `index.db`: each says which item of a job waits for which item of another.

For each need the keys that both sides have are numbered. That takes two columns of 4 bytes for each item, and a third
where several items wait by one key, however long the keys are; no column is held in memory. Which items have ended is
not stored here, because the ledger knows it.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import attrgetter

import msgspec

from bulk.bundle.columns import Columns, Numbers
from bulk.errors import RunDirectoryError
from bulk.manifest.manifest import Job, KeyedNeed
from bulk.operation import Item

BETWEEN = "\x1f"


@dataclass(frozen=True, slots=True)
class Edge:
    """A need by key: its number in the manifest, the job that waits and the job that is needed (numbers)."""

    number: int
    waiting: int
    needed: int
    need: KeyedNeed


@dataclass(frozen=True, slots=True)
class Links:
    """The items at both ends of an edge. Keys are numbered from 0.

    Attributes:
        key_of: for each needed item its key; -1: no item waits for it.
        starts: where the items of each key begin in `items`, and behind them its length; a range if each key has one.
        items: the items that wait (indexes), key after key.
    """

    edge: Edge
    key_of: Numbers
    starts: Numbers
    items: Numbers

    @property
    def keys(self) -> int:
        """The number of keys."""
        return len(self.starts) - 1

    def waiting(self) -> Iterator[tuple[int, int]]:
        """Yield each key with each item that waits for it, key after key."""
        items = iter(self.items)
        for key, (start, behind) in enumerate(pairwise(self.starts)):
            for item in islice(items, behind - start):
                yield key, item

    def behind(self, key: int) -> Sequence[int]:
        """Return the items that wait for that key (indexes)."""
        if type(self.starts) is range:
            return (self.items[key],)
        return self.items[self.starts[key] : self.starts[key + 1]]


def edges_of(jobs: Sequence[Job]) -> list[Edge]:
    """Return all needs by key, in running order."""
    numbers = {job.name: job.number for job in jobs}
    pairs = [(job.number, numbers[need.job], need) for job in jobs for need in job.by_key]
    return [Edge(number, *pair) for number, pair in enumerate(pairs)]


def keyed_jobs(jobs: Sequence[Job]) -> frozenset[str]:
    """Return names of the jobs at either end of a need by key."""
    return frozenset(name for job in jobs for need in job.by_key for name in (job.name, need.job))


def key_reader(job: Job, fields: Sequence[str]) -> Callable[[Item], str | None]:
    """Return a function for the key of an item of `job`, folded; it returns None if the item lacks one of the fields.

    The function raises ValueError, with the name of the field, if a field is neither text nor a number.
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


def load_links(jobs: Sequence[Job], index: Columns) -> list[Links]:
    """Return the links that the check has found for each need by key; they can be read as long as the database of
    `index` is open.

    Raises:
        RunDirectoryError: the index lacks links that it should have.
    """
    found: list[Links] = []
    for edge in edges_of(jobs):
        try:
            key_of, starts, items = (index.of("links", name, edge.number, code) for name, code in _COLUMNS)
        except sqlite3.OperationalError as error:
            raise RunDirectoryError("index.db lacks what items wait for; delete it: it is made again") from error
        found.append(Links(edge, key_of, starts if len(starts) else range(len(items) + 1), items))
    return found


_COLUMNS = (("key_of", "i"), ("starts", "I"), ("items", "I"))
