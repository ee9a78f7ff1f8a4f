"""A job gets another priority while its items are offered: reads, lanes, what lies far on, and the tiers that go."""

from hypothesis import given
from hypothesis import strategies as st

from bulk.manifest.manifest import Job
from bulk.model import succeeded
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.priorities import set_priority
from bulk.schedule.queues import TURNS, Work
from bulk.schedule.scheduler import Scheduler
from tests.schedule.test_scheduler import FarStream, ListIndex, Read, Write, scheduler, take

DONE = succeeded({})


@given(
    lanes=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    changes=st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2)), max_size=60),
    picks=st.lists(st.integers(0, 10), max_size=100),
)
def test_lanes_keep_their_order_whatever_changes(
    lanes: list[int], changes: list[tuple[int, int]], picks: list[int]
) -> None:
    """Priorities change before every item: each is offered once, one of a lane at a time and in manifest order."""
    rows, counts = [], [0, 0, 0]
    for place, lane in enumerate(lanes):
        job = place * 3 // len(lanes)
        rows.append((job, counts[job], lane))
        counts[job] += 1
    one = scheduler([Job(n, f"j{n}", Write()) for n in range(3)], counts, rows, window=2)
    lane_of = {(job, index): lane for job, index, lane in rows}
    order: dict[int, list[tuple[int, int]]] = {}
    flying: list[Work] = []
    pick, change = iter(picks), iter(changes)
    while not one.is_complete:
        set_priority(one, *next(change, (0, 0)))
        assert len(one.queues[("default", "core")].tiers) == len(set(one.priorities))
        work = take(one)
        if work is not None:
            key = (work.entry.job, work.entry.index)
            order.setdefault(lane_of[key], []).append(key)
            flying.append(work)
        assert flying or one.is_complete
        if flying and (work is None or next(pick, 1) % 2):
            one.ended(flying.pop(next(pick, 0) % len(flying)), DONE, 1)
    assert order == {lane: [(j, i) for j, i, at in rows if at == lane] for lane in set(lanes)}


def taken(one: Scheduler, count: int) -> list[int]:
    """Jobs of the next items."""
    return [work.entry.job for _ in range(count) if (work := take(one)) is not None]


def test_a_raised_job_is_next_and_a_lowered_one_is_last() -> None:
    """Of reads and of lanes, what is offered next is of the job that was raised; who was lowered waits for all."""
    for operation, rows in (
        (Read, ()),
        (Write, [(job, index, 10 * job + index) for job in range(3) for index in range(4)]),
    ):
        one = scheduler([Job(n, f"j{n}", operation()) for n in range(3)], [4, 4, 4], rows)
        taken(one, 1)
        set_priority(one, 2, 7)
        assert taken(one, 4) == [2, 2, 2, 2]
        set_priority(one, 0, -1)
        assert taken(one, 4) == [1, 1, 1, 1]
        assert taken(one, 9) == [0, 0, 0]


def test_streams_beyond_those_that_take_turns_come_in() -> None:
    """One that waits for its turn is moved as well, and where one leaves, the next comes in."""
    count = TURNS + 2
    one = scheduler([Job(n, f"j{n}", Read()) for n in range(count)], [2] * count)
    set_priority(one, count - 1, 1)
    assert taken(one, 2) == [count - 1, count - 1]
    set_priority(one, 0, -1)
    assert set(taken(one, 2 * (count - 2))) == set(range(1, count - 1))
    assert taken(one, 3) == [0, 0]


def test_what_was_far_is_offered_where_its_job_is_now() -> None:
    """A stream that is looked at elsewhere when its job is raised comes back with the new priority."""
    progress = [JobProgress(1, bytearray(1)) for _ in range(2)]
    streams = [FarStream(number, 1) for number in range(2)]
    one = Scheduler([Job(0, "a", Read()), Job(1, "b", Read())], progress, lambda n: streams[n], ListIndex(()), 8)
    one.begin()
    assert take(one) is None
    finds = [one.finds.next(), one.finds.next()]
    set_priority(one, 1, 3)
    for find in finds:
        assert find is not None
        find.feed.look_far()
        one.arrived(find)
    assert taken(one, 2) == [1, 0]
