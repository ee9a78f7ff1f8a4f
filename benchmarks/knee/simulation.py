"""Runs a rule for what may be in flight against a simulated platform: its own event loop, no sockets, no waiting."""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.knee.platforms import Scenario

SERVED, ANSWERED, CHANGED, STRANGER, WAKE = range(5)
GOOD, BAD, BUDGET = range(3)
HELD, OPEN = -2, -1
"""Owners that are not clients: a stranger who always has as many there, and one who sends at a rate."""
REFUSED_S = 0.002
"""How long the platform takes to refuse a request (seconds)."""
STEPS = 200


class Rule(Protocol):
    """What the governor asks and tells; `bulk.govern.concurrency.adaptive_limit.Concurrency` is one."""

    in_flight: int
    limit: float

    @property
    def has_room(self) -> bool:
        """Whether one more may leave."""

    def answered(self, latency_s: float) -> None:
        """A good answer after that many seconds."""

    def suffered(self, now: float) -> None:
        """A bad answer, or none."""


@dataclass(frozen=True)
class Measured:
    """Attributes:
    share: of the good answers that were possible while the run was steady.
    slowness: mean latency there, in unloaded ones.
    settled_s: when both were within bounds for the first time, for a second or 20 answers (None: never).
    first_s: when the first 1,000 good answers were there (None: never). limit: mean of the limit while steady.
    """

    share: float
    slowness: float
    settled_s: float | None
    first_s: float | None
    limit: float

    @property
    def is_good(self) -> bool:
        """At least 0.9 of the goodput at no more than 3 times the unloaded latency."""
        return self.share >= 0.9 and self.slowness <= 3.0


