"""Obstacles that keep requests from leaving: a pause, a silent platform, a token, a budget, or too many in flight."""

import math
from collections.abc import Callable

from bulk.clock import Clock
from bulk.govern.budgets import probes
from bulk.govern.budgets.buckets import Bucket
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit
from bulk.govern.peers import SendDeadline
from bulk.govern.permits.accounts import Account, PermitQueue, Trust
from bulk.govern.reachability import Reachability
from bulk.govern.server_clock import EARLY_S, ServerClock
from bulk.status import WaitKind

# Python 3.11 looks a member of an enumeration up through a descriptor, forty times slower than a name
_PROVEN, _UNPROVEN, _FROZEN = Trust.PROVEN, Trust.UNPROVEN, Trust.FROZEN
_BUDGET, _CONCURRENCY, _NEEDS = WaitKind.BUDGET, WaitKind.CONCURRENCY, WaitKind.NEEDS
_RETRY_AFTER, _UNREACHABLE, _PAUSED = WaitKind.RETRY_AFTER, WaitKind.UNREACHABLE, WaitKind.PAUSED


class Obstacles:
    """Knows why a permit queue lets nobody through.

    Args:
        may_begin: tells whether enough is known of the limits; asked until it is true.
        deadline: the moment from which nothing is sent; None: there is none.

    Attributes:
        is_paused: a person paused the run: only what settles lost writes may leave.
        paused_until: the platform asked for a pause; nothing at all leaves before (monotonic).
    """

    def __init__(
        self,
        clock: Clock,
        time: ServerClock,
        concurrency: AdaptiveLimit,
        reachability: Reachability,
        may_begin: Callable[[], bool],
        deadline: SendDeadline | None = None,
    ) -> None:
        self._clock, self._time, self._concurrency, self._reachability = clock, time, concurrency, reachability
        self._is_cleared, self._deadline = may_begin, deadline
        self._may_begin = self.is_paused = False
        self.paused_until, self._paused_why = 0.0, ""

    def pause_until(self, until: float, why: str) -> None:
        """Let nothing leave before `until` (monotonic)."""
        self.paused_until, self._paused_why = max(self.paused_until, until), why

    def has_ended(self, account: Account, now: float) -> bool:
        """Return whether no request may be sent with the account's token until its source has been asked again."""
        offset = self._time.high if self._time.is_known else None
        return account.token_expiry.is_over(now, self._clock.now(), offset)

    def _begins(self) -> bool:
        self._may_begin = self._is_cleared()
        return self._may_begin

    def of(self, queue: PermitQueue, now: float, is_settling: bool) -> str:
        """Return why `queue` gives no permit at `now`; empty if it gives one. Sets its `obstacle_until`."""
        account = queue.account
        queue.obstacle_until, queue.obstacle_kind = None, _BUDGET
        if (self.is_paused or self._deadline is not None) and (held := self._held(queue, is_settling)):
            return held
        concurrency, reachability = self._concurrency, self._reachability
        if (
            reachability.unanswered
            and reachability.is_silent
            and (concurrency.in_flight or now < reachability.retry_at)
        ):
            queue.obstacle_until = reachability.retry_at if now < reachability.retry_at else None
            queue.obstacle_kind = _UNREACHABLE
            return "platform unreachable"
        if now < self.paused_until:
            queue.obstacle_until, queue.obstacle_kind = self.paused_until, _RETRY_AFTER
            return self._paused_why
        if account.trust is not _PROVEN and (why := _unproven(queue, now)):
            return why
        if not self._may_begin and not self._begins():
            return "limits being asked"
        if now < account.paused_until:
            queue.obstacle_until, queue.obstacle_kind = account.paused_until, _RETRY_AFTER
            return account.paused_why
        if account.token_expiry.ends_at is not None and self.has_ended(account, now):
            account.wake()
            return f"credential {account.name} being renewed"
        bucket, tokens = queue.bucket, queue.tokens
        is_spent = tokens is None and (queue.hopeless > 0 if bucket is None else bucket.free <= bucket.reserve)
        if (is_spent or tokens is not None) and self._is_used_up(queue, bucket, now):
            return f"bucket {queue.category}"
        if bucket is None and queue.in_flight and not queue.trip_s and _is_told(account):
            return f"bucket {queue.category} being tried"
        if concurrency.has_room and (account.ramp is None or account.ramp.has_room(account.in_flight)):
            return ""
        queue.obstacle_kind = _CONCURRENCY
        return concurrency.obstacle

    def waits_for_reset(self, queue: PermitQueue, own: PermitQueue, now: float) -> bool:
        """Return whether `queue` has used up its budget, and nothing at `own`, another queue, can change that.

        The attendant of `queue` looks again when that may change.
        """
        bucket, until = queue.bucket, queue.obstacle_until
        if bucket is None or bucket is own.bucket or queue.tokens is not None or until is None or now >= until:
            return False
        return queue.obstacle_kind is _BUDGET and bucket.free <= bucket.reserve

    def _held(self, queue: PermitQueue, is_settling: bool) -> str:
        """Return why nothing is let out: the run was paused by a person, or the store is out of reach; else empty."""
        if self._deadline is not None and self._deadline.has_passed(self._clock):
            queue.obstacle_kind = _UNREACHABLE
            return "store out of reach"
        if self.is_paused and not is_settling:
            queue.obstacle_kind = _PAUSED
            return "paused"
        return ""

    def _is_used_up(self, queue: PermitQueue, bucket: Bucket | None, now: float) -> bool:
        """Return whether not even a probe of an empty bucket may leave at `now`, or no leased token may be taken.

        Sets `obstacle_until` and `faster_end`.
        """
        queue.faster_end = None
        if queue.tokens is not None:
            ready_at = queue.tokens.ready_at(now)
            queue.obstacle_until = ready_at if now < ready_at < math.inf else None
            return ready_at > now
        if bucket is None:
            return True  # the only words on the limit are that it leaves nothing
        time = self._time
        probe_at = probes.probe_at(bucket, time.middle(now)) - time.low
        is_watched = probes.is_watched(bucket) and not queue.account.is_mute
        if not (time.is_known or bucket.is_probing or is_watched):
            if time.is_guess:
                probe_at = min(probe_at, probes.look_at(bucket) - time.middle(0.0))
            elif time.high - time.low > bucket.window_s * probes.WIDE_SHARE and not queue.is_end_moved:
                probe_at -= time.middle(0.0) - time.low
        elif time.is_guess and not time.is_refuted and now >= bucket.reset_at - time.high:
            probe_at += probes.LOOK_AGAIN_MOST_S  # `/rate_limit` tells sooner that the window is over
        if time.is_refuted:
            probe_at = min(probe_at, probes.probe_at(bucket, time.middle(now)) - time.middle(0.0))
        if now >= probe_at:
            return False
        is_told = bucket.asked.heard_at > 0.0 and not bucket.asked.is_blamed
        if time.others and not (time.is_of_windows or is_told or bucket.in_flight):
            end = bucket.reset_at + EARLY_S
            if now >= (tried_at := time.over_at(end)):
                queue.faster_end = end
                return False
            probe_at = min(probe_at, tried_at)
        reset = bucket.reset_at - time.middle(0.0)
        queue.obstacle_until = reset if now < reset <= probe_at else None if bucket.is_probing else probe_at
        return True


def _unproven(queue: PermitQueue, now: float) -> str:
    """Return why nothing is let out with a token that the platform has not taken yet; empty: one request may go.

    Sets the kind and the end of the queue's obstacle.
    """
    account = queue.account
    if account.trust is not _UNPROVEN:
        queue.obstacle_kind = _NEEDS
        return _untrusted(account) or f"credential {account.name} refused (401)"
    if (account.is_mute or (account.is_known and not account.must_ask)) and not account.in_flight:
        return ""
    if now < account.paused_until:  # the account was locked out, or told to wait, before its token was ever proven
        queue.obstacle_until, queue.obstacle_kind = account.paused_until, _RETRY_AFTER
        return account.paused_why
    return f"credential {account.name} being tried"


def _is_told(account: Account) -> bool:
    """Return whether the platform limits the account: of a bucket that it has not named yet, one request shows more."""
    return any(queue.bucket is not None for queue in account.queues.values())


def _untrusted(account: Account) -> str:
    """Return why nothing is sent for an account whose token must be minted, and have it minted; empty for others."""
    if not account.is_minted or account.trust is not _FROZEN:
        return ""
    account.wake()
    return f"credential {account.name}: its token is being minted"
