"""The tokens that this worker was lent for one permit queue; they stand in for the bucket of the queue.

Tokens are leased before they are needed, a few at a time, and end by themselves: shortly before the window ends by the
latest that platform time may be, and after `HOLD_S` in any case. So a worker that is cut off from the others sends
nothing more after that, and its tokens can be written off. A worker gives account of tokens that are over within
`SETTLE_S`, also when it wants no more of them: other workers may be waiting for them.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from bulk.clock import Clock
from bulk.govern.budgets.shared_bucket import HOLD_S, QUARTER, Lease, Wish
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit
from bulk.govern.peers import Peers
from bulk.govern.permits.accounts import PermitQueue
from bulk.govern.server_clock import ServerClock

SETTLE_S = 0.1
"""A worker gives account of tokens after this time (seconds), together with all others that are over by then."""
LOOK_S, LOOK_MOST_S = 0.05, 1.0
"""First and longest pause between questions where no token was free and nothing says that one is (seconds)."""


@dataclass(slots=True)
class _Batch:
    """Tokens of one lease.

    Attributes:
        until: when the tokens end (`Clock.elapsed`); `ends_at` of the lease: likewise (platform time).
        slot_at: when the first may be used (monotonic), the others at `per_second`; None: all at once.
        taken: tokens of the batch that were taken (count).
    """

    lease: Lease
    until: float
    slot_at: float | None
    taken: int = 0

    @property
    def left(self) -> int:
        return self.lease.tokens - self.taken

    def ready_at(self, now: float) -> float:
        """Return when the next token may be used (monotonic)."""
        return now if self.slot_at is None else max(now, self.slot_at + self.taken / self.lease.per_second)


class LeasedTokens:
    """Hands out the tokens that were leased; `run` is the task that leases.

    Args:
        wishes: returns how many requests are still to be sent from the queue (count), and whether the run wants to be
            paced.
    """

    def __init__(
        self,
        queue: PermitQueue,
        time: ServerClock,
        concurrency: AdaptiveLimit,
        wishes: Callable[[], tuple[int, bool]],
        peers: Peers,
        clock: Clock,
    ) -> None:
        self._queue, self._peers, self._clock, self._time = queue, peers, clock, time
        self._concurrency, self._wishes = concurrency, wishes
        self._batches: deque[_Batch] = deque()
        self._under_way: dict[int, int] = {}
        self._unused: dict[int, int] = {}
        self._settle_at = math.inf
        self._again_at = 0.0
        self._looks = 0
        self._exhausted = 0
        self._is_unlimited = False
        self._wake = anyio.Event()

    @property
    def left(self) -> int:
        """Tokens that were leased and not taken yet (count)."""
        return sum(batch.left for batch in self._batches)

    def ready_at(self, now: float) -> float:
        """Return when a token may be taken (monotonic): `now`, or later; infinity where there is none."""
        self._drop_ended(now)
        if self._batches:
            return min(batch.ready_at(now) for batch in self._batches)
        self._wake.set()
        return math.inf

    def take(self, now: float) -> tuple[int, int]:
        """Take a token that is ready; return the numbers of the window that pays and of the token's hold."""
        batch = next(each for each in self._batches if each.ready_at(now) <= now)
        batch.taken += 1
        lease = batch.lease
        if not batch.left:
            self._batches.remove(batch)
        self._under_way[lease.hold] = self._under_way.get(lease.hold, 0) + 1
        if self.left <= self._low:
            self._wake.set()
        return lease.window, lease.hold

    def ended(self, hold: int) -> None:
        """Note that a request that a token of `hold` paid for is not under way any more."""
        self._under_way[hold] -= 1
        if not self._under_way[hold]:
            del self._under_way[hold]
        self._settle_soon()

    def return_unused(self, hold: int) -> None:
        """Give back a token of `hold` whose request cost nothing."""
        self._unused[hold] = self._unused.get(hold, 0) + 1
        self._settle_soon()

    def exhausted(self, window: int) -> None:
        """Note that the platform said that nothing is left in that window."""
        self._exhausted = max(self._exhausted, window)
        self._settle_soon()

    def look(self, *, is_unlimited: bool | None = None) -> None:
        """Look for tokens, because there may be some now.

        `is_unlimited`: `/rate_limit` was answered, and names no limit. Tokens that were lent without a limit end if
        there may be a limit by now.
        """
        if is_unlimited is not None:
            self._is_unlimited = is_unlimited
        if not is_unlimited:
            for batch in [each for each in self._batches if each.lease.ends_at == math.inf]:
                self._drop(batch)
        self._again_at, self._looks = 0.0, 0
        self._wake.set()

    def _settle_soon(self) -> None:
        if self._settle_at == math.inf:
            self._settle_at = self._clock.monotonic() + SETTLE_S
            self._wake.set()

    @property
    def _low(self) -> int:
        """More tokens are leased when no more than this many are left (count)."""
        return 0 if self._batches and self._batches[-1].slot_at is not None else self._concurrency.allowed // QUARTER

    def _drop_ended(self, now: float) -> None:
        """Give back the tokens that have ended and were not used."""
        if not self._batches:
            return
        elapsed, late = self._clock.elapsed(), self._time.latest(now)
        for batch in list(self._batches):
            if elapsed >= batch.until or late >= batch.lease.ends_at:
                self._drop(batch)

    def _drop(self, batch: _Batch) -> None:
        self._batches.remove(batch)
        self._unused[batch.lease.hold] = self._unused.get(batch.lease.hold, 0) + batch.left
        self._settle_soon()

    async def run(self) -> None:
        """Lease tokens as they are wanted and give back those that are over, until cancelled."""
        idle_since = math.inf
        while True:
            self._wake = anyio.Event()
            now = self._clock.monotonic()
            self._drop_ended(now)
            is_idle = not self._queue.waiting and not self._queue.account.in_flight
            idle_since = min(idle_since, now) if is_idle and self._batches else math.inf
            if now >= idle_since + SETTLE_S:
                for batch in list(self._batches):
                    self._drop(batch)
                self._settle_at = now
            due = min(self._settle_at, idle_since + SETTLE_S if self._batches else math.inf)
            is_wanting = bool(self._queue.waiting) and self.left <= self._low
            if is_wanting:
                due = min(due, self._again_at)
            if due <= now:
                await self._exchange(now, is_wanting=is_wanting and self._again_at <= now)
                continue
            ends = min((self._seconds_left(batch, now) for batch in self._batches), default=HOLD_S)
            with anyio.move_on_after(min(due - now, max(ends, 0.001)) if self._batches or due < math.inf else None):
                await self._wake.wait()

    def _seconds_left(self, batch: _Batch, now: float) -> float:
        return min(batch.until - self._clock.elapsed(), batch.lease.ends_at - self._time.latest(now))

    async def _exchange(self, now: float, *, is_wanting: bool) -> None:
        queue, until = self._queue, self._clock.elapsed() + HOLD_S
        found = await self._peers.lease(
            queue.account.name,
            queue.category,
            self._wish(is_wanting=is_wanting),
            self._time.middle(now),
            self._time.latest(now),
        )
        after = self._clock.monotonic()
        if found is None:
            self._again_at = after + LOOK_MOST_S
            return
        lease, queue.bucket = found
        if lease.tokens:
            slot_at = None if lease.slot_at is None else lease.slot_at - self._time.middle(0.0)
            self._batches.append(_Batch(lease, until, slot_at))
            self._again_at, self._looks = 0.0, 0
            queue.wake()
        elif is_wanting:
            self._wait_for_more(lease, after)
        is_over = is_wanting and self._time.latest(after) >= lease.ends_at
        if queue.bucket is not None and (queue.bucket.available <= 0 or is_over):
            queue.account.wake()  # the poller may have to ask what is left, or whether the next window has begun

    def _wish(self, *, is_wanting: bool) -> Wish:
        """Return the wish for more tokens; with it the worker gives account of those that are over."""
        held = dict(self._under_way)
        for batch in self._batches:
            held[batch.lease.hold] = held.get(batch.lease.hold, 0) + batch.left
        unused, self._unused, self._settle_at = self._unused, {}, math.inf
        allowed, (work, is_even) = self._concurrency.allowed, self._wishes()
        most = max(0, max(work, self._queue.waiting) - self.left)
        return Wish(
            most=most if is_wanting else 0,
            work=work,
            concurrency=allowed,
            is_even=is_even,
            trip_s=self._queue.trip_s,
            held=held,
            unused=unused,
            exhausted=self._exhausted,
            is_unlimited=self._is_unlimited,
        )

    def _wait_for_more(self, lease: Lease, now: float) -> None:
        """Set when to ask for tokens again after none were lent.

        There may be some at a later slot, after the end of the window, or when `look` is called.
        """
        if lease.again_at is not None:
            self._again_at = lease.again_at - self._time.middle(0.0)
            return
        self._looks += 1
        reset_s = lease.ends_at - self._time.latest(now)
        pause_s = min(LOOK_MOST_S, LOOK_S * 2.0 ** min(10, self._looks - 1))
        if 0.0 < reset_s < pause_s:
            pause_s, self._looks = max(LOOK_S, reset_s), 0
        self._again_at = now + pause_s
