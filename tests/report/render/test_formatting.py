"""Numbers are written for people, and none of them can break a line of output."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.report.render import formatting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0412, "41 ms"),
        (0.9996, "1.0 s"),
        (1.44, "1.4 s"),
        (41.2, "41 s"),
        (59.6, "1 min"),
        (252, "4 min 12 s"),
        (3600, "1 h"),
        (4320, "1 h 12 min"),
        (183_600, "2 d 3 h"),
        (-5, "0 s"),
        (float("inf"), "?"),
        (float("nan"), "?"),
    ],
)
def test_durations(seconds, text):
    """A duration has the two largest units that matter."""
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(12_345.6, "12,346/s"), (412, "412/s"), (8.34, "8.3/s"), (0.5, "30/min"), (0.05, "3.0/min"), (0, "0/s")],
)
def test_rates(per_second, text):
    """A rate below one a second is given by the minute."""
    assert formatting.rate(per_second) == text


@given(part=st.integers(0, 10**7), whole=st.integers(0, 10**7))
@example(part=9999, whole=10_000)
@example(part=1, whole=10_000)
def test_percent_is_honest(part, whole):
    """Nothing is 100% before all of it is there, nor 0% once some of it is."""
    text = formatting.percent(part, whole)
    assert (text == "100%") == (whole > 0 and part >= whole > 0)
    assert (text == "0%") == (part == 0 or whole == 0)


@given(at=st.floats(allow_nan=False), now=st.floats(0, 4e9))
def test_any_moment_can_be_written(at, now):
    """A reset of the year 10^300 is written as a question mark, not as a traceback."""
    assert formatting.moment(at, now)


def test_moments_are_as_long_as_needed(monkeypatch):
    """Seconds for what is near, the weekday for what is not today, the date for what is far."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    now = 1_795_248_000.0  # Saturday 2026-11-21 08:00:00
    assert formatting.moment(now + 67, now) == "08:01:07"
    assert formatting.moment(now + 3600, now) == "09:00"
    assert formatting.moment(now + 86_400, now) == "Sun 08:00"
    assert formatting.moment(now + 30 * 86_400, now) == "2026-12-21 08:00"
    monkeypatch.undo()
    time.tzset()


def test_words_follow_the_number():
    """One item, two items; outcomes that did not occur are not mentioned."""
    assert (formatting.counted(1, "item"), formatting.counted(1200, "item")) == ("1 item", "1,200 items")
    assert formatting.outcomes({"failed": 2, "succeeded": 1000, "skipped": 0}, ("succeeded", "failed", "skipped")) == (
        "1,000 succeeded, 2 failed"
    )
