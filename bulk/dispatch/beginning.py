"""Where a run begins, or goes on: what the ledger says of the processes before, read once. Source: design.md §6."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import orjson

from bulk.dispatch.echoes import Echoes, earlier
from bulk.dispatch.last_writes import LastWrites
from bulk.dispatch.progress import JobProgress
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Intent
from bulk.ledger.view import LedgerView
from bulk.manifest.checking import Checked
from bulk.manifest.manifest import Job
from bulk.model import Effect, ErrorCode, Outcome, OutcomeKind
from bulk.operation import Operation

log = logging.getLogger("bulk.dispatch")

TAIL_BYTES = 8 * 1024 * 1024
"""So much of the newest results tells what was written last: some 20,000 writes, more than a settle time has."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a process of a run finds.

    Attributes:
        progress: how far each job is.
        open_intents: what was sent without seeing how it ended, by (job, index).
        echoes: what was sent twice, and may still arrive.
        last_writes: what was changed last, which a copy of the platform may not show yet.
    """

    progress: Sequence[JobProgress]
    open_intents: Mapping[tuple[int, int], Intent]
    echoes: Echoes
    last_writes: LastWrites


def begin(checked: Checked, ledger: Ledger, settle_s: float, now: float) -> Beginning:
    """Read it; blocks, for some tenths of a second where millions of items are done.

    Args:
        now: monotonic. What was done before counts as done now: when it was is told by another clock.

    Raises:
        RunDirectoryError, RunStopped: the ledger can't be read.
    """
    jobs = checked.manifest.jobs
    echoes = Echoes(earlier(ledger.echoes(), [job.operation.resource for job in jobs], now + settle_s))
    view = LedgerView(ledger.run_dir)
    progress = _progress(checked, ledger, view)
    return Beginning(progress, ledger.open_intents(), echoes, _last(jobs, view, settle_s, now))


def _progress(checked: Checked, ledger: Ledger, view: LedgerView) -> list[JobProgress]:
    counts = ledger.counts()
    superseded = {job: count for job, code, count in view.error_counts() if code == ErrorCode.SUPERSEDED.value}
    progress: list[JobProgress] = []
    for job, check in zip(checked.manifest.jobs, checked.jobs, strict=True):
        ended = {OutcomeKind(kind): count for kind, count in counts.get(job.number, {}).items() if count}
        done, is_known = ledger.done_bits(job.number, check.items), job.derivation is None
        progress.append(
            JobProgress(check.items, done, ended, superseded=superseded.get(job.name, 0), is_known=is_known)
        )
    return progress


def _last(jobs: Sequence[Job], view: LedgerView, settle_s: float, now: float) -> LastWrites:
    last = LastWrites(settle_s)
    operations = {job.name: job.operation for job in jobs if type(job.operation).left is not Operation.left}
    for line in view.newest_lines(TAIL_BYTES) if operations else ():
        try:
            row = orjson.loads(line)
            operation = operations.get(row["job"])
            if operation is not None:
                item = msgspec.convert(row["item"], operation.Item)
                outcome = Outcome(kind=OutcomeKind(row["outcome"]), result=row["result"])
                last.add(operation, item, Effect.COMPARE_AND_SWAP if row["attempts"] else None, outcome, now)
        except (ValueError, KeyError, TypeError) as flaw:  # of an older version, say: then the platform is asked
            log.debug("a line of the results can't be used", exc_info=flaw)
    return last
