"""Bounds the requests of one credential in flight after a limit that no budget explains. Pure; times come in.

A platform may refuse a credential that sends too much at once, for a while, and for longer where it goes on. Whether a
limit meant that is not told, so each is answered alike: when the pause is over one request goes, and each good answer
lets one more be in flight. Where the limit was a budget, all are in flight again after a few answers. Where it comes
again on the way up, it is one of requests at once: half of what was in flight then counts as known to be allowed, and
later a little more is tried, and less often each time that was refused. Nothing of that is about the capacity of the
platform.
Source: open-points.md (secondary limits); design.md §4.
"""

import math
from dataclasses import dataclass

GROWTH = 1.25
"""What is known to be allowed is passed by this factor, and by one request at least."""
GROW_FIRST_S, GROW_MOST_S = 15.0, 600.0
"""Time until more is tried; doubled after each try in vain, and the longest (seconds)."""
SOON = 3
"""A limit that comes before this many times the allowed requests were answered is blamed on the newest step."""

WORDLESS_FROM = 5
"""From this many refusals without a reason in a row on, with no other answer between them, all wait (count): more than
one item alone can get."""
WORDLESS_FIRST_S, WORDLESS_MOST_S = 1.0, 64.0
"""The first such wait, and what all of them come to (seconds). A limit that says nothing does not last longer."""


@dataclass(slots=True)
class Wordless:
    """Refusals of one credential without a reason: each concerns its own request, or is a limit that says nothing.

    They count as a limit where several come in a row. All wait then, and one request goes to see. Where they go on for
    longer than a limit lasts, they are about the requests, and none waits for another any more.

    Attributes:
        in_row: refusals since the last other answer (count). waited_s: how long all have waited for them (seconds).
        is_vain: all of that was in vain. is_astray: the newest one is a front end's that may have lost its way.
    """

    in_row: int = 0
    waited_s: float = 0.0
    is_vain: bool = False
    is_astray: bool = False

    def pause_s(self, *, is_newer: bool) -> float:
        """Take in a refusal, and return how long all wait (seconds); 0.0: they don't.

        Args:
            is_newer: the request left after the last wait.
        """
        self.in_row += 1
        if self.is_vain or self.in_row < WORDLESS_FROM or not is_newer:
            return 0.0
        self.is_vain = self.waited_s >= WORDLESS_MOST_S
        if self.is_vain:
            return 0.0
        pause_s = max(WORDLESS_FIRST_S, self.waited_s)
        self.waited_s += pause_s
        return pause_s

    @property
    def is_over(self) -> bool:
        """Whether all waits were in vain, and there was no other answer since."""
        return self.is_vain and self.in_row >= WORDLESS_FROM

    def limits_told(self) -> None:
        """Note that `/rate_limit` was answered: a front end that leads there has not lost its way."""
        if self.is_astray:
            self.in_row = 0

    def served(self) -> None:
        """Note a good answer after such waits."""
        if not self.is_vain:
            self.waited_s = 0.0


@dataclass(slots=True)
class Ramp:
    """Bounds the requests in flight of one credential.

    Attributes:
        since: when the newest limit was met (monotonic); refusals of requests that had left before tell nothing new.
        allowed: requests that may be in flight now (count, >= 1).
        known: requests that were in flight without being refused (count); inf: a limit never came on the way up.
        before: the same before the newest step. answers: good answers since `allowed` grew (counts).
        grow_s: time until more is tried (seconds). grows_at: when that is (monotonic).
    """

    since: float
    allowed: float = 1.0
    known: float = math.inf
    before: float = 1.0
    answers: int = 0
    grow_s: float = GROW_FIRST_S
    grows_at: float = math.inf

    def has_room(self, in_flight: int) -> bool:
        """Return whether one more may leave where `in_flight` requests are under way (count)."""
        return in_flight < int(self.allowed)

    def refused(self, granted: float, now: float) -> None:
        """Note that a request with a permit of `granted` met a limit at `now` (both monotonic)."""
        if granted < self.since:
            return
        if self.answers >= SOON * self.allowed:
            pass  # as many were in flight for a while: the limit is a budget
        elif self.allowed >= self.known > self.before:
            self.known, self.grow_s = self.before, min(GROW_MOST_S, 2.0 * self.grow_s)
        elif 2.0 <= self.allowed < self.known:  # one alone is refused only because its pause was too short
            self.known = max(1.0, float(int(self.allowed / 2.0)))
        self.since, self.allowed, self.answers, self.grows_at = now, 1.0, 0, now + self.grow_s
        self.before = self.known

    def answered(self, in_flight: int, now: float) -> None:
        """Note a good answer after which `in_flight` requests are under way (count; now: monotonic)."""
        self.answers += 1
        if in_flight + 1 < int(self.allowed):
            return  # fewer were in flight than may be
        if self.allowed < self.known:
            self.allowed, self.answers = min(self.known, self.allowed + 1.0), 0
        elif now >= self.grows_at:
            self.before, self.answers = self.known, 0
            self.allowed = self.known = float(int(max(self.known + 1.0, self.known * GROWTH)))
            self.grows_at = now + self.grow_s

    @property
    def is_over(self) -> bool:
        """Whether all that others allow were in flight again for a while, and no limit came on the way up."""
        return self.known == math.inf and self.answers >= SOON * self.allowed
