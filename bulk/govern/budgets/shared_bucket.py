"""A budget that several workers spend from: who was lent how many of its requests, and until when. Pure arithmetic.

A worker leases tokens, each of which is leave for one request, and may use them until shortly before the window ends,
at most for `HOLD_S`. In the bucket, tokens are requests that were sent and are in flight, so that all rules of
`buckets.py` hold for all workers together: what may have been sent counts until somebody says that it was not.

`burst` hands out what is free in shares that become smaller as less is left. `even` hands out the next slot of one time
line, which all workers share: nobody's rate has to be known, and a worker that has died leaves a hole of one slot.
What a dead worker holds is written off; otherwise it would count as in flight in every later window.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.witnesses import NEVER, Witness

SLOT_S = 0.05
"""Length of one slot of the time line (seconds)."""
HOLD_S = 5.0
"""Tokens may be used for so long, and slots lie at most so far ahead (seconds)."""
END_S = 0.03
"""So long before the end of a window its tokens end (seconds)."""
QUARTER = 4
"""A worker is lent at most this part of its share of what is free, and so many times what it may have in flight."""
UNLIMITED_TRIPS = 16
"""Where nothing is limited, a worker is lent so many times what it may have in flight. What is left of it ends when
somebody tells of limits."""
TAIL_SHARE, TAIL_S, TAIL_TRIPS = 0.01, 0.3, 4
"""The time line ends a share of the window before its end, or so many seconds and trips; what is left then is lent at
once."""
SEEN_S = 10.0
"""Who has not asked for so long is no worker that gets a share (seconds)."""
WINDOW_MOST_S, PAST_MOST_S = 3_700.0, 86_400.0
"""An end of a window that lies further ahead or back is nonsense (seconds)."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker asks for and gives back.

    Attributes:
        most: tokens that it could use now (count). work: requests that it still has to send (count).
        concurrency: requests that it may have in flight (count).
        is_even: it wants slots of the time line, where there is more work than is left in the window.
        trip_s: how long an answer takes (seconds).
        held: tokens that it holds or whose requests are in flight, by the number of their hold: all others are over.
        unused: those of these others that cost nothing, by the same; each is named once.
        exhausted: the window of which the platform has said that nothing is left; 0: of none.
        is_unlimited: `/rate_limit` is 404, so that nobody may know of any limit.
    """

    most: int
    work: int
    concurrency: int
    is_even: bool = False
    trip_s: float = 0.0
    held: Mapping[int, int] = field(default_factory=dict)
    unused: Mapping[int, int] = field(default_factory=dict)
    exhausted: int = 0
    is_unlimited: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker gets.

    Attributes:
        tokens: leave for so many requests (count). window: which pays for them. hold: to name when they are given
            account of.
        ends_at: when the tokens of this window end (UTC epoch seconds, platform time), whatever else limits them.
        slot_at, per_second: the first may be used then, the others one after the other; None: all at once.
        again_at: there are slots, but so far ahead that they are lent only then (platform time).
    """

    tokens: int = 0
    window: int = 0
    hold: int = 0
    ends_at: float = 0.0
    slot_at: float | None = None
    per_second: float = 0.0
    again_at: float | None = None


def unlimited(wish: Wish) -> Lease:
    """Return what is lent where the platform limits nothing: enough for a short while."""
    return Lease(min(wish.most, UNLIMITED_TRIPS * wish.concurrency), ends_at=math.inf)


@dataclass(slots=True)
class Hold:
    """Tokens that a worker has not given account of.

    Attributes:
        number: of this hold; a later one of the same worker has another. tokens: of it (count).
        until: when the newest of them end (store's time).
    """

    number: int
    tokens: int
    until: float


