"""Needs by key, checked: every item that waits must have something to wait for. Makes `links.Links` of all of them.

Keys are compared by hashes in a temporary SQLite file, so that memory does not grow with what they are made of.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from bulk.bundle.checked import JobCheck
from bulk.bundle.index import short_63
from bulk.bundle.links import BETWEEN, Edge, Links, edges_of, key_reader
from bulk.flaws import shown
from bulk.manifest.manifest import Job
from bulk.operation import Item
from bulk.storage.temporary_rows import TemporaryRows

_NEEDED, _WAITING = 0, 1


class Unmatched(NamedTuple):
    """An item that waits for something that is not there: where it stands, the field by which it waits, and why."""

    edge: Edge
    line: int
    field: str
    message: str


class _End(NamedTuple):
    """One end of an edge at a job; `read` gives the key of its items."""

    edge: Edge
    side: int
    read: Callable[[Item], str | None]
    fields: tuple[str, ...]


class KeyFinder(TemporaryRows):
    """Takes the keys of all items; `links` tells what waits for what. A context manager."""

    def __init__(self, jobs: Sequence[Job], limit: int | None) -> None:
        """Prepare the search; `limit`: of each job only so many items are read (count), which messages say."""
        super().__init__(
            "CREATE TABLE keys (end INTEGER, key INTEGER, item INTEGER, line INTEGER, shown TEXT);",
            "keys VALUES (?, ?, ?, ?, ?)",
        )
        self._jobs, self._limit = jobs, limit
        self._ends: dict[int, list[_End]] = {}
        self.edges = edges_of(jobs)
        for edge in self.edges:
            for side, number in ((_NEEDED, edge.needed), (_WAITING, edge.waiting)):
                fields = tuple(pair[1 - side] for pair in edge.need.fields)
                end = _End(edge, side, key_reader(jobs[number], fields), fields)
                self._ends.setdefault(number, []).append(end)

    def takes(self, job: Job) -> bool:
        """Return whether the items of `job` have keys."""
        return job.number in self._ends

    def add(self, job: Job, item: Item, index: int, line: int) -> Iterator[tuple[str, str]]:
        """Note the keys of one item; yield (field, what is wrong) of those that can't be used."""
        for edge, side, read, fields in self._ends[job.number]:
            try:
                key = read(item)
            except ValueError as flaw:
                yield str(flaw), "a key is made of texts and numbers"
                continue
            if key is not None:
                text = key if side == _WAITING else ""
                self.keep((edge.number * 2 + side, short_63(key), index, line, text))
            elif side == _WAITING and not job.is_free_unmatched:
                needed = self._jobs[edge.needed].name
                yield fields[0], f"is missing: the item waits for items of {needed} by {', '.join(fields)}"

    def links(self, checks: Sequence[JobCheck], refuse: Callable[[Unmatched], None]) -> Iterator[Links]:
        """Yield what was found of each need, after all items.

        Args:
            refuse: called with each item that waits for something that is not there.
        """
        if self.edges:
            self.select("CREATE INDEX keys_in_order ON keys (end, key, item)")
        for edge in self.edges:
            yield self._links_of(edge, checks[edge.needed].items, refuse)

    def _links_of(self, edge: Edge, items: int, refuse: Callable[[Unmatched], None]) -> Links:
        found = Links(edge, array("i", [-1]) * items, array("I", [0]), array("I"))
        needed = self._in_order(edge.number * 2 + _NEEDED)
        ahead = next(needed, None)
        is_free = self._jobs[edge.waiting].is_free_unmatched
        for key, rows in groupby(self._in_order(edge.number * 2 + _WAITING), key=itemgetter(0)):
            while ahead is not None and ahead[0] < key:
                ahead = next(needed, None)
            if ahead is None or ahead[0] != key:
                if not is_free:
                    for _, _, line, text in rows:
                        refuse(self._unmatched(edge, line, text))
                continue
            while ahead is not None and ahead[0] == key:
                found.key_of[ahead[1]] = found.keys
                ahead = next(needed, None)
            found.items.extend(row[1] for row in rows)
            found.starts.append(len(found.items))
        return found

    def _in_order(self, end: int) -> Iterator[tuple[int, int, int, str]]:
        return self.select(f"SELECT key, item, line, shown FROM keys WHERE end = {end} ORDER BY key, item")

    def _unmatched(self, edge: Edge, line: int, text: str) -> Unmatched:
        mine, its = zip(*edge.need.fields, strict=True)
        needed = self._jobs[edge.needed].name
        among = f"the first {self._limit:,} items" if self._limit is not None else "the items"
        has = " and ".join(f"{name} {shown(part)}" for name, part in zip(its, text.split(BETWEEN), strict=True))
        way_out = "; unmatched: free in the job lets it begin at once" if self._limit is None else " (--limit)"
        return Unmatched(edge, line, ", ".join(mine), f"none of {among} of {needed} has {has}{way_out}")
