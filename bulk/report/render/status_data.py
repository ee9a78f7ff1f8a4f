"""`bulk status --json` and `bulk rate-limit --json`: where a run or a credential stands, as data.

What the ledger counts is certain; `status` is what the run's process last said.
"""

from collections.abc import Sequence

import msgspec

from bulk.ledger.view import LedgerView
from bulk.report.run_state import RunState, next_command, run_state_of
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
        ended_at: when it ended; None while it runs, and where its process was killed.
        pid: process that runs or ran it. host: machine of that process.
        exit_code: exit code of its process; None where `ended_at` is None.
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
            left; `lost`: work is left, and the process was killed.
        exit_code: the exit code that the command had or would have; None while the run goes on.
        epoch: the last start of the run; None where it never started.
        is_stale: whether the last status is old: the process is gone, or has said nothing for 15 seconds.
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
    return msgspec.convert(found, list[BucketLeft], from_attributes=True)


def data(view: LedgerView, *, now: float, live: RunStatus | None = None) -> StatusData:
    """Return where the run of `view` stands at `now` (UTC epoch seconds). `live`: status that its process gives now.

    Raises:
        RunDirectoryError: the run directory can't be read.
    """
    run_state = run_state_of(view, now, live)
    return told(run_state, view.identity().base_url, str(view.run_dir), next_command(run_state, view.run_dir), now)


def told(run_state: RunState, base_url: str, place: str, command: str, now: float) -> StatusData:
    """Return the data of a run whose state is known. `place`: its directory, or its place elsewhere; `command`: the
    command that goes on with it."""
    return StatusData(
        name=run_state.name,
        base_url=base_url,
        run_dir=place,
        state=run_state.state,
        exit_code=None if run_state.is_live else run_state.exit_code,
        why=run_state.why,
        items=run_state.items,
        left=run_state.left,
        outcomes=run_state.outcomes,
        superseded=run_state.superseded,
        jobs=msgspec.convert(run_state.jobs, tuple[JobCounts, ...], from_attributes=True),
        epoch=msgspec.convert(next(reversed(run_state.epochs), None), EpochStatus | None, from_attributes=True),
        is_stale=is_stale(run_state, now),
        status=_status(run_state),
        next_command=command,
    )


def is_stale(run_state: RunState, now: float) -> bool:
    """Return whether the last status of the run's process is old."""
    if run_state.last is None or not (run_state.is_live or run_state.state == "lost"):
        return False
    return run_state.state == "lost" or now - run_state.last.at > STALE_S


def _status(run_state: RunState) -> RunStatus | None:
    """Return the last status; where its process is gone, `state` and `pid` are corrected."""
    if run_state.last is None or run_state.is_live:
        return run_state.last
    return msgspec.structs.replace(run_state.last, state=run_state.state, pid=None)
