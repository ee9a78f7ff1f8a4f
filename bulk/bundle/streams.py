"""Items on their way to the workers, read again from where they were checked: in lanes for writes that share them, and
in streams for all others.

A source that has changed since it was checked stops the run; it is never read as something else.
"""

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import itemgetter
from pathlib import Path
from typing import Self, TypeAlias

from bulk.bundle.checked import Checked, changed, is_indexed, refuse_change, source_path
from bulk.bundle.columns import Column, Columns
from bulk.bundle.index import INDEX, SCHEMA, SUPERSEDED, opened
from bulk.bundle.links import Links, load_links
from bulk.bundle.reread import Files, Places
from bulk.errors import RunDirectoryError
from bulk.items.decoding import UNREADABLE, ItemReader
from bulk.items.lines import Bad, Given, Row, SourceFlaw
from bulk.items.sources import ItemsFile
from bulk.manifest.manifest import Entry

SHORT_ITEMS = 4
"""Lanes of at most this many items are looked up together: one by one takes longer than all else about an item."""

AHEAD_BYTES = 1024 * 1024
"""Items of a stream are read together until they have this length (bytes)."""

_Row: TypeAlias = tuple[int, int, int, int, int]
"""sequence, job, item, at, size; see the table `entries`."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Items that go one at a time, in manifest order. `items`: how many the lane has, over all jobs."""

    key: int
    label: str
    items: int


class EntryStream:
    """The items of one job, in order, a few at a time. `take` reads them; no file is open before its first call."""

    def __init__(self, checked: Checked, job_number: int, workspace: Path) -> None:
        self._job, self._check = checked.manifest.jobs[job_number], checked.jobs[job_number]
        self._file: ItemsFile | None = None
        self._files = Files(workspace, self._job)
        self._reader = ItemReader(self._job.operation, self._job.defaults)
        self._path = source_path(self._job, workspace)
        self._rows: Iterator[Row] | None = None
        self._next = 0
        self._marks = self._check.source.marks if self._check.source is not None else ()

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> list[Entry] | None:
        """Return up to `count` entries that are not done, fewer where they are large; empty at the end. Done items
        are not decoded.

        Args:
            next_left: returns the first item from an index on that is not done (or an index behind the last).
            near: about the most rows to pass by: there may be fewer entries then, and None is returned if the first one
                lies further on; a call without `near`, where that may take long, finds it.

        Raises:
            RunDirectoryError: the source is gone or has changed since it was checked.
        """
        if self._rows is None:
            self._rows = self._open()
        elif self._file is not None:
            refuse_change(self._file.fileno(), self._check.source, self._path)
        found: list[Entry] = []
        items, rows, size = self._check.items, 0, 0
        wanted = next_left(self._next)
        try:
            while len(found) < count and wanted < items:
                if wanted > self._next:
                    self._jump(wanted)
                    passed = wanted - self._next
                    if near is not None and rows + passed > near:
                        # pass by as many as allowed: these rows are not read again
                        self._pass(min(passed, near - rows))
                        return found or None
                    rows += passed
                    self._pass(passed)
                row = self._row()
                found.append(self._entry(wanted, row))
                size += len(row) if type(row) is bytes else _size_of(row)
                if size > AHEAD_BYTES:
                    break
                wanted = next_left(wanted + 1)
        except UNREADABLE as error:
            raise changed(self._path) from error
        if not found:
            self._next = items
            self.close()
        return found

    def _jump(self, wanted: int) -> None:
        """Go on from the last mark before that item, where it lies ahead."""
        place = bisect.bisect_right(self._marks, wanted, key=itemgetter(0)) - 1
        if place >= 0 and self._marks[place][0] > self._next and self._file is not None:
            self._next, offset = self._marks[place]
            self._rows = chain.from_iterable(self._file.rows_from(offset))

    def _pass(self, count: int) -> None:
        for _ in range(count):
            self._row()

    def _row(self) -> bytes | Given | Bad:
        """Return the next row that is an item."""
        assert self._rows is not None, "it was opened"
        for _, _, data in self._rows:
            if type(data) is not bytes or (data and not data.isspace()):
                self._next += 1
                return data
        raise changed(self._path)

    def close(self) -> None:
        """Close the source; this happens by itself at the end, and when the stream is no longer referenced."""
        if self._file is not None:
            self._file.__exit__()
            self._file = None
        self._files.close()

    def __del__(self) -> None:
        self.close()

    def _entry(self, number: int, row: bytes | Given | Bad) -> Entry:
        item = self._reader.again(row) if type(row) is bytes else self._reader.row_again(row)
        return Entry(self._job.number, number, item, self._files.of(item))

    def _open(self) -> Iterator[Row]:
        if self._path is None:
            return iter([(0, 0, Given(item)) for item in self._job.items or ()])
        try:
            self._file = ItemsFile(self._path, self._job.operation, is_hashed=False)
            refuse_change(self._file.fileno(), self._check.source, self._path)
            return chain.from_iterable(self._file.rows())
        except SourceFlaw as flaw:
            raise RunDirectoryError(f"{self._path}: its items are needed to go on: {flaw}") from flaw


