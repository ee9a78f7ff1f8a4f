"""Lets a rate that was refused grow again. Pure.

It doubles until it is first refused. From then on it goes back to where it was refused, stays near for a while, and
goes beyond it, ever faster, until it is refused again. That way is the one of CUBIC (RFC 9438 §4.2). A rate that is not
used does not grow, nor does one with which nothing is served.
"""

import math
from dataclasses import dataclass

HALF = 0.5
LEAST_PER_S = 1.0
"""The rate never falls below this (requests per second)."""
FALL = 0.85
"""The rate falls to this share of itself, or to half, where the last fall was less than half the way back ago."""
DOUBLED_S, DOUBLED_REQUESTS = 1.0, 5.0
"""Until it is first refused, the rate doubles in this time (seconds), but not within fewer requests (count)."""
BACK_S, BACK_REQUESTS, BACK_MOST_S = 5.0, 100.0, 20.0
"""The way back takes BACK_S, or until so many requests have left (count) if that is longer, up to BACK_MOST_S."""
SILENT = 2.0
"""The way back takes SILENT times as long as nothing was served, up to BACK_MOST_S: the limit may have long windows."""
DEPTH, AGAIN_S = 0.1, 3.0
"""Within the same time, the rate goes beyond where it was refused by DEPTH of it; then it doubles within AGAIN_S."""
FREE = 6.0
"""A rate that is not used, and was not refused for FREE times the way back, is not needed any more."""
MEMORY, LATE, USED = 0.1, 4.0, 1.3
"""A rate is used where the mean time between two requests is at most USED times what it should be. The newest time
counts for MEMORY of the mean, and as LATE times what it should be at most."""


@dataclass(slots=True)
class RateCurve:
    """A rate from one refusal to the next. Times are monotonic seconds.

    Attributes:
        per_s: the rate (requests per second).
        fell_at: when it fell last, or was set.
    """

    per_s: float = LEAST_PER_S
    fell_at: float = -math.inf
    _ceiling: float = 0.0
    _low: float = LEAST_PER_S
    _grown_from: float = 0.0
    _silent_s: float = 0.0
    _lateness: float = 1.0
    _used_at: float = 0.0
    _since_s: float = 0.0

    def start(self, now: float, per_s: float) -> None:
        """Begin with that rate, of which it is not known whether it is refused."""
        self._ceiling = 0.0
        self._fall(now, per_s)

    def fall(self, now: float, *, is_halved: bool, is_served: bool = True) -> None:
        """Lower the rate, because it was refused; `is_served`: it was not all that was refused."""
        if is_served or not self._ceiling:
            self._ceiling = self.per_s
        self._fall(now, self.per_s * (HALF if is_halved else FALL))

    def halve(self, now: float) -> None:
        """Halve the rate, and go back to where it was refused before: an experiment with it was too bad to be ended."""
        self._fall(now, self.per_s * HALF)

    def _fall(self, now: float, per_s: float) -> None:
        self._low = self.per_s = max(LEAST_PER_S, per_s)
        self._ceiling = self._ceiling and max(self._ceiling, self._low)
        self.fell_at = self._grown_from = now
        self._silent_s = 0.0

    def is_soon(self, now: float) -> bool:
        """Return whether the rate is on the first half of the way back."""
        return now - self._grown_from < HALF * self._back_s()

    def wait(self, now: float) -> None:
        """Note that nothing was served since the rate fell: it does not grow, and the way back takes longer."""
        self._grown_from, self._silent_s = now, now - self.fell_at

    def use(self, now: float) -> None:
        """Note that a request leaves."""
        self._since_s, self._used_at = now - self._used_at, now
        self._lateness += MEMORY * (min(LATE, self._since_s * self.per_s) - self._lateness)

    def is_free(self, now: float) -> bool:
        """Return whether requests need not wait for each other any more."""
        return self._lateness > USED and now - self.fell_at > FREE * self._back_s()

    def grow(self, now: float) -> None:
        """Let the rate grow, as far as it is used."""
        if self._lateness > USED:
            self._grown_from = min(now, self._grown_from + self._since_s)
        elif not self._ceiling:
            self._low *= math.exp2(min(1.0 / DOUBLED_REQUESTS, self._since_s / DOUBLED_S))

    def stay(self, now: float) -> None:
        """Begin the way back anew, from where the rate is."""
        self._grown_from = now

    def _back_s(self) -> float:
        """Return how long the way back takes (seconds)."""
        return min(BACK_MOST_S, max(BACK_S, BACK_REQUESTS / (self._ceiling or self._low), SILENT * self._silent_s))

    def go_on(self, now: float) -> None:
        """Set the rate to where it is on its way."""
        if not self._ceiling:
            self.per_s = self._low
            return
        back_s = self._back_s()
        way = (now - self._grown_from) / back_s - 1.0
        if way < 1.0:
            span = self._ceiling - self._low if way < 0.0 else DEPTH * self._ceiling
            self.per_s = self._ceiling + span * way**3
        else:
            self.per_s = self._ceiling * (1.0 + DEPTH) * math.exp2(min(30.0, (way - 1.0) * back_s / AGAIN_S))