@dataclass(slots=True)
class SharedBucket:
    """One bucket and what is lent of it.

    Attributes:
        bucket: tokens that were lent are in flight in it.
        next_slot: where the time line goes on (UTC epoch seconds, platform time).
        holds: by worker. seen: when each asked last (store's time), and what work it named.
    """

    bucket: Bucket
    next_slot: float = 0.0
    holds: dict[int, Hold] = field(default_factory=dict)
    seen: dict[int, tuple[float, int]] = field(default_factory=dict)

    def lease(self, worker: int, wish: Wish, now: float, late: float, at: float) -> Lease:
        """Take in what a worker gives back, and lend it what it may have.

        Args:
            now: platform time, `late` the latest that it may be (UTC epoch seconds).
            at: the store's own time, which all workers see (seconds).
        """
        bucket = self.bucket
        bucket.pass_time(late)
        self._settle(worker, wish)
        self.seen[worker] = at, wish.work
        ends_at = bucket.reset_at - END_S
        if wish.most <= 0 or bucket.available <= 0 or late >= ends_at:
            return Lease(window=bucket.window, ends_at=ends_at)
        alive = [work for seen, work in self.seen.values() if seen > at - SEEN_S]
        if wish.is_even and sum(alive) > bucket.available:
            slot = self._slot(worker, wish, now, at)
            if slot is not None:
                return slot
        share = max(1, bucket.available // (QUARTER * len(alive)))
        return self._lend(worker, min(share, QUARTER * wish.concurrency, wish.most), at)

    def _slot(self, worker: int, wish: Wish, now: float, at: float) -> Lease | None:
        """Lend the next slot; None at the end of the line."""
        bucket = self.bucket
        tail_s = max(min(1.0, bucket.window_s * TAIL_SHARE), TAIL_S + TAIL_TRIPS * wish.trip_s)
        line_end = bucket.reset_at - min(tail_s, bucket.window_s / QUARTER)
        slot_at = max(now, self.next_slot)
        if slot_at >= line_end - SLOT_S:
            return None
        if slot_at > now + HOLD_S - SLOT_S:
            again_at = slot_at - HOLD_S + SLOT_S
            return Lease(window=bucket.window, ends_at=bucket.reset_at - END_S, again_at=again_at)
        per_second = bucket.available / (line_end - slot_at)
        count = min(bucket.available, wish.concurrency, wish.most, max(1, round(per_second * SLOT_S)))
        self.next_slot = slot_at + count / per_second
        return self._lend(worker, count, at, slot_at, per_second)

    def _lend(self, worker: int, count: int, at: float, slot_at: float | None = None, per_second: float = 0.0) -> Lease:
        bucket = self.bucket
        hold = self.holds.setdefault(worker, Hold(bucket.sent, 0, at))
        bucket.free -= count
        bucket.sent += count
        bucket.in_flight += count
        hold.tokens += count
        hold.until = at + HOLD_S
        return Lease(count, bucket.window, hold.number, bucket.reset_at - END_S, slot_at, per_second)

    def spend(self, requests: int) -> None:
        """Count requests that were sent without a token."""
        requests = max(0, min(requests, self.bucket.free))
        self.bucket.free -= requests
        self.bucket.sent += requests

    def _settle(self, worker: int, wish: Wish) -> None:
        bucket = self.bucket
        hold = self.holds.get(worker)
        if hold is not None:  # of another one: it was taken for dead, and what it held is written off
            unused = min(wish.unused.get(hold.number, 0), hold.tokens)
            held = min(wish.held.get(hold.number, 0), hold.tokens - unused)
            bucket.in_flight -= hold.tokens - held
            hold.tokens = held
            for _ in range(unused):
                bucket.give_back()
            if held == 0:
                del self.holds[worker]
        if wish.exhausted == bucket.window:
            bucket.exhaust()

    def write_off(self, at: float, patience_s: float) -> None:
        """Count what workers held as used that have not been heard of since it ended.

        Args:
            at: the store's time. patience_s: how long a request may be under way (seconds).
        """
        for worker, hold in list(self.holds.items()):
            if at > hold.until + patience_s and at > self.seen[worker][0] + HOLD_S + patience_s:
                self.bucket.in_flight -= hold.tokens
                del self.holds[worker]
        for worker, (seen, _) in list(self.seen.items()):
            if worker not in self.holds and seen < at - SEEN_S:
                del self.seen[worker]

    def told(
        self, limit: int, remaining: int, reset: int, mark: int, now: float, late: float, reserve: Callable[[int], int]
    ) -> None:
        """Take in what `/rate_limit` says to who has taken `mark` before; see `Bucket.observe`."""
        if limit - reserve(limit) <= 0:
            return
        named = float(reset) if now - PAST_MOST_S < reset < late + WINDOW_MOST_S else None
        bucket = self.bucket
        if now >= bucket.reset_at and remaining >= limit and bucket.overlap(mark) == 0:
            # Nothing that was sent is in the window that it speaks of. What it said before, of a window that had not
            # begun, is no reason to doubt that: there are no probes here that could decide, and workers would wait on.
            bucket.asked.forget()
        if bucket.observe(limit, remaining, named, bucket.overlap(mark), now, late=late, is_asked=True):
            self.next_slot = now
        bucket.reserve = reserve(bucket.limit)

    @classmethod
    def first_told(
        cls, limit: int, remaining: int, reset: int, now: float, reserve: Callable[[int], int]
    ) -> "SharedBucket | None":
        """Return a budget of which nobody knew before; None where the platform's word leaves nothing of it."""
        if limit - reserve(limit) <= 0 or not now < reset < now + WINDOW_MOST_S:
            return None
        bucket = Bucket(limit, max(0, min(remaining, limit)), float(reset), max(1.0, reset - now), reserve(limit))
        bucket.opened_at, bucket.first = now, NEVER
        return cls(bucket, now)

    def data(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it; `of_data` reads that."""
        found = _data(self.bucket)
        found["shown"], found["asked"] = _data(self.bucket.shown), _data(self.bucket.asked)
        return {
            "bucket": found,
            "next_slot": self.next_slot,
            "holds": [(worker, hold.number, hold.tokens, hold.until) for worker, hold in self.holds.items()],
            "seen": [(worker, *seen) for worker, seen in self.seen.items()],
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> "SharedBucket":
        """Return what `data` returned."""
        given = dict(data["bucket"])
        given["shown"], given["asked"] = Witness(**given["shown"]), Witness(**given["asked"])
        bucket = Bucket(**given)
        bucket.first = given["first"]  # where it begins with a number of its own, that is set by what is free
        holds = {worker: Hold(*hold) for worker, *hold in data["holds"]}
        return cls(bucket, data["next_slot"], holds, {worker: (at, work) for worker, at, work in data["seen"]})


def _data(of: Bucket | Witness) -> dict[str, Any]:
    return {each.name: getattr(of, each.name) for each in fields(of)}
