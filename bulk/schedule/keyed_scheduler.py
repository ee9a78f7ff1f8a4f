"""A scheduler of a manifest in which items wait for single items of other jobs.

Items that have opened come in by themselves, a few at a time: reads, and writes that share no lane, as a stream of the
items that may begin; other writes with their lane. A lane whose next item has to wait is let go of, so that memory is
bounded by what may begin soon; the lane comes in again when that item has opened. Running order puts needed items first
in a lane, so that no item waits for one that stands behind it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from bulk.bundle.links import Links
from bulk.manifest.manifest import Entry, Job
from bulk.model import Outcome
from bulk.schedule.job_progress import JobProgress, JobState
from bulk.schedule.keyed_needs import Doomed, KeyedNeeds
from bulk.schedule.lanes import Index, IndexedLane, Lane
from bulk.schedule.queues import Cursor, Feed, LaneWindow, Part, Stream, Tier
from bulk.schedule.scheduler import Scheduler
from bulk.schedule.tasks import SkipSome


class KeyedIndex(Index, Protocol):
    """An index in which an item can be found by its place in its job; `bundle.streams.LaneIndex` is one."""

    def found(self, job: int, indexes: Sequence[int]) -> Sequence[Entry]:
        """Return these items of the job with that number."""

    def lanes_of(self, job: int, indexes: Sequence[int]) -> Sequence[IndexedLane]:
        """Return the lanes in which these items of the job are, each once."""


class OpenedCursor(Cursor):
    """Lanes of a job in which something has opened."""


class OpenedStream:
    """The items of a job that have opened; the stream is at its end when there are none now."""

    def __init__(self, job: int, scheduler: "KeyedScheduler") -> None:
        self._job, self._scheduler = job, scheduler

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> Sequence[Entry] | None:
        """Take the next entries as `Stream.take` does."""
        scheduler, number = self._scheduler, self._job
        opened, progress = scheduler.keyed.opened[number], scheduler.progress[number]
        while len(opened):
            until = progress.offered_until
            indexes = [index for index in opened.take(count) if index < until and not progress.is_done(index)]
            if indexes:
                return scheduler.keyed_index.found(number, indexes)
        return ()


class KeyedWindow(LaneWindow):
    """Brings in lanes with the items that have opened.

    Attributes:
        present: keys of the lanes that are in memory, so that no lane is there twice.
    """

    def __init__(
        self, index: KeyedIndex, in_flight: int, may_meet: bool, next_left: Callable[[int, int], int], needs: KeyedNeeds
    ) -> None:
        super().__init__(index, in_flight, may_meet, next_left)
        self._keyed_index, self._needs = index, needs
        self.present = set[int]()

    def fill(self, tier: Tier) -> None:
        """Fill a tier; of the lanes in which something has opened, with one portion."""
        if tier.cursors and tier.lanes < self.most and isinstance(tier.cursors[0], OpenedCursor):
            cursor = tier.cursors.popleft()
            opened = self._needs.opened[cursor.job]
            for lane in self._keyed_index.lanes_of(cursor.job, opened.take(self.most)):
                self._bring(tier, lane, self.index, cursor.job)
            if len(opened):
                tier.cursors.append(cursor)
        while tier.cursors and tier.lanes < self.most and not isinstance(tier.cursors[0], OpenedCursor):
            self._fill_from(tier, tier.cursors.popleft())

    def _bring(self, tier: Tier, lane: IndexedLane, index: Index, job: int) -> None:
        if index is not self.index:  # derived items have lanes of their own
            super()._bring(tier, lane, index, job)
        elif lane.key not in self.present:
            self.present.add(lane.key)
            super()._bring(tier, lane, index, job)

    def let_go(self, lane: Lane) -> None:
        """Note that the lane is no longer in memory."""
        if lane.index is self.index:
            self.present.discard(lane.key)


class KeyedScheduler(Scheduler):
    """A scheduler of jobs with needs by key; other jobs are scheduled as by a `Scheduler`.

    Args:
        links, unsuccessful: see `KeyedNeeds`.

    Attributes:
        keyed: the needs that items wait for. keyed_index: the index in which items are found.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        progress: Sequence[JobProgress],
        streams: Callable[[int], Stream | None],
        index: KeyedIndex,
        window: int,
        links: Sequence[Links],
        unsuccessful: Mapping[int, Collection[int]],
    ) -> None:
        super().__init__(jobs, progress, streams, index, window)
        self.keyed, self.keyed_index = KeyedNeeds(jobs, links, progress, unsuccessful), index
        may_meet = any(job.derivation for job in jobs)
        self._keyed_window = KeyedWindow(index, window, may_meet, self._next_left, self.keyed)
        self._window = self._keyed_window
        self._is_laned = [bool(job.by_key) and streams(job.number) is None for job in jobs]
        self._fed: dict[int, Feed] = {}
        self._is_skipping = False

    def begin(self) -> None:
        """Start every job that waits for nothing."""
        self._skip_doomed()
        super().begin()

    def _offer(self, part: Part) -> None:
        number = part.job
        if not self.keyed.has_keys(number):
            super()._offer(part)
            return
        if self._is_laned[number] and (self.is_skipped[number] or any(self.progress[number].done)):
            # items that wait for no key may stand behind ended ones, and nothing else would bring them in
            behind = self.jobs[number + 1 :]
            if any(not job.operation.is_read and not job.by_key and self.progress[job.number].left for job in behind):
                self.tier_of[number].cursors.append(Cursor(number))
        self._open(number)

    def _open(self, number: int) -> None:
        """Offer the items of a job that have opened, once the job has begun."""
        if self.states[number] is not JobState.RUNNING or self.is_skipped[number]:
            return
        items = len(self.keyed.opened[number])
        if not items:
            return
        tier, queue = self.tier_of[number], self._queue_of[number]
        if self._is_laned[number]:
            if not any(cursor.job == number and isinstance(cursor, OpenedCursor) for cursor in tier.cursors):
                tier.cursors.append(OpenedCursor(number))
        elif (feed := self._fed.get(number)) is None or feed.is_at_end:
            feed = self._fed[number] = Feed(number, OpenedStream(number, self), self.progress[number].next_left)
            tier.add(feed)
        if queue.idle:
            queue.wake(items)

    def _is_offered(self, entry: Entry) -> bool:
        """Return whether an item's turn has come, or is not known yet: its job waits as a whole, and may be skipped."""
        is_turn = self.keyed.is_open(entry.job, entry.index) or self.states[entry.job] is JobState.WAITING
        return is_turn and super()._is_offered(entry)

    def _next_of(self, lane: Lane) -> Entry | None:
        entry = super()._next_of(lane)
        if entry is None:
            self._keyed_window.let_go(lane)
        return entry

    def mark_ended(self, job: int, index: int, outcome: Outcome) -> None:
        """Count an outcome, and open the items that have waited for that item alone."""
        super().mark_ended(job, index, outcome)
        keyed = self.keyed
        for number in keyed.ended(job, index, outcome):
            self._open(number)
        if keyed.doomed:
            self._skip_doomed()

    def _skip_doomed(self) -> None:
        if self.keyed.doomed and not self._is_skipping:
            self._is_skipping = True
            self._tasks.add(SkipSome())

    def next_doomed(self) -> Doomed | None:
        """Return items that are to be skipped; None: there are none now."""
        return self.keyed.doomed.popleft() if self.keyed.doomed else None

    def skipped_some(self, job: int, indexes: Sequence[int]) -> None:
        """Note that these items of a job have outcomes without having been offered: the items behind them in their
        lanes may go on.
        """
        if self._is_laned[job]:
            for index in indexes:
                self.keyed.opened[job].add(index)
            self._open(job)

    def passed_by(self, jobs: Iterable[Job]) -> None:
        """Note that items of these jobs that were skipped, superseded or copies have their outcomes."""
        self._is_skipping = False
        self._skip_doomed()
        super().passed_by(jobs)

    def _end_if_stalled(self) -> None:
        if not self._is_skipping:
            super()._end_if_stalled()

    def holds_up(self, job: Job) -> tuple[str, ...]:
        """Return names of the jobs that all items left in this job wait for now."""
        number = job.number
        if not job.by_key or self.states[number] is JobState.WAITING:
            return self.waits_for(job)
        if self.states[number] is JobState.COMPLETE or self.progress[number].in_flight or self.opened(number):
            return ()
        needed = (need.job for need in job.by_key)
        return tuple(name for name in needed if self.states[self.numbers[name]] is not JobState.COMPLETE)

    def opened(self, number: int) -> int:
        """Return how many items of a job with needs by key may begin and were not offered (count)."""
        return len(self.keyed.opened[number])
