"""Which item next: lanes, priorities, needs, and nobody waits for another one's bucket."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bulk.manifest.manifest import Entry, Job
from bulk.model import ErrorCode, failed, skipped, succeeded
from bulk.operation import Item, Operation
from bulk.schedule.job_progress import JobProgress, JobState
from bulk.schedule.queues import FAR_ROWS, TURNS, Work
from bulk.schedule.remaining import work_left
from bulk.schedule.scheduler import DONE_LANES, Scheduler
from bulk.schedule.tasks import Skip


class Read(Operation[Item]):
    """A read."""

    name = "thing.get"
    Item = Item


class Write(Operation[Item]):
    """A write."""

    name = "thing.put"
    Item = Item
    is_read = False
    most_requests = 2


class Elsewhere(Read):
    """A read that another category pays for."""

    name = "other.get"
    category = "search"


class ListStream:
    """Items of a read job, from memory."""

    def __init__(self, job: int, count: int) -> None:
        self._entries = deque(Entry(job, index, Item()) for index in range(count))

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> Sequence[Entry] | None:
        """The next ones."""
        taken: list[Entry] = []
        while self._entries and len(taken) < count:
            entry = self._entries.popleft()
            if next_left(entry.index) == entry.index:
                taken.append(entry)
        return taken


class FarStream(ListStream):
    """Its next items lie far on, until it was looked for them without a hurry."""

    is_near = False

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> Sequence[Entry] | None:
        """The next ones, where they are near."""
        if near == FAR_ROWS:
            self.is_near = True
        return super().take(count, next_left, near=near) if self.is_near else None


class IndexedLane:
    """One lane of `ListIndex`."""

    def __init__(self, key: int, items: int) -> None:
        self.key, self.label, self.items = key, f"lane-{key}", items


class ListIndex:
    """Lanes from memory: (job, index, lane) in manifest order."""

    def __init__(self, rows: Sequence[tuple[int, int, int]]) -> None:
        self._lanes: dict[int, list[Entry]] = {}
        for job, index, lane in rows:
            self._lanes.setdefault(lane, []).append(Entry(job, index, Item()))

    def lanes(
        self, job_number: int, *, after: int, count: int, part: tuple[int, int] | None = None
    ) -> Sequence[IndexedLane]:
        """Longest first."""
        found = [
            IndexedLane(key, len(items))
            for rank, (key, items) in enumerate(self._lanes.items(), 1)
            if items[0].job == job_number and (part is None or rank % part[0] == part[1])
        ]
        return sorted(found, key=lambda lane: -lane.items)[after : after + count]

    def holds(self, lane_key: int) -> frozenset[int]:
        """Each lane has one name."""
        return frozenset((lane_key,))

    def entries(
        self, lane_key: int, *, after: int, count: int, next_left: Callable[[int, int], int] | None = None
    ) -> Sequence[tuple[int, Entry]]:
        """In manifest order."""
        return list(enumerate(self._lanes[lane_key]))[after + 1 : after + 1 + count]


def scheduler(
    jobs: Sequence[Job], counts: Sequence[int], rows: Sequence[tuple[int, int, int]] = (), window: int = 8
) -> Scheduler:
    """A scheduler over those jobs, which has begun."""
    progress = [JobProgress(count, bytearray(count // 8 + 1)) for count in counts]
    laned = {job for job, _, _ in rows}

    def streams(number: int) -> ListStream | None:
        return None if number in laned else ListStream(number, counts[number])

    made = Scheduler(jobs, progress, streams, ListIndex(rows), window)
    made.begin()
    return made


def take(one: Scheduler, credential: str = "default", category: str = "core") -> Work | None:
    return one.take(one.queues[(credential, category)])


DONE = succeeded({})


@given(
    lanes=st.lists(st.integers(0, 6), min_size=1, max_size=60),
    priorities=st.lists(st.integers(0, 2), min_size=3, max_size=3),
    picks=st.lists(st.integers(0, 10), max_size=200),
)
def test_a_lane_has_one_item_in_flight_and_keeps_order(
    lanes: list[int], priorities: list[int], picks: list[int]
) -> None:
    """Whatever priorities and order of ends: one item of a lane at a time, in manifest order, and all of them."""
    jobs = [Job(n, f"j{n}", Write(), priority=priorities[n]) for n in range(3)]
    rows, counts = [], [0, 0, 0]
    for place, lane in enumerate(lanes):
        job = place * 3 // len(lanes)
        rows.append((job, counts[job], lane))
        counts[job] += 1
    one = scheduler(jobs, counts, rows, window=2)
    lane_of = {(job, index): lane for job, index, lane in rows}
    order: dict[int, list[tuple[int, int]]] = {}
    flying: list[Work] = []
    pick = iter(picks)
    while not one.is_complete:
        work = take(one)
        if work is not None:
            key = (work.entry.job, work.entry.index)
            assert lane_of[key] not in [lane_of[(other.entry.job, other.entry.index)] for other in flying]
            order.setdefault(lane_of[key], []).append(key)
            flying.append(work)
        assert flying or one.is_complete
        if flying and (work is None or next(pick, 1) % 2):
            one.ended(flying.pop(next(pick, 0) % len(flying)), DONE, 1)
    assert order == {lane: [(j, i) for j, i, at in rows if at == lane] for lane in set(lanes)}


def test_the_longest_lane_goes_first() -> None:
    """The lane that decides when the run ends is offered before the short ones."""
    rows = [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 3), (0, 4, 3)]
    one = scheduler([Job(0, "w", Write())], [5], rows)
    work = take(one)
    assert work is not None
    assert work.entry.index == 2


def test_higher_priority_first_and_turns_within_one() -> None:
    """Jobs of one priority take turns; a higher one goes before them."""
    jobs = [Job(0, "a", Read()), Job(1, "b", Read()), Job(2, "c", Read(), priority=5)]
    one = scheduler(jobs, [2, 2, 1])
    taken = [work.entry.job for _ in range(5) if (work := take(one)) is not None]
    assert taken[0] == 2
    assert sorted(taken[1:3]) == [0, 1]


def test_queues_are_apart() -> None:
    """Work of one category is offered whatever another one's workers do."""
    one = scheduler([Job(0, "a", Read()), Job(1, "b", Elsewhere())], [3, 3])
    work = take(one, category="search")
    assert work is not None
    assert work.entry.job == 1


