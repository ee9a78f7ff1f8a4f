"""Is the platform in reach? Told by what was answered and what was not; pure, monotonic times come in.

A few requests in a row without any answer, and one at a time asks again after growing pauses, until an answer comes or
the user's limit is over. Source: interface.md §2 (`limits.unreachable`); failures.md rows 1, 2.
"""

from dataclasses import dataclass

SILENT_AFTER = 3
"""So many requests in a row without an answer: the platform is out of reach."""
RETRY_FIRST_S, RETRY_MOST_S = 0.1, 5.0


@dataclass(slots=True)
class Reachability:
    """Knows whether the platform can be reached, and since when it can't.

    Attributes:
        limit_s: how long a silent platform is asked (seconds).
        unanswered: requests in a row without an answer (count), the first of them at `since`.
        retry_at: when the next may ask.
    """

    limit_s: float
    unanswered: int = 0
    since: float = 0.0
    retry_at: float = 0.0

    @property
    def is_silent(self) -> bool:
        """Whether one at a time asks."""
        return self.unanswered >= SILENT_AFTER

    def failed(self, now: float, *, is_answer: bool = False) -> bool:
        """A request got no answer, or one that can't be used (`is_answer`); returns whether the limit is over."""
        if is_answer:
            self.unanswered = 0
            return False
        if self.unanswered == 0:
            self.since = now
        self.unanswered += 1
        doublings = min(10, max(0, self.unanswered - SILENT_AFTER))
        self.retry_at = now + min(RETRY_MOST_S, RETRY_FIRST_S * 2.0**doublings)
        return self.is_silent and now - self.since > self.limit_s

    def answered(self) -> bool:
        """An answer came; returns whether the platform had been silent before it."""
        was_silent, self.unanswered = self.unanswered > 0, 0
        return was_silent
