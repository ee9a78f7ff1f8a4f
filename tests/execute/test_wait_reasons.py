"""What the status says of pauses: pure."""

import pytest

from bulk.execute.wait_reasons import Pauses, Why


def test_those_of_one_reason_are_told_together() -> None:
    """Until the last one of them is over, and how many there are; what has ended is not told any more."""
    pauses = Pauses()
    with pauses.told(Why.READ, 3.0, 10.0), pauses.told(Why.BUSY, 1.0, 10.0):
        with pauses.told(Why.READ, 2.0, 10.0):
            assert pauses.waits() == [(Why.READ, 13.0, 2), (Why.BUSY, 11.0, 1)]
        with pauses.told(Why.READ, 2.0, 12.0):
            assert pauses.waits() == [(Why.READ, 14.0, 2), (Why.BUSY, 11.0, 1)]
        assert pauses.waits() == [(Why.READ, 13.0, 1), (Why.BUSY, 11.0, 1)]
    assert pauses.waits() == []


@pytest.mark.parametrize(("why", "seconds"), [(None, 9.0), (Why.READ, 0.9), (Why.READ, 0.0)])
def test_some_are_not_told(why: Why | None, seconds: float) -> None:
    """What something else tells, and what is over before anybody has read of it."""
    pauses = Pauses()
    with pauses.told(why, seconds, 0.0):
        assert pauses.waits() == []


def test_a_pause_that_is_broken_off_is_over() -> None:
    """A run that is stopped in the middle of one."""
    pauses = Pauses()
    with pytest.raises(KeyboardInterrupt), pauses.told(Why.READ, 9.0, 0.0):
        raise KeyboardInterrupt
    assert pauses.waits() == []
