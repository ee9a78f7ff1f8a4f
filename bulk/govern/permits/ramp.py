"""How many requests of one credential may be in flight after a limit that no budget explains. Pure; times come in.

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
