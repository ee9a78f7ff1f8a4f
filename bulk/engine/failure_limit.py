"""`limits.failures`: when so many items have failed that the run stops."""

from collections.abc import Sequence

from bulk.errors import RunStopped
from bulk.model import Outcome, OutcomeKind
from bulk.quantities import Share
from bulk.schedule.job_progress import JobProgress

SHARES_FROM = 100
"""A share is of the items that have ended, from so many on (count)."""


def exceeded(limit: Share | None, outcome: Outcome, progress: Sequence[JobProgress]) -> RunStopped | None:
    """Return why the run has to stop; None where it goes on. `outcome` is not counted yet."""
    if limit is None or outcome.kind is not OutcomeKind.FAILED:
        return None
    failed = sum(each.ended.get(OutcomeKind.FAILED, 0) for each in progress) + 1
    finished = sum(sum(each.ended.values()) for each in progress) + 1
    if (limit.fraction is not None and finished < SHARES_FROM) or failed <= limit.of(finished):
        return None
    return RunStopped(f"{failed:,} of {finished:,} items failed, more than limits.failures allows")
