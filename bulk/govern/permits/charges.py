"""Charges the bucket of its permit queue, from the moment a permit is given until all that its answer says is taken in.

Not every word about a budget is listened to. The headers of a 401, a lock-out, an error page or an answer to another
token speak of another budget, mostly of the anonymous one of this address: they never reach a bucket. What the words
that reach one say of the time is in `told_time.py`. Source: failures.md rows 31, 34; design.md §4.
"""

from collections.abc import Callable, Mapping

from multidict import CIMultiDict, CIMultiDictProxy, istr

from bulk.govern.budgets import probes
from bulk.govern.budgets.buckets import JITTER_S, Bucket
from bulk.govern.budgets.witnesses import NEVER
from bulk.govern.permits import told_time, unusable
from bulk.govern.permits.accounts import Permit, PermitQueue
from bulk.govern.server_clock import PAST_MOST_S, WINDOW_MOST_S, ServerClock
from bulk.model import Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Limits, Verdict, VerdictKind, date_from_headers, limits_from_headers

UNKNOWN_WINDOW_S = 1.0
"""Time after which the first probe leaves where the end of a window can't be known (seconds)."""
NAMELESS = 3
"""This many answers in a row that name no category and the same limit are of this budget (count), whatever
`/rate_limit` says of it, if headers have never named another limit."""

SILENT = 10
"""Where `/rate_limit` does not tell a budget any more, this many served answers in a row that name none say the same
(count)."""

_NUMBERS = tuple(istr(f"X-RateLimit-{name}") for name in ("Limit", "Remaining", "Reset"))
_MULTIPLE = (CIMultiDictProxy, CIMultiDict)
_SERVED = (VerdictKind.ACCEPTED, VerdictKind.REDIRECTED)
_SPEAK = (*_SERVED, VerdictKind.REFUSED, VerdictKind.LIMITED_PRIMARY)
SEEN = {
    VerdictKind.ACCEPTED: True,
    VerdictKind.REDIRECTED: True,
    VerdictKind.REFUSED: True,
    VerdictKind.LIMITED_PRIMARY: False,
    VerdictKind.LIMITED_SECONDARY: False,
    VerdictKind.UNEXPLAINED: False,
    VerdictKind.ASTRAY: False,
    VerdictKind.THROTTLED: False,
}
"""Whether the platform serves this category, by the verdict on a probe; verdicts that are not named tell nothing."""


def charge(queue: PermitQueue, token: Secret, generation: int, now: float, time: ServerClock) -> Permit:
    """Take one request off, or let a probe out where nothing is left; the caller has made sure that it may leave.

    Args:
        now: monotonic seconds.
    """
    bucket, tokens = queue.bucket, queue.tokens
    if tokens is not None:
        window, hold = tokens.take(now)
        return Permit(queue, token, window, hold, generation, now)
    if bucket is None:
        queue.note_unbudgeted(now)
        return Permit(queue, token, 0, 0, generation, now)
    late = now + time.high
    if late >= bucket.reset_at:
        bucket.pass_time(late)
    if bucket.free > bucket.reserve or (queue.faster_end is not None and _passes(queue, bucket, now, time)):
        bucket.reserve_one()
        return Permit(queue, token, bucket.window, bucket.mark, generation, now)
    probes.probe(bucket, now + time.low)
    permit = Permit(queue, token, bucket.window, bucket.mark, generation, now)
    permit.is_probe = True
    return permit


def _passes(queue: PermitQueue, bucket: Bucket, now: float, time: ServerClock) -> bool:
    """Try the clock by which the window of a used-up bucket is over; return whether the next one has something left."""
    assert queue.faster_end is not None, "asked where there is such a clock"
    time.try_faster(queue.faster_end, now)
    queue.faster_end = None
    late = now + time.high
    if late >= bucket.reset_at:
        bucket.pass_time(late)
    return bucket.free > bucket.reserve


def release(permit: Permit, now: float, time: ServerClock) -> None:
    """Note that a request that a window paid for is not under way any more."""
    bucket, tokens = permit.queue.bucket, permit.queue.tokens
    if tokens is not None:
        tokens.ended(permit.mark)
    elif bucket is not None:
        late = now + time.high
        if late >= bucket.reset_at:
            bucket.pass_time(late)  # before the request is counted as answered: it may count in the next window
        bucket.in_flight -= 1


