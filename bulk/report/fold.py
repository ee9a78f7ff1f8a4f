"""One Report, folded from a run's ledger and result lines; text, JSON and HTML are made from it and from nothing else.

The counts come from the ledger, and so does the tally that the run kept. Without a tally, the lines of `results.jsonl`
are read once and streamed: ten million cost no more memory than ten. Read `record.py` (what a report says),
`run_state.py` (where a run stands), `tally.py` (what the items say), then this.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from bulk.clock import Clock
from bulk.errors import ANOTHER_RUN, UNDECODABLE, RunDirectoryError
from bulk.exit_codes import MEANINGS
from bulk.ledger.directory import RESULTS
from bulk.ledger.records import Action, Epoch
from bulk.ledger.view import LedgerView
from bulk.model import ErrorCode, OutcomeKind
from bulk.redaction import redact_json
from bulk.report.active_time import ActiveTime
from bulk.report.record import (
    HINTS,
    ActionReport,
    BucketReport,
    EpochReport,
    ErrorCount,
    JobReport,
    Report,
    WaitReport,
)
from bulk.report.render.formatting import counted
from bulk.report.run_state import RunJob, RunState, next_command, run_state_of
from bulk.report.tally import Tally
from bulk.status import STATES

__all__ = ["Report", "fold"]

MOST_WAITS = 50
MOST_EPOCHS = 100
MOST_ACTIONS = 100
_MANY = 20
_NAMED = 3
"""At most this many jobs with the same cause are named."""
_ACCESS = frozenset((ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND, ErrorCode.UNAUTHORIZED))


def fold(view: LedgerView, *, notes: Iterable[str] = (), now: float | None = None) -> Report:
    """Return the report of the run of `view`, which has ended or still goes on.

    A process that folds its own run ends its epoch in the ledger first (`Ledger.finish`), or the run counts as running.

    Args:
        notes: what else a person should know, such as what the check found.
        now: UTC epoch seconds; None: this machine's clock.

    Raises:
        RunDirectoryError: the run directory can't be read, or is damaged.
    """
    now = Clock().now() if now is None else now
    run_state = run_state_of(view, now)
    spans = list(_spans(run_state, now))
    time = ActiveTime(spans)
    names = [job.name for job in run_state.jobs]
    tally = _tally(view, names, time)
    codes: dict[str, list[tuple[str, int]]] = {}
    for name, code, items in view.error_counts():
        codes.setdefault(name, []).append((code, items))
    jobs = tuple(_job(job, tally, time, codes.get(job.name, ())) for job in run_state.jobs)
    identity = view.identity()
    started_at, ended_at = (spans[0][0], spans[-1][1]) if spans else (now, now)
    report = Report(
        name=identity.name,
        base_url=identity.base_url,
        vendor=identity.vendor,
        run_dir=str(view.run_dir),
        state=run_state.state,
        exit_code=run_state.exit_code,
        meaning=MEANINGS.get(run_state.exit_code, "stopped early with work left"),
        why=run_state.why,
        started_at=_moment(started_at),
        ended_at=_moment(ended_at),
        wall_s=round(max(0.0, ended_at - started_at), 3),
        active_s=round(time.total_s, 3),
        items=run_state.items,
        outcomes=run_state.outcomes,
        left=run_state.left,
        superseded=run_state.superseded,
        not_modified=sum(job.not_modified for job in jobs),
        per_second=_per_second(sum(run_state.outcomes.values()), time.total_s),
        requests=_sum(run_state, "requests"),
        retries=_sum(run_state, "retries"),
        settled=_sum(run_state, "settled"),
        jobs=jobs,
        buckets=tuple(_buckets(run_state)),
        waits=tuple(_waits(run_state)),
        epochs=tuple(_epoch(epoch, span) for epoch, span in zip(run_state.epochs, spans, strict=True))[-MOST_EPOCHS:],
        slowest=tally.slowest,
        timeline=tally.timeline if spans else None,
        actions=tuple(_action(action) for action in view.actions()[-MOST_ACTIONS:]),
        head=view.head(),
        next_command=next_command(run_state, view.run_dir),
        notes=(*_notes(run_state, jobs), *notes),
    )
    return _redacted(report)


def _redacted(report: Report) -> Report:
    """Return `report` without secrets. The words of Bulk, the run directory, the platform and the names of jobs and
    operations stay as they are, because later commands must find them.
    """
    given = (report.run_dir, report.base_url, report.vendor, *(job.name for job in report.jobs))
    kinds = (job.operation for job in report.jobs)
    words = (*OutcomeKind, *ErrorCode, *STATES, *MEANINGS.values(), *given, *kinds)
    data = msgspec.json.encode(report)
    clean = redact_json(data, frozenset(msgspec.json.encode(str(word))[1:-1] for word in words))
    return report if clean is data else msgspec.json.decode(clean, type=Report)


def tally_of_a_running(view: LedgerView, now: float) -> Tally | None:
    """Return the tally of this process's own run so far, to be kept up to date; None where the result lines must be
    read at the end of the run.

    Raises:
        RunDirectoryError: the ledger can't be read.
    """
    run_state = run_state_of(view, now)
    spans = list(_spans(run_state, now))
    time = ActiveTime([*spans[:-1], (spans[-1][0], math.inf)])
    try:
        return _stored(view, [job.name for job in run_state.jobs], time)
    except UNDECODABLE:
        return None


def _stored(view: LedgerView, names: Sequence[str], time: ActiveTime) -> Tally | None:
    tallies = view.tallies()
    return Tally(names, time, tallies) if tallies is not None else None


def _tally(view: LedgerView, names: Sequence[str], time: ActiveTime) -> Tally:
    """Return the tally that the run kept, or else one made from its result lines."""
    try:
        tally = _stored(view, names, time)
        if tally is None:
            tally = Tally(names, time)
            tally.read(view.lines())
    except UNDECODABLE as error:
        place = view.run_dir / RESULTS
        raise RunDirectoryError(f"{place} is damaged: {error}; restore it from a copy, or {ANOTHER_RUN}") from error
    return tally


def _spans(run_state: RunState, now: float) -> Iterator[tuple[float, float]]:
    """Yield start and end of each epoch. A killed epoch ended at its last status, or else when the next epoch began."""
    starts = [epoch.started_at for epoch in run_state.epochs]
    for epoch, following in zip(run_state.epochs, [*starts[1:], None], strict=False):  # there may be no epoch yet
        if following is None and run_state.is_live:
            end = now
        elif epoch.ended_at is not None:
            end = epoch.ended_at
        elif epoch.status is not None:
            end = epoch.status.at
        else:
            end = epoch.started_at if following is None else following
        yield epoch.started_at, max(epoch.started_at, end)


def _job(job: RunJob, tally: Tally, time: ActiveTime, codes: Sequence[tuple[str, int]]) -> JobReport:
    lines = tally.jobs[job.name]
    active_s = 0.0
    if lines.first_at is not None and lines.last_at is not None:
        active_s = max(0.0, time.of(lines.last_at) - time.of(lines.first_at))
    done = sum(job.outcomes.values())
    errors = sorted(codes, key=lambda entry: (-entry[1], entry[0]))
    return JobReport(
        name=job.name,
        operation=job.operation,
        items=job.items,
        outcomes=dict(job.outcomes),
        left=job.left,
        superseded=job.superseded,
        not_modified=lines.not_modified,
        started_at=_moment(lines.first_at) if lines.first_at is not None else None,
        ended_at=_moment(lines.last_at) if lines.last_at is not None else None,
        active_s=round(active_s, 3),
        per_second=_per_second(done, active_s) if done > 1 else 0.0,
        elapsed=lines.elapsed,
        errors=tuple(
            ErrorCount(code=code, count=count, hint=HINTS.get(code, ""), example=lines.examples.get(code))
            for code, count in errors
        ),
        problems=lines.problems,
        slowest=lines.slowest,
    )


def _per_second(items: int, seconds: float) -> float:
    return round(items / seconds, 3) if seconds > 0 else 0.0


def _sum(run_state: RunState, field: str) -> int:
    """Return the sum of a field of the status over all epochs, each of which counts from zero."""
    return sum(getattr(epoch.status, field) for epoch in run_state.epochs if epoch.status is not None)


def _buckets(run_state: RunState) -> Iterator[BucketReport]:
    used: dict[tuple[str, str], int] = {}
    last = {}
    for epoch in run_state.epochs:
        for bucket in epoch.status.buckets if epoch.status is not None else ():
            key = (bucket.credential, bucket.category)
            used[key] = used.get(key, 0) + bucket.used
            if bucket.limit is not None or bucket.used or key not in last:  # else this start had nothing to learn of it
                last[key] = bucket
    for key, bucket in sorted(last.items(), key=lambda entry: (-used[entry[0]], entry[0])):
        if used[key]:
            yield BucketReport(
                credential=bucket.credential,
                category=bucket.category,
                used=used[key],
                limit=bucket.limit,
                remaining=bucket.remaining,
                reserve=bucket.reserve,
                reset_at=_moment(bucket.reset_at) if bucket.reset_at is not None else None,
            )


def _waits(run_state: RunState) -> Iterator[WaitReport]:
    if run_state.state == "complete" or run_state.last is None:
        return
    for wait in sorted(run_state.last.waits, key=lambda each: -each.count)[:MOST_WAITS]:
        yield WaitReport(
            what=wait.what,
            count=wait.count,
            until=_moment(wait.until) if wait.until else None,
            error=wait.error,
            errors=wait.errors,
        )


def _epoch(epoch: Epoch, span: tuple[float, float]) -> EpochReport:
    return EpochReport(
        number=epoch.number,
        started_at=_moment(span[0]),
        ended_at=_moment(span[1]),
        active_s=round(span[1] - span[0], 3),
        exit_code=epoch.exit_code,
        why=epoch.why or "",
        requests=epoch.status.requests if epoch.status is not None else 0,
        retries=epoch.status.retries if epoch.status is not None else 0,
    )


def _action(action: Action) -> ActionReport:
    return ActionReport(
        at=_moment(action.at),
        who=action.who,
        verb=action.verb,
        args={name: str(value) for name, value in action.args.items()},
        result=action.result,
    )


def _notes(run_state: RunState, jobs: Sequence[JobReport]) -> Iterator[str]:
    silent = sum(epoch.ended_at is None for epoch in run_state.epochs[:-1]) + (run_state.state == "lost")
    if len(run_state.epochs) > 1:
        times = counted(len(run_state.epochs), "time")
        yield f"It was started {times}, and each start continued where the one before had ended."
    if silent:
        yield (
            f"{counted(silent, 'start')} ended unexpectedly (killed, or the machine stopped): requests sent after "
            "its last status are not in the number of requests. No outcome was lost by it."
        )
    if run_state.superseded:
        yield f"{counted(run_state.superseded, 'item')} skipped because a later one does the same: nothing is missing."
    refused_jobs: dict[str, list[str]] = {}
    for job in jobs:
        refused = [error for error in job.errors if error.code in _ACCESS]
        if job.done >= _MANY and sum(error.count for error in refused) == job.done:
            refused_jobs.setdefault(" or ".join(error.code for error in refused), []).append(job.name)
    for codes, names in refused_jobs.items():
        more = f" and {counted(len(names) - _NAMED, 'more job')}" if len(names) > _NAMED else ""
        yield (
            f"Every item of {', '.join(names[:_NAMED])}{more} was refused with {codes}: "
            "most likely the credential lacks a scope or its user a role, or the names are wrong"
            + (", or the path of platform.base_url is." if codes == ErrorCode.NOT_FOUND else ".")
        )


def _moment(at: float) -> datetime:
    """Return the moment `at` to the millisecond; for a moment outside the calendar, 1970 or its last moment."""
    try:
        return datetime.fromtimestamp(round(at, 3), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC) if at > 0 else datetime.fromtimestamp(0, UTC)
