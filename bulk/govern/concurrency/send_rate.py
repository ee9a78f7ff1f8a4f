"""Finds the rate of requests where something before the platform limits it and names no time. Pure.

A front end refuses what comes too fast, at once and without a word. How many requests are in flight does not matter to
it. So requests then leave one after the other, at first more slowly than they were served lately, and then at the rate
of a `RateCurve`. Where no request has to wait any more, all leave as before.

Refusals may have another cause than the rate. Where the rate was halved again and again, and is refused in the same
measure, it goes back to where it was, and that share is put up with from then on. Where refusals come only as the rate
grows, or are most of the answers, less and less is. A refusal that may mean an outage, or too many in flight, counts
where others are served meanwhile, and only after some seconds.
Source: design.md §4.
"""

import math
from dataclasses import dataclass, field

from bulk.govern.concurrency.rate_curve import HALF, RateCurve

USUAL, ALARM = 0.04, 3.0
"""It takes more than ALARM refusals (count) beyond the usual share of all answers to be a sign, and more where more is
put up with."""
HALVINGS = 2
"""After this many falls by half in a row (count), the next is an experiment, unless half of the answers were refusals:
that is never put up with."""
EVIDENCE, FEW = 12.0, 4.0
"""An experiment runs until this many refusals would have come, had half the rate changed nothing, or FEW, if none has
come (count). The rate is the cause of refusals where less than half as many have come."""
ROOM = 2.0
"""Where the rate is not the cause, ROOM times the share of refusals is put up with."""
UNSURE_S = 3.0
"""Refusals that may have another cause count after this time (seconds); so do others where nothing is served."""
SHORTEST_S, LONGEST_S = 0.25, 10.0
"""A rate is measured for at least SHORTEST_S before it counts, and for LONGEST_S at most (seconds)."""
BEGIN = 0.9
"""The first rate is this share of what was served."""
SLACK_S = 0.01
"""A request that leaves late by this time does not make the next ones leave late (seconds)."""


@dataclass(slots=True)
class SendRate:
    """Bounds the rate at which requests of one kind leave. Times are monotonic seconds.

    Attributes:
        answers: answers to such requests so far, refusals among them (count).
        is_bound: requests have to wait for their turn (`wait_s`, `take`).
        usual: share of refusals that is put up with.
        _excess: refusals beyond the usual share (count); the answers since `_since` number `_from` up to `answers`, of
            which `_bad` are refusals. _refused: of all answers (count); _served: answers that were none when the rate
            fell last (count); _last: value of `answers` at the last refusal.
        _before: share of refusals before the experiment that is under way; 0: none is.
        _halvings: falls by half in a row (count); _top: the rate before the first of them (per second).
    """

    answers: int = 0
    is_bound: bool = False
    usual: float = 0.0
    _curve: RateCurve = field(default_factory=RateCurve)
    _before: float = 0.0
    _halvings: int = 0
    _top: float = 0.0
    _mixed_at: float = -math.inf
    _excess: float = 0.0
    _bad: int = 0
    _from: int = 0
    _since: float = 0.0
    _refused: int = 0
    _served: int = 0
    _last: int = 0
    _next_at: float = 0.0

    def refused(self, sent_at: float, now: float, *, is_sure: bool = True) -> None:
        """Note that a request that left at `sent_at` was refused; it is among `answers` already.

        Args:
            is_sure: nothing but the rate can be the reason.
        """
        good, self._last = self.answers - self._last - 1, self.answers
        self._refused += 1
        if sent_at < self._curve.fell_at:
            return  # it left at the rate before
        if self._before:
            self._bad += 1
            if self._bad >= EVIDENCE and self._bad >= HALF * (self.answers - self._from):
                self._curve.halve(now)
                self._fell(now)
            return
        usual = max(self.usual, USUAL)
        alarm = ALARM * (1.0 + 4.0 * usual)
        self._excess = max(0.0, min(self._excess, alarm) - usual * good)
        if not self._excess or (not self.is_bound and now - self._since > LONGEST_S):
            self._begin(now, self.answers - 1)
        self._excess += 1.0
        self._bad += 1
        if self._excess > alarm and (is_sure or self.is_bound or self._is_mixed(good, now)):
            self._alarm(now)

    def _is_mixed(self, good: int, now: float) -> bool:
        """Return whether refusals came between good answers for a while: in an outage none is served, and where too
        many are in flight, fewer of them end it."""
        if good:
            self._mixed_at = now
        return now - self._since >= UNSURE_S and now - self._mixed_at < SHORTEST_S

    def _begin(self, now: float, answers: int) -> None:
        self._from, self._since, self._bad, self._excess = answers, now, 0, 0.0

    def _fell(self, now: float) -> None:
        self._before = 0.0
        self._served = self.answers - self._refused
        self._begin(now, self.answers)

    def _alarm(self, now: float) -> None:
        count, took_s, curve = self.answers - self._from, now - self._since, self._curve
        served, share = count - self._bad, self._bad / count
        if self.is_bound:
            is_soon = curve.is_soon(now)
            is_halved = is_soon or self.usual > USUAL
            if not is_soon or share >= HALF:  # the rate is the cause of these: it may be that no other one is left
                self.usual *= HALF
            if not self._halvings:
                self._top = curve.per_s
            curve.fall(now, is_halved=is_halved, is_served=served > 0)
            self._fell(now)
            if is_halved and self._halvings >= HALVINGS and share < HALF:
                self._before = share
            self._halvings = self._halvings + 1 if is_halved else 0
        elif took_s >= (SHORTEST_S if served else UNSURE_S):
            self.is_bound = True
            curve.start(now, BEGIN * served / took_s)
            self._fell(now)

    def _judge(self, now: float) -> None:
        """Judge whether half the rate is refused in the same measure as before: then that has another cause, and the
        rate goes back to where it was."""
        count = self.answers - self._from
        expected = self._before * count
        if expected < (EVIDENCE if self._bad else FEW):
            return
        share, self._before = self._bad / count, 0.0
        if self._bad >= HALF * expected:
            self.usual = min(HALF, ROOM * share)
            self._halvings = 0
            self._curve.start(now, self._top)
            self._fell(now)
        else:
            self._curve.stay(now)
            self._begin(now, self.answers)

    def wait_s(self, now: float) -> float:
        """Return how long the next request has to wait (seconds)."""
        return max(0.0, self._next_at - now)

    def take(self, now: float) -> None:
        """Note that a request leaves, after its wait."""
        curve = self._curve
        curve.use(now)
        if self.answers - self._refused == self._served:  # nothing was served since the fall
            curve.wait(now)
        elif self._before:
            self._judge(now)
        elif curve.is_free(now):
            self.is_bound = False
            self._begin(now, self.answers)
            return
        else:
            curve.grow(now)
        if not self._before:  # otherwise an experiment is under way
            curve.go_on(now)
        self._next_at = max(self._next_at, now - SLACK_S) + 1.0 / curve.per_s
