"""What a permit does to the bucket of its gate, from the moment it is given until its answer is taken in."""

from bulk.govern.accounts import Gate, Permit
from bulk.govern.budgets import probes
from bulk.govern.server_clock import PlatformTime
from bulk.model import Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import date_from_headers


def charge(gate: Gate, token: Secret, generation: int, now: float, time: PlatformTime) -> Permit:
    """Take one request off, or let one out to look where nothing is left; whoever asks has seen to it that it may.

    Args:
        now: monotonic seconds.
    """
    bucket = gate.bucket
    if bucket is None:
        gate.note_unbudgeted(now)
        return Permit(gate, token, 0, 0, generation, now)
    late = now + time.high
    if late >= bucket.reset_at:
        bucket.pass_time(late)
    if bucket.free > bucket.reserve:
        bucket.reserve_one()
        return Permit(gate, token, bucket.window, bucket.mark, generation, now)
    probes.look(bucket, now + time.low)
    permit = Permit(gate, token, bucket.window, bucket.mark, generation, now)
    permit.is_look = True
    return permit


def release(permit: Permit, now: float, time: PlatformTime) -> None:
    """A request that a window paid for is not under way any more."""
    bucket = permit.gate.bucket
    if bucket is not None:
        late = now + time.high
        if late >= bucket.reset_at:
            bucket.pass_time(late)  # before it is taken for answered: it may count in the next window
        bucket.in_flight -= 1


def give_back(permit: Permit) -> None:
    """It cost nothing: it was answered 304, or never left."""
    bucket = permit.gate.bucket
    if bucket is not None and permit.window:
        if permit.is_look:
            bucket.given_back += 1  # it was taken from nothing
        else:
            bucket.give_back()
    permit.gate.used -= 1


def date(permit: Permit, reply: Reply) -> None:
    """By the `Date` of its answer, a request that was under way at the end of a window may be known to count in it."""
    bucket = permit.gate.bucket
    if bucket is None or (permit.window == bucket.window and bucket.over < 0):
        return
    made_at = date_from_headers(reply.headers)
    if made_at is not None:
        bucket.counted_before(permit.window, made_at + 1.0)


def saw(permit: Permit, was_served: bool | None, now: float, time: PlatformTime) -> None:
    """A look is over, if it was one: see `looks.saw` (now: monotonic seconds)."""
    bucket = permit.gate.bucket
    if permit.is_look and bucket is not None:
        probes.saw(bucket, permit.window, was_served, time.middle(now), time.latest(now))
        permit.gate.wake()
