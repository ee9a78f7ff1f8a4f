"""Reads from the ledger, once, where a run begins or goes on after earlier processes. Source: design.md §6."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import orjson

from bulk.bundle.checked import Checked
from bulk.bundle.links import edges_of
from bulk.execute.writes.late_writes import LateWrite, LateWrites, folded
from bulk.execute.writes.recent_writes import RecentCreations, RecentWrites, names_made
from bulk.ledger.protocol import RunLedger, RunView
from bulk.ledger.records import Intent
from bulk.manifest.manifest import Job
from bulk.model import Effect, ErrorCode, Outcome, OutcomeKind
from bulk.operation import AnyOperation, Item
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.queues import Part

log = logging.getLogger("bulk.execute")

TAIL_BYTES = 8 * 1024 * 1024
"""Bytes of the newest results that tell what was written last: some 20,000 writes, more than a settle time has."""


@dataclass(frozen=True, slots=True)
class ResumeState:
    """What a process of a run finds when it begins.

    Attributes:
        progress: how far each job is.
        open_intents: the intents of writes that were sent and whose end was not seen, by (job, index).
        late_writes: writes that were sent twice, and may still arrive.
        recent_writes: what was changed last, which a copy of the platform may not show yet.
        recent_creations: what was created last, likewise.
        unsuccessful: indexes of items that ended without success, by job number; only of jobs that are needed by key.
        overwritten: open intents of writes that begin anew, and overwrite whatever is there; see `without_comparing`.
    """

    progress: Sequence[JobProgress]
    open_intents: Mapping[tuple[int, int], Intent]
    late_writes: LateWrites
    recent_writes: RecentWrites
    recent_creations: RecentCreations
    unsuccessful: Mapping[int, Sequence[int]] = field(default_factory=dict)
    overwritten: Mapping[tuple[int, int], Intent] = field(default_factory=dict)

    def without_comparing(self) -> "ResumeState":
        """Return this state with the open intents of writes that change what is there set aside: those begin anew, and
        overwrite whatever is there now. A creation is still looked for before it is sent again."""
        changes = (Effect.COMPARE_AND_SWAP, Effect.SET)
        aside = {key: sent for key, sent in self.open_intents.items() if sent.effect in changes}
        kept = {key: sent for key, sent in self.open_intents.items() if key not in aside}
        return replace(self, open_intents=kept, overwritten=aside)


@dataclass(frozen=True, slots=True)
class Joined:
    """Items that a worker has taken on.

    Attributes:
        parts: where the items lie, for the scheduler. items: indexes of those without an outcome, by job number.
        open_intents: the intents of their writes that were sent and whose end was not seen, by (job, index).
    """

    parts: Sequence[Part]
    items: Mapping[int, Iterable[int]]
    open_intents: Mapping[tuple[int, int], Intent]


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a line of the results tells of a write; `is_sent`: whether anything was sent."""

    operation: AnyOperation
    item: Item
    outcome: Outcome
    is_sent: bool


def begin(checked: Checked, ledger: RunLedger, settle_s: float, now: float, *, overwrites: bool = False) -> ResumeState:
    """Read the resume state; blocks, for some tenths of a second where millions of items are done.

    Args:
        now: monotonic seconds. Earlier writes count as done now, because their times are of another clock.
        overwrites: see `ResumeState.without_comparing`.

    Raises:
        RunDirectoryError, RunStopped: the ledger can't be read.
    """
    view = ledger.view()
    progress = _progress(checked, ledger, view)
    jobs = checked.manifest.jobs
    resume_state = ResumeState(
        progress,
        ledger.open_intents(),
        LateWrites(earlier_writes(jobs, ledger.late_writes(), view, now + settle_s)),
        RecentWrites(settle_s),
        RecentCreations(settle_s),
        {number: _unsuccessful(view, jobs[number]) for number in {edge.needed for edge in edges_of(jobs)}},
    )
    if any(not job.operation.is_read for job in jobs):
        remember_lines(resume_state, jobs, view.newest_lines(TAIL_BYTES), now)
    return resume_state.without_comparing() if overwrites else resume_state


def _unsuccessful(view: RunView, job: Job) -> list[int]:
    """Return the indexes of the items of a job that did not succeed, without superseded ones."""
    kinds = frozenset((OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN))
    lines = view.finished(kinds=kinds, job=job.name)
    return [line["index"] for line in lines if line["error"]["code"] != ErrorCode.SUPERSEDED]


def _progress(checked: Checked, ledger: RunLedger, view: RunView) -> list[JobProgress]:
    counts = ledger.counts()
    superseded = {job: count for job, code, count in view.error_counts() if code == ErrorCode.SUPERSEDED.value}
    progress: list[JobProgress] = []
    for job, check in zip(checked.manifest.jobs, checked.jobs, strict=True):
        ended = {OutcomeKind(kind): count for kind, count in counts.get(job.number, {}).items() if count}
        done, is_known = ledger.done_bits(job.number, check.items), job.derivation is None
        found = JobProgress(check.items, done, ended, superseded=superseded.get(job.name, 0), is_known=is_known)
        found.begin(check.items, done)
        progress.append(found)
    return progress


def earlier_writes(
    jobs: Sequence[Job], sent: Mapping[tuple[int, int], Intent], view: RunView, until: float
) -> Iterator[LateWrite]:
    """Yield the writes that were sent twice: each intent has the path, and the item, which has ended, has the lanes."""
    for job in jobs:
        indexes = [index for number, index in sent if number == job.number]
        lines = view.lines_of(job.number, indexes, TAIL_BYTES) if indexes else {}
        for index in indexes:
            intent, resource = sent[job.number, index], job.operation.resource
            ended = _ended(lines[index], {job.name: job.operation}) if index in lines else None
            lanes = None if ended is None else folded(resource, job.operation.lanes(ended.item))
            yield LateWrite((job.number, index), resource, lanes, intent.path.casefold(), intent.effect, until)


def remember_lines(resume_state: ResumeState, jobs: Sequence[Job], lines: Iterable[bytes], now: float) -> None:
    """Note what these lines of the results, the newest last, say was written and created."""
    writes = {job.name: job.operation for job in jobs if not job.operation.is_read}
    for line in lines if writes else ():
        ended = _ended(line, writes)
        if ended is not None:
            effect = Effect.CREATE if ended.is_sent else None  # the line does not say which: any may have created
            resume_state.recent_creations.add(names_made(ended.operation, ended.item, effect, ended.outcome), now)
            resume_state.recent_writes.add(ended.operation, ended.item, effect, ended.outcome, now)


def _ended(line: bytes, operations: Mapping[str, AnyOperation]) -> _Ended | None:
    """Return what `line` tells; None: its job is none of `operations` (by name), or it can't be used (too old, say)."""
    try:
        row = orjson.loads(line)
        operation = operations.get(row["job"])
        if operation is None:
            return None
        item = msgspec.convert(row["item"], operation.Item)
        return _Ended(
            operation, item, Outcome(kind=OutcomeKind(row["outcome"]), result=row["result"]), bool(row["attempts"])
        )
    except (ValueError, KeyError, TypeError) as flaw:  # then the platform is asked
        log.debug("a line of the results can't be used", exc_info=flaw)
        return None
