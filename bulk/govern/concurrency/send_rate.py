"""How fast requests may leave where something before the platform limits their rate, and names no time. Pure.

A front end refuses what comes too fast, at once and without a word. How many requests are in flight does not matter to
it. So requests then leave one after the other, at first more slowly than they were served lately. The rate
doubles until it is refused. From then on it goes back to where it was refused, stays near for a while, and goes beyond
it, ever faster, until requests are refused again. That way is the one of CUBIC (RFC 9438 §4.2). A rate that is not used
does not grow, nor does one with which nothing is served. Where no request has to wait any more, all leave as before.

Refusals may have another cause than the rate. Where the rate was halved again and again, and is refused in the same
measure, it goes back to where it was, and that share is put up with from then on. Where refusals come only as the rate
grows, or are most of the answers, less and less is. A refusal that may mean an outage, or too many in flight, counts
where others are served meanwhile, and only after some seconds.
Source: design.md §4.
"""

import math
from dataclasses import dataclass

USUAL, ALARM = 0.04, 3.0
"""It takes more than ALARM refusals (count) beyond the usual share of all answers to be a sign, and more where more is
put up with."""
HALVINGS, MOST = 2, 0.5
"""After this many falls by half in a row (count), the next is an experiment, unless a share of MOST was refused:
that is never put up with."""
EVIDENCE, FEW = 12.0, 4.0
"""An experiment runs until this many refusals would have come, had half the rate changed nothing, or FEW, if none has
come (count)."""
ALIKE, ROOM, LEAST_ROOM = 0.5, 2.0, 0.02
"""The rate is not the cause where half of it leaves at least ALIKE of the share of refusals. ROOM times that share is
put up with then, and LEAST_ROOM more."""
UNSURE_S = 3.0
"""Refusals that may have another cause count after this time (seconds); so do others where nothing is served."""
SHORTEST_S, LONGEST_S = 0.25, 10.0
"""A rate is measured for at least SHORTEST_S before it counts, and for LONGEST_S at most (seconds)."""
BEGIN, FALL, FALL_SOON, SOON = 0.9, 0.85, 0.5, 0.5
"""The rate begins with BEGIN of what was served, and falls to FALL of itself, or to FALL_SOON within SOON of the way
back from its last fall."""
LEAST_PER_S = 1.0
"""The rate never falls below this (requests per second)."""
DOUBLED_S, DOUBLED_REQUESTS = 1.0, 5.0
"""Until it is first refused, the rate doubles in this time (seconds), but not within fewer requests (count)."""
BACK_S, BACK_REQUESTS, BACK_MOST_S = 5.0, 100.0, 20.0
"""The way back takes BACK_S, or until so many requests have left (count) if that is longer, up to BACK_MOST_S."""
SILENT = 2.0
"""The way back takes SILENT times as long as nothing was served, up to BACK_MOST_S: the limit may have long windows."""
DEPTH, AGAIN_S = 0.1, 3.0
"""Within the same time, the rate goes beyond where it was refused by DEPTH of it; then it doubles within AGAIN_S."""
FREE = 6.0
"""A rate that is not used any more, and was not refused for FREE times the way back, is forgotten."""
MEMORY, LATE, USED = 0.1, 4.0, 1.3
"""A rate is used where the mean time between two requests is at most USED times what it should be. The newest time
counts for MEMORY of the mean, and as LATE times what it should be at most."""
SLACK_S = 0.01
"""A request that leaves late by this time does not make the next ones leave late (seconds)."""


