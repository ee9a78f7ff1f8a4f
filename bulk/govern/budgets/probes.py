"""Probes: where no request is left as far as is known, one request at a time is let out to find out whether that is so.

A probe leaves after the end of a window, when no witness has opened the next one. It leaves within a window when one
witness contradicts the other, or when a single witness says that a window is empty of which this run has used next to
nothing. What came of the probe says which witness was wrong. Whether a window was over when the probe left is judged
when its answer is there: a clock that was set back may have sent it too early. Then it is served out of the rest of the
old window, where requests of this run never arrived. Pure arithmetic over a bucket.
Source: design.md §4; failures.md rows 31, 32, 34.
"""

import math

from bulk.govern.budgets.buckets import LATE_S, Bucket
from bulk.govern.budgets.witnesses import NEVER, Witness

LOOK_SHARE, LOOK_LEAST_S, LOOK_MOST_S = 0.02, 0.05, 0.25
"""How long after the end of a window a probe leaves, if no witness has opened the next one: a share of the window,
within bounds (seconds)."""
DOUBT_S, MOVED_S = 1.0, LATE_S
"""How long a word that nothing is left stands when another witness says the contrary, and how long this run's own count
stands when a witness says that another window has begun (seconds). Both are longer if that witness erred before."""
HOLLOW_SHARE, HOLLOW_USED = 0.25, 0.1
"""Where a single witness says that nothing is left, and this run has used less than a tenth of the window, a probe
leaves after a quarter of the window."""
LOOK_AGAIN_S, LOOK_AGAIN_MOST_S = 0.5, 60.0
"""Pause after the first probe in vain, doubled after each further one, and the longest (seconds)."""
GUESS_S = 15.0
"""How long after the last request of a window a probe leaves, where the end of the window is compared with the clock of
this machine alone; the pause doubles after each probe in vain (seconds)."""
WIDE_SHARE = 0.01
"""Where only ends of windows tell platform time, they tell it well enough if its bounds are no further apart than this
share of a window; until then each probe halves their distance."""
LAG_MOST_S = 5.0
"""A window may end at most this much later than the platform says (seconds); the lag that was met is remembered."""


def is_doubtful(bucket: Bucket) -> bool:
    """Return whether the bucket is empty only by a witness's word, or a witness says that requests are left."""
    return bucket.limit - bucket.own > bucket.reserve or any(
        _names_some_left(bucket, each) for each in (bucket.shown, bucket.asked)
    )


def _names_some_left(bucket: Bucket, witness: Witness) -> bool:
    if witness.left(bucket.paid) <= bucket.reserve or witness.heard_at < bucket.emptied_at:
        return False
    return max(bucket.limit, witness.limit) - bucket.own > bucket.reserve or witness.moved >= 0


def _is_hollow(bucket: Bucket) -> bool:
    """Return whether one witness alone says that a window is empty of which this run has used next to nothing."""
    if bucket.window < bucket.hollow_from or bucket.own >= HOLLOW_USED * (bucket.limit - bucket.reserve):
        return False
    return sum(each.ceiling <= bucket.paid for each in (bucket.shown, bucket.asked)) < 2


def probe_at(bucket: Bucket, now: float) -> float:
    """Return when a probe may leave to find out whether requests are left after all.

    That moment and `now` are platform time (UTC epoch seconds).
    """
    if bucket.is_probing:
        return math.inf
    if bucket.emptied_at == 0.0:
        bucket.emptied_at = now
    at = _after_its_end(bucket)
    for witness in (bucket.shown, bucket.asked):
        if _names_some_left(bucket, witness):
            first_s = DOUBT_S if max(bucket.limit, witness.limit) - bucket.own > bucket.reserve else MOVED_S
            at = min(at, bucket.emptied_at + first_s * 4.0 ** min(3, witness.too_much + witness.too_little))
    if _is_hollow(bucket):
        at = min(at, bucket.emptied_at + bucket.window_s * HOLLOW_SHARE)
    if _is_next_full(bucket, now):
        at = max(at, bucket.reset_at + bucket.window_s)
    return max(at, bucket.pause_until)


