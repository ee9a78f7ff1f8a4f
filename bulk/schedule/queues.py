"""The work that one bucket pays for: its priorities, the items read ahead of its streams, and its free lanes.

Of the lanes on disk only a window is in memory: it is filled up from the index, the longest first, as they are worked
off.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from bulk.manifest.manifest import Entry, Job
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.lanes import Index, IndexedLane, Lane

BATCH = 256
"""How many items a stream is read ahead (count)."""

TURNS = 8
"""Most jobs of one priority whose streams take turns (count): each has a file open and is read ahead."""

NEAR_ROWS = 8_192
FAR_ROWS = 200_000
"""Done items that are passed by at once on the way to the next one: in the event loop, and beside it (count)."""

LANES_FOR_EACH = 4
"""Lanes in memory for each request that may be in flight (count)."""


class Stream(Protocol):
    """The items of a job without lanes, in order; `bundle.streams.EntryStream` is one."""

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> Sequence[Entry] | None:
        """Return the next items that are not done, at most `count`; none at the end.

        Args:
            next_left: returns the first item from an index on that is not done.
            near: the most rows to pass by (about); None comes back where the next item lies further on.
        """


def all_of(stream: Stream) -> Iterator[Entry]:
    """Yield every item of a stream from which nothing was taken, in order; blocks as long as reading them takes."""
    while entries := stream.take(BATCH, lambda index: index):
        yield from entries


class Work:
    """One item handed to a worker, with the lane that it holds.

    Attributes:
        behind: items behind it in that lane that may share its requests (`Operation.steps_combined`).
    """

    __slots__ = ("behind", "entry", "lane")

    def __init__(self, entry: Entry, lane: Lane | None = None, behind: tuple[Entry, ...] = ()) -> None:
        self.entry, self.lane, self.behind = entry, lane, behind

    @property
    def items(self) -> int:
        """Items that the worker holds (count)."""
        return 1 + len(self.behind)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All items that the worker holds, in their order."""
        return (self.entry, *self.behind)


@dataclass(slots=True, eq=False)
class Feed:
    """A stream and the items that were read ahead of it.

    Attributes:
        job: the job of the items (number).
        next_wanted: returns the first item from an index on that the feed gives; see `Stream.take`.
        is_far: the next item is looked for in a thread, because that takes long; do not ask the feed meanwhile.
    """

    job: int
    stream: Stream
    next_wanted: Callable[[int], int]
    ahead: deque[Entry] = field(default_factory=deque)
    is_at_end: bool = False
    is_far: bool = False

    def next(self) -> Entry | None:
        """Return the next item; None at the end, and while the feed `is_far`."""
        if not self.ahead and not self.is_at_end:
            found = self.stream.take(BATCH, self.next_wanted, near=NEAR_ROWS)
            self.is_far = found is None
            self.ahead.extend(found or ())
            self.is_at_end = not self.ahead and not self.is_far
        return self.ahead.popleft() if self.ahead else None

    def look_far(self) -> None:
        """Look further for the next item, for a second or so; blocks. The feed `is_far` until one was found."""
        found = self.stream.take(BATCH, self.next_wanted, near=FAR_ROWS)
        if found is not None:
            self.ahead.extend(found)
            self.is_at_end, self.is_far = not found, False


