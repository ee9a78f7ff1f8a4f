"""Lanes that share keys, a lane read a few items at a time, and how far a job is."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.capabilities import Combinable
from bulk.manifest.manifest import Entry, Job
from bulk.model import OutcomeKind
from bulk.operation import Item, Operation
from bulk.schedule.job_progress import BLOCK_BYTES, REMEMBERED, JobProgress, LocalBoard, dependency_failed
from bulk.schedule.lanes import AHEAD, Held, Lane
from tests.schedule.test_scheduler import IndexedLane


class Pair(Item, frozen=True):
    """An item of some size."""

    size: int = 1


class Alone(Operation[Pair]):
    """Shares nothing."""

    name = "thing.put"
    Item = Pair


class Together(Alone, Combinable[Pair]):
    """Shares requests with what stands behind it, up to five."""

    most_combined = 5

    def size_combined(self, item: Pair) -> int:
        return item.size


class Rows:
    """An index with one lane; notes how much was read at once."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.rows, self.asked = list(enumerate(entries, 10)), list[int]()

    def lanes(
        self, job_number: int, *, after: int, count: int, part: tuple[int, int] | None = None
    ) -> Sequence[IndexedLane]:
        return [IndexedLane(1, len(self.rows))]

    def holds(self, lane_key: int) -> frozenset[int]:
        return frozenset((lane_key,))

    def entries(
        self, lane_key: int, *, after: int, count: int, next_left: Callable[[int, int], int] | None = None
    ) -> Sequence[tuple[int, Entry]]:
        self.asked.append(count)
        return [row for row in self.rows if row[0] > after][:count]


def lane(sizes: Sequence[int], jobs: Sequence[int] | None = None, holds: frozenset[int] = frozenset()) -> Lane:
    """A lane with items of those sizes."""
    entries = [Entry(jobs[place] if jobs else 0, place, Pair(size)) for place, size in enumerate(sizes)]
    return Lane(1, "lane", len(entries), Rows(entries), holds)


def nothing(_: Entry) -> bool:
    return False


def drained(one: Lane, operation: Operation[Pair]) -> list[list[int]]:
    """The indexes that were taken together, to the end."""
    found = []
    while (head := one.head(nothing)) is not None:
        found.append([head.index, *(entry.index for entry in one.take(nothing, operation))])
    return found


def test_items_go_one_by_one_where_nothing_is_shared() -> None:
    """In order, read `AHEAD` at a time, and only when they are needed."""
    one = lane([1] * 9)
    assert drained(one, Alone()) == [[index] for index in range(9)]
    assert isinstance(one.index, Rows)
    assert one.index.asked == [AHEAD] * 4


@pytest.mark.parametrize(
    ("sizes", "jobs", "taken"),
    [
        ([1] * 7, None, [[0, 1, 2, 3, 4], [5, 6]]),
        ([2, 2, 2, 1], None, [[0, 1], [2, 3]]),
        ([2, 2, 1, 1], None, [[0, 1, 2], [3]]),
        ([5, 1], None, [[0], [1]]),
        ([6, 1], None, [[0], [1]]),
        ([1, 5, 1], None, [[0], [1], [2]]),
        ([1, 1, 1, 1], [0, 0, 1, 1], [[0, 1], [2, 3]]),
    ],
)
def test_what_is_taken_together(sizes: list[int], jobs: list[int] | None, taken: list[list[int]]) -> None:
    """As many of the same job as fit in one request, none skipped and none twice."""
    assert drained(lane(sizes, jobs), Together()) == taken


@given(sizes=st.lists(st.integers(1, 6), max_size=30), jobs=st.lists(st.integers(0, 1), min_size=30, max_size=30))
def test_together_or_not_the_order_stays(sizes: list[int], jobs: list[int]) -> None:
    """Whatever the sizes: every item once, in order, a group never of two jobs nor larger than a request holds."""
    groups = drained(lane(sizes, jobs), Together())
    assert [index for group in groups for index in group] == list(range(len(sizes)))
    for group in groups:
        assert len({jobs[index] for index in group}) == 1
        assert len(group) == 1 or sum(sizes[index] for index in group) <= 5


def test_what_did_not_work_together_goes_one_by_one() -> None:
    """Given back, items stand where they stood and are offered alone; those behind them go together again."""
    one = lane([1] * 8)
    head = one.head(nothing)
    assert head is not None
    one.give_back([head, *one.take(nothing, Together())])
    assert one.alone == 5
    assert drained(one, Together()) == [[0], [1], [2], [3], [4], [5, 6, 7]]
    assert one.alone == 0