class Tally:
    """Adds up what is measured, answer by answer."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._span_s = max(1.0, 20.0 / scenario.best(0.0), 4.0 * scenario.unloaded_s(0.0))
        self._count, self._slowness, self._span = 0, 0.0, 0
        self.good, self.in_steady, self.slowness, self.limit_sum, self.looks = 0, 0, 0.0, 0.0, 0
        self.settled_s: float | None = None
        self.first_s: float | None = None

    def add(self, now: float, latency_s: float, limit: float) -> None:
        """A good answer of the first client."""
        scenario = self._scenario
        self.good += 1
        if self.good == 1_000:
            self.first_s = now
        slowness = latency_s / scenario.unloaded_s(now)
        if scenario.steady[0] <= now < scenario.steady[1]:
            self.in_steady += 1
            self.slowness += slowness
            self.limit_sum += limit
            self.looks += 1
        if self.settled_s is None:
            if int(now / self._span_s) != self._span:
                self._end_span()
                self._span = int(now / self._span_s)
            self._count += 1
            self._slowness += slowness

    def add_twin(self, now: float) -> None:
        """A good answer of the second client."""
        self.in_steady += self._scenario.steady[0] <= now < self._scenario.steady[1]

    def _end_span(self) -> None:
        began = self._span * self._span_s
        possible = self._scenario.best(began) * self._span_s
        if self._count >= 0.9 * possible - possible**0.5 and self._slowness <= 3.0 * self._count > 0:
            self.settled_s = began
        self._count, self._slowness = 0, 0.0

    def measured(self) -> Measured:
        """All of it."""
        began, ended = self._scenario.steady
        moments = (began + (ended - began) * (step + 0.5) / STEPS for step in range(STEPS))
        best = sum(self._scenario.best(moment) for moment in moments) / STEPS
        looks = max(1, self.looks)
        return Measured(
            self.in_steady / (ended - began) / best,
            self.slowness / looks if self.looks else float("inf"),
            self.settled_s,
            self.first_s,
            self.limit_sum / looks,
        )


class Simulation:
    """One run. Everything that happens is an event at a time; events of the same time keep their order."""

    def __init__(self, scenario: Scenario, make: Callable[[int], Rule], seed: int) -> None:
        self._scenario, self._platform = scenario, scenario.platform
        self._rng = random.Random(seed)
        self._rules = [make(scenario.most) for _ in range(1 if scenario.twin_from is None else 2)]
        self._tally = Tally(scenario)
        self._events: list[tuple[float, int, int, int, float, int]] = []
        self._ticks, self._now = 0, 0.0
        self._workers, self._busy, self._held = self._platform.workers, 0, 0
        self._queue: deque[tuple[int, float]] = deque()
        self._paused = [0.0, 0.0]
        self._next_paced = 0.0
        self._second, self._in_second = -1, 0

    def run(self) -> Measured:
        """All of it, at once."""
        scenario = self._scenario
        for moment, _ in self._platform.changes:
            self._at(moment, CHANGED)
        if scenario.others:
            self._at(self._rng.expovariate(scenario.others), STRANGER)
        for _ in range(scenario.others_held):
            self._arrive(HELD)
        if scenario.twin_from is not None:
            self._at(scenario.twin_from, WAKE, 1)
        self._send(0)
        events = self._events
        while events:
            self._now, _, kind, owner, sent, sort = heapq.heappop(events)
            if self._now > scenario.until:
                break
            if kind == SERVED:
                self._served(owner, sent)
            elif kind == ANSWERED:
                self._answered(owner, sent, sort)
            elif kind == CHANGED:
                self._workers = [count for moment, count in self._platform.changes if moment <= self._now][-1]
                self._take()
            elif kind == STRANGER:
                self._arrive(OPEN)
                self._at(self._now + self._rng.expovariate(scenario.others), STRANGER)
            else:
                self._send(owner)
        return self._tally.measured()

    def _at(self, moment: float, kind: int, owner: int = 0, sent: float = 0.0, sort: int = GOOD) -> None:
        self._ticks += 1
        heapq.heappush(self._events, (moment, self._ticks, kind, owner, sent, sort))

    def _send(self, owner: int) -> None:
        """All that the rule and the pace allow now."""
        rule, now, pace = self._rules[owner], self._now, self._scenario.pace
        while rule.has_room and now >= self._paused[owner]:
            rate = pace(now) if pace is not None else None
            if rate is not None:
                if now < self._next_paced - 1e-9:
                    self._at(self._next_paced, WAKE, owner)
                    return
                self._next_paced = max(self._next_paced, now) + 1.0 / rate
            rule.in_flight += 1
            self._arrive(owner)

    def _arrive(self, owner: int) -> None:
        """A request reaches the platform."""
        platform, now, rng = self._platform, self._now, self._rng
        self._held += 1
        if platform.per_second is not None:
            if int(now) != self._second:
                self._second, self._in_second = int(now), 0
            self._in_second += 1
            if self._in_second > platform.per_second:
                return self._refuse(owner, BUDGET)
        if platform.outage and platform.outage[0] <= now < platform.outage[1]:
            return self._refuse(owner, BAD)
        if platform.wrong and rng.random() < platform.wrong:
            return self._refuse(owner, BAD)
        if platform.lost and rng.random() < platform.lost:
            return self._at(now + platform.lost_s, ANSWERED, owner, now, BAD)
        if self._workers is None or self._busy < self._workers:
            return self._begin(owner, now)
        if platform.queue_room is not None and len(self._queue) >= platform.queue_room:
            return self._refuse(owner, BAD)
        return self._queue.append((owner, now))

    def _refuse(self, owner: int, sort: int) -> None:
        self._at(self._now + REFUSED_S + self._platform.network_s(self._now), ANSWERED, owner, self._now, sort)

    def _begin(self, owner: int, sent: float) -> None:
        """A worker takes a request."""
        platform, now = self._platform, self._now
        self._busy += 1
        took = platform.service(self._rng, now)
        if platform.slowdown is not None:
            took *= platform.slowdown(self._held)
        end = now + took
        if platform.pause is not None:
            every, length = platform.pause
            began = now - now % every
            if now > length and now < began + length:
                end = began + length + took
            elif end > began + every:
                end += length
        self._at(end, SERVED, owner, sent)

    def _take(self) -> None:
        while self._queue and (self._workers is None or self._busy < self._workers):
            self._begin(*self._queue.popleft())

    def _served(self, owner: int, sent: float) -> None:
        self._busy -= 1
        self._take()
        network_s = self._platform.network_s(self._now)
        if network_s > 0.0:
            self._at(self._now + network_s, ANSWERED, owner, sent)
        else:
            self._answered(owner, sent, GOOD)

    def _answered(self, owner: int, sent: float, sort: int) -> None:
        """An answer reaches its sender, or the news that none will."""
        self._held -= 1
        if owner < 0:
            if owner == HELD:
                self._arrive(HELD)
            return
        rule, now = self._rules[owner], self._now
        rule.in_flight -= 1
        if sort == GOOD:
            if owner == 0:
                self._tally.add(now, now - sent, rule.limit)
            else:
                self._tally.add_twin(now)
            rule.answered(now - sent)
        elif sort == BAD:
            rule.suffered(now)
        elif self._paused[owner] <= now:
            self._paused[owner] = int(now) + 1.000_001
            self._at(self._paused[owner], WAKE, owner)
        self._send(owner)