@dataclass(slots=True)
class SendRate:
    """Bounds the rate at which requests of one kind leave. Times are monotonic seconds.

    Attributes:
        answers: answers to such requests so far, refusals among them (count).
        is_bound: requests have to wait for their turn (`wait_s`, `take`).
        ceiling: the rate that was refused (per second); 0: none was. low: the rate after the last fall, or the one that
            doubles (per second).
        usual: share of refusals that is put up with.
        _before: share of refusals before the experiment that is under way; 0: none is.
        _halvings: falls by half in a row (count); _top: the rate before the first of them (per second).
    """

    answers: int = 0
    is_bound: bool = False
    ceiling: float = 0.0
    low: float = LEAST_PER_S
    usual: float = 0.0
    _before: float = 0.0
    _halvings: int = 0
    _top: float = 0.0
    _mixed_at: float = -math.inf
    _excess: float = 0.0
    _bad: int = 0
    _refused: int = 0
    _served: int = 0
    _from: int = 0
    _since: float = 0.0
    _last: int = 0
    _fell_at: float = -math.inf
    _grown_from: float = 0.0
    _silent_s: float = 0.0
    _rate: float = LEAST_PER_S
    _lateness: float = 1.0
    _taken_at: float = 0.0
    _next_at: float = 0.0

    def refused(self, sent_at: float, now: float, *, is_sure: bool = True) -> None:
        """Note that a request that left at `sent_at` was refused; it is among `answers` already.

        Args:
            is_sure: nothing but the rate can be the reason.
        """
        good, self._last = self.answers - self._last - 1, self.answers
        self._refused += 1
        if sent_at < self._fell_at:
            return  # it left at the rate before
        if self._before:
            self._bad += 1
            if self._bad >= EVIDENCE and self._bad >= MOST * (self.answers - self._from):
                self._fall(now, self._rate * FALL_SOON)
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

    def _alarm(self, now: float) -> None:
        count, took_s = self.answers - self._from, now - self._since
        served, share = count - self._bad, self._bad / count
        if self.is_bound:
            is_soon = now - self._grown_from < SOON * self._back_s()
            if served or not self.ceiling:
                self.ceiling = self._rate
            is_halved = is_soon or self.usual > USUAL
            if not is_soon or share >= MOST:  # the rate is the cause of these: it may be that no other one is left
                self.usual *= 0.5
            if not self._halvings:
                self._top = self._rate
            self._fall(now, self._rate * (FALL_SOON if is_halved else FALL))
            if is_halved and self._halvings >= HALVINGS and share < MOST:
                self._before = share
            self._halvings = self._halvings + 1 if is_halved else 0
        elif took_s >= (SHORTEST_S if served else UNSURE_S):
            self.is_bound, self.ceiling = True, 0.0
            self._fall(now, BEGIN * served / took_s)

    def _judge(self, now: float) -> None:
        """Judge whether half the rate is refused in the same measure as before: then that has another cause, and the
        rate goes back to where it was."""
        count = self.answers - self._from
        expected = self._before * count
        if expected < (EVIDENCE if self._bad else FEW):
            return
        share, self._before, self._grown_from = self._bad / count, 0.0, now
        if self._bad >= ALIKE * expected:
            self.usual = min(MOST, ROOM * share + LEAST_ROOM)
            rate, self.ceiling, self._halvings = self._top, 0.0, 0
            self._fall(now, rate)
        else:
            self._begin(now, self.answers)

    def _fall(self, now: float, per_s: float) -> None:
        self.low = self._rate = max(LEAST_PER_S, per_s)
        self.ceiling = self.ceiling and max(self.ceiling, self.low)
        self._fell_at = self._grown_from = now
        self._before = 0.0
        self._silent_s, self._served = 0.0, self.answers - self._refused
        self._begin(now, self.answers)

    def _back_s(self) -> float:
        """Return how long the way back takes (seconds)."""
        return min(BACK_MOST_S, max(BACK_S, BACK_REQUESTS / (self.ceiling or self.low), SILENT * self._silent_s))

    def _aim(self, now: float) -> float:
        """Return the rate that is to be reached (per second)."""
        if not self.ceiling or self._before:
            return self.low
        back_s = self._back_s()
        way = (now - self._grown_from) / back_s - 1.0
        if way < 1.0:
            return self.ceiling + (self.ceiling - self.low if way < 0.0 else DEPTH * self.ceiling) * way**3
        return self.ceiling * (1.0 + DEPTH) * math.exp2(min(30.0, (way - 1.0) * back_s / AGAIN_S))

    def wait_s(self, now: float) -> float:
        """Return how long the next request has to wait (seconds)."""
        return max(0.0, self._next_at - now)

    def take(self, now: float) -> None:
        """Note that a request leaves, after its wait."""
        since_s, self._taken_at = now - self._taken_at, now
        self._lateness += MEMORY * (min(LATE, since_s * self._rate) - self._lateness)
        if self.answers - self._refused == self._served:  # nothing was served since the fall
            self._grown_from, self._silent_s = now, now - self._fell_at
        elif self._before:
            self._judge(now)
        elif self._lateness > USED:
            self._grown_from = min(now, self._grown_from + since_s)
            if now - self._fell_at > FREE * self._back_s():
                self.is_bound = False
                self._begin(now, self.answers)
                return
        elif not self.ceiling:
            self.low *= math.exp2(min(1.0 / DOUBLED_REQUESTS, since_s / DOUBLED_S))
        self._rate = self._aim(now)
        self._next_at = max(self._next_at, now - SLACK_S) + 1.0 / self._rate
