"""Settling a creation by what is new."""

import pytest

from bulk.model import Lost, Undecided
from bulk_jobs.shared import creations

LOST = Lost(method="POST", path="/x", before=[1], sent_at=1_000.0)


@pytest.mark.parametrize(
    ("new", "is_equal", "said"),
    [
        ([5], False, "5 is new and not as asked for (name); it may be ours, shown otherwise"),
        ([5, 6], False, "5 and 6 are new and not as asked for (name); one of them may be ours, shown otherwise"),
        ([5, 6, 7], True, "5, 6 and 7 are new and as asked for, and which of them is ours can't be told"),
    ],
)
def test_what_is_new_and_can_not_be_explained_is_told_in_a_sentence(new: list[int], is_equal: bool, said: str):
    """However many things there are, the message reads as a sentence about them."""
    things = [{"id": number} for number in (1, *new)]
    differing: list[str] = [] if is_equal else ["name"]
    found = creations.settled("a thing", "/x", things, LOST, lambda _: differing, lambda _: [], dict)
    assert isinstance(found, Undecided)
    assert (found.why, found.found) == (said, [{"id": number} for number in new])
