"""Reasons to ask a person before a checked manifest runs: it can't be undone, or it writes many items.

Source: interface.md §4, `bulk run`.
"""

from collections.abc import Iterator

from bulk.bundle.checked import Checked, JobCheck
from bulk.manifest.manifest import Job

USUAL_MOST_WRITES = 100
"""A person is asked before a run that writes more items than this (count)."""


def reasons_to_ask(checked: Checked, above: int = USUAL_MOST_WRITES) -> list[str]:
    """Return a sentence for each reason to ask; without any, the run may begin without a question.

    Args:
        above: most items that a run may write without a question (count).
    """
    pairs = list(zip(checked.manifest.jobs, checked.jobs, strict=True))
    reasons = [
        f"{_items(found, job)} of {job.name}: {job.operation.name} can't be undone"
        for job, found in pairs
        if job.operation.is_irreversible and (found.items or job.derivation is not None)
    ]
    writes = [(job, found) for job, found in pairs if not job.operation.is_read]
    count = sum(found.items - found.superseded for _, found in writes)
    if count > above:
        reasons.append(f"{count:,} items would be written, which is more than {above:,} (--confirm-above)")
    return [*reasons, *_uncounted(writes)]


def _uncounted(writes: list[tuple[Job, JobCheck]]) -> Iterator[str]:
    for job, _ in writes:
        if job.derivation is not None and not job.operation.is_irreversible:
            yield f"{job.name} writes items from the results of {job.derivation.job}, nobody knows yet how many"


def _items(found: JobCheck, job: Job) -> str:
    if job.derivation is not None:
        return "an unknown number of items"
    return "1 item" if found.items == 1 else f"{found.items:,} items"
