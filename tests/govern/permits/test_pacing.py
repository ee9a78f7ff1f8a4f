"""Pacing: pure arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.permits import pacing


def test_full_speed_while_the_work_fits() -> None:
    """What fits in the bucket is not slowed down."""
    assert pacing.rate(available=100, work_left=100, seconds_left=3_600.0, window_s=3_600.0) is None


def test_spread_over_the_time_to_the_reset() -> None:
    """What does not fit is spread so that the bucket is empty just before its reset."""
    rate = pacing.rate(available=1_000, work_left=5_000, seconds_left=5.0, window_s=5.0)
    assert rate == pytest.approx(1_000 / 4.95)


@pytest.mark.parametrize(
    ("window_s", "tail_s"), [(1.0, 0.02), (2.0, 0.02), (10.0, 0.1), (60.0, 0.6), (100.0, 1.0), (3_600.0, 1.0)]
)
def test_the_last_request_leaves_before_the_end(window_s: float, tail_s: float) -> None:
    """A hundredth of the window before it, at least 20 ms and at most a second."""
    rate = pacing.rate(available=10, work_left=11, seconds_left=window_s, window_s=window_s)
    assert rate == pytest.approx(10 / (window_s - tail_s))


def test_no_rate_where_there_is_nothing_to_spread() -> None:
    """An empty bucket has none, nor has the end of a window: what is there is sent at once."""
    assert pacing.rate(available=0, work_left=1, seconds_left=60.0, window_s=60.0) is None
    assert pacing.rate(available=5, work_left=6, seconds_left=1.0, window_s=100.0) is None
    assert pacing.rate(available=5, work_left=6, seconds_left=0.5, window_s=100.0) is None
    assert pacing.rate(available=5, work_left=6, seconds_left=1.5, window_s=100.0) == 10.0
    assert pacing.rate(available=5, work_left=6, seconds_left=-3.0, window_s=1.0) is None


@pytest.mark.parametrize(
    ("per_second", "together"), [(0.1, 1), (1.0, 1), (299.0, 1), (400.0, 2), (1_000.0, 5), (5_000.0, 25)]
)
def test_high_rates_leave_in_small_groups(per_second: float, together: int) -> None:
    """Five milliseconds' worth at once, and never less than one."""
    assert pacing.burst(per_second) == together


@given(
    available=st.integers(0, 10_000),
    work=st.integers(0, 10**7),
    left=st.floats(-100, 4_000),
    window=st.floats(1, 3_600),
)
def test_rates_are_positive_and_end_in_time(available: int, work: int, left: float, window: float) -> None:
    """A rate, where there is one, is positive and uses up the bucket before the reset."""
    rate = pacing.rate(available, work, left, window)
    if rate is not None:
        assert rate > 0
        assert available / rate <= left
    assert pacing.burst(rate or 1.0) >= 1
