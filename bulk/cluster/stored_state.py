"""The state of a run in a store, made of its sums and the last status of each worker, as if of one process. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bulk.errors import UNDECODABLE
from bulk.ledger.records import Epoch
from bulk.model import ErrorCode
from bulk.report.record import OUTCOMES
from bulk.report.run_state import RunJob, RunState
from bulk.status import JobStatus, RunStatus, Wait, WaitKind, buckets_of_all
from bulk.store.runs import COMPLETE, RUNNING, STOPPED, Participant, StoredRun

HEARD_S = 60.0
"""The age after which the status of a worker does not count any more (seconds)."""
_STATES = {"stopping": "draining"}
"""State of a run in the store -> the word for it in a run state."""


def state_of(
    run: StoredRun, participants: Sequence[Participant], errors: Iterable[tuple[str, str, int]], now: float
) -> RunState:
    """Return the state of a run.

    Args:
        errors: job, code and items (count) of each kind of failure.
        now: this machine's time (UTC epoch seconds).
    """
    jobs = _jobs(run, {job: items for job, code, items in errors if code == ErrorCode.SUPERSEDED})
    last = status_of(run, participants, now)
    is_over = run.state in (COMPLETE, STOPPED)
    ended_at = (run.ended_at or max((each.seen_at for each in participants), default=run.at)) if is_over else None
    epoch = Epoch(
        number=1, started_at=run.began_at, ended_at=ended_at, pid=0, host="", exit_code=None, why=run.why, status=last
    )
    return RunState(run.identity.name, last.state, None, run.why, jobs, last, (epoch,))


def status_of(run: StoredRun, participants: Sequence[Participant], now: float) -> RunStatus:
    """Return the status of a run; `now`: this machine's time (UTC epoch seconds)."""
    state, jobs = _STATES.get(run.state, run.state), _jobs(run, {})
    told = [(each, _said(each)) for each in participants if each.status is not None]
    at_work = [status for each, status in told if status and each.exit_code is None and run.at - each.seen_at < HEARD_S]
    all_told = [status for _, status in told if status]
    newest = max(at_work, key=lambda status: status.at, default=None)
    by_job = {job.name: job for status in sorted(all_told, key=lambda status: status.at) for job in status.jobs}
    silent_s = run.at - max((each.seen_at for each in participants), default=run.at)
    per_second = sum(status.per_second for status in at_work)
    left = [job.left for job in jobs]
    items_left = None if None in left else sum(filter(None, left))
    ends = per_second > 0 and items_left is not None and state == "running"
    return RunStatus(
        name=run.identity.name,
        state=state,
        at=now - max(0.0, silent_s if at_work else 0.0),
        started_at=run.began_at - (run.at - now),
        jobs=tuple(_job(each, by_job.get(each.name)) for each in jobs),
        buckets=buckets_of_all(all_told, at_work),
        waits=_waits(run, at_work, items_left or 0) + waits_for_time(run, run.at - now),
        requests=sum(status.requests for status in all_told),
        retries=sum(status.retries for status in all_told),
        settled=sum(status.settled for status in all_told),
        per_second=per_second,
        concurrency=sum(status.concurrency for status in at_work),
        in_flight=sum(status.in_flight for status in at_work),
        finish_at=now + (items_left or 0) / per_second if ends and newest else None,
        why=run.why,
    )


def _jobs(run: StoredRun, superseded: Mapping[str, int]) -> tuple[RunJob, ...]:
    return tuple(
        RunJob(
            name=name,
            operation=operation,
            items=items if items >= 0 else None,
            outcomes={kind: run.counts.get(number, {}).get(kind, 0) for kind in OUTCOMES},
            superseded=superseded.get(name, 0),
        )
        for number, (name, operation, items) in enumerate(run.identity.jobs)
    )


def _said(participant: Participant) -> RunStatus | None:
    try:
        return msgspec.json.decode(participant.status or b"", type=RunStatus, strict=False)
    except UNDECODABLE:
        return None


def _job(job: RunJob, said: JobStatus | None) -> JobStatus:
    is_over = job.left == 0
    return JobStatus(
        name=job.name,
        operation=job.operation,
        items=job.items,
        outcomes={kind: items for kind, items in job.outcomes.items() if items},
        in_flight=said.in_flight if said and not is_over else 0,
        state="complete" if is_over else said.state if said else "running",
        waits_for=said.waits_for if said and not is_over else (),
        failure=said.failure if said else "",
        failures=said.failures if said else 0,
    )


def waits_for_time(run: StoredRun, ahead_s: float) -> tuple[Wait, ...]:
    """Return the waits for waves that begin at a set time.

    Args:
        ahead_s: how far the database's clock is ahead of this machine's (seconds).
    """
    return tuple(
        Wait(
            f"wave {its.open + 1} of {its.of} of {run.identity.jobs[job][0]}",
            its.opens_at - ahead_s,
            max(1, run.identity.jobs[job][2] - sum(run.counts.get(job, {}).values())),
            WaitKind.GATE,
        )
        for job, its in run.waves.items()
        if its.opens_at is not None and run.state == RUNNING
    )


def _waits(run: StoredRun, at_work: Sequence[RunStatus], left: int) -> tuple[Wait, ...]:
    """Return the waits of all workers, each reason once; if no worker is at work, that is the only wait."""
    if run.state == "running" and not at_work and not run.workers:
        return (Wait(f"a worker of {run.engine}: none is at work on it", None, left, WaitKind.NEEDS),)
    found: dict[tuple[WaitKind | None, str], Wait] = {}
    for wait in (wait for status in at_work for wait in status.waits):
        what = (wait.kind, _steady(wait))
        known = found.get(what)
        found[what] = wait if known is None else _both(known, wait)
    return tuple(found.values())


def _steady(wait: Wait) -> str:
    """Return the reason of a wait without its rate: two workers spread one budget at different rates, but for the same
    reason.
    """
    return wait.what.partition(",")[0] if wait.kind is WaitKind.PACE else wait.what


def _both(one: Wait, other: Wait) -> Wait:
    until = _of_known(max, one.until, other.until)
    return Wait(
        _steady(one), until, one.count + other.count, one.kind, one.error or other.error, one.errors + other.errors
    )


def _of_known(pick: Callable[[float, float], float], one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else pick(one, other)
