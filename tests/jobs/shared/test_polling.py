"""The pauses between looks at what was accepted."""

from bulk_jobs.shared import polling


def test_pauses_grow_to_a_longest_and_end():
    """Short at first, never more than the longest, together at least as long as asked and at most one pause more."""
    pauses = list(polling.pauses())
    assert pauses == sorted(pauses)
    assert pauses[0] == polling.FIRST_S
    assert pauses[-1] == polling.LONGEST_S
    assert polling.MOST_S <= sum(pauses) < polling.MOST_S + polling.LONGEST_S
    assert list(polling.pauses(0.0)) == []