def test_done_items_are_passed_by_and_counted() -> None:
    """What has an outcome is not offered, and no longer counts as left."""
    one = lane([1] * 6)
    head = one.head(lambda entry: entry.index in (0, 1, 3))
    assert head is not None
    assert (head.index, one.left) == (2, 4)
    assert one.take(lambda entry: entry.index in (0, 1, 3), Alone()) == ()
    following = one.head(lambda entry: entry.index == 3)
    assert following is not None
    assert (following.index, one.left) == (4, 3)


def test_keys_are_held_by_one_lane_at_a_time() -> None:
    """Who shares a key waits; when it is let go, all who waited for it are told, once."""
    held = Held()
    first, second, third, other = (
        lane([1], holds=frozenset(keys)) for keys in ((1, 2), (2, 3), (1,), (4,))
    )  # fmt: skip
    assert held.take(first)
    assert held.take(other)
    assert not held.take(second)
    assert not held.take(third)
    assert set(map(id, held.release(first))) == {id(second), id(third)}
    assert held.take(second)
    assert held.release(first) == []
    assert held.take(third)
    assert held.release(other) == []
    assert held.take(other)


@given(items=st.integers(1, 70), ended=st.sets(st.integers(0, 69)))
def test_a_bit_for_each_item(items: int, ended: set[int]) -> None:
    """Exactly what has ended is done; what is left is the rest."""
    progress = JobProgress(items, bytearray(items // 8 + 1))
    ended = {index for index in ended if index < items}
    for index in ended:
        progress.end(index, OutcomeKind.SUCCEEDED)
    assert [index for index in range(items) if progress.is_done(index)] == sorted(ended)
    assert progress.left == items - len(ended)
    assert progress.ended == ({OutcomeKind.SUCCEEDED: len(ended)} if ended else {})


def test_nothing_is_left_of_items_that_are_not_known() -> None:
    """Items that are still to be made from another job's results don't count."""
    assert JobProgress(5, bytearray(1), is_known=False).left == 0


def test_who_was_not_successful() -> None:
    """Failed, skipped and unknown, the superseded left out; whoever needs the job is told which and how many."""
    first, fine = JobProgress(9, bytearray(2)), JobProgress(1, bytearray(1))
    kinds = [OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN, OutcomeKind.UNCHANGED]
    for index, kind in enumerate(kinds):
        first.end(index, kind)
    first.superseded = 1
    assert (first.unsuccessful, fine.unsuccessful) == (3, 0)
    job = Job(2, "last", Alone(), needs=("first", "fine"))
    assert dependency_failed(job, LocalBoard([first, fine]).unsuccessful, {"first": 0, "fine": 1}) == (
        "not tried: last needs first (3 not successful)"
    )


def test_the_cost_of_an_item_is_learnt() -> None:
    """The mean of all at first, of about the last 200 later."""
    progress = JobProgress(1_000, bytearray(126))
    means = []
    for requests in (2, 4, 0):
        progress.note_paid(requests)
        means.append(progress.paid_each)
    assert means == [2.0, 3.0, 2.0]
    for _ in range(REMEMBERED - 3):
        progress.note_paid(2)
    assert progress.paid_each == pytest.approx(2.0)
    progress.note_paid(202)
    assert progress.paid_each == pytest.approx(3.0)


@given(
    items=st.integers(1, 90),
    done=st.sets(st.integers(0, 89)),
    copies=st.sets(st.integers(0, 89)),
    start=st.integers(0, 95),
)
def test_the_next_item_that_is_left(items: int, done: set[int], copies: set[int], start: int) -> None:
    """Found without looking at each: the first without an outcome, and the first of those that is not a copy."""
    size = items // 8 + 1
    progress = JobProgress(items, bytearray(size))
    done, copies = ({index for index in each if index < items} for each in (done, copies))
    for index in sorted(done)[::2]:
        progress.end(index, OutcomeKind.SUCCEEDED)
    bits = bytearray(size)
    for index in copies:
        bits[index >> 3] |= 1 << (index & 7)
    progress.set_copies(bits)
    assert progress.copies_left == len(copies - set(sorted(done)[::2]))
    for index in sorted(done)[1::2]:
        progress.end(index, OutcomeKind.UNCHANGED)
    assert progress.copies_left == len(copies - done)
    assert [index for index in range(items) if progress.is_copy(index)] == sorted(copies)
    left = [index for index in range(start, items) if index not in done]
    offered = [index for index in left if index not in copies]
    assert progress.next_left(start) == (left[0] if left else items)
    assert progress.next_offered(start) == (offered[0] if offered else items)


def test_long_stretches_that_are_done_are_jumped_over() -> None:
    """Blocks of done items, and a whole job of them."""
    size = 3 * BLOCK_BYTES
    progress = JobProgress(size * 8, bytearray(b"\xff" * size))
    assert progress.next_left(0) == size * 8
    progress.done[-1] = 0x7F
    assert progress.next_left(5) == size * 8 - 1
