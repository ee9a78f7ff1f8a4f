"""Computes how fast to spend a bucket. Pure.

`even`: full speed while the bucket holds enough requests for the work left. Otherwise its requests are spread over the
time to the reset, so that the platform sees a steady stream and nothing is left over. `burst`: all are used at once.
aiolimiter smooths the stream with a burst of a few milliseconds' worth; the bucket stays the hard cap. Source:
design.md §4.
"""

from collections.abc import Callable

from bulk.govern.permits.accounts import PermitQueue

BURST_S = 0.005
"""A limiter that wakes for every single request loses half of a high rate (performance.md, aiolimiter)."""

TAIL_SHARE = 0.01
TAIL_S = 0.02
"""The last request of a window leaves this long before its end (the larger, at most a second): its way takes time."""

UNPACED_FIRST = 32
"""Requests that go at full speed before pacing begins (count): they show whether such requests must be paid for."""
TRIP_MEMORY, TRIP_SHARE = 0.05, 0.25
"""Weight of the newest trip in the mean, and the most of a window that is left for its last request to be answered."""


def rate(available: int, work_left: int, seconds_left: float, window_s: float) -> float | None:
    """Return requests per second to let out now; None for full speed.

    Args:
        available: requests that may still leave in this window (count).
        work_left: requests that are still to be sent (count).
        seconds_left: time to the earliest moment at which the window may end (seconds; may be negative).
        window_s: length of the window (seconds).
    """
    if work_left <= available:
        return None
    usable_s = seconds_left - min(1.0, max(TAIL_S, window_s * TAIL_SHARE))
    if usable_s <= 0.0:
        return None
    return available / usable_s if available else None


def rate_of(queue: PermitQueue, work_left: Callable[[str, str], int], now: float) -> float | None:
    """Return requests per second to let out now at a permit queue; None for full speed.

    Args:
        work_left: counts the requests of items that nobody has taken yet, by account and category; asked only where it
            matters, as it goes through all jobs. now: platform time, at the latest.
    """
    bucket = queue.bucket
    if bucket is None or queue.tokens is not None or queue.granted < UNPACED_FIRST:  # leased tokens come paced
        return None
    trip_s = min(queue.trip_s, bucket.window_s * TRIP_SHARE)
    # a worker that was given a permit takes an item in a moment, also the worker whose permit makes pacing begin
    unsent = work_left(queue.account.name, queue.category) - queue.given - (queue.granted == UNPACED_FIRST)
    return rate(bucket.available, unsent, bucket.reset_at - now - trip_s, bucket.window_s)


def burst(per_second: float) -> int:
    """Return requests to let out together at that rate (count, >= 1)."""
    return max(1, round(per_second * BURST_S))


def seconds_until(moment: float | None, now: float) -> float:
    """Return the seconds to wait until `moment`.

    Without a moment to come, the wait is so long that only a wake-up ends it (a reset is asked for).
    """
    return 3_700.0 if moment is None or moment <= now else moment - now