def test_needs_wait_and_a_failure_skips() -> None:
    """A job starts when what it needs is complete; after a failure there it is skipped, and what needs that too."""
    jobs = [
        Job(0, "a", Read()),
        Job(1, "b", Read(), needs=("a",)),
        Job(2, "c", Read(), needs=("a",), needs_policy="any-outcome"),
    ]
    one = scheduler(jobs, [1, 1, 1])
    work = take(one)
    assert work is not None
    assert take(one) is None
    assert one.waits_for(jobs[1]) == ("a",)
    one.ended(work, failed(ErrorCode.NOT_FOUND, "no"), 1)
    assert one.next_task() == Skip(jobs[1])
    assert one.next_task() is None
    work = take(one)
    assert work is not None
    assert work.entry.job == 2


def test_a_job_starts_while_another_one_is_in_flight() -> None:
    """A job that needs another one waits for that one only, not for what else is in flight."""
    jobs = [Job(0, "a", Read()), Job(1, "b", Read(), needs=("a",)), Job(2, "c", Elsewhere()), Job(3, "d", Read())]
    one = scheduler(jobs, [1, 1, 1, 1])
    works = [take(one), take(one), take(one, category="search")]
    first = next(work for work in works if work is not None and work.entry.job == 0)
    assert take(one) is None
    assert one.in_flight == 3
    one.ended(first, DONE, 1)
    work = take(one)
    assert work is not None
    assert work.entry.job == 1


def test_superseded_items_are_no_failure() -> None:
    """An item that a later one supersedes does not keep the next job from starting."""
    jobs = [Job(0, "a", Read()), Job(1, "b", Read(), needs=("a",))]
    one = scheduler(jobs, [1, 1])
    work = take(one)
    assert work is not None
    one.ended(work, skipped(ErrorCode.SUPERSEDED, "later one"), 0)
    assert one.next_task() is None
    assert one.states[1] is JobState.RUNNING


def test_a_lane_waits_for_a_job_that_has_not_started() -> None:
    """The next item of a lane belongs to a job that waits: the lane waits with it, and goes on when it starts."""
    jobs = [Job(0, "a", Write()), Job(1, "b", Write(), needs=("a",))]
    one = scheduler(jobs, [2, 1], [(0, 0, 1), (0, 1, 2), (1, 0, 1)])
    first, second = take(one), take(one)
    assert first is not None
    assert second is not None
    one.ended(first, DONE, 1)
    assert take(one) is None
    one.ended(second, DONE, 1)
    third = take(one)
    assert third is not None
    assert third.entry.job == 1


def test_an_abandoned_item_keeps_its_lane_closed_and_the_run_ends() -> None:
    """A write without an outcome is not overtaken by the next of its lane; the workers are let go."""
    one = scheduler([Job(0, "a", Write())], [2], [(0, 0, 1), (0, 1, 1)])
    work = take(one)
    assert work is not None
    one.abandoned(work)
    assert take(one) is None
    assert one.is_stopped
    assert not one.is_complete


def test_done_items_are_passed_by() -> None:
    """A resumed run offers only what has no outcome."""
    progress = [JobProgress(3, bytearray([0b011]), ended={DONE.kind: 2})]
    rows = [(0, 0, 1), (0, 1, 1), (0, 2, 1)]
    one = Scheduler([Job(0, "a", Write())], progress, lambda _: None, ListIndex(rows), 4)
    one.begin()
    work = take(one)
    assert work is not None
    assert work.entry.index == 2