def is_watched(bucket: Bucket) -> bool:
    """Return whether `/rate_limit` will say that the window is over: it knows the window, and what was spent of it."""
    asked = bucket.asked
    is_same = bool(asked.reset_at) and abs(asked.reset_at - bucket.reset_at) <= bucket.jitter_s
    return is_same and not asked.is_vague and not asked.is_blamed


def look_at(bucket: Bucket) -> float:
    """Return when a probe may leave where only headers speak of the bucket and platform time is not known.

    `probe_at` must be called before this. The moment is platform time (UTC epoch seconds).
    """
    return bucket.emptied_at + GUESS_S * (2.0 ** min(30, bucket.probes + 1) - 1.0)


def _after_its_end(bucket: Bucket) -> float:
    at = bucket.reset_at + bucket.lag_s + min(LOOK_MOST_S, max(LOOK_LEAST_S, bucket.window_s * LOOK_SHARE))
    if bucket.reserve and is_watched(bucket):
        return max(at, bucket.reset_at + LATE_S)  # the old window would serve the probe out of the reserve
    return at


def _goes_on(bucket: Bucket) -> bool:
    """Return whether the headers of a served probe say that the old window has paid for it, out of the reserve."""
    shown = bucket.shown
    is_same = abs(shown.reset_at - bucket.reset_at) <= bucket.jitter_s and not shown.is_blamed
    return bucket.reserve > 0 and is_same and shown.latest <= shown.said


def _is_next_full(bucket: Bucket, now: float) -> bool:
    """Return whether requests under way at the beginning of the next window may fill it.

    Then a probe would find out nothing.
    """
    over = bucket.over if bucket.over >= 0 else bucket.paid - bucket.in_flight
    return now >= bucket.reset_at and bucket.paid - over >= bucket.limit


def probe(bucket: Bucket, now: float) -> None:
    """Let one request out as a probe, not before `now` (UTC epoch seconds, platform time)."""
    bucket.is_probing, bucket.probed_at, bucket.is_early = True, now, False
    bucket.shown.said, bucket.asked.said = bucket.shown.latest, bucket.asked.latest
    bucket.sent += 1
    bucket.in_flight += 1


def date(bucket: Bucket, window: int, made_at: float) -> None:
    """Note that the answer to the probe of window `window` was made before `made_at` (UTC epoch seconds), by its date.

    This must be called before anything else that the answer says is taken in.
    """
    bucket.is_early = made_at <= (bucket.reset_at if window == bucket.window else bucket.ended_at)


def saw(
    bucket: Bucket, window: int, was_served: bool | None, now: float, late: float, *, has_headers: bool = False
) -> None:
    """Note that the probe is over.

    Args:
        window: number of the window in which the probe was let out.
        was_served: the platform served the probe; False: it was refused because of a limit; None: nothing can be told.
        has_headers: the answer named the limits, which are taken in already.
        now: platform time; `late`: the latest that platform time may be (UTC epoch seconds).
    """
    bucket.is_probing = False
    if window != bucket.window:
        _learn_lag(bucket)
        bucket.probes, bucket.pause_until = 0, 0.0
        return
    was_due = bucket.probed_at >= bucket.reset_at
    is_past = was_due and not bucket.is_early
    if was_served and not (has_headers and _goes_on(bucket)):
        _saw_it_served(bucket, is_past, now, late)
        return
    bucket.probes, bucket.vain_at = bucket.probes + 1, bucket.probed_at
    first_s = DOUBT_S if was_served is False and not was_due else LOOK_AGAIN_S
    bucket.pause_until = now + min(LOOK_AGAIN_MOST_S, first_s * 2.0 ** min(10, bucket.probes - 1))
    if not was_due:  # a probe within a window does not put off the probe after its end
        bucket.pause_until = min(bucket.pause_until, max(now + first_s, _after_its_end(bucket)))
    if was_served is False:
        _saw_it_refused(bucket, is_past, late)


