"""The work that one bucket pays for: its priorities, what is read ahead of its streams, the lanes that are free."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from bulk.manifest.manifest import Entry, Job
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.lanes import Lane

BATCH = 256
"""Items that a stream is read ahead (count)."""

TURNS = 8
"""Jobs of one priority whose streams take turns (count): each has a file open and is read ahead."""

NEAR_ROWS = 8_192
FAR_ROWS = 200_000
"""Done items that are passed by at once on the way to the next one: in the event loop, and beside it (count)."""


class Stream(Protocol):
    """The items of a job without lanes, in order; `bundle.streams.EntryStream` is one."""

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> Sequence[Entry] | None:
        """Return the next ones that are not done, at most `count`; none at the end.

        Args:
            next_left: the first item from that index on that is not done.
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
        """All of them, in their order."""
        return (self.entry, *self.behind)


@dataclass(slots=True, eq=False)
class Feed:
    """A stream and what was read ahead of it.

    Attributes:
        job: whose items they are (number).
        next_wanted: the first item from an index on that it gives; see `Stream.take`.
        is_far: its next item is looked for elsewhere, because that takes its time; nothing may be asked meanwhile.
    """

    job: int
    stream: Stream
    next_wanted: Callable[[int], int]
    ahead: deque[Entry] = field(default_factory=deque)
    is_at_end: bool = False
    is_far: bool = False

    def next(self) -> Entry | None:
        """Return the next item; None at the end, and where it `is_far`."""
        if not self.ahead and not self.is_at_end:
            found = self.stream.take(BATCH, self.next_wanted, near=NEAR_ROWS)
            self.is_far = found is None
            self.ahead.extend(found or ())
            self.is_at_end = not self.ahead and not self.is_far
        return self.ahead.popleft() if self.ahead else None

    def look_far(self) -> None:
        """Look further for what comes next, for a second or so; blocks. It `is_far` as long as nothing was found."""
        found = self.stream.take(BATCH, self.next_wanted, near=FAR_ROWS)
        if found is not None:
            self.ahead.extend(found)
            self.is_at_end, self.is_far = not found, False


@dataclass(frozen=True, slots=True)
class Cursor:
    """Lanes that are still in the index alone.

    Attributes:
        job: in which they begin (number). after: those before were read (count).
        part: (modulus, remainder) of their rank; None: all of them.
    """

    job: int
    after: int = 0
    part: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Items of one job that a process works on together: those from `first` on, before `behind`, or some lanes.

    Attributes:
        job: its number. behind: None: to the last one.
        lanes_of: jobs in which its lanes may begin (numbers). lanes: see `Cursor.part`.
        has_superseded: superseded items are among them, which are in no lane.
        is_to_make: all of the job, whose items are made from results first.
    """

    job: int
    first: int = 0
    behind: int | None = None
    lanes_of: tuple[int, ...] = ()
    lanes: tuple[int, int] | None = None
    has_superseded: bool = False
    is_to_make: bool = False

    def next_wanted(self, progress: JobProgress) -> Callable[[int], int]:
        """Return what gives the first item from an index on that is offered; see `Stream.take`."""
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
        feeds: those that take turns. later: those that come in when one of these is at its end, or far off.
    """

    feeds: deque[Feed] = field(default_factory=deque)
    later: deque[Feed] = field(default_factory=deque)
    ready: list[tuple[int, int, Lane]] = field(default_factory=list)
    cursors: deque[Cursor] = field(default_factory=deque)
    lanes: int = 0
    is_lanes_turn: bool = True

    def add(self, feed: Feed) -> None:
        """Add one more; where enough take turns, it does so later."""
        (self.feeds if len(self.feeds) < TURNS else self.later).append(feed)

    def drop_first(self) -> None:
        """Drop the first of them, which is at its end, or far off: the next one comes in."""
        self.feeds.popleft()
        if self.later:
            self.feeds.append(self.later.popleft())

    def move(self, job: int | None, to: "Tier") -> None:
        """Have `to` offer what is here of a job (number; None: of all); nothing is read for that."""
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
        jobs: those that it pays for and that are not complete (count).
        is_closed: nothing more is offered (its credential was refused).
        refusal: why none of its items can be sent, each of which fails with that; empty: they can.
    """

    credential: str
    category: str
    tiers: dict[int, Tier] = field(default_factory=dict)
    idle: deque[anyio.Event] = field(default_factory=deque)
    jobs: int = 0
    is_closed: bool = False
    refusal: str = ""

    def wake(self, count: int) -> None:
        """Wake so many idle workers."""
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
