"""The runs below a folder, and where each of them stands: `bulk runs`."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from bulk.errors import BulkError
from bulk.ledger.database import LEDGER
from bulk.ledger.directory import is_held
from bulk.ledger.seal import SEAL, WAY_OUT
from bulk.report.run_state import RunState

_DAMAGED = "damaged"


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run; values that can't be known are null.

    Attributes:
        state: the state as in `bulk status`; also `checking`, and `damaged` where the run can't be read: `why` says the
            reason.
        items: items of all jobs (count).
        outcomes: how many items ended how.
        started_at: when the run was first started. ended_at: when its last process ended; null while a process drives
            the run.
        exit_code: the exit code that the command had or would have; null while the run goes on.
        why: why the run stopped; empty where it did not stop.
    """

    run_dir: str
    name: str
    state: str
    items: int | None = None
    outcomes: dict[str, int] | None = None
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    why: str = ""

    @property
    def is_damaged(self) -> bool:
        """Whether the run can't be read."""
        return self.state == _DAMAGED


def runs_below(place: Path, origin: str, state_of: Callable[[Path], RunState | None]) -> list[ListedRun]:
    """Return the runs in `place` itself and in its folders, the oldest first; a folder without a run is left out, and
    one that can't be read counts as a damaged run.

    Args:
        origin: name of the file that a run directory has before its ledger.
        state_of: returns where the run in a directory with a ledger stands.
    """
    return sorted(_found(place, origin, state_of), key=lambda run: (run.started_at or 0.0, run.run_dir))


def _found(place: Path, origin: str, state_of: Callable[[Path], RunState | None]) -> Iterator[ListedRun]:
    try:
        folders = [place, *sorted(place.iterdir())]
    except OSError:
        return
    for folder in folders:
        try:
            has_ledger = (folder / LEDGER).is_file()
            has_lost_it = not has_ledger and (folder / SEAL).is_file()
            has_origin = not has_ledger and (folder / origin).is_file()
        except OSError as error:  # a folder of another user: nobody knows that there is no run in it
            yield damaged(folder, f"it can't be read: {error.strerror}; let its owner open it to you")
            continue
        if has_ledger:
            yield _run(folder, state_of)
        elif has_lost_it:  # the seal comes after the ledger
            yield damaged(folder, f"{folder / LEDGER} is gone; {WAY_OUT}")
        elif has_origin:  # its manifest is being checked, or was when its process ended
            state = "checking" if is_held(folder) else "lost"
            yield ListedRun(run_dir=str(folder), name=folder.name, state=state)


def _run(run_dir: Path, state_of: Callable[[Path], RunState | None]) -> ListedRun:
    try:
        run_state = state_of(run_dir)
    except BulkError as error:
        return damaged(run_dir, str(error))
    assert run_state is not None, "it has a ledger"
    first, last = (run_state.epochs[0], run_state.epochs[-1]) if run_state.epochs else (None, None)
    return ListedRun(
        run_dir=str(run_dir),
        name=run_state.name,
        state=run_state.state,
        items=run_state.items,
        outcomes=run_state.outcomes,
        started_at=None if first is None else first.started_at,
        ended_at=None if last is None or run_state.is_live else last.ended_at,
        exit_code=None if run_state.is_live else run_state.exit_code,
        why=run_state.why,
    )


def damaged(run_dir: Path, why: str) -> ListedRun:
    """Return a run that can't be read, with the reason."""
    return ListedRun(run_dir=str(run_dir), name=run_dir.name, state=_DAMAGED, why=why)
