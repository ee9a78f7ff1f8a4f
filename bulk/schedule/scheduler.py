"""Decides which item is next, and which other tasks are to be done. Synchronous: others wait, and do them.

Work is kept apart by (credential, category), the bucket that pays: a drained bucket holds up only its own queue.
Within a queue the higher priority goes first, jobs of one priority take turns, and of the free lanes the longest goes
first, because it decides when the run ends. A lane has one item in flight and keeps manifest order, whatever the
priorities. Memory is bounded by what is in flight: streams and lanes are read ahead a little. Source: design.md §5.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio

from bulk.manifest.manifest import Entry, Job
from bulk.model import ErrorCode, Outcome
from bulk.schedule.job_progress import Board, JobProgress, JobState, LocalBoard
from bulk.schedule.lanes import Held, Index, Lane
from bulk.schedule.queues import Cursor, Feed, LaneWindow, Part, Queue, Stream, Tier, Work, queues_of
from bulk.schedule.tasks import Copy, Find, JobTask, Make, PassBy, Skip, TaskQueue

DONE_LANES = 16
"""Most lanes without an item left that one `take` passes by (count): after a resume there may be a million of them."""


class Scheduler:
    """Decides which item is next, and which other tasks are to be done.

    Args:
        jobs: in running order. progress: one for each. streams: makes the stream of a job; None: its items have lanes.
        index: the lanes on disk. window: requests that may be in flight (count), from which `LaneWindow` gets its size.
        board: says when jobs are complete; None: this process does all of the work, and sees it by itself.

    Attributes:
        is_paused: nothing is offered for a while; the run does not end because of that.
        is_passing_by: items that are never offered still get their outcomes: the run goes on with nothing in flight.
        stopped: is set as soon as nothing more will be offered at all, so that waiting for a permit is of no use.
        finds: feeds whose next item lies far on. numbers: of the jobs, by name.
        priorities: those in force. tier_of: the tiers of the jobs; both by number of the job, see `priorities.py`.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        progress: Sequence[JobProgress],
        streams: Callable[[int], Stream | None],
        index: Index,
        window: int,
        board: Board | None = None,
    ) -> None:
        self.jobs, self.progress = jobs, progress
        self.board: Board = board if board is not None else LocalBoard(progress)
        self.states, self.is_skipped = [JobState.WAITING for _ in jobs], [False for _ in jobs]
        self.is_stopped = self.is_paused = self.is_passing_by = False
        self.stopped = anyio.Event()
        self._streams = streams
        self._tasks, self.finds = TaskQueue[JobTask](), TaskQueue[Find]()
        self.parked_lanes: dict[int, list[Lane]] = {}
        self._held = Held()
        self.lanes_at_work: set[Lane] = set()
        self._making, self._copying, self._skipping = set[int](), set[int](), set[int]()
        self.in_flight, self._incomplete, self._far = 0, len(jobs), 0
        may_meet = self.board.is_shared or any(job.derivation for job in jobs)
        self._window = LaneWindow(index, window, may_meet, self._next_left)
        self.numbers: Mapping[str, int] = {job.name: job.number for job in jobs}
        self._needed_by: list[list[Job]] = [[] for _ in jobs]
        self.priorities = [job.priority for job in jobs]
        self._queue_of, self.tier_of = queues_of(jobs)
        self.queues = {(queue.credential, queue.category): queue for queue in self._queue_of}
        for job in jobs:
            for name in job.needs:
                self._needed_by[self.numbers[name]].append(job)

    def queue_of(self, job: Job) -> Queue:
        """Return the queue of a job."""
        return self._queue_of[job.number]

    def queues_of(self, number: int) -> Sequence[Queue]:
        """Return the queues that offer items of a job (number)."""
        return (self._queue_of[number],)

    def _queue_for(self, entry: Entry) -> Queue:
        return self._queue_of[entry.job]

    def _tier_for(self, entry: Entry) -> Tier:
        return self.tier_of[entry.job]

    def _place_of(self, feed: Feed) -> tuple[Queue, Tier]:
        return self._queue_of[feed.job], self.tier_of[feed.job]

    def begin(self) -> None:
        """Start every job that waits for nothing."""
        self._advance(self.jobs)

    def join(self, parts: Iterable[Part]) -> None:
        """Offer parts that this process has taken on (`JobProgress.take_on`); by the board, their needs are met."""
        self._advance(self.jobs)
        for part in parts:
            if part.is_to_make:
                self._tasks.add(Make(self.jobs[part.job]))
            elif not self.is_skipped[part.job]:
                self._offer(part)
            elif self.progress[part.job].left:
                self._skipping.add(part.job)
                self._tasks.add(Skip(self.jobs[part.job]))
            if part.has_superseded:
                self._tasks.add(PassBy(self.jobs[part.job]))

    def _offer(self, part: Part) -> None:
        number = part.job
        tier, stream = self.tier_of[number], self._streams(number)
        if stream is None:
            tier.cursors.extend(Cursor(first, part=part.lanes) for first in part.lanes_of or (number,))
        elif not self.is_skipped[number]:
            tier.add(Feed(number, stream, part.next_wanted(self.progress[number])))
        # a part of lanes may hold items of other jobs alone
        self._queue_of[number].wake(sum(self.progress[each].left for each in part.lanes_of or (number,)))

    def _advance(self, jobs: Iterable[Job]) -> None:
        """Complete or start each of `jobs`, whose state has changed, and the jobs that need them."""
        changed = deque(jobs)
        while changed:
            job = changed.popleft()
            number = job.number
            if self.states[number] is JobState.WAITING and not self.waits_for(job):
                if not self.progress[number].is_known:
                    if number not in self._making:
                        self._making.add(number)
                        self._tasks.add(Make(job))
                    continue
                self._start(job)
            if self.states[number] is JobState.RUNNING and self.board.is_complete(number):
                self._complete(number)
                changed.extend(self._needed_by[number])
            elif self._may_copy(number):
                self._copying.add(number)
                self._tasks.add(Copy(job))
        self._end_if_stalled()

    def next_task(self) -> JobTask | None:
        """Return the next task besides sending; None: there is none now."""
        return None if self.is_stopped else self._tasks.next()

    async def wait_task(self) -> JobTask | None:
        """Return the next task as soon as there is one; None when no more will come."""
        while (task := self.next_task()) is None and not all(self.is_over(queue) for queue in self.queues.values()):
            await self._tasks.changed()
        return task

    def _complete(self, number: int) -> None:
        self.states[number] = JobState.COMPLETE
        self._copying.discard(number)
        self._skipping.discard(number)
        self._incomplete -= 1
        self._queue_of[number].jobs -= 1
        self._tasks.wake()

    def _may_copy(self, number: int) -> bool:
        """Return whether all that is left of a job are copies of items that have ended."""
        progress = self.progress[number]
        if number in self._copying or self.is_skipped[number] or self.states[number] is not JobState.RUNNING:
            return False
        return progress.copies_left > 0 and progress.left == progress.copies_left

    def _start(self, job: Job) -> None:
        number = job.number
        self.states[number] = JobState.RUNNING
        needed = [self.numbers[name] for name in job.barriers]
        is_bad = any(self.board.unsuccessful(other) or self.is_skipped[other] for other in needed)
        if job.needs_policy == "all" and is_bad:
            self.is_skipped[number] = True
            if self.progress[number].left:
                self._skipping.add(number)
                self._tasks.add(Skip(job))
        if not self.board.is_shared:
            self._offer(Part(number))
        for lane in self.parked_lanes.pop(number, ()):
            self._place(lane)
        self._queue_of[number].wake(self.progress[number].left)

    def made(self, job: Job, index: Index) -> None:
        """Note that the items of a job are known now, and their outcomes so far; `index` has its lanes."""
        self.progress[job.number].is_known = True
        self._window.made(job.number, index)
        self._making.discard(job.number)
        self.join((Part(job.number),) if self.board.is_shared else ())

    def waits_for(self, job: Job) -> tuple[str, ...]:
        """Return names of the jobs that hold up all of this job."""
        return tuple(name for name in job.barriers if self.states[self.numbers[name]] is not JobState.COMPLETE)

    @property
    def is_complete(self) -> bool:
        """Whether every item has an outcome."""
        return self._incomplete == 0

    def take(self, queue: Queue) -> Work | None:
        """Return the next item of this queue; None: there is none now, or done lanes were passed by (it `has_work`)."""
        if self.is_stopped or self.is_paused or queue.is_closed:
            return None
        for tier in queue.tiers.values():
            if (work := self._take_from(tier)) is not None:
                self._count_in_flight(work, 1 + len(work.behind))
                return work
        self._end_if_stalled()
        return None

    def _count_in_flight(self, work: Work, items: int) -> None:
        self.in_flight += items
        self.progress[work.entry.job].in_flight += items

    def _take_from(self, tier: Tier) -> Work | None:
        tier.is_lanes_turn = not tier.is_lanes_turn and bool(tier.ready or tier.cursors)
        if tier.is_lanes_turn or not tier.feeds:
            return self._take_laned(tier) or self._take_streamed(tier)
        return self._take_streamed(tier) or self._take_laned(tier)

    def _take_streamed(self, tier: Tier) -> Work | None:
        while tier.feeds:
            feed = tier.feeds[0]
            entry = feed.next()
            if entry is not None:
                tier.feeds.rotate(-1)
                return Work(entry)
            tier.drop_first()
            if feed.is_far:
                self._far += 1
                self.finds.add(Find(feed))
        return None

    def arrived(self, find: Find) -> None:
        """Note that the next items of a feed, which lay far on, were found."""
        self._far -= 1
        queue, tier = self._place_of(find.feed)
        tier.feeds.append(find.feed)
        queue.wake(len(queue.idle))

    def _take_laned(self, tier: Tier) -> Work | None:
        self._window.fill(tier)
        done = 0
        while tier.ready and done < DONE_LANES:
            lane = heapq.heappop(tier.ready)[2]
            tier.lanes -= 1
            if (entry := self._next_of(lane)) is None:
                done += 1
                self._window.fill(tier)
                continue
            if self._tier_for(entry) is tier and self.states[entry.job] is JobState.RUNNING:
                if not self._held.take(lane):
                    continue
                lane.job = entry.job
                self.lanes_at_work.add(lane)
                return Work(entry, lane, lane.take(self._is_over, self.jobs[entry.job].operation, self._is_offered))
            if (queue := self._place(lane)) is not None:
                queue.wake(1)
        return None

    def _place(self, lane: Lane) -> Queue | None:
        """Put a free lane where its next item is offered; returns that queue."""
        if (entry := self._next_of(lane)) is None:
            return None
        if self.states[entry.job] is JobState.WAITING:
            self.parked_lanes.setdefault(entry.job, []).append(lane)
            return None
        self._window.push(self._tier_for(entry), lane)
        return self._queue_for(entry)

    def _is_offered(self, entry: Entry) -> bool:
        return entry.index < self.progress[entry.job].offered_until

    def _next_of(self, lane: Lane) -> Entry | None:
        """Return the next item of a lane; None: none can be offered now, and the lane is let go of."""
        entry = lane.head(self._is_over)
        return entry if entry is not None and self._is_offered(entry) else None

    def _is_over(self, entry: Entry) -> bool:
        return self.is_skipped[entry.job] or self.progress[entry.job].is_done(entry.index)

    def _next_left(self, job: int, index: int) -> int:
        progress = self.progress[job]
        return progress.items if self.is_skipped[job] else progress.next_left(index)

    def has_work(self, queue: Queue) -> bool:
        """Return whether `take` might have an item now."""
        if self.is_stopped or self.is_paused or queue.is_closed:
            return False
        for tier in queue.tiers.values():  # noqa: SIM110 - asked for each item: a generator takes three times as long
            if tier.feeds or tier.ready or tier.cursors:
                return True
        return False

    async def wait_work(self, queue: Queue) -> bool:
        """Wait until there may be an item; False when none will come any more."""
        while not self.has_work(queue):
            if self.is_over(queue):
                return False
            queue.idle.append(event := anyio.Event())
            try:
                await event.wait()
            finally:
                if event in queue.idle:
                    queue.idle.remove(event)
        return True

    def is_over(self, queue: Queue) -> bool:
        """Return whether nothing will be offered there any more."""
        return self.is_stopped or queue.is_closed or queue.jobs == 0

    def ended(self, work: Work, outcome: Outcome, paid: int) -> None:
        """Let the lane of an item with an outcome go on, or end its job; `paid`: requests that were paid (count)."""
        progress = self.progress[work.entry.job]
        self._count_in_flight(work, -1)
        progress.note_paid(paid)
        self.mark_ended(work.entry.job, work.entry.index, outcome)
        if work.lane is not None:
            work.lane.left -= 1
            self._release(work.lane)
        if self.in_flight == 0 or (progress.in_flight == 0 and progress.left == progress.copies_left):
            self._advance((self.jobs[work.entry.job],))

    def ended_together(self, work: Work, outcomes: Sequence[Outcome | None], paid: int) -> None:
        """Do what `ended` does for an item and those behind it; offer items without an outcome again, one by one."""
        progress, lane = self.progress[work.entry.job], work.lane
        assert lane is not None, "only items of a lane go together"
        self._count_in_flight(work, -work.items)
        left: list[Entry] = []
        for entry, outcome in zip(work.entries, outcomes, strict=True):
            if outcome is None:
                left.append(entry)
                continue
            progress.note_paid(paid)
            paid = 0
            self.mark_ended(entry.job, entry.index, outcome)
        lane.left -= work.items - len(left)
        lane.give_back(left)
        self._release(lane)
        if progress.left == 0 or self.in_flight == 0:
            self._advance((self.jobs[work.entry.job],))

    def _release(self, lane: Lane) -> None:
        """Offer the next items of a lane, and of the lanes that waited for it."""
        self.lanes_at_work.discard(lane)
        for each in (lane, *self._held.release(lane)):
            if (queue := self._place(each)) is not None:
                queue.wake(1)

    def mark_ended(self, job: int, index: int, outcome: Outcome) -> None:
        """Count an outcome."""
        progress = self.progress[job]
        progress.end(index, outcome.kind)
        if outcome.error is not None and outcome.error.code is ErrorCode.SUPERSEDED:
            progress.superseded += 1

    def passed_by(self, jobs: Iterable[Job]) -> None:
        """Note that items of these jobs that were skipped, superseded or copies have their outcomes."""
        self._skipping = {number for number in self._skipping if self.progress[number].left}
        self._advance(jobs)

    def abandoned(self, work: Work) -> None:
        """Keep an item's lane closed: the item has no outcome, because the run stops or its credential was refused."""
        self._count_in_flight(work, -work.items)
        self._end_if_stalled()

    def close(self, queue: Queue) -> None:
        """Offer no more items of a queue."""
        queue.is_closed = True
        queue.wake(len(queue.idle))
        self._tasks.wake()
        self._end_if_stalled()

    def pause(self) -> None:
        """Offer nothing until `go_on`."""
        self.is_paused = True

    def go_on(self) -> None:
        """End the pause."""
        self.is_paused = False
        self._wake_all()
        self._end_if_stalled()

    def _wake_all(self) -> None:
        for queue in self.queues.values():
            queue.wake(len(queue.idle))

    def stop(self) -> None:
        """Offer nothing more at all."""
        self.is_stopped = True
        self._wake_all()
        self.stopped.set()
        self._tasks.wake()

    def _end_if_stalled(self) -> None:
        """Stop if all is complete, or if nothing can go on: the jobs left wait for what will not happen in this run."""
        is_waiting = self.board.expects_more or self.is_paused or self.is_passing_by or self.in_flight > 0
        is_busy = is_waiting or self._making or self._far or self._copying or self._skipping
        if self.is_complete or not (is_busy or any(map(self.has_work, self.queues.values()))):
            self.stop()
