"""A credential as the governor sees it: its token, whether the platform takes it, and its permit queues.

A PermitQueue is where permits of one (credential, category) are handed out; workers queue there.

The life of a token: at first it is unproven, and one request tries it alone (`Governor.permit`). An answer that only a
good token gets proves it (`Account.prove`). The first 401 freezes it (`Account.freeze`): no permit is given, and those
that were given are not used (`Governor.may_leave`). The rate limit poller then has it renewed (`Account.renew`), once:
with another token of its source all of this begins again. If there is none, or the platform never took the token before
either, the credential is refused, and every worker that waits for it is told (`Governor.refuse`).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import anyio
from aiolimiter import AsyncLimiter

from bulk.clock import Clock
from bulk.govern.budgets.buckets import LATE_S, Bucket
from bulk.govern.permits.ramp import Ramp, Wordless
from bulk.govern.permits.token_expiry import TokenExpiry
from bulk.govern.permits.tokens import Tokens
from bulk.platform.auth.secrets import Secret
from bulk.status import WaitKind

NO_TOKEN = Secret("-")
"""In the place of a token that was not minted yet."""
UNEXPLAINED_MOST_S = 900.0
"""Longest pause after refusals without a reason (seconds)."""
YOUNG_S, YOUNG_TRIES = 10.0, 3
"""A token minted within this time may not be known everywhere yet (seconds): this often it is tried again (count)."""
LOCKOUT_S = 900.0
"""First pause after the platform stopped to take a user's credentials; doubles (failures.md row 18)."""
FRESH_S = 0.05
"""Requests left in a bucket that others may empty are let out within this time of the platform's word (seconds)."""


class CredentialSource(Protocol):
    """What the governor needs of a credential; `platform.credentials.Credential` is one."""

    name: str
    renewal_problem: str
    """Why the last `renew` brought nothing, for people; empty where it did."""
    is_gone: bool
    """Whether its tokens have lost their purpose (an App was uninstalled): then no item that needs it can succeed."""
    ends_at: float | None
    """When the token that `read` gives ends (UTC epoch seconds, platform time); None: its source does not say."""

    @property
    def renews_after_s(self) -> float | None:
        """Age at which the source should be asked again (seconds); None: it never changes."""

    def read(self) -> Secret:
        """Return the present token; raise CredentialMissing if its source has none."""

    async def renew(self) -> bool:
        """Ask the source again; return whether another token came."""


class Trust(StrEnum):
    """What is known about a token. With an UNPROVEN token one request goes first, alone."""

    UNPROVEN = "unproven"
    PROVEN = "proven"
    FROZEN = "frozen"  # the platform said 401; being renewed
    REFUSED = "refused"  # the platform said 401, and no other token can be had


_PROVEN = Trust.PROVEN


class Permit:
    """Leave to send one request.

    Attributes:
        window: the bucket's window that pays. mark: see `Bucket.mark`; of a leased token, the number of its hold.
        generation: number of the account's token that the request is sent with.
        granted: when the permit was given (monotonic seconds).
        is_probe: nothing was left, and the request is a probe.
        is_settling: the request reads what became of a lost write: a pause does not hold it.
    """

    __slots__ = ("generation", "granted", "is_probe", "is_settling", "mark", "queue", "token", "window")

    def __init__(
        self, queue: "PermitQueue", token: Secret, window: int, mark: int, generation: int, granted: float
    ) -> None:
        self.queue, self.token, self.window, self.mark = queue, token, window, mark
        self.generation, self.granted = generation, granted
        self.is_probe = self.is_settling = False


