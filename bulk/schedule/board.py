"""Says when jobs are complete and how they went. A process that works alone sees it itself; one of several does not."""

from collections.abc import Sequence
from typing import Protocol

from bulk.schedule.job_progress import JobProgress


class Board(Protocol):
    """What is known of the jobs of a run, whichever processes work on it.

    Attributes:
        is_shared: other processes work on the run, too: this one does only the parts that join (`Scheduler.join`).
        expects_more: items may still join, so the run does not end when nothing is left now.
        free: items that no process works on yet and that this one may get (count).
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