def _learn_lag(bucket: Bucket) -> None:
    late_s = bucket.probed_at - bucket.ended_at
    was_late = bucket.vain_at >= bucket.ended_at  # a probe in vain before the end tells nothing of the time after it
    if was_late and not (bucket.is_assumed or bucket.is_early) and bucket.lag_s < late_s <= LAG_MOST_S:
        bucket.lag_s = late_s


def _saw_it_served(bucket: Bucket, is_past: bool, now: float, late: float) -> None:
    before = bucket.paid - 1  # the words of the witnesses don't count the probe
    moved = [each for each in (bucket.shown, bucket.asked) if each.moved >= 0]
    has_turned = not is_past and any(not each.is_blamed for each in moved)  # then only the clock was wrong
    if has_turned:
        bucket.believe_newest(bucket.reset_at)
    for witness, other in () if has_turned else ((bucket.shown, bucket.asked), (bucket.asked, bucket.shown)):
        if not is_past:
            witness.was_too_low(before, other, bucket.own)
        elif witness.reset_at > late + bucket.jitter_s and witness.ceiling <= before:
            witness.too_little, witness.ceiling = witness.too_little + 1, NEVER  # the end that it named was wrong
    _learn_limit(bucket)
    is_room = bucket.limit - bucket.own >= 0
    bucket.first, bucket.is_exhausted = NEVER, False
    is_over = not is_room and not bucket.is_early  # otherwise some requests of this run never arrived
    if (is_past and not (bucket.is_assumed and is_room)) or moved or is_over:
        both = [each for each in (*moved, bucket.shown, bucket.asked) if not each.too_little]
        ends = [each.reset_at for each in both if each.reset_at > late + bucket.jitter_s]
        window_s, probes = bucket.window_s, bucket.probes
        if probes and is_past and bucket.opened_at:
            window_s = max(window_s, bucket.probed_at - bucket.opened_at)  # the window was longer than assumed
        ended_at = bucket.probed_at if bucket.is_assumed or not is_past else bucket.reset_at
        bucket.begin(_limit_of_next(bucket), min(ends) if ends else late + window_s, bucket.in_flight + 1, now, late)
        bucket.ended_at, bucket.is_assumed, bucket.probes = ended_at, not ends, probes
        _learn_lag(bucket)
        if not ends:
            bucket.window_s = window_s
    bucket.probes, bucket.pause_until, bucket.emptied_at = 0, 0.0, 0.0
    bucket.settle()


def _learn_limit(bucket: Bucket) -> None:
    """Take the limit from the witness that was never wrong, if the other one was."""
    good = [each for each in (bucket.shown, bucket.asked) if not each.is_blamed]
    if len(good) == 1 and good[0].limit >= bucket.own:
        bucket.limit = good[0].limit


def _limit_of_next(bucket: Bucket) -> int:
    """Return the limit of the window that a probe has opened: the one that all name who have spoken and never erred."""
    named = {each.limit for each in (bucket.shown, bucket.asked) if each.limit > 0 and not each.is_blamed}
    return named.pop() if len(named) == 1 else bucket.limit


def _saw_it_refused(bucket: Bucket, is_past: bool, late: float) -> None:
    bucket.exhaust()
    for witness, other in ((bucket.shown, bucket.asked), (bucket.asked, bucket.shown)):
        if not is_past and witness.ceiling <= bucket.paid < other.ceiling:
            witness.too_little = 0  # the probe shows that it is right, as the other witness did not say so
        if not is_past and witness.left(bucket.paid - 1) > bucket.reserve:  # its word does not count the probe
            witness.too_much += 1
    if not is_past:
        bucket.hollow_from, bucket.hollow_step = bucket.window + bucket.hollow_step, bucket.hollow_step * 2
        return
    bucket.over = bucket.paid - bucket.in_flight
    later = [each for each in (bucket.shown, bucket.asked) if each.reset_at > late + bucket.jitter_s]
    for witness in (bucket.shown, bucket.asked):
        if later and 0.0 < witness.reset_at <= late:
            witness.too_much += 1
            witness.forget()
    bucket.agree(late)