def give_back(permit: Permit) -> None:
    """Give back the cost of a request that was answered 304 or never left."""
    bucket, tokens = permit.queue.bucket, permit.queue.tokens
    if tokens is not None:
        tokens.return_unused(permit.mark)
    elif bucket is not None and permit.window:
        if permit.is_probe:
            bucket.given_back += 1  # a probe takes nothing off `free`
        else:
            bucket.give_back()
    permit.queue.used -= 1


def date(permit: Permit, reply: Reply) -> None:
    """Note in which window a request counts that was under way at the end of a window, by the `Date` of its answer."""
    bucket = permit.queue.bucket
    if bucket is None or permit.queue.tokens is not None or (permit.window == bucket.window and bucket.over < 0):
        return
    made_at = date_from_headers(reply.headers)
    if made_at is not None:
        bucket.counted_before(permit.window, made_at + 1.0)
        if permit.is_probe:
            probes.date(bucket, permit.window, made_at + 1.0)


def saw(permit: Permit, was_served: bool | None, now: float, time: ServerClock, *, has_headers: bool = False) -> None:
    """Note that a probe is over, if it was one: see `probes.saw` (now: monotonic seconds)."""
    bucket = permit.queue.bucket
    if permit.is_probe and bucket is not None:
        window, end = bucket.window, bucket.moved_from
        if time.untried is not None:
            _tried(permit, bucket, was_served, time)
        at = time.middle(now), time.latest(now)
        probes.saw(bucket, permit.window, was_served, *at, has_headers=has_headers)
        if not time.is_known:
            bucket.lag_s = 0.0  # this machine's clock was wrong, not the named end of the window
        elif bucket.window > window and end:
            told_time.by_turn(bucket, end, now, time)
        permit.queue.wake()


def _tried(permit: Permit, bucket: Bucket, was_served: bool | None, time: ServerClock) -> None:
    """Take in what a probe says of the clock by which it left: whether it has met a new window."""
    is_right = was_served and (bucket.window != permit.window or not bucket.reserve)
    time.tried(is_right=None if was_served is None else is_right)
    if not is_right:
        bucket.probed_at, bucket.over = time.earliest(permit.granted), -1


def limits_of(permit: Permit, reply: Reply, verdict: Verdict) -> Limits | None:
    """Return the limits that the headers of an answer name for the budget that paid for it.

    None: the headers name no limits, or may mean another budget.
    """
    kind, queue = verdict.kind, permit.queue
    if reply.headers.get("x-ratelimit-limit") is None:  # limits are off, as they are at first
        if queue.bucket is not None and queue.account.is_unlimited and kind in _SERVED:
            _note_silence(queue, queue.bucket)
        return None
    if kind not in _SPEAK or permit.generation != queue.account.generation:
        return None
    limits = limits_from_headers(_own_of(reply.headers))
    if limits is None or limits.category not in (None, queue.category):
        return None
    is_served, bucket = kind in _SERVED and reply.status < 400, queue.bucket
    if is_served and limits.limit <= 0:
        return None  # it was served, so that is not a limit
    if bucket is None or limits.limit == bucket.limit:
        queue.nameless = 0
        return limits
    if not is_served:
        # a token that got lost on the way is refused with the limits of nobody; a limit of nothing is nobody's
        return limits if permit.is_probe and limits.limit <= 0 else None
    is_asked = bucket.asked.heard_at >= bucket.opened_at and bucket.asked.heard_at > 0.0
    if limits.category is not None or not is_asked or bucket.shown.limit == limits.limit:
        return limits
    return limits if _in_row(queue, limits.limit) >= NAMELESS and bucket.shown.limit == 0 else None


def _in_row(queue: PermitQueue, limit: int) -> int:
    """Note an answer that names no category and this limit (0: none); return how many in a row did (count)."""
    queue.nameless = queue.nameless + 1 if limit == queue.nameless_limit else 1
    queue.nameless_limit = limit
    return queue.nameless


def _note_silence(queue: PermitQueue, bucket: Bucket) -> None:
    """Note that an answer names no limits, as `/rate_limit` does not either: after some of them, limits are off.

    `/rate_limit` must have told this budget before, so that two witnesses have changed their word: headers alone may
    be taken away on the way. The bucket is forgotten when it has nothing in flight. If limits are on after all, the
    next word of them opens another one.
    """
    was_asked = bucket.asked.heard_at > 0.0
    if was_asked and _in_row(queue, 0) >= SILENT and bucket.in_flight == 0 and queue.tokens is None:
        for each in (queue, *queue.siblings):
            each.bucket = None
            each.wake()


