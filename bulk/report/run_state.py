"""The state of a run by its ledger: complete, stopped, lost, or that of the process that drives it.

The report, `bulk status` and `bulk runs` agree on this state. A run whose last epoch has no end goes on while a process
holds its directory: it is `running`, `pausing`, `paused` or `draining`, as that process said last. Whether a process of
another machine holds the directory can't be known, so the time of its last status decides. A run whose last epoch has
no end and that does not go on is `lost`: its process was killed, or the power went.
"""

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bulk import exit_codes
from bulk.errors import RunDirectoryError
from bulk.ledger.directory import quoted, resuming
from bulk.ledger.records import Epoch
from bulk.ledger.view import LedgerView
from bulk.model import ErrorCode
from bulk.report.record import OUTCOMES
from bulk.report.wave_gates import ClosedGate, Gates, closed_gate, read_gates
from bulk.status import LIVE, RunStatus

SILENCE_S = 60.0
"""A run on another machine that has said nothing for longer counts as lost (seconds)."""


def sum_known(counts: Iterable[int | None]) -> int | None:
    """Return the sum of `counts`; None where one of them is not known."""
    found = list(counts)
    return None if None in found else sum(filter(None, found))


@dataclass(frozen=True, slots=True)
class RunJob:
    """One job: `items` and `left` are None where the number was never known; `outcomes` has all five."""

    name: str
    operation: str
    items: int | None
    outcomes: Mapping[str, int]
    superseded: int

    @property
    def left(self) -> int | None:
        """Items without an outcome (count)."""
        return None if self.items is None else max(0, self.items - sum(self.outcomes.values()))


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands.

    Attributes:
        state: one of `status.LIVE`, or `complete`, `stopped`, `lost`.
        stopped_with: the exit code that the process recorded when it stopped; None where it recorded none.
        last: the last status of the run; None where there never was one.
        epochs: all epochs of the run, in order.
        elsewhere: the command that goes on with a run that a store has (ready for a shell); empty: it goes on here.
    """

    name: str
    state: str
    stopped_with: int | None
    why: str
    jobs: tuple[RunJob, ...]
    last: RunStatus | None
    epochs: tuple[Epoch, ...]
    elsewhere: str = ""

    @property
    def outcomes(self) -> dict[str, int]:
        """How many items of all jobs ended how."""
        return {kind: sum(job.outcomes[kind] for job in self.jobs) for kind in OUTCOMES}

    @property
    def items(self) -> int | None:
        """Items of all jobs (count); None where a job's are not known."""
        return sum_known(job.items for job in self.jobs)

    @property
    def left(self) -> int | None:
        """Items without an outcome (count)."""
        return sum_known(job.left for job in self.jobs)

    @property
    def is_live(self) -> bool:
        """Whether a process drives the run."""
        return self.state in LIVE

    @property
    def is_to_retry(self) -> bool:
        """Whether the run is complete, and some items did not succeed that no later item makes superfluous."""
        return self.state == "complete" and self.exit_code != 0

    @property
    def superseded(self) -> int:
        """Skipped items that don't count against the exit code (count)."""
        return sum(job.superseded for job in self.jobs)

    @property
    def exit_code(self) -> int:
        """The exit code that the command had or would have; 3 while the run goes on and where it was lost."""
        is_complete = self.state == "complete"
        return exit_codes.of_run(
            self.outcomes, self.superseded, is_complete=is_complete, stopped_with=self.stopped_with
        )


def run_state_of(view: LedgerView, now: float, live: RunStatus | None = None) -> RunState:
    """Return where the run of `view` stands at `now` (UTC epoch seconds).

    Args:
        live: status that the process of the run gives at this moment; None: the last status in the ledger counts.

    Raises:
        RunDirectoryError: the ledger can't be read.
    """
    with view.at_once() as seen_now:
        identity, epochs = seen_now.identity(), _with_newest(tuple(seen_now.epochs()), live or seen_now.status())
        counts, elsewhere = seen_now.counts(), seen_now.elsewhere()
        superseded = {name: items for name, code, items in seen_now.error_counts() if code == ErrorCode.SUPERSEDED}
    newest = epochs[-1].status if epochs else None
    seen = {job.name: job.items for job in newest.jobs} if newest is not None else {}
    last = next((epoch.status for epoch in reversed(epochs) if epoch.status is not None), None)
    jobs = tuple(
        RunJob(
            name=name,
            operation=operation,
            items=_known(seen.get(name), items),
            outcomes={kind: counts.get(number, {}).get(kind, 0) for kind in OUTCOMES},
            superseded=superseded.get(name, 0),
        )
        for number, (name, operation, items) in enumerate(identity.jobs)
    )
    is_complete = all(job.left == 0 for job in jobs)
    is_running = bool(epochs) and _is_running(epochs[-1], view, now)
    ending = _ending(epochs, is_complete=is_complete, is_running=is_running)
    return RunState(identity.name, *ending, jobs, last, epochs, elsewhere)


def _known(seen: int | None, recorded: int) -> int | None:
    """Return the items (count) that the last epoch saw, else those recorded: derived items are counted in the run."""
    return seen if seen is not None else recorded if recorded >= 0 else None


def _with_newest(epochs: tuple[Epoch, ...], newest: RunStatus | None) -> tuple[Epoch, ...]:
    """Return `epochs`, the last of them with the newest status, which it has by itself only once it has ended."""
    if not epochs or newest is None or epochs[-1].status is not None or newest.at < epochs[-1].started_at:
        return epochs
    return (*epochs[:-1], msgspec.structs.replace(epochs[-1], status=newest))


def _ending(epochs: tuple[Epoch, ...], *, is_complete: bool, is_running: bool) -> tuple[str, int | None, str]:
    last = epochs[-1] if epochs else None
    if last is not None and is_running:
        told = last.status
        state = told.state if told is not None and told.state in LIVE else "running"
        return state, None, told.why if told is not None else ""
    if is_complete:
        return "complete", None, ""
    if last is None:
        return "stopped", None, "it was never started"
    if last.ended_at is None:
        return "lost", None, "it was killed, or the machine stopped"
    return "stopped", last.exit_code, last.why


def _is_running(last: Epoch, view: LedgerView, now: float) -> bool:
    if last.ended_at is not None:
        return False
    holder = view.holder()
    if holder is None or holder.host == socket.gethostname():
        return view.is_held()
    heard = last.status.at if last.status is not None else last.started_at
    return now - heard < SILENCE_S


def next_command(run_state: RunState, run_dir: Path) -> str:
    """Return the command that goes on with the run, ready for a shell; empty where nothing is left to do."""
    if run_state.is_live and run_state.state != "paused":
        return f"bulk watch {quoted(run_dir)}"
    if run_state.elsewhere:
        return run_state.elsewhere
    if run_state.state != "complete":
        gate = closed_gate(run_state.why) if run_state.state == "stopped" else None
        return resuming(run_dir) if gate is None else _past(gate, run_dir)
    return f"bulk retry {quoted(run_dir)}" if run_state.is_to_retry else ""


def _past(gate: ClosedGate, run_dir: Path) -> str:
    """Return the command that goes past a gate, or goes on where somebody has decided about it since."""
    try:
        decided = read_gates(run_dir)
    except RunDirectoryError:  # who goes on with the run is told
        decided = Gates()
    if not gate.is_over and gate.wave > decided.opened:
        return f"bulk approve {quoted(run_dir)} --wave {gate.wave}"
    is_stopped = gate.is_over and gate.wave not in decided.accepted
    return resuming(run_dir) + (f" --accept-wave {gate.wave}" if is_stopped else "")
