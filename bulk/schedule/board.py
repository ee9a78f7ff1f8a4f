"""Says when jobs are complete and how they went. One process sees that by itself; of several, none does."""

from collections.abc import Sequence
from typing import Protocol

from bulk.schedule.job_progress import JobProgress


class Board(Protocol):
    """What is known of the jobs of a run, whoever works on it.

    Attributes:
        is_shared: others work on the run, too: this process does only what joins (`Scheduler.join`).
        expects_more: items may still join: that nothing is left now is no end.
        free: items that nobody works on yet, as far as this process may get them (count).
    """

    is_shared: bool
    expects_more: bool
    free: int

    def is_complete(self, job: int) -> bool:
        """Return whether every item of the job with that number has an outcome."""

    def unsuccessful(self, job: int) -> int:
        """Return how many of its items failed, were skipped or are unknown (count)."""


class LocalBoard:
    """The board of a process that does all of the work."""

    is_shared: bool = False
    expects_more: bool = False
    free: int = 0

    def __init__(self, progress: Sequence[JobProgress]) -> None:
        self._progress = progress

    def is_complete(self, job: int) -> bool:
        """See `Board`."""
        return self._progress[job].left == 0

    def unsuccessful(self, job: int) -> int:
        """See `Board`."""
        return self._progress[job].unsuccessful
