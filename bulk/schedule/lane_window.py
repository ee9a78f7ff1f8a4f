"""The lanes that are in memory: filled up from the index, the longest first, as they are worked off."""

import heapq
import itertools
from collections.abc import Callable, Iterator

from bulk.schedule.lanes import Index, IndexedLane, Lane
from bulk.schedule.queues import Cursor, Tier

LANES_FOR_EACH = 4
"""Lanes in memory for each request that may be in flight (count)."""


class LaneWindow:
    """Brings lanes from the index into the tiers that offer them.

    Args:
        index: the lanes on disk. in_flight: requests that may be in flight (count); each has `LANES_FOR_EACH` lanes.
        may_meet: a lane may be met twice: in other indexes, those of derived items, or because parts of a run that
            join later have items in it.
        next_left: returns the first item of a job, from an index on, that is still to be done.
    """

    def __init__(self, index: Index, in_flight: int, may_meet: bool, next_left: Callable[[int, int], int]) -> None:
        self.index, self.most, self._may_meet = index, in_flight * LANES_FOR_EACH, may_meet
        self._next_left = next_left
        self._made: dict[int, Index] = {}
        self._order = itertools.count()

    def made(self, job: int, index: Index) -> None:
        """Note that the lanes of that job are in an index of their own."""
        self._made[job] = index

    def fill(self, tier: Tier) -> None:
        """Fill a tier from the index, longest lanes first."""
        while tier.cursors and tier.lanes < self.most:
            self._fill_from(tier, tier.cursors.popleft())

    def _fill_from(self, tier: Tier, cursor: Cursor) -> None:
        index = self._made.get(cursor.job, self.index)
        found = index.lanes(cursor.job, after=cursor.after, count=self.most, part=cursor.part)
        for lane in found:
            self._bring(tier, lane, index, cursor.job)
        if len(found) == self.most:
            tier.cursors.append(Cursor(cursor.job, cursor.after + len(found), cursor.part))

    def _bring(self, tier: Tier, lane: IndexedLane, index: Index, job: int) -> None:
        """Have a tier offer a lane of `index`, from its first item on, which is one of `job`."""
        holds = index.holds(lane.key) if self._may_meet else frozenset[int]()
        self.push(tier, Lane(lane.key, lane.label, lane.items, index, holds, self._next_left, job=job))

    def all_of(self, job: int, part: tuple[int, int] | None = None) -> Iterator[Lane]:
        """Yield every lane of a job, the longest first. `part`: see `Cursor`."""
        after = 0
        while found := self.index.lanes(job, after=after, count=self.most, part=part):
            after += len(found)
            for lane in found:
                holds = self.index.holds(lane.key) if self._may_meet else frozenset[int]()
                yield Lane(lane.key, lane.label, lane.items, self.index, holds, self._next_left, job=job)

    def push(self, tier: Tier, lane: Lane) -> None:
        """Have a tier offer a lane."""
        tier.lanes += 1
        heapq.heappush(tier.ready, (-lane.left, next(self._order), lane))
