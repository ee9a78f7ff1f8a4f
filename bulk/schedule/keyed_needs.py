"""Counts which items may begin that wait for single items of other jobs: one count for each key; no item is read.

When an item ends, its key has one item less to wait for. A key with nothing left to wait for opens the items behind it;
if an item with that key failed, they are doomed. So an item takes the same time however many there are, and a byte and
a bit of memory; two bytes where it waits for several jobs. The counts are not stored: the ledger knows what has ended.
Pure.
"""

from array import array
from collections import deque
from collections.abc import Collection, Mapping, Sequence

from bulk.bundle.links import BETWEEN, Links, key_reader
from bulk.flaws import shown
from bulk.manifest.manifest import Job
from bulk.model import SUCCESSFUL, ErrorCode, Outcome
from bulk.operation import Item
from bulk.schedule.job_progress import JobProgress

_COMPACT_FROM = 4_096
_FAILED, _FAILED_WIDE = 2**8 - 1, 2**32 - 1
"""Greater than every count, in a byte and in four."""


class Doomed:
    """Items that wait for a key; `culprit`, an item of the needed job with that key, did not succeed."""

    __slots__ = ("culprit", "edge", "key", "links")

    def __init__(self, links: Links, key: int, culprit: int) -> None:
        self.links, self.edge, self.key, self.culprit = links, links.edge, key, culprit

    @property
    def items(self) -> Sequence[int]:
        """The indexes of the doomed items."""
        return self.links.behind(self.key)


class Opened:
    """Items of a job that may begin and were not offered yet, in the order in which they opened."""

    def __init__(self) -> None:
        self._items, self._first = array("I"), 0

    def __len__(self) -> int:
        return len(self._items) - self._first

    def add(self, index: int) -> None:
        """Add an item that may begin."""
        self._items.append(index)

    def take(self, count: int) -> "array[int]":
        """Return the next items, at most `count`."""
        found = self._items[self._first : self._first + count]
        self._first += len(found)
        if self._first >= _COMPACT_FROM and self._first * 2 >= len(self._items):
            del self._items[: self._first]
            self._first = 0
        return found


class _Bytes(bytearray):
    """For each item, how many needs it waits for."""

    def more(self, index: int) -> None:
        """Add one to a count."""
        self[index] += 1

    def less(self, index: int) -> int:
        """Take one off a count; return the new count."""
        left = self[index] - 1
        self[index] = left
        return left