class LaneIndex:
    """The lanes of a checked manifest and their items, from `index.db`. Queries are fast enough to be made often."""

    def __init__(self, checked: Checked, workspace: Path, name: str = INDEX) -> None:
        self._checked, self._workspace = checked, workspace
        self._database = opened(workspace / name, SCHEMA)
        self._places = Places(checked, workspace)
        self._is_whole = name == INDEX
        self._first_ranks = self._ranks()
        self._short: dict[int, list[_Row]] = {}
        self._firsts: dict[int, int] = {}
        self._columns = Columns(self._database)
        self._known: dict[int, tuple[Column, Column]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ranks(self) -> dict[int, int]:
        """Return the rank of the first lane of each job; lanes are ranked in the order of the jobs."""
        if not self._is_whole:
            return dict(self._database.execute("SELECT job, min(rank) FROM lanes GROUP BY job").fetchall())
        lanes = [found.lanes for found in self._checked.jobs]
        ranks = accumulate(lanes, initial=1)
        return {number: rank for number, (count, rank) in enumerate(zip(lanes, ranks, strict=False)) if count}

    def lanes(self, job_number: int, *, after: int, count: int, part: tuple[int, int] | None = None) -> list[Lane]:
        """Return lanes whose first item belongs to that job, most items first: `count` of them behind the first
        `after`.

        Args:
            part: only lanes whose rank, divided by the first of these numbers, leaves the second; None: all.
        """
        first = self._first_ranks.get(job_number)
        if first is None:
            return []
        if part is not None:
            return self._lanes_in_part(job_number, first, after, count, *part)
        query = "SELECT lane, label, items FROM lanes WHERE rank >= ? AND job = ? ORDER BY rank LIMIT ?"
        found = [Lane(*row) for row in self._database.execute(query, (first + after, job_number, count))]
        if found and found[-1].items <= SHORT_ITEMS:
            self._look_up_short(first + after, first + after + len(found), job_number)
        return found

    def _lanes_in_part(
        self, job_number: int, first: int, after: int, count: int, modulus: int, remainder: int
    ) -> list[Lane]:
        first += (remainder - first) % modulus + after * modulus
        query = (
            "SELECT lane, label, items FROM lanes WHERE rank >= ? AND job = ? AND rank % ? = ? ORDER BY rank LIMIT ?"
        )
        return [Lane(*row) for row in self._database.execute(query, (first, job_number, modulus, remainder, count))]

    def _look_up_short(self, first: int, end: int, job_number: int) -> None:
        """Keep all items of the short lanes among these ranks, until `entries` is called for them."""
        query = """
            SELECT lane, sequence, job, item, at, size FROM entries WHERE lane IN
            (SELECT lane FROM lanes WHERE rank >= ? AND rank < ? AND job = ? AND items <= ?) ORDER BY lane, sequence"""
        for lane, *row in self._database.execute(query, (first, end, job_number, SHORT_ITEMS)):
            self._short.setdefault(lane, []).append((row[0], row[1], row[2], row[3], row[4]))

    def entries(
        self, lane_key: int, *, after: int, count: int, next_left: Callable[[int, int], int] | None = None
    ) -> list[tuple[int, Entry]]:
        """Return (sequence number, entry) of up to `count` items of a lane behind sequence number `after` (0: from the
        first).

        Args:
            next_left: returns the first item of a job, from an index on, that is still to be done; others are then
                passed by, however many they are, without being read.

        Raises:
            RunDirectoryError: a source is gone or has changed since it was checked.
        """
        query = """
            SELECT sequence, job, item, at, size FROM entries WHERE lane = ? AND sequence > ?
            ORDER BY sequence LIMIT ?"""
        short = self._short.pop(lane_key, None) if after <= 0 and count >= SHORT_ITEMS else None
        while rows := short or self._database.execute(query, (lane_key, max(after, 0), count)).fetchall():
            short = None
            left = rows if next_left is None else [row for row in rows if next_left(row[1], row[2]) == row[2]]
            if left:
                return [
                    (sequence, self._places.of(job).entry(item, at, size)) for sequence, job, item, at, size in left
                ]
            after, job, item = rows[-1][:3]
            if next_left is not None and self._is_whole:
                # items of one job have neighbouring sequence numbers in a whole index
                after += next_left(job, item) - item - 1
        return []

    def holds(self, lane_key: int) -> frozenset[int]:
        """Return the keys of all names that a lane stands for: other indexes may know them one by one."""
        rows = self._database.execute("SELECT lane FROM joined WHERE root = ?", (lane_key,)).fetchall()
        return frozenset((lane_key, *(row[0] for row in rows)))

    def in_order(self, *, after: int, count: int) -> list[tuple[int, int, int, int, int]]:
        """Return (sequence number, job, index, offset, size) of the next items behind sequence number `after`."""
        query = "SELECT sequence, job, item, at, size FROM entries WHERE sequence > ? ORDER BY sequence LIMIT ?"
        return self._database.execute(query, (after, count)).fetchall()

    def entry(self, job: int, item: int, at: int, size: int) -> Entry:
        """Return the entry that `in_order` found."""
        return self._places.of(job).entry(item, at, size)

    def found(self, job: int, indexes: Sequence[int]) -> list[Entry]:
        """Return these items of the job with that number, which is indexed, in their order; raise as `entries`."""
        place = self._places.of(job)
        if self._checked.manifest.jobs[job].operation.is_read:
            at, sizes = self._places_in(job)
            return place.entries([(index, at[index], sizes[index]) for index in sorted(indexes)])
        query = "SELECT item, at, size FROM entries WHERE sequence = ?"  # a list in it would be parsed anew each time
        first, execute = self._first_of(job), self._database.execute
        return place.entries([execute(query, (first + index,)).fetchone() for index in sorted(indexes)])

    def _places_in(self, job: int) -> tuple[Column, Column]:
        """Return the offset and the length of each item of a job that reads."""
        if job not in self._known:
            column = self._columns.of
            self._known[job] = column("places", "at", job, "Q"), column("places", "size", job, "I")
        return self._known[job]

    def lanes_of(self, job: int, indexes: Sequence[int]) -> list[Lane]:
        """Return the lanes that have these items of the job; `add_links` has prepared the index for that."""
        first = self._first_of(job)
        query = f"""
            SELECT lane, label, items FROM lanes WHERE lane IN
            (SELECT lane FROM entries WHERE sequence IN ({",".join([str(first + index) for index in indexes])}))"""
        return [Lane(*row) for row in self._database.execute(query)]

    def _first_of(self, job: int) -> int:
        """Return the sequence number of the first item of a job: jobs stand in the index one behind the other."""
        if job not in self._firsts:
            pairs = zip(self._checked.manifest.jobs[:job], self._checked.jobs, strict=False)
            before = [check.items for other, check in pairs if is_indexed(other) and other.derivation is None]
            self._firsts[job] = 1 + sum(before)
        return self._firsts[job]

    def links(self) -> list[Links]:
        """Return the links of all needs by key; they can be read as long as this index is open."""
        return load_links(self._checked.manifest.jobs, self._columns)

    def flaws(self, *, after: int, count: int) -> list[tuple[int, str, str]]:
        """Return (index, what is wrong, what was given as JSON) of items that can't be used, behind index `after`."""
        query = "SELECT item, message, given FROM flaws WHERE item > ? ORDER BY item LIMIT ?"
        return self._database.execute(query, (after, count)).fetchall()

    def superseded(self, *, after: int, count: int) -> list[tuple[int, Entry]]:
        """Return items that are not sent, because a later item takes their place: like `entries`, over all jobs."""
        return self.entries(SUPERSEDED, after=after, count=count)

    def close(self) -> None:
        """Close the index and the sources."""
        self._places.close()
        self._database.close()


def _size_of(row: bytes | Given | Bad) -> int:
    """Return about the length of an item (bytes)."""
    if isinstance(row, bytes):
        return len(row)
    fields = row.value if isinstance(row, Given) else None
    return sum(len(value) for value in fields.values() if isinstance(value, str)) if isinstance(fields, dict) else 0
