"""The log of a worker whose store is out of reach: few lines, however long that takes."""

import pytest

from bulk.cluster.left_alone import TOLD_S, Outage


def test_an_outage_is_told_when_it_begins_seldom_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Two calls in vain each second for two and a half minutes are three lines, and one more is its end."""
    now = [100.0]
    outage = Outage(lambda: now[0])
    outage.is_over()
    for _ in range(300):
        outage.goes_on("the store can't be reached")
        now[0] += TOLD_S / 120
    outage.is_over()
    outage.is_over()
    assert caplog.messages == [
        *["the store can't be reached"] * 3,
        f"the store is in reach again, after {2.5 * TOLD_S:.0f} s",
    ]


def test_a_store_that_comes_and_goes_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """One connection is refused, the next one is not, for two minutes."""
    now = [0.0]
    outage = Outage(lambda: now[0])
    for _ in range(240):
        outage.goes_on("away")
        outage.is_over()
        now[0] += TOLD_S / 120
    assert len(caplog.messages) == 4