@dataclass(frozen=True, slots=True)
class Cursor:
    """Lanes that are still in the index alone.

    Attributes:
        job: the job in which the lanes begin (number). after: lanes that were read already (count).
        part: (modulus, remainder) of the rank of the lanes; None: all of them.
    """

    job: int
    after: int = 0
    part: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Items of one job that a process works on together: those from `first` on, before `behind`, or some lanes.

    Attributes:
        job: number of the job. behind: None: to the last item.
        lanes_of: jobs in which its lanes may begin (numbers). lanes: see `Cursor.part`.
        has_superseded: the part has superseded items, which are in no lane.
        is_to_make: the part is all of a job whose items are made from results first.
    """

    job: int
    first: int = 0
    behind: int | None = None
    lanes_of: tuple[int, ...] = ()
    lanes: tuple[int, int] | None = None
    has_superseded: bool = False
    is_to_make: bool = False

    def next_wanted(self, progress: JobProgress) -> Callable[[int], int]:
        """Return a function for the first item from an index on that is offered; see `Stream.take`."""
        if self.behind is None:
            return progress.next_offered
        first, behind = self.first, self.behind

        def next_in(index: int) -> int:
            found = progress.next_offered(max(first, index))
            return found if found < behind else progress.items

        return next_in


@dataclass(slots=True, eq=False)
class Tier:
    """One priority of one queue.

    Attributes:
        feeds: the feeds that take turns. later: feeds that come in when one of these is at its end, or far off.
    """

    feeds: deque[Feed] = field(default_factory=deque)
    later: deque[Feed] = field(default_factory=deque)
    ready: list[tuple[int, int, Lane]] = field(default_factory=list)
    cursors: deque[Cursor] = field(default_factory=deque)
    lanes: int = 0
    is_lanes_turn: bool = True

    def add(self, feed: Feed) -> None:
        """Add a feed; if enough of them take turns, it waits for a place."""
        (self.feeds if len(self.feeds) < TURNS else self.later).append(feed)

    def drop_first(self) -> None:
        """Drop the first feed, which is at its end, or far off; the next one comes in."""
        self.feeds.popleft()
        if self.later:
            self.feeds.append(self.later.popleft())

    def move(self, job: int | None, to: "Tier") -> None:
        """Move what this tier offers of a job (number; None: of all jobs) to `to`; nothing is read for that."""
        for feeds in (self.feeds, self.later):
            for feed in [feed for feed in feeds if job in (None, feed.job)]:
                feeds.remove(feed)
                to.add(feed)
        while self.later and len(self.feeds) < TURNS:
            self.feeds.append(self.later.popleft())
        for cursor in [cursor for cursor in self.cursors if job in (None, cursor.job)]:
            self.cursors.remove(cursor)
            to.cursors.append(cursor)
        moved = [each for each in self.ready if job in (None, each[2].next_job)]
        self.ready = [each for each in self.ready if job not in (None, each[2].next_job)]
        heapq.heapify(self.ready)
        for each in moved:
            heapq.heappush(to.ready, each)
        self.lanes -= len(moved)
        to.lanes += len(moved)


@dataclass(slots=True, eq=False)
class Queue:
    """The work that one bucket pays for.

    Attributes:
        idle: workers that wait for work.
        jobs: jobs that the bucket pays for and that are not complete (count).
        is_closed: nothing more is offered, because the credential was refused.
        refusal: why no item of the queue can be sent; each fails with this message. Empty: they can be sent.
    """

    credential: str
    category: str
    tiers: dict[int, Tier] = field(default_factory=dict)
    idle: deque[anyio.Event] = field(default_factory=deque)
    jobs: int = 0
    is_closed: bool = False
    refusal: str = ""

    def wake(self, count: int) -> None:
        """Wake at most `count` idle workers."""
        for _ in range(min(count, len(self.idle))):
            self.idle.popleft().set()


def queues_of(jobs: Sequence[Job]) -> tuple[list[Queue], list[Tier]]:
    """Return the queue of each job and its tier in there; a queue has the highest priority first."""
    queues: dict[tuple[str, str], Queue] = {}
    for job in jobs:
        key = (job.credential, job.operation.category)
        queue = queues.setdefault(key, Queue(*key))
        queue.jobs += 1
        queue.tiers.setdefault(job.priority, Tier())
    for queue in queues.values():
        queue.tiers = dict(sorted(queue.tiers.items(), reverse=True))
    found = [queues[job.credential, job.operation.category] for job in jobs]
    return found, [queue.tiers[job.priority] for queue, job in zip(found, jobs, strict=True)]


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
