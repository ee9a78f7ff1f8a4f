"""The bits of a job's items: what is left is found without looking at every item."""

from hypothesis import given
from hypothesis import strategies as st

from bulk.model import OutcomeKind
from bulk.schedule.job_progress import BLOCK_BYTES, JobProgress


@given(items=st.integers(0, 70), done=st.sets(st.integers(0, 69)), start=st.integers(0, 80))
def test_the_next_item_left(items: int, done: set[int], start: int) -> None:
    """Whatever is done, `next_left` is the first item from an index on that is not, or the number of items."""
    progress = JobProgress(items, bytearray((items + 7) // 8))
    for index in done:
        if index < items:
            progress.end(index, OutcomeKind.SUCCEEDED)
    left = [index for index in range(items) if index >= start and index not in done]
    assert progress.next_left(start) == (left[0] if left else items)


def test_the_next_item_left_behind_any_span() -> None:
    """Wherever what is done begins and ends within the bytes, and wherever the search starts."""
    items = 27
    for first in range(items):
        for end in range(first, items + 1):
            progress = JobProgress(items, bytearray((items + 7) // 8))
            for index in range(first, end):
                progress.end(index, OutcomeKind.SUCCEEDED)
            for start in range(items + 2):
                expected = end if first <= start < end else min(start, items)
                assert progress.next_left(start) == expected


def test_what_ends_is_offered_no_more_beside_copies() -> None:
    """Item by item, each found by its own bit."""
    progress = JobProgress(20, bytearray(3))
    progress.set_copies(bytearray((0b0000_0100, 0b0000_0010, 0)))
    for index in range(20):
        expected = index if index not in (2, 9) else index + 1
        assert progress.next_offered(0) == expected
        progress.end(index, OutcomeKind.SUCCEEDED)
    assert progress.next_offered(0) == 20
    assert progress.copies_left == 0


def test_the_next_item_left_behind_millions_that_are_done() -> None:
    """Bits are passed by in blocks, and no further than the items."""
    items = BLOCK_BYTES * 8 * 2 + 13
    progress = JobProgress(items, bytearray(b"\xff" * ((items + 7) // 8)))
    assert progress.next_left(3) == items
    progress.done[BLOCK_BYTES + 7] = 0b1110_1111
    assert progress.next_left(3) == (BLOCK_BYTES + 7) * 8 + 4


@given(
    items=st.integers(1, 40),
    before=st.sets(st.integers(0, 39)),
    copies=st.sets(st.integers(0, 39)),
    after=st.sets(st.integers(0, 39)),
    start=st.integers(0, 45),
)
def test_copies_are_not_offered(items: int, before: set[int], copies: set[int], after: set[int], start: int) -> None:
    """Whatever had an outcome before, and gets one after it is known what is a copy of what."""
    progress = JobProgress(items, bytearray((items + 7) // 8))
    for index in filter(items.__gt__, before):
        progress.end(index, OutcomeKind.SUCCEEDED)
    bits = bytearray((items + 7) // 8)
    for index in filter(items.__gt__, copies):
        bits[index >> 3] |= 1 << (index & 7)
    progress.set_copies(bits)
    for index in filter(items.__gt__, after - before):
        progress.end(index, OutcomeKind.FAILED)
    done = before | after
    offered = [index for index in range(start, items) if index not in done | copies]
    assert progress.next_offered(start) == (offered[0] if offered else items)
    assert progress.copies_left == len([index for index in copies - done if index < items])
    assert progress.left == len([index for index in range(items) if index not in done])
    assert all(progress.is_copy(index) == (index in copies) for index in range(items))


@given(items=st.integers(0, 40), done=st.sets(st.integers(0, 60)))
def test_what_is_left_where_a_limit_is_smaller_than_what_is_done(items: int, done: set[int]) -> None:
    """Whatever is done before and behind the limit: left are those before it, and no more are done than there are."""
    bits = bytearray((items + 7) // 8)
    for index in done:
        if index < items:
            bits[index >> 3] |= 1 << (index & 7)
    progress = JobProgress(0, bytearray(), {OutcomeKind.SUCCEEDED: len(done)})
    progress.begin(items, bits)
    assert progress.left == items - len([index for index in done if index < items])
    assert progress.total == progress.left + len(done)