def _own_of(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers that speak of one budget.

    Where a gateway has added numbers of its own, return those that agree with `X-RateLimit-Used`, or none if nothing
    shows which numbers are the platform's.
    """
    if type(headers) not in _MULTIPLE:
        return headers
    told = [headers.getall(name, ()) for name in _NUMBERS]  # type: ignore[attr-defined]
    if len(told[0]) < 2 and len(told[1]) < 2 and len(told[2]) < 2:
        return headers
    used = headers.get("X-RateLimit-Used", "")
    own = {each for each in zip(*told, strict=False) if _are_of_one(each[0], each[1], used)}
    if len(own) != 1:
        return {}
    found = dict(zip((name.lower() for name in _NUMBERS), own.pop(), strict=True))
    category = headers.get("X-RateLimit-Resource")
    return found if category is None else {**found, "x-ratelimit-resource": category}


def _are_of_one(limit: str, remaining: str, used: str) -> bool:
    """Return whether three numbers as text are of one budget."""
    texts = limit, remaining, used
    return all(text.isdecimal() and len(text) < 10 for text in texts) and int(limit) - int(remaining) == int(used)


def take_limits(
    queue: PermitQueue,
    limits: Limits,
    overlap: int,
    now: float,
    sent: float,
    time: ServerClock,
    reserve: Callable[[int], int],
    *,
    is_asked: bool = False,
) -> bool:
    """Tell a permit queue's bucket what the platform says, from a header or (`is_asked`) from `/rate_limit`.

    Args:
        overlap: requests that the platform may not have counted (count). sent, now: when the request was sent, and when
            its answer came (monotonic seconds).
        reserve: takes the size of a window and returns how many of its requests to leave to others (counts).

    Returns:
        Whether a new window began, or less is left than was known.
    """
    limit, remaining, bucket = limits.limit, limits.remaining, queue.bucket
    size = -1 if bucket is None else bucket.limit
    if limit != size and limit - reserve(limit) <= 0:  # a window of the usual size has its reserve already
        unusable.note(queue, limit, now, is_asked=is_asked)
        if bucket is None:
            return False
        limit, remaining = bucket.limit, 0  # a single word does not change how much a window holds
    elif queue.hopeless:
        unusable.forget(queue)
    if queue.tokens is not None:
        return False  # the store knows how many requests are left
    reset_at = float(limits.reset)
    time.refuse(reset_at, now)
    if not time.is_known:
        told_time.by_word(queue, limits, overlap, now, sent, time, is_asked=is_asked)
    platform_now = time.middle(now)
    late = platform_now if time.is_guess else time.latest(now)
    is_end = platform_now - PAST_MOST_S < reset_at < time.latest(now) + WINDOW_MOST_S
    if time.is_known and reset_at >= time.latest(now) + WINDOW_MOST_S:
        queue.far_ends[is_asked] = reset_at
    elif abs(reset_at - queue.far_ends[is_asked]) <= JITTER_S:
        is_end = False  # the same end was too far away to be one when it was first named
    if bucket is None:
        recent = sum(each.unbudgeted(now) for each in (queue, *queue.siblings))
        remaining = max(0, remaining - queue.account.in_flight)
        end = reset_at if is_end else platform_now + UNKNOWN_WINDOW_S
        bucket = Bucket(limit, max(0, min(remaining, limit - recent)), end, max(1.0, end - platform_now))
        bucket.began, bucket.opened_at, bucket.is_assumed = -recent, platform_now, not is_end
        bucket.first, overlap, queue.bucket = NEVER, 0, bucket
        for sibling in queue.siblings:
            sibling.bucket = bucket
    before, end_before = bucket.free, bucket.reset_at
    named = reset_at if is_end else None
    is_new = bucket.observe(limit, remaining, named, overlap, platform_now, late=late, is_asked=is_asked)
    if bucket.limit != size:
        bucket.reserve = reserve(bucket.limit)
    if is_new and bucket.own and time.is_known:
        told_time.by_turn(bucket, end_before, now, time)
    return is_new or bucket.free < before
