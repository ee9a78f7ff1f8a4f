"""What the status says of pauses: pure."""

import pytest

from bulk.execute.requests.wait_reasons import KINDS, Pause, WaitReason, WaitReasons


def test_those_of_one_reason_are_told_together() -> None:
    """Until the last one of them is over, how many there are, and the newest error; what has ended is not told."""
    wait_reasons = WaitReasons()
    busy = Pause(WaitReason.BUSY, 11.0)
    with wait_reasons.told(WaitReason.READ, 3.0, 10.0, "lost"), wait_reasons.told(WaitReason.BUSY, 1.0, 10.0):
        with wait_reasons.told(WaitReason.READ, 2.0, 10.0, "502"):
            assert wait_reasons.waits() == [Pause(WaitReason.READ, 13.0, 2, "502"), busy]
        with wait_reasons.told(WaitReason.READ, 2.0, 12.0):
            assert wait_reasons.waits() == [Pause(WaitReason.READ, 14.0, 2, "lost"), busy]
        assert wait_reasons.waits() == [Pause(WaitReason.READ, 13.0, 1, "lost"), busy]
    assert wait_reasons.waits() == []


def test_every_reason_has_a_kind() -> None:
    """The status knows what each of them is called in plots."""
    assert set(KINDS) == set(WaitReason)


@pytest.mark.parametrize(("why", "seconds"), [(None, 9.0), (WaitReason.READ, 0.9), (WaitReason.READ, 0.0)])
def test_some_are_not_told(why: WaitReason | None, seconds: float) -> None:
    """What something else tells, and what is over before anybody has read of it."""
    wait_reasons = WaitReasons()
    with wait_reasons.told(why, seconds, 0.0):
        assert wait_reasons.waits() == []


def test_a_pause_that_is_broken_off_is_over() -> None:
    """A run that is stopped in the middle of one."""
    wait_reasons = WaitReasons()
    with pytest.raises(KeyboardInterrupt), wait_reasons.told(WaitReason.READ, 9.0, 0.0):
        raise KeyboardInterrupt
    assert wait_reasons.waits() == []
