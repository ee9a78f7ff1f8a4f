"""Reports the state of a run in a store: as `bulk runs` lists it, and as `bulk status` shows it."""

from pathlib import Path

import msgspec

from bulk.cluster.submission import next_command
from bulk.report.render.formatting import duration
from bulk.report.run_list import ListedRun, damaged
from bulk.report.run_state import sum_known
from bulk.store import runs
from bulk.store.connections import StoreConnection
from bulk.store.runs import DamagedRun, StoredRun, StoredWave


class StoredWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has worked on a run.

    Attributes:
        engine: the tag of its engine: version and digest of the operations.
        shards: how many shards it holds now (count).
        seen_at: when the store last heard of it.
        exit_code: the exit code of its part in the run; None while it works.
    """

    name: str
    engine: str
    shards: int
    seen_at: float
    exit_code: int | None
    why: str


class StoredJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a run in a store.

    Attributes:
        wave: the last of its waves that is open (number). waves: how many it has (count).
        opens_at: when the next wave begins, by the database's clock; None: no wave waits for its time.
    """

    name: str
    operation: str
    items: int | None
    outcomes: dict[str, int]
    wave: int = 1
    waves: int = 1
    opens_at: float | None = None


class StoredStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run in a store stands.

    Attributes:
        state: `running`, `pausing`, `paused`, `stopping`, `stopped` or `complete`.
        at: when the status was read, by the database's clock.
        ended_at: when the run was complete; None before.
        shards: parts that the run is cut into (count). shards_done: those of which every item has ended (count).
        workers: all workers that have worked on the run.
        next_command: the command to give next; empty where there is nothing to do.
    """

    name: str
    state: str
    why: str
    at: float
    started_at: float
    ended_at: float | None
    jobs: list[StoredJob]
    shards: int
    shards_done: int
    workers: list[StoredWorker]
    next_command: str


def listed(run: StoredRun | DamagedRun) -> ListedRun:
    """Return a run as `bulk runs` lists it; its name stands for its directory."""
    if isinstance(run, DamagedRun):
        return damaged(Path(run.name), run.why)
    outcomes: dict[str, int] = {}
    for counts in run.counts.values():
        for outcome, items in counts.items():
            outcomes[outcome] = outcomes.get(outcome, 0) + items
    return ListedRun(
        run_dir=run.name,
        name=run.identity.name,
        state=run.state,
        items=sum_known(items if items >= 0 else None for _, _, items in run.identity.jobs),
        outcomes=outcomes,
        started_at=run.began_at,
        ended_at=run.ended_at,
        exit_code=None if run.is_live else run.exit_code,
        why=run.why,
    )


def status_of(store: StoreConnection, name: str, address: str) -> StoredStatus:
    """Return where the run of that name stands; `address`: the address of the store, as the user gave it.

    Raises:
        UsageError: there is no run of that name.
        RunStopped: the store can't be reached.
    """
    run = runs.find(store, name)
    waves = {number: run.waves.get(number, StoredWave(1, 1, None)) for number in range(len(run.identity.jobs))}
    return StoredStatus(
        name=run.name,
        state=run.state,
        why=run.why,
        at=run.at,
        started_at=run.began_at,
        ended_at=run.ended_at,
        jobs=[
            StoredJob(
                name=job,
                operation=operation,
                items=items if items >= 0 else None,
                outcomes=dict(run.counts.get(number, {})),
                wave=waves[number].open,
                waves=waves[number].of,
                opens_at=waves[number].opens_at,
            )
            for number, (job, operation, items) in enumerate(run.identity.jobs)
        ],
        shards=run.shards,
        shards_done=run.done,
        workers=[
            StoredWorker(
                name=each.worker,
                engine=each.engine,
                shards=each.shards,
                seen_at=each.seen_at,
                exit_code=each.exit_code,
                why=each.why,
            )
            for each in runs.participants(store, run.id)
        ],
        next_command=next_command(run, address),
    )


def as_text(status: StoredStatus) -> str:
    """Return a status for people."""
    why = f": {status.why}" if status.why else ""
    lines = [f"{status.name} {status.state}{why}", f"{status.shards_done:,} of {status.shards:,} shards done", ""]
    width = max((len(job.name) for job in status.jobs), default=0)
    for job in status.jobs:
        done = sum(job.outcomes.values())
        items = f"{done:,}" if job.items is None else f"{done:,} of {job.items:,}"
        ended = ", ".join(f"{count:,} {outcome}" for outcome, count in job.outcomes.items())
        wave = f", wave {job.wave} of {job.waves}" if job.waves > 1 else ""
        lines.append(f"{job.name:{width}}  {items} items{wave}{': ' + ended if ended else ''}")
        if job.opens_at is not None:
            left_s = max(0.0, job.opens_at - status.at)
            lines.append(f"wave {job.wave + 1} of {job.waves} of {job.name} begins in {duration(left_s)}")
    for worker in status.workers:
        if worker.shards:
            silent_s = max(0.0, status.at - worker.seen_at)
            lines.append(f"worker {worker.name} has {worker.shards:,} shards, heard of {silent_s:.0f} s ago")
    has_its_time = any(job.opens_at is not None for job in status.jobs)
    if status.state == "running" and not has_its_time and not any(worker.shards for worker in status.workers):
        lines.append("no worker is at work on it")
    if status.next_command:
        lines += ["", status.next_command]
    return "\n".join(lines)
