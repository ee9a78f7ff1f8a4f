"""A lane: items that must go one at a time and in manifest order. They are read from the index on disk, a few at once.

Only the lanes that may be worked on soon are in memory, and only the next few items of each.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bulk.capabilities import Combinable
from bulk.manifest.manifest import Entry
from bulk.operation import AnyOperation

AHEAD = 4
"""Items of a lane that are read at once (count): they may be large."""


class IndexedLane(Protocol):
    """What the index tells of a lane."""

    @property
    def key(self) -> int:
        """Names the lane."""

    @property
    def label(self) -> str:
        """The name of the lane for people."""

    @property
    def items(self) -> int:
        """All items of the lane (count)."""


class Index(Protocol):
    """Lanes and their items on disk; `bundle.streams.LaneIndex` is one."""

    def lanes(
        self, job_number: int, *, after: int, count: int, part: tuple[int, int] | None = None
    ) -> Sequence[IndexedLane]:
        """Return lanes whose first item belongs to that job, most items first, from the `after`-th on.

        Args:
            part: only lanes whose rank, divided by the first of these numbers, leaves the second; None: all.
        """

    def holds(self, lane_key: int) -> frozenset[int]:
        """Return the keys of all names that a lane stands for."""

    def entries(
        self, lane_key: int, *, after: int, count: int, next_left: Callable[[int, int], int] | None = None
    ) -> Sequence[tuple[int, Entry]]:
        """Return (sequence number, entry) of that lane behind sequence number `after`, in manifest order across jobs.

        Args:
            next_left: returns the first item of a job, from an index on, that is still to be done; items that are done
                may be left out.
        """


@dataclass(slots=True, eq=False)
class Lane:
    """A sequence of items that go one at a time, in the order of the manifest.

    Attributes:
        left: items not yet ended, at most (count). after: sequence number of the last item read from the index.
        index: the index that holds its items.
        holds: the keys that no lane of another index may hold while one of its items is sent.
        next_left: returns the first item of a job, from an index on, that is still to be done.
        job: the job of the item that was taken last, at first the job that the lane begins in (number).
        alone: how many of the next items are offered one by one, because sending them together did not work.
    """

    key: int
    label: str
    left: int
    index: Index
    holds: frozenset[int] = frozenset()
    next_left: Callable[[int, int], int] | None = None
    after: int = -1
    ahead: deque[Entry] = field(default_factory=deque)
    alone: int = 0
    job: int = 0

    def take(
        self,
        is_over: Callable[[Entry], bool],
        operation: AnyOperation,
        is_offered: Callable[[Entry], bool] = lambda _: True,
    ) -> tuple[Entry, ...]:
        """Take the first item, which must be there; return the items behind it that share its requests: those are of
        the same job, and offered too."""
        head = self.ahead.popleft()
        if not isinstance(operation, Combinable):
            return ()
        if self.alone:
            self.alone -= 1
            return ()
        behind: list[Entry] = []
        room = operation.most_combined - operation.size_combined(head.item)
        while room > 0 and (entry := self.head(is_over)) is not None:
            if entry.job != head.job or not is_offered(entry):
                break
            room -= operation.size_combined(entry.item)
            if room >= 0:
                behind.append(self.ahead.popleft())
        return tuple(behind)

    @property
    def next_job(self) -> int:
        """The job of the next item (number), if that item is in memory; else the job of the last one."""
        return self.ahead[0].job if self.ahead else self.job

    def give_back(self, entries: Sequence[Entry]) -> None:
        """Put items that were taken together back where they stood: they go one by one now."""
        self.ahead.extendleft(reversed(entries))
        self.alone += len(entries)

    def head(self, is_over: Callable[[Entry], bool]) -> Entry | None:
        """Return the next item that is still to be done; None when the lane is done. `is_over`: whether to pass an
        item by."""
        while True:
            while self.ahead:
                if not is_over(self.ahead[0]):
                    return self.ahead[0]
                self.ahead.popleft()
                self.left -= 1
            if self.left <= 0:  # no item can be left: the index need not be asked
                return None
            found = self.index.entries(self.key, after=self.after, count=AHEAD, next_left=self.next_left)
            if not found:
                return None
            self.after = found[-1][0]
            self.ahead.extend(entry for _, entry in found)


class Held:
    """Keys of lanes with an item in flight, where lanes of several indexes may share one; and the lanes that wait."""

    def __init__(self) -> None:
        self._keys: set[int] = set()
        self._waiting: dict[int, list[Lane]] = {}

    def take(self, lane: Lane) -> bool:
        """Hold the keys of `lane` and return True; if another lane holds one, have `lane` wait and return False."""
        busy = self._keys & lane.holds
        if busy:
            self._waiting.setdefault(next(iter(busy)), []).append(lane)
            return False
        self._keys |= lane.holds
        return True

    def release(self, lane: Lane) -> list[Lane]:
        """Let go of the keys of `lane`; return the lanes that waited for one."""
        self._keys -= lane.holds
        return [other for key in lane.holds for other in self._waiting.pop(key, ())]
