"""What a permit does to the bucket of its permit queue, from the moment it is given until its answer is taken in."""

from bulk.govern.budgets import probes
from bulk.govern.permits import stated_limits
from bulk.govern.permits.accounts import Permit, PermitQueue
from bulk.govern.server_clock import ServerClock
from bulk.model import Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import date_from_headers


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
    if bucket.free > bucket.reserve:
        bucket.reserve_one()
        return Permit(queue, token, bucket.window, bucket.mark, generation, now)
    probes.probe(bucket, now + time.low)
    permit = Permit(queue, token, bucket.window, bucket.mark, generation, now)
    permit.is_probe = True
    return permit


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


def saw(permit: Permit, was_served: bool | None, now: float, time: ServerClock) -> None:
    """Note that a probe is over, if it was one: see `probes.saw` (now: monotonic seconds)."""
    bucket = permit.queue.bucket
    if permit.is_probe and bucket is not None:
        window, end = bucket.window, bucket.moved_from
        probes.saw(bucket, permit.window, was_served, time.middle(now), time.latest(now))
        if not time.is_known:
            bucket.lag_s = 0.0  # this machine's clock was wrong, not the named end of the window
        elif bucket.window > window and end:
            stated_limits.tell_time(bucket, end, now, time)
        permit.queue.wake()