@dataclass(slots=True, eq=False)
class Waiter:
    """A worker at a permit queue; woken with a permit or an error."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    permit: Permit | None = None
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class PermitQueue:
    """Where requests of one (credential, category) get their permits.

    Attributes:
        bucket: None while nothing is known, or where the platform limits nothing.
        tokens: leased tokens, which pay where other workers share the bucket; `bucket` is then as last seen.
        settlers: workers that read what became of a lost write: they go first, and a pause does not hold them.
        waiters: workers with an item under way, in the order in which they came: they go next.
        newcomers: workers without an item. wake_event: wakes the attendant. is_woken: `wake_event` is set.
        is_paced: permits come from the attendant only, at `rate` requests per second. due: those that wait for room;
            granted: permits that were given; given: those whose workers were not told yet; in_flight: those that have
            not ended; used: requests that this run paid for here (counts).
        obstacle: why no permit is given now; `obstacle_until`: until when (monotonic; None: until something happens);
            `obstacle_kind`: the kind of wait; `faster_end`: the end of a window that is over by a faster clock alone.
        heard_at: when the platform last said how much is left, or was asked in vain (monotonic).
        refused_at, refused_window: when, and in which window (0: none), the platform last said that nothing is left.
        confirmed_window: window whose end was confirmed with nothing in flight.
        reset_asked_since: since when the new window is asked for (monotonic).
        recent, recent_before, recent_since: requests let out while there was no bucket, in the newest span of
            `LATE_S` and in the one before it (counts), and when the newest began (monotonic).
        hopeless: words in a row by which the limit leaves nothing to let out (count), the first at `hopeless_at`
            (monotonic). hopeless_limit: what the newest named (count). is_hopeless_shown: headers said so too.
        awaits_items: there is work that is not known yet: it is made from another job's results.
        trip_s: moving mean of the time from a permit to its answer (seconds).
        errors: requests without a good answer since the last good one (count); error: what the newest met, for people.
        nameless: answers in a row without a category that named another limit than the bucket's (count);
            nameless_limit: that limit (0: none). siblings: queues of the payer's other tokens, with the same bucket.
        far_ends: ends further away than a window is long, as headers, and as `/rate_limit`, named them last (UTC epoch
            seconds). is_end_moved: headers have named several ends of one window.
    """

    account: "Account"
    category: str
    bucket: Bucket | None = None
    tokens: Tokens | None = None
    settlers: deque[Waiter] = field(default_factory=deque)
    waiters: deque[Waiter] = field(default_factory=deque)
    newcomers: deque[Waiter] = field(default_factory=deque)
    wake_event: asyncio.Event = field(default_factory=asyncio.Event)
    is_woken: bool = False
    limiter: AsyncLimiter | None = None
    is_paced: bool = False
    rate: float | None = None
    due: int = 0
    used: int = 0
    granted: int = 0
    given: int = 0
    in_flight: int = 0
    obstacle: str = ""
    obstacle_until: float | None = None
    obstacle_kind: WaitKind = WaitKind.BUDGET
    faster_end: float | None = None
    heard_at: float = 0.0
    refused_at: float = 0.0
    refused_window: int = 0
    confirmed_window: int = 0
    reset_asked_since: float | None = None
    recent: int = 0
    recent_before: int = 0
    recent_since: float = 0.0
    is_end_moved: bool = False
    hopeless: int = 0
    hopeless_at: float = 0.0
    hopeless_limit: int = 0
    is_hopeless_shown: bool = False
    awaits_items: bool = False
    trip_s: float = 0.0
    errors: int = 0
    error: str = ""
    far_ends: list[float] = field(default_factory=lambda: [0.0, 0.0])
    nameless: int = 0
    nameless_limit: int = 0
    siblings: "tuple[PermitQueue, ...]" = ()

    def note_error(self, error: str) -> None:
        """Note that a request got no good answer."""
        self.errors += 1
        self.error = error

    def note_unbudgeted(self, now: float) -> None:
        """Note that a request is let out while no budget is known."""
        self._turn_recent(now)
        self.recent += 1

    def unbudgeted(self, now: float) -> int:
        """Return the number of requests let out without a known budget that a late witness may not have counted."""
        self._turn_recent(now)
        return self.recent + self.recent_before

    def _turn_recent(self, now: float) -> None:
        spans = int((now - self.recent_since) / LATE_S)
        if spans:
            self.recent_before, self.recent = self.recent if spans == 1 else 0, 0
            self.recent_since += spans * LATE_S

    @property
    def waiting(self) -> int:
        """Workers that want a permit (count)."""
        return len(self.settlers) + len(self.waiters) + len(self.newcomers)

    def next_waiter(self) -> Waiter:
        """Return the waiter that gets the next permit; there must be one."""
        return (self.settlers or self.waiters or self.newcomers).popleft()

    def turn_away(self, error: Callable[[], Exception]) -> None:
        """Wake every waiting worker with an error that `error` makes: there is nothing to wait for."""
        while self.waiting:
            waiter = self.next_waiter()
            waiter.error = error()
            waiter.event.set()

    def is_stale(self, now: float) -> bool:
        """Return whether the platform must be asked first, as others could have taken all requests that were left."""
        bucket = self.bucket
        if bucket is None or self.tokens is not None or not bucket.is_contested or self.account.is_mute:
            return False
        return now - self.heard_at > FRESH_S and not self.account.is_unlimited

    async def pace(self, together: int) -> None:
        """Wait until `together` may leave at `rate`; the limiter is made anew when `rate` has moved by a twentieth."""
        rate, limiter = self.rate or 1.0, self.limiter
        if (
            limiter is None
            or limiter.max_rate < together
            or not 0.95 < limiter.max_rate / limiter.time_period / rate < 1.05
        ):
            # room for two bursts: a late wake-up loses nothing; full at first: a new limiter gives nothing away
            limiter = self.limiter = AsyncLimiter(2.0 * together, 2.0 * together / rate)
            await limiter.acquire(limiter.max_rate)
        await limiter.acquire(together)

    def wake(self) -> None:
        """Let the attendant look again."""
        if not self.is_woken:  # called for each answer: to ask the event would take longer than to set it
            self.is_woken = True
            self.wake_event.set()

    def renew_wake_event(self) -> None:
        """Clear the wake event before the attendant looks, so that a change from here on wakes it again."""
        self.wake_event.clear()
        self.is_woken = False


@dataclass(slots=True, eq=False)
class Account:
    """A credential at the platform.

    Attributes:
        token_expiry: how long the token may be used. generation: tokens that were read from its source (count).
        is_unlimited: `/rate_limit` is 404: limits are off. is_known: it was answered, one way or the other.
        was_asked: the first question has ended anyhow. is_mute: the newest was sent, and no answer came.
        paused_until: nothing leaves before this, for `paused_why`. quiet_until: nor is `/rate_limit` asked (monotonic).
        backoffs: unexplained refusals in a row (count); each doubles the pause. lockouts: likewise.
        vain: limits in a row, each obeyed, that named no time worth waiting for (count). ramp: None at most times.
        locked_at, locked_until: when the newest lock-out was met, and until when it is waited for (monotonic).
        polled: last time `/rate_limit` was asked (monotonic). must_ask: ask it as soon as that is allowed.
        wishes: how often that was wished for (count), so that a later wish is not taken for answered.
        identity: name of the identity whose answers its tokens see, if that outlives them; empty: each token's alone.
        is_minted: its tokens are made when they are needed, the first one too; at first there is none.
        minted_at: when the present token was minted (monotonic). young_tries: how often it was refused since (count).
        refused_why: what the platform said when it last did not take the token, for people.
        changed: called when the account was frozen or paused, or may go on. wordless: see `Wordless`.
    """

    name: str
    source: CredentialSource
    token: Secret
    token_expiry: TokenExpiry = field(default_factory=lambda: TokenExpiry(0.0, 0.0))
    generation: int = 1
    trust: Trust = Trust.UNPROVEN
    trust_before_freeze: Trust = Trust.UNPROVEN
    queues: dict[str, PermitQueue] = field(default_factory=dict)
    in_flight: int = 0
    is_unlimited: bool = False
    is_known: bool = False
    is_mute: bool = False
    was_asked: bool = False
    paused_until: float = 0.0
    paused_why: str = ""
    backoffs: int = 0
    vain: int = 0
    ramp: Ramp | None = None
    wordless: Wordless = field(default_factory=Wordless)
    lockouts: int = 0
    locked_at: float = 0.0
    locked_until: float = 0.0
    quiet_until: float = 0.0
    polled: float = 0.0
    must_ask: bool = False
    wishes: int = 0
    identity: str = ""
    is_minted: bool = False
    minted_at: float = 0.0
    young_tries: int = 0
    refused_why: str = ""
    wake_event: anyio.Event = field(default_factory=anyio.Event)
    changed: Callable[["Account"], None] = lambda _: None

    def pause(self, until: float, why: str) -> None:
        """Let nothing of this credential leave before `until` (monotonic), nor of others that act for its user."""
        if until > self.paused_until:
            self.paused_until, self.paused_why = until, why
            self.changed(self)
            for queue in self.queues.values():
                for sibling in queue.siblings:
                    sibling.account.pause(until, why)

    def reopen(self, now: float) -> None:
        """End a pause that `/rate_limit` has explained: the empty bucket waits for its reset, the others go on."""
        if self.quiet_until <= now:
            self.paused_until, self.backoffs = now, 0
            self.changed(self)

    @property
    def may_renew(self) -> bool:
        """Whether a frozen token is renewed. A token that was never taken is renewed only if it was the first one."""
        return self.trust_before_freeze is Trust.PROVEN or self.generation <= 1

    @property
    def is_idle(self) -> bool:
        """Whether the account has no token yet, and no worker waits for one."""
        return self.generation == 0 and not any(queue.waiting for queue in self.queues.values())

    async def renew(self, clock: Clock) -> bool:
        """Ask the source for another token and use it; return False if the source has none."""
        source = self.source
        if not await source.renew():
            return False
        now, wall = clock.monotonic(), clock.now()
        self.token = source.read()
        self.token_expiry = TokenExpiry(now, wall - now, source.renews_after_s, source.ends_at)
        self.generation += 1
        self.minted_at, self.young_tries = now, 0
        self.trust = self.trust_before_freeze = Trust.UNPROVEN
        self.must_ask = True
        for queue in self.queues.values():
            queue.wake()
        return True

    def freeze(self, now: float, said: str = "") -> None:
        """Let nothing more leave with this token after a 401; a token that is quite new is tried again soon."""
        self.refused_why = said
        if self.is_minted and self.trust is Trust.UNPROVEN and self.young_tries < YOUNG_TRIES:
            if now < self.paused_until:
                return
            if now - self.minted_at < YOUNG_S:
                self.pause_all(now + 2.0**self.young_tries, f"new token of {self.name}")
                self.young_tries += 1
                return
        if self.trust in (Trust.PROVEN, Trust.UNPROVEN):
            self.trust_before_freeze, self.trust = self.trust, Trust.FROZEN
            self.changed(self)
            self.wake()

    def lock_out(self, now: float) -> None:
        """Leave the platform alone for a while, as it rejects even valid credentials; then try with one request."""
        if now < self.locked_until:
            return  # the request was under way when the lock-out began
        self.locked_at, self.locked_until = now, now + LOCKOUT_S * 2.0 ** min(6, self.lockouts)
        self.pause_all(self.locked_until, f"credential {self.name} locked out")
        self.lockouts += 1
        if self.trust is Trust.PROVEN:
            self.trust = Trust.UNPROVEN
        self.ask_soon()  # that is the one request

    def prove(self, sent: float) -> None:
        """Note that the platform took the token with a request that was sent at `sent` (monotonic)."""
        if sent < self.locked_at:
            return
        self.lockouts = 0
        if self.trust is not _PROVEN and self.trust is Trust.UNPROVEN:
            self.trust = _PROVEN

    def back_off(self, now: float, first_s: float) -> None:
        """Keep all back for `first_s` seconds after a refusal without reason and time, then twice as long each time."""
        if now >= self.paused_until:
            pause_s = min(UNEXPLAINED_MOST_S, first_s * 2.0 ** min(10, self.backoffs))
            self.backoffs += 1
            self.pause(now + pause_s, f"unexplained refusal of {self.name}")

    def ask_soon(self) -> None:
        """Have `/rate_limit` asked as soon as that is allowed."""
        self.must_ask = True
        self.wishes += 1
        self.wake()

    def pause_all(self, until: float, why: str) -> None:
        """Keep everything back until the time that the platform named (Retry-After), `/rate_limit` as well."""
        self.quiet_until = max(self.quiet_until, until)
        self.pause(until, why)

    def wake(self) -> None:
        """Wake the rate limit poller of the account, so that it looks again."""
        self.wake_event.set()
