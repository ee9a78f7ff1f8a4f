"""Answers that are judged together: their mean latency, and how far it is to be trusted. Pure."""

from dataclasses import dataclass

USED = 0.75
"""If less than this share of the answers came while the limit was used up, something else held requests back."""
MOST_NOISE = 8.0


@dataclass(slots=True)
class Round:
    """Answers that are judged together.

    Attributes:
        skip: answers still to come to requests that left before the round began (count). least: fewest answers (count).
        limit: requests that were allowed when the round began (count).
        count: answers so far. used: those of them that came while the limit was used up (counts).
        sum_n, sum_s, sum_ss: sums of the numbers in flight, of the latencies (seconds) and of their squares.
        spent_s: how long the round took, by Little's law (seconds).
    """

    skip: int
    least: float
    limit: float
    count: int = 0
    used: int = 0
    sum_n: int = 0
    sum_s: float = 0.0
    sum_ss: float = 0.0
    spent_s: float = 0.0

    @property
    def mean_s(self) -> float:
        """Mean latency (seconds)."""
        return self.sum_s / self.count

    @property
    def mean_n(self) -> float:
        """Mean number of requests in flight (count)."""
        return self.sum_n / self.count

    @property
    def noise(self) -> float:
        """Square of deviation by mean."""
        return min(MOST_NOISE, max(0.0, self.sum_ss * self.count / (self.sum_s * self.sum_s) - 1.0))

    @property
    def is_idle(self) -> bool:
        """Whether something else held back too many requests for the round to say anything."""
        return self.used < USED * self.count
