"""Platform time: an interval that answers narrow."""

from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.server_clock import ServerClock


def test_before_any_answer_the_local_clock_will_do() -> None:
    """Two seconds to either side of it, and not taken for known."""
    time = ServerClock.from_local(1_000.0, 10.0)
    assert (time.low, time.high, time.is_known) == (988.0, 992.0, False)
    assert (time.earliest(20.0), time.latest(20.0), time.middle(20.0)) == (1_008.0, 1_012.0, 1_010.0)


def test_the_first_answer_replaces_the_local_clock() -> None:
    """Even where the two agree: from the moment it was received to a second after it was sent."""
    time = ServerClock.from_local(1_000.0, 0.0)
    time.observe(1_000.0, sent=0.25, received=0.5)
    assert (time.low, time.high, time.is_known) == (999.5, 1_000.75, True)
    assert (time.earliest(8.0), time.latest(8.0), time.middle(8.0)) == (1_007.5, 1_008.75, 1_008.125)


def test_each_answer_cuts() -> None:
    """The later lower bound and the earlier upper bound stay, whichever answer they came with."""
    time = ServerClock.from_local(0.0, 0.0)
    time.observe(1_000.0, sent=0.0, received=0.5)
    time.observe(1_001.0, sent=1.25, received=1.375)
    assert (time.low, time.high) == (999.625, 1_000.75)
    time.observe(1_002.0, sent=1.5, received=3.0)
    assert (time.low, time.high) == (999.625, 1_000.75)


def test_bounds_that_touch_agree() -> None:
    """Where one point is left, it is the offset."""
    time = ServerClock.from_local(0.0, 0.0)
    time.observe(1_000.0, sent=0.0, received=0.5)
    time.observe(1_002.0, sent=1.0, received=1.0)
    assert (time.low, time.high) == (1_001.0, 1_001.0)


@given(
    offset=st.floats(-1e5, 1e5),
    sends=st.lists(st.tuples(st.floats(0, 3_600), st.floats(0.001, 2.0)), min_size=1, max_size=50),
)
def test_platform_time_holds_the_truth(offset: float, sends: list[tuple[float, float]]) -> None:
    """failures.md row 34: however skewed the platform's clock, the interval holds its true time, and only narrows."""
    time, width = ServerClock.from_local(0.0, 0.0), None
    for sent, latency in sorted(sends):
        made = sent + latency / 2
        time.observe(float(int(offset + made + 1e6) - 1e6), sent, sent + latency)
        assert time.low - 1e-6 <= offset <= time.high + 1e-6
        assert width is None or time.high - time.low <= width + 1e-6
        width = time.high - time.low


def test_a_clock_that_was_set_is_believed() -> None:
    """failures.md row 33: after the platform's clock jumps, the newest answer counts."""
    time = ServerClock.from_local(1_000.0, 0.0)
    time.observe(1_000.0, 0.0, 0.1)
    time.observe(90_000.0, 5.0, 5.1)
    assert time.earliest(5.1) >= 90_000.0 - 0.2


def test_windows_overrule_a_date_of_another_clock() -> None:
    """failures.md row 34: where windows were over before `Date` said so, what `Date` says does not count any more."""
    time = ServerClock.from_local(1_000.0, 0.0)
    time.observe(1_000.0, 0.0, 0.1)
    time.overrule(1_030.0)
    time.observe(1_005.0, 5.0, 5.1)
    assert (time.low, time.high, time.is_known) == (1_030.0, 1_032.0, True)


def test_an_end_that_was_seen_narrows_the_local_clock() -> None:
    """Where no `Date` comes, a window that ended between two moments cuts the interval, or replaces it where this
    machine's clock was wrong; from then on it is more than a guess."""
    time = ServerClock.from_local(1_000.0, 0.0)
    assert time.is_guess
    time.turned(1_010.0, before=0.5, after=12.0)
    assert (time.low, time.high, time.is_guess, time.is_known) == (998.0, 1_002.0, False, False)
    time.turned(1_060.0, before=20.0, after=25.0)
    assert (time.low, time.high) == (1_035.0, 1_040.0)
