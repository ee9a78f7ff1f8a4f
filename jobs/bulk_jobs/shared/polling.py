"""How work is followed that the platform has accepted and does in the background: by reads with growing pauses.

Pure; the engine does the waiting (`Request.pause_s`). Source: failures.md row 14.
"""

from collections.abc import Iterator

FIRST_S, GROWTH, LONGEST_S = 0.5, 1.6, 30.0
"""The first pause (seconds), the factor from one pause to the next, and the longest pause (seconds)."""

MOST_S = 600.0
"""How long the work is followed before its outcome is `unknown` (seconds of pauses)."""


def pauses(most_s: float = MOST_S) -> Iterator[float]:
    """Yield the pause before each read (seconds), until their sum is `most_s`."""
    pause_s, waited_s = FIRST_S, 0.0
    while waited_s < most_s:
        waited_s += pause_s
        yield pause_s
        pause_s = min(LONGEST_S, pause_s * GROWTH)
