"""One allowance of the platform and what is left of it: pure arithmetic, no clock, no I/O.

`free` is a proven lower bound. Answers overtake each other, so a number that the platform names is only good up to the
requests that were under way while it was made: those may or may not be counted in it. They are the `overlap`, and they
are taken off. Nothing is ever added but what was proven, given back, or named by a new window.
Source: specification, Rate limit status; design.md §4; failures.md rows 31, 32.
"""

from dataclasses import dataclass

JITTER_S = 1.0
"""Platforms that compute `reset` from a remaining time are off by a second between two answers."""
SPELL_SHARE = 0.01
"""What others take with pauses shorter than this share of a window counts as one burst."""
CONTESTED_SHARE = 0.1
"""At most this share of a window is spent on fresh words alone, however much others take at once."""


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
        burst: most that somebody else was seen to take at once (count); `spell` is the newest, last seen at `spell_at`.
        is_exhausted: the platform refused a request in this window: nothing but a word asked for after that counts.
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
    burst: int = 0
    spell: int = 0
    spell_at: float = 0.0
    is_exhausted: bool = False
    sent: int = 0
    given_back: int = 0
    in_flight: int = 0

    @property
    def available(self) -> int:
        """Requests that may leave now (count, >= 0)."""
        return max(0, self.free - self.reserve)

    @property
    def is_contested(self) -> bool:
        """Whether somebody else could take at once what is left: a number that is not fresh proves nothing then."""
        return 0 < self.free <= self.burst

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
        self.free, self.is_exhausted = 0, True

    def observe(
        self, limit: int, remaining: int, reset_at: float, overlap: int, now: float, *, is_asked: bool = False
    ) -> bool:
        """Take in what the platform says.

        Args:
            limit: requests in a window (count).
            remaining: as named; nonsense is clamped to 0..limit.
            reset_at: end of the window that it speaks of (UTC epoch seconds).
            overlap: requests that it may not have counted (count), the one that carried the answer left out.
            now: platform time (UTC epoch seconds).
            is_asked: it was asked for after the newest refusal.

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
            if not self.has_rival:
                self.burst //= 2
            self.has_rival = self.is_exhausted = False
            self.spell = 0
            return True
        if reset_at < self.reset_at - jitter:
            return False
        if self.is_exhausted:
            if not is_asked or remaining == 0:
                return False
            self.is_exhausted = False
        self.limit = limit
        if remaining < self.free:
            self.has_rival = True
            self._taken(self.free - remaining, now)
        self.free = proven if self.has_rival else max(self.free, proven)
        return False

    def _taken(self, count: int, now: float) -> None:
        """Somebody else took at least so many since the word before."""
        if now - self.spell_at > self.window_s * SPELL_SHARE:
            self.spell = 0
        self.spell, self.spell_at = self.spell + count, now
        self.burst = max(self.burst, min(self.spell, int(self.limit * CONTESTED_SHARE)))
