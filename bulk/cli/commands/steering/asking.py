"""Asks the process that drives a run; where none answers, the error says where the run stands and the way out."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulk.errors import BulkError, RunDirectoryError

if TYPE_CHECKING:
    from bulk.control.protocol import Answer
    from bulk.report.run_state import RunState

STARTING_S, LOOK_S = 3.0, 0.05
"""How long a process that just begins or ends is waited for, and the time between two looks at it (seconds)."""


class Refusal(BulkError):
    """The run does not do what was asked."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def ask(run_dir: Path, verb: str, args: Mapping[str, Any] | None = None) -> "Answer":
    """Return the answer of the process that drives the run.

    Raises:
        RunDirectoryError: no process drives the run, or the process does not answer. Refusal: the process refuses.
    """
    from bulk.control import client
    from bulk.ledger.directory import is_held

    for _ in range(int(STARTING_S / LOOK_S)):
        try:
            answer = client.ask(run_dir, verb, args)
        except client.Unreached:
            if not is_held(run_dir):
                break
            pause()
        except client.Silent:
            raise RunDirectoryError(
                f"the process that drives {run_dir} does not answer; `bulk status` shows when it last reported"
            ) from None
        else:
            if not answer.ok:
                raise Refusal(f"{run_dir}: {answer.error}", answer.exit)
            return answer
    raise nobody(run_dir, verb)


def nobody(run_dir: Path, verb: str) -> RunDirectoryError:
    """Return the error for a run that no process listens for: it says why, and what to do.

    Raises:
        RunDirectoryError: there is no run at all.
    """
    from bulk.ledger.directory import not_begun, read_holder
    from bulk.report.run_state import next_command

    run_state = state_of(run_dir)
    if run_state is None:
        return not_begun(run_dir)
    holder = read_holder(run_dir)
    if run_state.is_live and holder is not None:
        return RunDirectoryError(
            f"process {holder.pid} on {holder.host} drives {run_dir}, and no control socket of it is within reach; "
            f"there, kill -INT {holder.pid} stops it"
        )
    command = next_command(run_state, run_dir)
    if run_state.state == "complete":
        also = f"; to run again what did not succeed: {command}" if command else ""
        return RunDirectoryError(f"{run_dir} has ended: it is complete, so there is nothing to {verb}{also}")
    why = "it was killed, or the machine stopped" if run_state.state == "lost" else run_state.why or "it was stopped"
    return RunDirectoryError(f"nobody drives {run_dir}: {why}; to go on with it: {command}")


def state_of(run_dir: Path) -> "RunState | None":
    """Return where the run stands; None where it ended before it had a ledger.

    Raises:
        RunDirectoryError: there is no run.
    """
    from bulk.cli.commands.cluster import with_workers
    from bulk.clock import Clock
    from bulk.control import client
    from bulk.ledger.database import LEDGER
    from bulk.ledger.directory import ORIGIN
    from bulk.ledger.view import LedgerView
    from bulk.report.run_state import run_state_of

    if (run_dir / ORIGIN).is_file() and not (run_dir / LEDGER).exists():
        return None
    with_workers.refuse_under_way(run_dir)
    return run_state_of(LedgerView(run_dir), Clock().now(), client.status(run_dir))


def pause(seconds: float = LOOK_S) -> None:
    """Wait a moment before the next look."""
    threading.Event().wait(seconds)


def told_until(run_dir: Path, state: str) -> str:
    """Wait until the run is in `state`, or ends; return its state then, empty where no process answers any more."""
    from bulk.control import client

    while True:
        status = client.status(run_dir)
        if status is None or status.state in (state, "draining"):
            return "" if status is None else status.state
        pause()
