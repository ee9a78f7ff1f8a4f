"""Times that are measured on a machine that does other things, too: what took too long is tried again."""

import math
from collections.abc import Callable
from typing import Final

TRIES: Final = 3


def quickest(measured: Callable[[int], float], most: float) -> float:
    """The first time that is at most `most`, or else the least of all tries: a machine that stands still for a moment
    spoils one of them, a defect all.

    Args:
        measured: does it, and tells how long it took; it is told the number of the try.
    """
    least = math.inf
    for number in range(TRIES):
        least = min(least, measured(number))
        if least <= most:
            break
    return least
