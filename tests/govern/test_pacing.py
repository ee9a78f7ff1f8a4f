"""Pacing, platform time and concurrency: pure arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern import pacing
from bulk.govern.concurrency import Concurrency
from bulk.govern.platform_time import PlatformTime


def test_full_speed_while_the_work_fits() -> None:
    """What fits in the bucket is not slowed down."""
    assert pacing.rate(available=100, work_left=100, seconds_left=3_600.0, window_s=3_600.0) is None


def test_spread_over_the_time_to_the_reset() -> None:
    """What does not fit is spread so that the bucket is empty just before its reset."""
    rate = pacing.rate(available=1_000, work_left=5_000, seconds_left=5.0, window_s=5.0)
    assert rate == pytest.approx(1_000 / 4.95)


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


@given(
    offset=st.floats(-1e5, 1e5),
    sends=st.lists(st.tuples(st.floats(0, 3_600), st.floats(0.001, 2.0)), min_size=1, max_size=50),
)
def test_platform_time_holds_the_truth(offset: float, sends: list[tuple[float, float]]) -> None:
    """failures.md row 34: however skewed the platform's clock, the interval holds its true time, and only narrows."""
    time, width = PlatformTime.from_local(0.0, 0.0), None
    for sent, latency in sorted(sends):
        made = sent + latency / 2
        time.observe(float(int(offset + made + 1e6) - 1e6), sent, sent + latency)
        assert time.low - 1e-6 <= offset <= time.high + 1e-6
        assert width is None or time.high - time.low <= width + 1e-6
        width = time.high - time.low


def test_a_clock_that_was_set_is_believed() -> None:
    """failures.md row 33: after the platform's clock jumps, the newest answer counts."""
    time = PlatformTime.from_local(1_000.0, 0.0)
    time.observe(1_000.0, 0.0, 0.1)
    time.observe(90_000.0, 5.0, 5.1)
    assert time.earliest(5.1) >= 90_000.0 - 0.2


def test_concurrency_falls_at_once_and_errors_never_raise_it() -> None:
    """failures.md row 25: down to one while the platform suffers, and up again only on good answers."""
    one, now = Concurrency(64), 0.0
    for _ in range(10):
        now += 1.0
        before = one.allowed
        one.suffered(now)
        assert one.allowed <= before
    assert one.allowed == 1
    for _ in range(3_000):
        one.in_flight = one.allowed - 1
        one.answered(0.02)
    assert one.allowed == 64


def test_one_burst_of_errors_halves_once() -> None:
    """Twenty answers of the same bad moment count as one sign."""
    one = Concurrency(64)
    for _ in range(20):
        one.suffered(10.0)
    assert one.allowed == 8


def test_no_growth_while_the_platform_queues() -> None:
    """Where answers take many times the best, more requests at once are not tried."""
    one = Concurrency(64)
    one.answered(0.01)
    for _ in range(2_000):
        one.in_flight = one.allowed - 1
        one.answered(1.0)
    assert one.allowed < 64
