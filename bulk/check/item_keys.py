"""Checks needs by key: every item that waits must have an item to wait for. The links go into `index.db`.

Keys are compared by hashes in a temporary SQLite file, so that memory does not grow with them.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from bulk.bundle.checked import JobCheck
from bulk.bundle.columns import NewColumn
from bulk.bundle.index import IndexBuilder, short_63
from bulk.bundle.links import BETWEEN, Edge, edges_of, key_reader
from bulk.flaws import shown
from bulk.manifest.manifest import Job
from bulk.operation import Item
from bulk.storage.temporary_rows import TemporaryRows

_LOOKED_UP = "SELECT line, shown FROM keys WHERE rowid = {}"


class Unmatched(NamedTuple):
    """An item that waits for an item that is not there: where it stands, the field by which it waits, and why."""

    edge: Edge
    line: int
    field: str
    message: str


class _Keys(NamedTuple):
    """The keys of a job's items by some of their fields, at the ends of one or several edges.

    Attributes:
        number: number under which the keys are kept. read: returns the key of an item.
        waiting: edges by which items of the job wait.
    """

    number: int
    read: Callable[[Item], str | None]
    fields: tuple[str, ...]
    waiting: list[Edge]


class KeyFinder(TemporaryRows):
    """Collects the keys of all items; `link` finds which items wait for which others. A context manager."""

    def __init__(self, jobs: Sequence[Job], limit: int | None) -> None:
        """Prepare the search; `limit`: at most this many items of each job are read (count), which messages say."""
        super().__init__(
            "CREATE TABLE keys (number INTEGER, key INTEGER, item INTEGER, line INTEGER, shown TEXT);",
            "keys",
        )
        self._jobs, self._limit = jobs, limit
        self._keys: dict[int, dict[tuple[str, ...], _Keys]] = {}
        self.edges = edges_of(jobs)
        self._ends: list[tuple[int, int]] = []
        for edge in self.edges:
            mine, its = zip(*edge.need.fields, strict=True)
            waiting = self._keys_of(jobs[edge.waiting], mine)
            waiting.waiting.append(edge)
            self._ends.append((self._keys_of(jobs[edge.needed], its).number, waiting.number))

    def _keys_of(self, job: Job, fields: tuple[str, ...]) -> _Keys:
        known = self._keys.setdefault(job.number, {})
        if fields not in known:
            number = sum(map(len, self._keys.values()))
            known[fields] = _Keys(number, key_reader(job, fields), fields, [])
        return known[fields]

    def takes(self, job: Job) -> bool:
        """Return whether the items of `job` have keys."""
        return job.number in self._keys

    def add(self, job: Job, item: Item, index: int, line: int) -> Iterator[tuple[str, str]]:
        """Note the keys of one item; yield (field, message) for each key that can't be used."""
        for number, read, fields, waiting in self._keys[job.number].values():
            try:
                key = read(item)
            except ValueError as flaw:
                yield str(flaw), "a key is made of texts and numbers"
                continue
            if key is not None:
                self.keep((number, short_63(key), index, line, key if waiting else ""))
            elif not job.is_free_unmatched:
                for edge in waiting:
                    needed = self._jobs[edge.needed].name
                    yield fields[0], f"is missing: the item waits for items of {needed} by {', '.join(fields)}"

    def link(self, checks: Sequence[JobCheck], refuse: Callable[[Unmatched], None], index: IndexBuilder) -> None:
        """Add the links of each need by key to `index`, once all items were added.

        Args:
            refuse: is called with each item that waits for an item that is not there.
        """
        if self.edges:
            self.select("CREATE INDEX keys_in_order ON keys (number, key, item)")
        for edge in self.edges:
            with (
                NewColumn(index.folder, "i", checks[edge.needed].items, -1) as key_of,
                NewColumn(index.folder, "I") as starts,
                NewColumn(index.folder, "I") as items,
            ):
                self._link(edge, refuse, (key_of, starts, items))
                is_one_each = len(starts) == len(items) + 1
                index.add_links(edge.number, key_of, None if is_one_each else starts, items)

    def _link(
        self, edge: Edge, refuse: Callable[[Unmatched], None], columns: tuple[NewColumn, NewColumn, NewColumn]
    ) -> None:
        key_of, starts, items = columns
        needed, waiting = map(self._in_order, self._ends[edge.number])
        ahead = next(needed, None)
        is_free = self._jobs[edge.waiting].is_free_unmatched
        starts.append(0)
        for key, rows in groupby(waiting, key=itemgetter(0)):
            while ahead is not None and ahead[0] < key:
                ahead = next(needed, None)
            if ahead is None or ahead[0] != key:
                if not is_free:
                    for row in rows:
                        refuse(self._unmatched(edge, *next(self.select(_LOOKED_UP.format(row[2])))))
                continue
            while ahead is not None and ahead[0] == key:
                key_of[ahead[1]] = len(starts) - 1
                ahead = next(needed, None)
            for row in rows:
                items.append(row[1])
            starts.append(len(items))

    def _in_order(self, number: int) -> Iterator[tuple[int, int, int]]:
        """Yield (key, item, place in the table) in this order, which the index of the table alone can answer."""
        return self.select(f"SELECT key, item, rowid FROM keys WHERE number = {number} ORDER BY key, item")

    def _unmatched(self, edge: Edge, line: int, text: str) -> Unmatched:
        mine, its = zip(*edge.need.fields, strict=True)
        needed = self._jobs[edge.needed].name
        among = f"the first {self._limit:,} items" if self._limit is not None else "the items"
        has = " and ".join(f"{name} {shown(part)}" for name, part in zip(its, text.split(BETWEEN), strict=True))
        way_out = "; unmatched: free in the job lets it begin at once" if self._limit is None else " (--limit)"
        return Unmatched(edge, line, ", ".join(mine), f"none of {among} of {needed} has {has}{way_out}")
