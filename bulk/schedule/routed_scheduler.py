"""A scheduler that keeps the items of some jobs apart by account: those of an App, by the owner of each item."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import anyio

from bulk.manifest.manifest import Entry, Job
from bulk.model import Outcome
from bulk.schedule.job_progress import Board, JobProgress
from bulk.schedule.lanes import Index
from bulk.schedule.queues import Feed, Part, Queue, Stream, Tier, Work
from bulk.schedule.routed_job import RoutedJob
from bulk.schedule.scheduler import Scheduler


class RoutedScheduler(Scheduler):
    """Keeps a queue for each account of a routed job; other jobs are scheduled as by a `Scheduler`.

    Attributes:
        routed: the routed jobs, by number.
        account_ended: is set, and replaced by a new event, when an account has no items left, or has got more, or
            can't go on.
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
        super().__init__(jobs, progress, streams, index, window, board)
        self.routed: dict[int, RoutedJob] = {}
        self._queues_of: dict[int, list[Queue]] = {}
        self._feeds: dict[tuple[int, int], Feed] = {}
        self.account_ended = anyio.Event()

    def route(self, number: int, routed: RoutedJob) -> None:
        """Keep the items of a job apart by account, each of which has a queue of its own. Before `begin`."""
        job, former, progress = self.jobs[number], self._queue_of[number], self.progress[number]
        former.jobs -= 1
        if former.jobs == 0:
            self.queues.pop((former.credential, former.category), None)
        queues = []
        for name in routed.names:
            key = (name, job.operation.category)
            queue = self.queues.setdefault(key, Queue(*key))
            queue.jobs += 1
            queue.tiers.setdefault(self.priorities[number], Tier())
            queue.tiers = dict(sorted(queue.tiers.items(), reverse=True))
            queues.append(queue)
        self.routed[number], self._queues_of[number] = routed, queues
        if any(progress.done):
            for index in range(progress.items):
                if progress.is_done(index):
                    routed.note_done(index)
        self._queue_of[number], self.tier_of[number] = queues[0], queues[0].tiers[self.priorities[number]]

    @property
    def own_queues(self) -> list[Queue]:
        """The queues of accounts."""
        return [queue for queue in self.queues.values() if any(queue in each for each in self._queues_of.values())]

    def left_in(self, queue: Queue) -> int:
        """Return how many items the routed jobs still have for a queue."""
        return sum(routed.left[account] for routed, account in self._routed_in(queue))

    def unsent_in(self, queue: Queue) -> int:
        """Return how many items the routed jobs still have for a queue that are not in flight."""
        return sum(routed.left[account] - routed.in_flight[account] for routed, account in self._routed_in(queue))

    def _routed_in(self, queue: Queue) -> Iterator[tuple[RoutedJob, int]]:
        for number, routed in self.routed.items():
            queues = self._queues_of[number]
            if queue in queues:
                yield routed, queues.index(queue)

    def _count_in_flight(self, work: Work, items: int) -> None:
        super()._count_in_flight(work, items)
        routed = self.routed.get(work.entry.job)
        if routed is not None:
            routed.in_flight[routed.account(work.entry.index)] += items

    def queues_of(self, number: int) -> Sequence[Queue]:
        """Return the queues that offer items of a job (number)."""
        return self._queues_of.get(number) or super().queues_of(number)

    def _place_of(self, feed: Feed) -> tuple[Queue, Tier]:
        if feed.job not in self.routed:
            return super()._place_of(feed)
        account = next(account for (job, account), each in self._feeds.items() if job == feed.job and each is feed)
        queue = self._queues_of[feed.job][account]
        return queue, queue.tiers[self.priorities[feed.job]]

    def _queue_for(self, entry: Entry) -> Queue:
        if entry.job in self.routed:
            return self._queues_of[entry.job][self.routed[entry.job].account(entry.index)]
        return self._queue_of[entry.job]

    def _tier_for(self, entry: Entry) -> Tier:
        if entry.job in self.routed:
            return self._queue_for(entry).tiers[self.priorities[entry.job]]
        return self.tier_of[entry.job]

    def _complete(self, number: int) -> None:
        super()._complete(number)
        for queue in self._queues_of.get(number, ())[1:]:  # the base class has done this for the first one
            queue.jobs -= 1

    def take_on(self, number: int, indexes: Iterable[int]) -> None:
        """Let these items of a job join; see `JobProgress.take_on`. Before `join`."""
        if number in self.routed:
            self.routed[number].take_on(indexes)

    def join(self, parts: Iterable[Part]) -> None:
        """Offer the parts that this process has taken on."""
        super().join(parts)
        self._tell()

    def _offer(self, part: Part) -> None:
        number = part.job
        if number not in self.routed:
            super()._offer(part)
            return
        routed, priority, stream = self.routed[number], self.priorities[number], self._streams(number)
        if stream is None:
            for first in part.lanes_of or (number,):
                self._place_all(first, part.lanes)
        for account, queue in enumerate(self._queues_of[number]):
            if stream is not None and not self.is_skipped[number] and not self._is_fed(number, account):
                feed = Feed(number, routed.stream(account), self.progress[number].next_offered)
                self._feeds[number, account] = feed
                queue.tiers[priority].add(feed)
            mine = [self.routed[each] for each in part.lanes_of if each in self.routed] or [routed]
            queue.wake(sum(each.left[account] for each in mine))

    def _is_fed(self, number: int, account: int) -> bool:
        """Return whether an account's items of a job are offered already: items that have joined come with them."""
        feed = self._feeds.get((number, account))
        return feed is not None and not feed.is_at_end

    def _place_all(self, number: int, part: tuple[int, int] | None) -> None:
        """Put every lane of a part where it belongs: those of a window might all be of owners who are drained."""
        for lane in self._window.all_of(number, part):
            self._place(lane)

    def mark_ended(self, job: int, index: int, outcome: Outcome) -> None:
        """Count an outcome."""
        super().mark_ended(job, index, outcome)
        if job in self.routed:
            routed = self.routed[job]
            routed.note_done(index)
            if not routed.left[routed.account(index)]:
                self._drop(job, routed.account(index))

    def close(self, queue: Queue) -> None:
        """Offer no more items of a queue."""
        super().close(queue)
        self._tell()

    def stop(self) -> None:
        """Offer nothing more at all."""
        super().stop()
        self._tell()

    def _tell(self) -> None:
        ended, self.account_ended = self.account_ended, anyio.Event()
        ended.set()

    def _drop(self, job: int, account: int) -> None:
        """Drop an account that has no items left, so that no worker waits for its budget in vain."""
        self._tell()
        feed = self._feeds.pop((job, account), None)
        if feed is not None:
            tier = self._queues_of[job][account].tiers[self.priorities[job]]
            for feeds in (tier.feeds, tier.later):
                if feed in feeds:
                    feeds.remove(feed)
