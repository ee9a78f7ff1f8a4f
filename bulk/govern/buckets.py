"""One allowance of the platform and what is left of it: pure arithmetic, no clock, no I/O.

`free` is a proven lower bound. Answers overtake each other, so a number that the platform names is only good up to the
requests that were under way while it was made: those may or may not be counted in it. They are the `overlap`, and they
are taken off. Nothing is ever added but what was proven, given back, or named by a new window.
Source: specification, Rate limit status; design.md §4; failures.md rows 31, 32.
"""

from dataclasses import dataclass

JITTER_S = 1.0
"""Platforms that compute `reset` from a remaining time are off by a second between two answers."""


@dataclass(slots=True)
class Bucket:
    """What is left of one category for one credential, until its reset.

    Attributes:
        limit: requests in a window (count).
        free: requests that may still be let out in this window, the reserve not taken off (count, >= 0).
        reset_at: when the window ends (UTC epoch seconds, platform time).
        window_s: length of the window as far as it was seen (seconds).
        reserve: left for other users of the token (count).
        window: number of windows seen; a permit of an earlier window gives nothing back to this one.
        has_rival: somebody else spends from it: only the newest number counts.
        sent: requests let out, all windows (count). `given_back` of them cost nothing.
        in_flight: requests let out and not yet answered (count).
    """

    limit: int
    free: int
    reset_at: float
    window_s: float
    reserve: int = 0
    window: int = 1
    has_rival: bool = False
    sent: int = 0
    given_back: int = 0
    in_flight: int = 0

    @property
    def available(self) -> int:
        """Requests that may leave now (count, >= 0)."""
        return max(0, self.free - self.reserve)

    @property
    def mark(self) -> int:
        """Taken before a request leaves or `/rate_limit` is asked; `overlap` of it tells what the answer can't know."""
        return self.sent - self.in_flight

    def overlap(self, mark: int) -> int:
        """Requests that were under way at some time since `mark` was taken (count, >= 0)."""
        return self.sent - mark

    def reserve_one(self) -> None:
        """Take one request off before it is sent.

        Raises:
            ValueError: there is none. The cap is hard.
        """
        if self.available <= 0:
            raise ValueError("the bucket is empty")
        self.free -= 1
        self.sent += 1
        self.in_flight += 1

    def give_back(self, window: int) -> None:
        """A request of that window cost nothing: it was answered 304, or never left."""
        self.given_back += 1
        if window == self.window:
            self.free = min(self.free + 1, self.limit)

    def exhaust(self) -> None:
        """The platform said that nothing is left in this window."""
        self.free = 0

    def observe(self, limit: int, remaining: int, reset_at: float, overlap: int, now: float) -> bool:
        """Take in what the platform says.

        Args:
            limit: requests in a window (count).
            remaining: as named; nonsense is clamped to 0..limit.
            reset_at: end of the window that it speaks of (UTC epoch seconds).
            overlap: requests that it may not have counted (count), the one that carried the answer left out.
            now: platform time (UTC epoch seconds).

        Returns:
            Whether this was the first word of a new window.
        """
        remaining = max(0, min(remaining, limit))
        proven = max(0, remaining - overlap)
        jitter = JITTER_S if self.window_s > 3 * JITTER_S else 0.0
        if reset_at > self.reset_at + jitter:
            self.window += 1
            self.limit, self.free, self.reset_at = limit, proven, reset_at
            self.window_s = max(1.0, reset_at - now)
            self.has_rival = False
            return True
        if reset_at < self.reset_at - jitter:
            return False
        self.limit = limit
        if remaining < self.free:
            self.has_rival = True
        self.free = proven if self.has_rival else max(self.free, proven)
        return False
