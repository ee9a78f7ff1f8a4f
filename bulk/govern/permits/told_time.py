"""Learns the platform's time from words about a budget, where no `Date` comes, or a wrong one.

Source: failures.md rows 31, 34; design.md §4.
"""

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.permits.accounts import PermitQueue
from bulk.govern.server_clock import EARLY_S, PAST_MOST_S, WINDOW_MOST_S, ServerClock
from bulk.platform.classification import Limits


def by_word(
    queue: PermitQueue, limits: Limits, overlap: int, now: float, sent: float, time: ServerClock, *, is_asked: bool
) -> None:
    """Learn platform time from a word about a budget, where no `Date` comes; see `charges.take_limits`.

    The window was still open if the word names its end, with no more requests left than this run has left of it. The
    window was over if the witness that has named its end names a later one, with more left than the window can have.
    """
    bucket, reset_at = queue.bucket, float(limits.reset)
    if bucket is None:
        if time.earliest(now) - PAST_MOST_S < reset_at:
            time.names_end(reset_at, sent, is_first=True)
        return
    witness, spent = bucket.asked if is_asked else bucket.shown, bucket.own - overlap + (not is_asked)
    if witness.is_blamed or spent <= 0 or bucket.is_assumed:
        return
    is_named = bool(witness.reset_at) and abs(witness.reset_at - bucket.reset_at) <= bucket.jitter_s
    if limits.remaining <= bucket.limit - min(spent, bucket.limit):
        if abs(reset_at - bucket.reset_at) <= bucket.jitter_s:
            time.names_end(reset_at, sent)
            if bucket.over >= 0:  # so the requests that are counted are not of the next window
                counted = bucket.paid - overlap if is_asked else min(bucket.over + 1, bucket.paid - bucket.in_flight)
                bucket.over = max(bucket.over, counted)
        elif not is_asked:
            queue.is_end_moved = True
    elif is_named and not witness.is_vague and bucket.jitter_s < reset_at - bucket.reset_at < 2 * WINDOW_MOST_S:
        time.turned(bucket.reset_at, now)


def by_turn(bucket: Bucket, end: float, now: float, time: ServerClock) -> None:
    """Note that a window of `bucket` that was to end at `end` (UTC epoch seconds) is over at `now` (monotonic).

    A window that is over early may have been forgotten by a platform that was started anew. If the next window is early
    as well, `Date` is of another clock. So it is if the platform has a clock by which this window was over.
    """
    low, before = end - now, bucket.turned_low
    bucket.turned_low = low if low > time.high + EARLY_S else 0.0
    faster = time.faster(low) if bucket.turned_low else None
    if (before and bucket.turned_low) or faster is not None:
        time.overrule(max(before, low) if faster is None else faster)
        bucket.turned_low = 0.0