class _Flags:
    """Counts of at most one, an eighth as large as a `bytearray` of them."""

    __slots__ = ("_bits",)

    def __init__(self, length: int) -> None:
        self._bits = bytearray(length // 8 + 1)

    def less(self, index: int) -> int:
        """Take one off a count that is one; return the new count."""
        self._bits[index >> 3] &= ~(1 << (index & 7))
        return 0

    def more(self, index: int) -> None:
        """Add one to a count that is zero."""
        self._bits[index >> 3] |= 1 << (index & 7)

    def __getitem__(self, index: int) -> int:
        return self._bits[index >> 3] >> (index & 7) & 1


class _Count:
    """What the items behind each key of an edge still wait for.

    Attributes:
        left: by key, how many needed items with that key have not ended; `failed` where one of them did not succeed.
        is_strict: whether nothing behind a key begins that has `failed`.
    """

    __slots__ = ("failed", "is_strict", "left", "links")

    def __init__(self, links: Links, *, is_strict: bool) -> None:
        self.links, self.is_strict = links, is_strict
        self.left, self.failed = array("B", bytes(links.keys)), _FAILED

    def widen(self) -> None:
        """Use four bytes for each count, because a key is that of too many items for one."""
        self.left, self.failed = array("I", self.left), _FAILED_WIDE


class KeyedNeeds:
    """Counts the needs by key that items wait for.

    Args:
        links: those of each need by key. progress: that of each job, as the ledger has it.
        unsuccessful: items that ended without success, by job number; for jobs that are needed.

    Attributes:
        opened: the items that may begin, by the number of each job with needs by key. doomed: items to be skipped.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        links: Sequence[Links],
        progress: Sequence[JobProgress],
        unsuccessful: Mapping[int, Collection[int]],
    ) -> None:
        self._counts = [_Count(each, is_strict=jobs[each.edge.waiting].needs_policy == "all") for each in links]
        self._of: dict[int, list[_Count]] = {}
        self._waits: dict[int, _Bytes | _Flags] = {
            job.number: (_Bytes if len(job.by_key) > 1 else _Flags)(progress[job.number].items)
            for job in jobs
            if job.by_key
        }
        self.opened = {number: Opened() for number in self._waits}
        self.doomed: deque[Doomed] = deque()
        for count in self._counts:
            self._of.setdefault(count.links.edge.needed, []).append(count)
            self._begin(count, progress, unsuccessful)
        for number, waits in self._waits.items():
            job_progress = progress[number]
            for index in range(job_progress.items):
                if not waits[index] and not job_progress.is_done(index):
                    self.opened[number].add(index)

    def _begin(
        self, count: _Count, progress: Sequence[JobProgress], unsuccessful: Mapping[int, Collection[int]]
    ) -> None:
        links = count.links
        needed = progress[links.edge.needed]
        has_ended = any(needed.done)
        left = count.left
        for index, key in enumerate(links.key_of):
            if key >= 0 and not (has_ended and needed.is_done(index)):
                left[key] += 1
                if left[key] == count.failed:
                    count.widen()
                    left = count.left
        for index in unsuccessful.get(links.edge.needed, ()) if count.is_strict else ():
            if index < len(links.key_of) and (key := links.key_of[index]) >= 0:
                self._doom(count, key, index)
        more = self._waits[links.edge.waiting].more
        for key, index in links.waiting():
            if left[key]:
                more(index)

    def _doom(self, count: _Count, key: int, culprit: int) -> None:
        if count.left[key] != count.failed:
            count.left[key] = count.failed
            self.doomed.append(Doomed(count.links, key, culprit))

    def is_open(self, job: int, index: int) -> bool:
        """Return whether this item waits for nothing any more, and may begin."""
        waits = self._waits.get(job)
        return waits is None or not waits[index]

    def has_keys(self, job: int) -> bool:
        """Return whether items of this job wait for others by key."""
        return job in self._waits

    def is_needed(self, job: int) -> bool:
        """Return whether others wait for items of this job."""
        return job in self._of

    def ended(self, job: int, index: int, outcome: Outcome) -> Sequence[int]:
        """Note that an item has an outcome; return the numbers of the jobs in which this has opened items."""
        counts = self._of.get(job)
        if counts is None:
            return ()
        found: Sequence[int] = ()
        for count in counts:
            links = count.links
            key = links.key_of[index]
            if key < 0 or count.left[key] == count.failed:
                continue
            if count.is_strict and not _is_good(outcome):
                self._doom(count, key, index)
                continue
            left = count.left[key] - 1
            count.left[key] = left
            if not left and self._open(links, key):
                found = (*found, links.edge.waiting)
        return found

    def _open(self, links: Links, key: int) -> bool:
        """Note that one need of the items behind this key is met; return whether any of them may begin now."""
        number = links.edge.waiting
        waits, is_open = self._waits[number], False
        for index in links.behind(key):
            if not waits.less(index):
                self.opened[number].add(index)
                is_open = True
        return is_open


def _is_good(outcome: Outcome) -> bool:
    return outcome.kind in SUCCESSFUL or (outcome.error is not None and outcome.error.code is ErrorCode.SUPERSEDED)


def why_doomed(doomed: Doomed, jobs: Sequence[Job], item: Item) -> str:
    """Return the message for an item behind that key, which is not tried."""
    job, needed = jobs[doomed.edge.waiting], jobs[doomed.edge.needed]
    fields = [mine for mine, _ in doomed.edge.need.fields]
    key = key_reader(job, fields)(item) or ""
    told = ", ".join(f"{name} {shown(part)}" for name, part in zip(fields, key.split(BETWEEN), strict=False))
    return f"not tried: {job.name} needs item {doomed.culprit:,} of {needed.name} ({told}), which did not succeed"
