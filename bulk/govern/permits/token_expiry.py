"""Says how long a token may be used, and when its source is asked for the next one. Pure; all times come in.

Where the source says when its token ends, the next one is asked for five minutes before, and nothing is sent with one
that has ended; where it does not, its age decides. This machine's wall clock is believed in one thing: when it jumps,
the machine may have slept, and the source is asked again. Source: failures.md rows 33, 35.
"""

import math
from dataclasses import dataclass

EARLY_S, EARLY_SHARE = 300.0, 0.1
"""The next token is asked for this long before the end of the present one (seconds), or by this share of the time that
was left when that was read, whichever is smaller."""
MARGIN_S = 5.0
"""Nothing is sent with a token that ends within this time: a request is under way for a while (seconds)."""
AGAIN_S = 30.0
"""Pause between two questions to a source that has no other token yet (seconds)."""
JUMP_S = 60.0
"""A wall clock that moves by more than this against the monotonic one was set, or the machine slept (seconds)."""


@dataclass(slots=True)
class TokenExpiry:
    """The expiry of the token that an account uses.

    Attributes:
        read_at: when the token was read (monotonic seconds). wall_offset: wall clock minus monotonic clock, then.
        renews_after_s: age at which its source is asked again (seconds); None: the source never changes.
        ends_at: when the token ends (UTC epoch seconds, platform time); None: the source does not say.
        tried_at: when its source was last asked in vain (monotonic).
        has_no_next: the token has ended, and its source gave none that lasts.
    """

    read_at: float
    wall_offset: float
    renews_after_s: float | None = None
    ends_at: float | None = None
    tried_at: float = -math.inf
    has_no_next: bool = False

    def due(self, now: float, wall: float, offset: float | None) -> float:
        """Return when to ask the source for the next token (monotonic); infinity: never.

        Args:
            now: monotonic. wall: this machine's UTC epoch seconds.
            offset: platform time minus monotonic, at most; None: not known yet.
        """
        if self.renews_after_s is None:
            return math.inf
        if abs(wall - now - self.wall_offset) > JUMP_S:
            return max(now, self.tried_at + AGAIN_S)
        due = self.read_at + self.renews_after_s
        if self.ends_at is not None and offset is not None:
            end = self.ends_at - offset
            due = end - min(EARLY_S, EARLY_SHARE * max(0.0, end - self.read_at))
        return max(due, self.tried_at + AGAIN_S)

    def is_over(self, now: float, wall: float, offset: float | None) -> bool:
        """Return whether no request may be sent with the token, or not until its source has been asked again."""
        if self.ends_at is None or offset is None:
            return False
        return now + offset >= self.ends_at - MARGIN_S or abs(wall - now - self.wall_offset) > JUMP_S

    def tried(self, now: float, wall: float) -> None:
        """Note that the source gave no other token."""
        self.tried_at, self.wall_offset = now, wall - now
