"""Platform time: an interval that answers narrow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.server_clock import SET_AFTER, ServerClock


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


@given(ahead=st.lists(st.booleans(), min_size=3, max_size=200), apart_s=st.floats(5.0, 80_000.0))
def test_of_several_clocks_one_is_chosen(ahead: list[bool], apart_s: float) -> None:
    """Nodes behind one address whose clocks differ: when answers have gone back to a time before, it is the last of
    these clocks that counts, as long as it answers at all; nothing flips with each answer."""
    time, changes, before = ServerClock.from_local(1_000.0, 0.0), 0, -1.0
    for number, is_ahead in enumerate(ahead):
        offset_s = apart_s if is_ahead else 0.0
        time.observe(float(int(1_000.0 + number + offset_s)), float(number), number + 0.1)
        changes += before >= 0.0 and abs(time.low - before) > 2.0
        before = time.low
    assert changes <= 3
    if any(not is_ahead for is_ahead in ahead[-SET_AFTER:]) and changes > 1:
        assert time.high < 1_002.0


def test_a_clock_of_several_that_is_gone_is_given_up() -> None:
    """A clock that was set back for a moment: when only the other time is told any more, that is believed."""
    time, moments = ServerClock.from_local(1_000.0, 0.0), iter(range(1_000))
    for back_s, answers in ((0.0, 3), (500.0, 3), (0.0, SET_AFTER - 1)):
        for now in (float(next(moments)) for _ in range(answers)):
            time.observe(1_000.0 + now - back_s, now, now + 0.1)
    assert time.high < 502.0
    now = float(next(moments))
    time.observe(1_000.0 + now, now, now + 0.1)
    assert 999.0 < time.low <= time.high < 1_002.0


@pytest.mark.parametrize("date", [0.0, 253_402_300_799.0])
def test_a_date_that_is_none_is_refused(date: float) -> None:
    """An end that fits this machine's clock, and by `Date` is decades away, shows that `Date` is nonsense. An end that
    fits neither of them shows nothing, nor does any end where both clocks say the same."""
    time = ServerClock.from_local(1_000_000_000.0, 0.0)
    time.observe(date, 0.0, 0.1)
    time.refuse(1_000_100_000.0, 0.2)
    assert (time.is_known, time.is_refused) == (True, False)
    time.refuse(1_000_000_050.0, 0.2)
    assert (time.is_known, time.is_guess, time.middle(0.0)) == (False, True, 1_000_000_000.0)
    time.observe(date, 1.0, 1.1)
    assert time.middle(0.0) == 1_000_000_000.0
    other = ServerClock.from_local(1_000_000_000.0, 0.0)
    other.observe(1_000_000_000.0, 0.0, 0.1)
    other.refuse(1_000_000_050.0, 0.2)
    assert other.is_known


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
