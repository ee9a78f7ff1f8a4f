"""The bits of a job's items: what is left is found without looking at every item."""

from hypothesis import given
from hypothesis import strategies as st

from bulk.dispatch.progress import BLOCK_BYTES, JobProgress
from bulk.model import OutcomeKind


@given(items=st.integers(0, 70), done=st.sets(st.integers(0, 69)), start=st.integers(0, 80))
def test_the_next_item_left(items: int, done: set[int], start: int) -> None:
    """Whatever is done, `next_left` is the first item from an index on that is not, or the number of items."""
    progress = JobProgress(items, bytearray((items + 7) // 8))
    for index in done:
        if index < items:
            progress.end(index, OutcomeKind.SUCCEEDED)
    left = [index for index in range(items) if index >= start and index not in done]
    assert progress.next_left(start) == (left[0] if left else items)


def test_the_next_item_left_behind_millions_that_are_done() -> None:
    """Bits are passed by in blocks, and no further than the items."""
    items = BLOCK_BYTES * 8 * 2 + 13
    progress = JobProgress(items, bytearray(b"\xff" * ((items + 7) // 8)))
    assert progress.next_left(3) == items
    progress.done[BLOCK_BYTES + 7] = 0b1110_1111
    assert progress.next_left(3) == (BLOCK_BYTES + 7) * 8 + 4
