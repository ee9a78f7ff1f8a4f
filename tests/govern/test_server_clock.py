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
    time.names_end(1_010.0, sent=9.0)
    assert (time.low, time.high, time.is_guess) == (998.0, 1_002.0, True)
    time.turned(1_010.0, received=12.0)
    assert (time.low, time.high, time.is_guess, time.is_known) == (998.0, 1_001.05, False, False)
    time.turned(1_060.0, received=25.0)
    assert (time.low, time.high) == (1_035.0, 1_037.0), "the newer one counts"


def test_a_window_that_is_open_refutes_the_local_clock() -> None:
    """Where no `Date` comes, and a window that should be over by this machine's clock is open, an end within an hour is
    all that is known, until that was seen; what was seen counts for more than a later word."""
    time = ServerClock.from_local(1_000.0, 0.0)
    time.names_end(990.0, sent=1.0, is_first=True)
    assert time.is_refuted
    assert (time.low, time.high, time.is_guess) == (989.0 - 3_700.0, 989.0, True)
    time.turned(990.0, received=4.0)
    assert (time.low, time.high, time.is_guess, time.is_refuted) == (986.0, 989.0, False, False)
    time.names_end(1_000.0, sent=12.0)
    assert (time.low, time.high) == (986.0, 988.0)
    time.names_end(1_000.0, sent=20.0)
    assert (time.low, time.high) == (986.0, 988.0)


@given(
    offset=st.floats(-1e5, 1e5),
    wrong_s=st.floats(-3_600.0, 3_600.0),
    waits=st.lists(st.tuples(st.floats(1.0, 60.0), st.floats(0.001, 30.0)), min_size=1, max_size=20),
)
def test_ends_of_windows_hold_the_truth(offset: float, wrong_s: float, waits: list[tuple[float, float]]) -> None:
    """However wrong this machine's clock: what windows show holds the true time, and what is believed lies in it."""
    time, now = ServerClock.from_local(offset + wrong_s, 0.0), 0.0
    for open_s, late_s in waits:
        end = offset + now + open_s
        time.names_end(end, now)
        now += open_s + late_s
        time.turned(end, now)
        assert time.least - 1e-6 <= offset <= time.most + 1e-6
        assert time.least <= time.low <= time.high <= time.most
    assert not time.is_guess
