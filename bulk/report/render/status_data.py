"""`bulk status --json` and `bulk rate-limit --json`: where a run or a credential stands, as data.

What the ledger counts is certain; `status` is what the run's process last said.
"""

from collections.abc import Sequence

import msgspec

from bulk.ledger.view import LedgerView
from bulk.report.run_state import Standing, next_command, stand
from bulk.status import BucketStatus, RunStatus

STALE_S = 15.0
"""A running process says where it stands about every second; a status older than this is marked (seconds)."""


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One job, as the ledger counts it."""

    name: str
    operation: str
    items: int | None
    left: int | None
    outcomes: dict[str, int]
    superseded: int


class EpochStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The last start of the run.

    Attributes:
        ended_at: None while it runs, and where its process was killed.
        pid: process that runs or ran it. host: machine of that process.
        exit_code: None as `ended_at`.
    """

    number: int
    started_at: float
    ended_at: float | None
    pid: int
    host: str
    exit_code: int | None


class StatusData(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands.

    Attributes:
        state: `running`, `pausing`, `paused` or `draining` while a process drives it; `complete`; `stopped`: work is
            left; `lost`: also, and the process was killed.
        exit_code: what the command exited with or would; None while it runs.
        epoch: None where it never started.
        is_stale: the last status is old: the process is gone, or has said nothing for 15 seconds.
        status: what the process last said; its `state` and `pid` are those of now. None where it said nothing.
    """

    name: str
    base_url: str
    run_dir: str
    state: str
    exit_code: int | None
    why: str
    items: int | None
    left: int | None
    outcomes: dict[str, int]
    superseded: int
    jobs: tuple[JobCounts, ...]
    epoch: EpochStatus | None
    is_stale: bool
    status: RunStatus | None
    next_command: str


class BucketLeft(msgspec.Struct, frozen=True, kw_only=True):
    """One bucket of a credential: `limit`, `remaining` and `reset_at` are None where the platform limits nothing."""

    credential: str
    category: str
    limit: int | None
    remaining: int | None
    reserve: int
    reset_at: float | None


def buckets(found: Sequence[BucketStatus]) -> list[BucketLeft]:
    """Return what is left of each bucket."""
    return [
        BucketLeft(
            credential=bucket.credential,
            category=bucket.category,
            limit=bucket.limit,
            remaining=bucket.remaining,
            reserve=bucket.reserve,
            reset_at=bucket.reset_at,
        )
        for bucket in found
    ]


def data(view: LedgerView, *, now: float, live: RunStatus | None = None) -> StatusData:
    """Return where the run of `view` stands at `now` (UTC epoch seconds). `live`: what its process says at this moment.

    Raises:
        RunDirectoryError: the run directory can't be read.
    """
    standing = stand(view, now, live)
    return told(standing, view.identity().base_url, str(view.run_dir), next_command(standing, view.run_dir), now)


def told(standing: Standing, base_url: str, place: str, command: str, now: float) -> StatusData:
    """Return where a run stands whose standing is known. `place`: its directory, or where else it is; `command`: what
    goes on with it."""
    return StatusData(
        name=standing.name,
        base_url=base_url,
        run_dir=place,
        state=standing.state,
        exit_code=None if standing.is_live else standing.exit_code,
        why=standing.why,
        items=standing.items,
        left=standing.left,
        outcomes=standing.outcomes,
        superseded=standing.superseded,
        jobs=tuple(
            JobCounts(
                name=job.name,
                operation=job.operation,
                items=job.items,
                left=job.left,
                outcomes=dict(job.outcomes),
                superseded=job.superseded,
            )
            for job in standing.jobs
        ),
        epoch=_epoch(standing),
        is_stale=is_stale(standing, now),
        status=_status(standing),
        next_command=command,
    )


def is_stale(standing: Standing, now: float) -> bool:
    """Return whether what the process last said is old."""
    if standing.last is None or not (standing.is_live or standing.state == "lost"):
        return False
    return standing.state == "lost" or now - standing.last.at > STALE_S


def _epoch(standing: Standing) -> EpochStatus | None:
    if not standing.epochs:
        return None
    last = standing.epochs[-1]
    return EpochStatus(
        number=last.number,
        started_at=last.started_at,
        ended_at=last.ended_at,
        pid=last.pid,
        host=last.host,
        exit_code=last.exit_code,
    )


def _status(standing: Standing) -> RunStatus | None:
    """Return the last status; what a process that is gone said of itself is corrected."""
    if standing.last is None or standing.is_live:
        return standing.last
    return msgspec.structs.replace(standing.last, state=standing.state, pid=None)
