"""Items that wait for single items of other jobs: who may begin, who is skipped, and that nothing is left behind."""

import random
from array import array
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from bulk.bundle.links import Links, edges_of
from bulk.manifest.manifest import Entry, Job, KeyedNeed
from bulk.model import ErrorCode, failed, skipped, succeeded
from bulk.operation import Item
from bulk.schedule.job_progress import JobProgress, JobState
from bulk.schedule.keyed_needs import Opened
from bulk.schedule.keyed_scheduler import KeyedScheduler
from bulk.schedule.priorities import set_priority
from bulk.schedule.remaining import startable, waits_for
from bulk.schedule.tasks import Skip, SkipSome
from bulk.schedule.waves import Waves
from tests.schedule.test_scheduler import IndexedLane, ListIndex, ListStream, Read, Write

DONE, BROKEN = succeeded({}), failed(ErrorCode.NOT_FOUND, "it is not there")


class PlacedIndex(ListIndex):
    """Lanes from memory, in which items are found by their place."""

    def __init__(self, rows: Sequence[tuple[int, int, int]]) -> None:
        super().__init__(rows)
        self._lane_of = {(job, index): lane for job, index, lane in rows}
        self.looked_up = 0

    def found(self, job: int, indexes: Sequence[int]) -> Sequence[Entry]:
        """These items."""
        return [Entry(job, index, Item()) for index in sorted(indexes)]

    def lanes_of(self, job: int, indexes: Sequence[int]) -> Sequence[IndexedLane]:
        """Their lanes."""
        lanes = dict.fromkeys(self._lane_of[job, index] for index in indexes)
        self.looked_up += len(indexes)
        return [IndexedLane(lane, len(self._lanes[lane])) for lane in lanes]


Keys: TypeAlias = tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]
"""For each need the key of each item that is needed, and for each need that of each item that waits."""


def linked(jobs: Sequence[Job], keys: Keys) -> list[Links]:
    """The links of each edge."""
    found = []
    for edge, its, mine in zip(edges_of(jobs), *keys, strict=True):
        numbers = {key: number for number, key in enumerate(sorted(set(its) & set(mine)))}
        starts, items = array("I", [0]), array("I")
        for key in numbers:
            items.extend(index for index, other in enumerate(mine) if other == key)
            starts.append(len(items))
        key_of = array("i", [numbers.get(key, -1) for key in its])
        found.append(Links(edge, key_of, range(len(starts)) if len(items) == len(numbers) else starts, items))
    return found


