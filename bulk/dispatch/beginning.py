"""How far each job is when a run begins, or goes on: what the ledger says, counted once. Source: design.md §6."""

from bulk.dispatch.progress import JobProgress
from bulk.ledger.ledger import Ledger
from bulk.ledger.view import LedgerView
from bulk.manifest.checking import Checked
from bulk.model import ErrorCode, OutcomeKind


def progress_of(checked: Checked, ledger: Ledger) -> list[JobProgress]:
    """How far each job is by the ledger; blocks, for some tenths of a second where millions of items are done.

    Raises:
        RunDirectoryError, RunStopped: the ledger can't be read.
    """
    counts = ledger.counts()
    view = LedgerView(ledger.run_dir)
    superseded = {job: count for job, code, count in view.error_counts() if code == ErrorCode.SUPERSEDED.value}
    progress: list[JobProgress] = []
    for job, check in zip(checked.manifest.jobs, checked.jobs, strict=True):
        ended = {OutcomeKind(kind): count for kind, count in counts.get(job.number, {}).items() if count}
        done, is_known = ledger.done_bits(job.number, check.items), job.derivation is None
        progress.append(
            JobProgress(check.items, done, ended, superseded=superseded.get(job.name, 0), is_known=is_known)
        )
    return progress
