"""Answers that are judged together: their mean latency, how far it is to be trusted. Pure."""

from dataclasses import dataclass

USED = 0.75
"""Where less than that share of the answers came while all that is allowed was in flight, something else held back."""
MOST_NOISE = 8.0


@dataclass(slots=True)
class Round:
    """Answers that are judged together.

    Attributes:
    skip: answers still to come to what left before it began (count). least: answers that it has at least (count).
    limit: what was allowed when it began (count).
    count: answers. used: those of them that came while all that is allowed was in flight.
    sum_n, sum_s, sum_ss: in flight, latencies (seconds), their squares. spent_s: how long it took, by Little's law.
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
        """Mean of what was in flight (count)."""
        return self.sum_n / self.count

    @property
    def noise(self) -> float:
        """Square of deviation by mean."""
        return min(MOST_NOISE, max(0.0, self.sum_ss * self.count / (self.sum_s * self.sum_s) - 1.0))

    @property
    def is_idle(self) -> bool:
        """Whether too much was held back by something else for it to say anything."""
        return self.used < USED * self.count
