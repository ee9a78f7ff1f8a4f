"""A budget that several workers spend from: which worker was lent how many requests, and until when. Pure arithmetic.

A worker leases tokens, each of which is leave for one request, and may use them until shortly before the window ends,
at most for `HOLD_S`. In the bucket, tokens are requests that were sent and are in flight, so that all rules of
`buckets.py` hold for all workers together: a request that may have been sent counts until its worker says that it was
not.

`burst` hands out the free requests in shares that become smaller as fewer are left. `even` hands out the next slot of
one time line, which all workers share: the rate of a worker need not be known, and a worker that has died leaves a hole
of one slot. Tokens that a dead worker holds are written off; otherwise they would count as in flight in every later
window.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.witnesses import NEVER, Witness
from bulk.govern.server_clock import PAST_MOST_S, WINDOW_MOST_S

ASSUMED_S, ASSUMED_MOST_S = 5.0, 900.0
"""Length of a window of which no possible end is named (seconds): then the requests that are left are asked again.
After each such window in which the platform has refused, the next one is twice as long, up to the second value."""
SLOT_S = 0.05
"""Length of one slot of the time line (seconds)."""
HOLD_S = 5.0
"""How long tokens may be used, and how far ahead a slot may lie at most (seconds)."""
END_S = 0.03
"""The tokens of a window end this long before the window (seconds)."""
QUARTER = 4
"""A worker is lent at most one in this many of its share of the free requests, and at most this many times the requests
that it may have in flight."""
UNLIMITED_TRIPS = 16
"""Where nothing is limited, a worker is lent this many times the requests that it may have in flight. Tokens that it
has left end when `/rate_limit` may name limits again."""
TAIL_SHARE, TAIL_S, TAIL_TRIPS = 0.01, 0.3, 4
"""The time line ends before the window by this share of the window, or by this many seconds and trips, if that is more;
requests that are left then are lent at once."""
SEEN_S = 10.0
"""A worker that has not asked for this long does not count when shares are made (seconds)."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker asks for and gives back.

    Attributes:
        most: tokens that it could use now (count). work: requests that it still has to send (count).
        concurrency: requests that it may have in flight (count).
        is_even: the worker wants slots of the time line, where there is more work than requests left in the window.
        trip_s: how long an answer takes (seconds).
        held: tokens that the worker holds or whose requests are in flight, by number of the hold; all others are over.
        unused: tokens among these others that cost nothing, by number of the hold; each is named once.
        exhausted: number of the window of which the platform has said that nothing is left; 0: there is none.
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
    """The tokens that a worker is lent.

    Attributes:
        tokens: requests that may be sent (count). window: number of the window that pays for them. hold: number of the
            hold, to be named when the worker gives account of the tokens.
        ends_at: when the tokens of this window end (UTC epoch seconds, platform time), whatever else limits them.
        slot_at, per_second: when the first token may be used, and the rate of the others; None: all at once.
        again_at: when there are slots to lend, as the next ones are too far ahead now (platform time).
    """

    tokens: int = 0
    window: int = 0
    hold: int = 0
    ends_at: float = 0.0
    slot_at: float | None = None
    per_second: float = 0.0
    again_at: float | None = None


def unlimited(wish: Wish) -> Lease:
    """Return the lease of a worker where the platform limits nothing: tokens for a short while."""
    return Lease(min(wish.most, UNLIMITED_TRIPS * wish.concurrency), ends_at=math.inf)


@dataclass(slots=True)
class Hold:
    """Tokens that a worker has not given account of.

    Attributes:
        number: number of this hold; a later hold of the same worker has another. tokens: tokens of the hold (count).
        until: when the newest of these tokens end (store's time).
    """

    number: int
    tokens: int
    until: float


