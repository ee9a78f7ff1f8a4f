"""What a run asks of its governor: the user's limits, and how those who wait are told that there is an end."""

from collections.abc import Callable
from dataclasses import dataclass


class Draining(Exception):
    """The run is ending: no permit is given any more to who would have to wait."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user set.

    Attributes:
        concurrency: most requests in flight (count).
        reserve: for a window of that many requests, how many to leave to others.
        is_even: pace `even`; otherwise `burst`.
        unreachable_s: how long a silent platform is asked before the run stops (seconds).
        unexplained_s: first pause after an unexplained refusal (seconds).
    """

    concurrency: int
    reserve: Callable[[int], int]
    is_even: bool = True
    unreachable_s: float = 300.0
    unexplained_s: float = 60.0
