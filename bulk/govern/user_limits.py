"""The user's limits for a governor, and the error that tells waiting workers that the run ends."""

from collections.abc import Callable
from dataclasses import dataclass


class Draining(Exception):
    """The run is ending: a worker that would have to wait gets no permit any more."""


@dataclass(frozen=True, slots=True)
class UserLimits:
    """The limits that the user set.

    Attributes:
        concurrency: most requests in flight (count).
        reserve: takes the size of a window and returns how many of its requests to leave to others (counts).
        is_even: pace `even`; otherwise `burst`.
        unreachable_s: how long a silent platform is asked before the run stops (seconds).
        unexplained_s: first pause after an unexplained refusal (seconds).
    """

    concurrency: int
    reserve: Callable[[int], int]
    is_even: bool = True
    unreachable_s: float = 300.0
    unexplained_s: float = 60.0
