"""How what the platform has accepted, and does in the background, is followed: looks with pauses that grow.

Pure; the engine does the waiting (`Request.pause_s`). Source: failures.md row 14.
"""

from collections.abc import Iterator

FIRST_S, GROWTH, LONGEST_S = 0.5, 1.6, 30.0
"""The first pause, the factor from one to the next, the longest (seconds)."""

MOST_S = 600.0
"""How long something is followed before its outcome is `unknown` (seconds of pauses)."""


def pauses(most_s: float = MOST_S) -> Iterator[float]:
    """Yield the pause before each look (seconds), until they are `most_s` together."""
    pause_s, waited_s = FIRST_S, 0.0
    while waited_s < most_s:
        waited_s += pause_s
        yield pause_s
        pause_s = min(LONGEST_S, pause_s * GROWTH)