class Made:
    """A scheduler that has begun, over jobs of these sizes; `rows` (job, index, lane) are those with lanes, `before`
    is the progress of an earlier process, and what did not succeed there by the number of its job."""

    def __init__(
        self,
        jobs: Sequence[Job],
        keys: Keys,
        counts: Sequence[int],
        *,
        rows: Sequence[tuple[int, int, int]] = (),
        before: tuple[Sequence[JobProgress], dict[int, list[int]]] | None = None,
        window: int = 2,
    ) -> None:
        fresh = [JobProgress(count, bytearray(count // 8 + 1)) for count in counts]
        self.progress, unsuccessful = before or (fresh, {})
        laned = {job for job, _, _ in rows}
        self.index = PlacedIndex(rows)
        self.one = KeyedScheduler(
            jobs,
            self.progress,
            lambda number: None if number in laned else ListStream(number, counts[number]),
            self.index,
            window,
            linked(jobs, keys),
            unsuccessful,
        )
        self.one.begin()

    def taken(self) -> list[Any]:
        """All that may begin now."""
        found: list[Any] = []
        for queue in self.one.queues.values():
            while self.one.has_work(queue):
                work = self.one.take(queue)
                found += [] if work is None else [work]
        return found

    def offered(self) -> list[tuple[int, int]]:
        """(job, index) of all that may begin now."""
        return [(entry.job, entry.index) for work in self.taken() for entry in work.entries]

    def skip(self) -> list[tuple[int, int]]:
        """Do what is to be done besides sending, as `UnsentItems` does; returns what was skipped."""
        found: list[tuple[int, int]] = []
        none = skipped(ErrorCode.DEPENDENCY_FAILED, "not tried")
        while (task := self.one.next_task()) is not None:
            if isinstance(task, Skip):
                number = task.job.number
                left = [
                    index for index in range(self.progress[number].items) if not self.progress[number].is_done(index)
                ]
                for index in left:
                    self.one.mark_ended(number, index, none)
                    found.append((number, index))
                self.one.passed_by((task.job,))
                continue
            assert isinstance(task, SkipSome)
            jobs = set()
            while (doomed := self.one.next_doomed()) is not None:
                number = doomed.edge.waiting
                jobs.add(number)
                left = [index for index in doomed.items if not self.progress[number].is_done(index)]
                for index in left:
                    self.one.mark_ended(number, index, none)
                    found.append((number, index))
                self.one.skipped_some(number, left)
            self.one.passed_by([self.one.jobs[number] for number in jobs])
        return found


def two(policy: str = "all", operation: Any = None, **more: Any) -> list[Job]:
    """A job, and one that needs single items of it."""
    need = (KeyedNeed("a", (("key", "key"),)),)
    return [
        Job(0, "a", operation or Read()),
        Job(1, "b", operation or Read(), needs=("a",), by_key=need, needs_policy=policy, **more),
    ]


def test_an_item_begins_as_soon_as_its_key_has_ended() -> None:
    """It waits for all that have its key, and for nothing else; what nothing waits for counts too for the job."""
    made = Made(two(), ([[7, 8, 7, 9]], [[8, 7, 7]]), [4, 3])
    works = made.taken()
    assert [(work.entry.job, work.entry.index) for work in works] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert (waits_for(made.one, made.one.jobs[1]), startable(made.one, made.one.jobs[1])) == (("a",), 0)
    made.one.ended(works[0], DONE, 1)
    assert made.offered() == []
    made.one.ended(works[2], DONE, 1)
    assert (waits_for(made.one, made.one.jobs[1]), startable(made.one, made.one.jobs[1])) == ((), 2)
    assert made.offered() == [(1, 1), (1, 2)]
    assert made.one.states == [JobState.RUNNING, JobState.RUNNING]
    made.one.ended(works[1], DONE, 1)
    assert made.offered() == [(1, 0)]


def test_a_key_of_many_items_is_waited_for() -> None:
    """Of 600 items with one key the last one opens what waits for it, and no other one does."""
    made = Made(two(), ([[7] * 600 + [8]], [[7, 8]]), [601, 2])
    first, *works, last = [work for _ in range(601) for work in made.taken()]
    for work in (first, *works[:-1]):
        made.one.ended(work, DONE, 1)
    made.one.ended(last, DONE, 1)
    assert made.offered() == [(1, 1)]
    made.one.ended(works[-1], DONE, 1)
    assert made.offered() == [(1, 0)]


def test_a_failure_skips_those_of_its_key_alone() -> None:
    """As soon as something of a key has failed, what waits for it is skipped; any-outcome lets it go on."""
    made = Made(two(), ([[1, 2, 1]], [[2, 1]]), [3, 2])
    works = made.taken()
    made.one.ended(works[0], BROKEN, 1)
    assert made.skip() == [(1, 1)]
    made.one.ended(works[2], DONE, 1)
    assert made.offered() == []
    made.one.ended(works[1], DONE, 1)
    (last,) = made.taken()
    made.one.ended(last, DONE, 1)
    assert (made.one.is_complete, made.one.is_stopped) == (True, True)
    made = Made(two("any-outcome"), ([[1, 2, 1]], [[2, 1]]), [3, 2])
    works = made.taken()
    made.one.ended(works[0], BROKEN, 1)
    made.one.ended(works[2], DONE, 1)
    assert (made.skip(), made.offered()) == ([], [(1, 1)])


def test_a_resume_begins_with_what_has_ended() -> None:
    """What had ended before has opened its keys; what had failed is never sent, and is skipped now."""
    progress = [JobProgress(3, bytearray(1)), JobProgress(4, bytearray(1))]
    progress[0].end(0, BROKEN.kind)
    progress[0].end(1, DONE.kind)
    progress[1].end(1, DONE.kind)
    made = Made(two(), ([[1, 2, 3]], [[1, 2, 2, 3]]), [3, 4], before=(progress, {0: [0]}))
    assert sorted(made.offered()) == [(0, 2), (1, 2)]
    assert made.skip() == [(1, 0)]


def test_what_is_skipped_skips_what_needs_it() -> None:
    """A failure goes on to whatever needs it in turn, and to nothing else."""
    jobs = [*two(), Job(2, "c", Write(), needs=("b",), by_key=(KeyedNeed("b", (("key", "key"),)),))]
    rows = [(2, 0, 5), (2, 1, 5)]
    made = Made(jobs, ([[1, 2], [1, 2]], [[1, 2], [2, 1]]), [2, 2, 2], rows=rows)
    one, other = made.taken()
    made.one.ended(one, BROKEN, 1)
    assert made.skip() == [(1, 0), (2, 1)]
    made.one.ended(other, DONE, 1)
    (middle,) = made.taken()
    made.one.ended(middle, DONE, 1)
    (last,) = made.taken()
    assert (last.entry.job, last.entry.index) == (2, 0)
    made.one.ended(last, DONE, 1)
    assert made.one.is_complete


def test_a_whole_job_is_needed_too() -> None:
    """An item waits for its key and for jobs that are needed as a whole; where one of those fails, all are skipped."""
    jobs = [*two(), Job(2, "c", Write())]
    jobs[1] = Job(1, "b", Read(), needs=("a", "c"), by_key=jobs[1].by_key)
    for outcome, offered in ((DONE, [(1, 0)]), (BROKEN, [])):
        made = Made(jobs, ([[1]], [[1]]), [1, 1, 1])
        works = {work.entry.job: work for work in made.taken()}
        made.one.ended(works[0], DONE, 1)
        assert (made.offered(), waits_for(made.one, jobs[1])) == ([], ("c",))
        made.one.ended(works[2], outcome, 1)
        assert (made.skip() == [(1, 0)], made.offered()) == (not offered, offered)


def test_a_lane_keeps_its_order_and_lets_go_of_what_waits() -> None:
    """In a lane an item waits for those before it, whatever has opened; a lane that waits is not in memory."""
    rows = [(0, number, number) for number in range(3)] + [(1, number, 9) for number in range(3)]
    made = Made(two(operation=Write()), ([[0, 1, 2]], [[0, 1, 2]]), [3, 3], rows=rows)
    works = {work.entry.index: work for work in made.taken()}
    made.one.ended(works[2], DONE, 1)
    assert (made.offered(), made.one._keyed_window.present & {9}) == ([], set())
    made.one.ended(works[0], DONE, 1)
    (first,) = made.taken()
    assert first.entry.index == 0
    made.one.ended(works[1], DONE, 1)
    assert made.offered() == []
    made.one.ended(first, DONE, 1)
    (second,) = made.taken()
    made.one.ended(second, DONE, 1)
    (third,) = made.taken()
    assert (second.entry.index, third.entry.index) == (1, 2)


@pytest.mark.parametrize("is_resumed", [False, True])
def test_items_without_a_key_go_on_in_a_lane(is_resumed: bool) -> None:
    """Behind items that were skipped, or ended in an earlier process, the lane goes on with what waits for nothing."""
    jobs = [*two(operation=Write()), Job(2, "c", Write())]
    rows = [(0, 0, 1), (0, 1, 2), (1, 0, 7), (2, 0, 7)]
    progress = [JobProgress(2, bytearray(1)), JobProgress(1, bytearray(1)), JobProgress(1, bytearray(1))]
    if is_resumed:
        progress[0].end(0, BROKEN.kind)
        progress[1].end(0, BROKEN.kind)
    made = Made(jobs, ([[1, 2]], [[1]]), [2, 1, 1], rows=rows, before=(progress, {0: [0]} if is_resumed else {}))
    if not is_resumed:
        works = made.taken()
        assert [work.entry.job for work in works] == [0, 0]
        made.one.ended(works[0], BROKEN, 1)
        assert made.skip() == [(1, 0)]
    assert (2, 0) in made.offered()


def test_items_without_a_key_go_on_behind_a_skipped_job() -> None:
    """So they do where the whole job was skipped, which needed another one as a whole."""
    jobs = [*two(operation=Write()), Job(2, "c", Write()), Job(3, "d", Write())]
    jobs[1] = Job(1, "b", Write(), needs=("a", "c"), by_key=jobs[1].by_key)
    rows = [(0, 0, 1), (1, 0, 7), (2, 0, 2), (3, 0, 7)]
    made = Made(jobs, ([[1]], [[1]]), [1, 1, 1, 1], rows=rows)
    for work in made.taken():
        made.one.ended(work, BROKEN if work.entry.job == 2 else DONE, 1)
    assert made.skip() == [(1, 0)]
    assert made.offered() == [(3, 0)]


def test_a_priority_changes_while_items_wait() -> None:
    """What has opened, and what opens later, is offered with the priority that is in force."""
    for rows in ((), [(0, n, n) for n in range(4)] + [(1, n, n + 10) for n in range(4)]):
        made = Made(two(operation=Write() if rows else Read()), ([[0, 1, 2, 3]], [[0, 1, 2, 3]]), [4, 4], rows=rows)
        (queue,) = made.one.queues.values()
        first = made.one.take(queue)
        assert first is not None
        made.one.ended(first, DONE, 1)
        set_priority(made.one, 1, 5)
        second = made.one.take(queue)
        assert second is not None
        assert (second.entry.job, second.entry.index) == (1, first.entry.index)
        third = made.one.take(queue)
        assert third is not None
        made.one.ended(third, DONE, 1)
        fourth = made.one.take(queue)
        assert fourth is not None
        assert (fourth.entry.job, fourth.entry.index) == (1, third.entry.index)


def test_what_waits_for_what_will_not_happen_ends_the_run() -> None:
    """A refused credential leaves items that nobody can open: that is the end, and no hang."""
    made = Made(two(), ([[1, 2]], [[1, 2]]), [2, 2])
    for work in made.taken():
        made.one.abandoned(work)
    assert (made.one.is_stopped, made.one.is_complete) == (True, False)


def test_only_the_wave_is_offered() -> None:
    """What has opened beyond the wave waits for the next one."""
    for rows in ((), [(0, n, n) for n in range(4)] + [(1, n, n + 10) for n in range(4)]):
        progress = [JobProgress(4, bytearray(1)), JobProgress(4, bytearray(1), waves=Waves(()))]
        progress[1].offered_until = 2
        operation = Write() if rows else Read()
        made = Made(
            two(operation=operation), ([[0, 1, 2, 3]], [[3, 2, 1, 0]]), [4, 4], rows=rows, before=(progress, {})
        )
        for work in made.taken():
            made.one.ended(work, DONE, 1)
        assert sorted(made.offered()) == [(1, 0), (1, 1)]


def test_opened_items_come_in_their_order_and_leave_memory() -> None:
    """First opened, first offered, however many come and go; what was taken is let go of."""
    opened, came = Opened(), list[int]()
    dice = random.Random(1)
    for number in range(20_000):
        opened.add(number)
        if dice.random() < 0.4:
            came += opened.take(3)
    came += opened.take(20_000)
    assert (came, len(opened)) == (list(range(20_000)), 0)
    assert len(opened._items) < 8_192