@dataclass(slots=True)
class SharedBucket:
    """One bucket and the tokens that are lent of it.

    Attributes:
        bucket: the bucket, in which tokens that were lent are in flight.
        next_slot: where the time line goes on (UTC epoch seconds, platform time).
        holds: hold of each worker. seen: when each worker asked last (store's time), and what work it named (count).
    """

    bucket: Bucket
    next_slot: float = 0.0
    holds: dict[int, Hold] = field(default_factory=dict)
    seen: dict[int, tuple[float, int]] = field(default_factory=dict)

    def lease(self, worker: int, wish: Wish, now: float, late: float, at: float) -> Lease:
        """Take in the account that a worker gives of its tokens, and lend it as many tokens as it may have.

        Args:
            now: platform time; `late`: the latest that platform time may be (UTC epoch seconds).
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
        if hold is not None:  # tokens of another hold are written off already: the worker was taken for dead
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
        """Count the tokens as used of all workers that have not been heard of since their tokens ended.

        Args:
            at: the store's time, which may have been set back. patience_s: how long a request may be under way
                (seconds).
        """
        self.seen = {worker: (min(seen, at), work) for worker, (seen, work) in self.seen.items()}
        for worker, hold in list(self.holds.items()):
            hold.until = min(hold.until, at + HOLD_S)
            if at > hold.until + patience_s and at > self.seen.get(worker, (0.0, 0))[0] + HOLD_S + patience_s:
                self.bucket.in_flight -= hold.tokens
                del self.holds[worker]
        for worker, (seen, _) in list(self.seen.items()):
            if worker not in self.holds and seen < at - SEEN_S:
                del self.seen[worker]

    def told(
        self, limit: int, remaining: int, reset: int, mark: int, now: float, late: float, reserve: Callable[[int], int]
    ) -> None:
        """Take in what `/rate_limit` says to a worker that took `mark` before it asked; see `Bucket.observe`."""
        if limit - reserve(limit) <= 0:
            return
        named = float(reset) if now - PAST_MOST_S < reset < late + WINDOW_MOST_S else None
        bucket = self.bucket
        is_assumed = bucket.is_assumed and not now < reset < late + WINDOW_MOST_S
        if is_assumed:
            longer_s = min(ASSUMED_MOST_S, 2.0 * bucket.window_s) if bucket.is_exhausted else ASSUMED_S
            named = bucket.reset_at if now < bucket.reset_at else now + longer_s
            bucket.is_assumed = False  # for this word, so that it may begin the next window
        if now >= bucket.reset_at and remaining >= limit and bucket.overlap(mark) == 0:
            # No request is in the window that `/rate_limit` speaks of. What it said before, of a window that had not
            # begun, is no reason to doubt that: there are no probes here that could decide, and workers would wait on.
            bucket.asked.forget()
        overlap = bucket.overlap(mark)
        if bucket.first < NEVER and named is not None and abs(named - bucket.reset_at) <= bucket.jitter_s:
            # at least these are left of a window of which others may have used a part before; what is under way and
            # was not counted yet comes off, else a word that comes meanwhile would forget that part
            bucket.first = max(bucket.first, bucket.paid + min(remaining, limit) - overlap)
        if bucket.observe(limit, remaining, named, overlap, now, late=late, is_asked=True):
            self.next_slot = now
        bucket.is_assumed = bucket.is_assumed or is_assumed
        bucket.reserve = reserve(bucket.limit)

    @classmethod
    def first_told(
        cls, limit: int, remaining: int, reset: int, now: float, reserve: Callable[[int], int]
    ) -> "SharedBucket | None":
        """Return a budget that was not known before; None if the platform's numbers leave nothing to lend.

        An end that can't be, because it is past or far away, is replaced by one that is assumed: `Date` may be of
        another clock, and the requests that are left are told anyway.
        """
        if limit - reserve(limit) <= 0:
            return None
        is_end = now < reset < now + WINDOW_MOST_S
        end = float(reset) if is_end else now + ASSUMED_S
        bucket = Bucket(limit, max(0, min(remaining, limit)), end, max(1.0, end - now), reserve(limit))
        bucket.opened_at, bucket.is_assumed = now, not is_end
        return cls(bucket, now)

    def data(self) -> dict[str, Any]:
        """Return the shared bucket in a form that JSON can hold; `of_data` reads that form."""
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
        """Return the shared bucket that `data` was made from.

        Raises:
            ValueError: it was made from none.
        """
        msgspec.convert(data, _ROW)
        given = dict(data["bucket"])
        given["shown"], given["asked"] = Witness(**given["shown"]), Witness(**given["asked"])
        bucket = Bucket(**given)
        bucket.first = given["first"]  # `Bucket` has just set it from `free`
        holds = {worker: Hold(*hold) for worker, *hold in data["holds"]}
        seen = {worker: (at, work) for worker, at, work in data["seen"]}
        if bucket.free < 0:
            raise ValueError("a shared bucket can't be like that")
        return cls(bucket, data["next_slot"], holds, seen)


def _data(of: Bucket | Witness) -> dict[str, Any]:
    return {each.name: getattr(of, each.name) for each in fields(of)}


def _form(of: Bucket | Witness) -> type[msgspec.Struct]:
    """Return the form that `_data` of such an object has: all its fields, each of its own type."""
    kinds = [(name, _form(value) if isinstance(value, Witness) else type(value)) for name, value in _data(of).items()]
    return msgspec.defstruct(type(of).__name__, kinds)


_ROW = msgspec.defstruct(
    "Row",
    [
        ("bucket", _form(Bucket(1, 1, 0.0, 1.0))),
        ("next_slot", float),
        ("holds", list[tuple[int, int, int, float]]),
        ("seen", list[tuple[int, float, int]]),
    ],
)
"""What `SharedBucket.data` returns, of which a row of a store may hold anything else."""