def test_work_left_is_estimated_from_what_items_took() -> None:
    """The most that items can take at first, then what they took."""
    rows = [(0, index, index) for index in range(40)]
    one = scheduler([Job(0, "a", Write())], [40], rows)
    assert work_left(one, "default", "core") == 80
    for _ in range(20):
        work = take(one)
        assert work is not None
        one.ended(work, DONE, 1)
    assert work_left(one, "default", "core") == 20


def test_items_that_lie_far_on_hold_up_nobody() -> None:
    """While the next item of one job is looked for, others are offered, the run is not over, and then it goes on."""
    jobs = [Job(0, "far", Read()), Job(1, "near", Read())]
    progress = [JobProgress(2, bytearray(1)), JobProgress(1, bytearray(1))]
    streams = [FarStream(0, 2), ListStream(1, 1)]
    one = Scheduler(jobs, progress, lambda number: streams[number], ListIndex([]), 8)
    one.begin()
    work = take(one)
    assert work is not None
    assert work.entry.job == 1
    assert take(one) is None
    one.ended(work, DONE, 1)
    assert not one.is_stopped
    find = one.finds.next()
    assert find is not None
    find.feed.look_far()
    one.arrived(find)
    rest = [take(one), take(one)]
    assert [work.entry.job for work in rest if work is not None] == [0, 0]
    assert one.finds.next() is None


class OpenStream(ListStream):
    """Open from its first item to its end."""

    def __init__(self, job: int, open_now: set[int]) -> None:
        super().__init__(job, 3)
        self._job, self._open_now = job, open_now

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> Sequence[Entry] | None:
        """The next one."""
        found = super().take(1, next_left, near=near)
        (self._open_now.add if found else self._open_now.discard)(self._job)
        return found


def test_few_streams_are_open_at_once_and_each_has_its_turn() -> None:
    """Of many jobs of one priority so many take turns; when one is at its end the next comes in, in manifest order."""
    count, open_now, begun, most = 3 * TURNS, set[int](), list[int](), 0
    jobs, progress = (
        [Job(n, f"j{n}", Read()) for n in range(count)],
        [JobProgress(3, bytearray(1)) for _ in range(count)],
    )
    one = Scheduler(jobs, progress, lambda number: OpenStream(number, open_now), ListIndex([]), 8)
    one.begin()
    while not one.is_complete:
        work = take(one)
        assert work is not None
        begun += [work.entry.job] * (work.entry.index == 0)
        most = max(most, len(open_now))
        one.ended(work, DONE, 1)
    assert begun == list(range(count))
    assert most == TURNS


def test_a_million_lanes_that_are_done_are_passed_by_in_parts() -> None:
    """After a resume, no call passes by more than a few lanes that are done, and none is forgotten."""
    rows = [(0, index, index) for index in range(100)]
    one = scheduler([Job(0, "w", Write())], [100], rows, window=2)
    for index in range(99):
        one.mark_ended(0, index, DONE)
    asked = 0
    while (work := take(one)) is None:
        asked += 1
        assert one.has_work(one.queues["default", "core"])
    assert (work.entry.index, asked) == (99, 99 // DONE_LANES)


class CountingList(list[JobState]):
    """Counts how often one of its elements is looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        """Count."""
        CountingList.looks += 1
        return super().__getitem__(place)


def test_what_an_item_takes_does_not_grow_with_the_jobs() -> None:
    """Only jobs of which something has changed are looked at, whether they need others or not."""
    count = 500
    chain = [Job(n, f"j{n}", Read(), needs=(f"j{n - 1}",) if n else ()) for n in range(count)]
    free = [Job(count + n, f"f{n}", Read()) for n in range(count)]
    one = scheduler([*chain, *free], [1] * (2 * count))
    one.states, CountingList.looks = CountingList(one.states), 0
    queue = one.queue_of(chain[0])
    while not one.is_complete:
        assert not one.is_over(queue)
        work = take(one)
        assert work is not None
        one.ended(work, DONE, 1)
    assert one.is_over(queue)
    assert CountingList.looks < 10 * 2 * count


def test_a_pause_is_no_end() -> None:
    """While it is paused nothing is offered, and that nothing is in flight ends nothing; then it goes on."""
    one = scheduler([Job(0, "reads", Read())], [3])
    queue = one.queues["default", "core"]
    work = take(one)
    assert work is not None
    one.pause()
    assert (take(one), one.has_work(queue)) == (None, False)
    one.ended(work, DONE, 1)
    assert (one.is_stopped, one.is_over(queue)) == (False, False)
    one.go_on()
    left = [take(one) for _ in range(2)]
    for each in left:
        assert each is not None
        one.ended(each, DONE, 1)
    assert (one.is_complete, one.is_stopped) == (True, True)
