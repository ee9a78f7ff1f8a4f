"""The runs of the fleet, and the state of each. All calls block, so they are made in threads.

A run is found only by its name in the fleet: the name of its folder, with the number of the parent folder before it
from the second one on (`2:nightly`). So no address of a page can name a path. The state of a run without a process is
read again only when its files have changed; a run with a process is asked through its control socket.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bulk.clock import Clock
from bulk.control import client
from bulk.control.place import NAME as SOCKET
from bulk.errors import BulkError
from bulk.ledger.database import LEDGER
from bulk.ledger.view import LedgerView
from bulk.report.run_list import ListedRun, runs_below
from bulk.report.run_state import RunState, next_command, run_state_of
from bulk.serve.run_data import RunData
from bulk.serve.shares import Shares
from bulk.status import RunStatus
from bulk.storage.names import text_of

FRESH_S = 0.4
"""How long a look at a run that goes on, or at all runs, is used for further requests (seconds)."""
LOOK_SHARE = 4.0
"""A look at all runs is used for this many times as long as it took: thousands of runs leave the machine to others."""
MOST_STALE_S = 5.0
"""The longest time for which it is used because of that (seconds)."""
STORED = "store:"
"""The beginning of the names of runs in a store."""
_FILES = (LEDGER, f"{LEDGER}-wal", SOCKET)


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a run at one moment.

    Attributes:
        in_force: its limits that can be set, where its process reports them.
        is_silent: whether a process drives the run and does not answer.
    """

    run_state: RunState
    in_force: Mapping[str, Any] = field(default_factory=dict)
    is_silent: bool = False

    @property
    def live(self) -> RunStatus | None:
        """The last status of the process that drives the run; None where no process does."""
        return self.run_state.last if self.run_state.is_live else None


@dataclass(frozen=True, slots=True)
class FleetRun:
    """One run: its name in the fleet, its place, and its state (`look` is None where it has no ledger that can be
    read).

    Attributes:
        audit: the name of the audit that the run is a night of; empty where it is not a night.
    """

    name: str
    run_dir: Path
    listed: ListedRun
    look: Look | None
    audit: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """A run whose page is asked for.

    Attributes:
        name: its name in the fleet. place: where it is, for people. view: its data.
        next_command: the command that goes on with it in a terminal.
        shares: its shards and workers, for a run in a store; None for a run in a directory.
    """

    name: str
    place: str
    view: RunData
    look: Look
    next_command: str
    shares: Shares | None = None

    @property
    def directory(self) -> Path | None:
        """The run directory; None for a run in a store."""
        return None if self.shares is not None else self.view.run_dir


class Stored(Protocol):
    """The runs of a store."""

    @property
    def trouble(self) -> str:
        """Why the store can't be reached; empty where it can."""

    def runs(self) -> list[FleetRun]:
        """Return all runs, as far as they are known by now."""

    def opened(self, name: str) -> Opened | None:
        """Return the run of that name; None where there is none."""

    def forget(self) -> None:
        """Read the store again the next time."""


class Nights(Protocol):
    """The runs of audits, which lie in other folders."""

    def pending(self) -> Iterator[tuple[str, str, Path]]:
        """Yield the runs that are to be listed: name of the audit, name of the run in the fleet, run directory."""

    def run_dir(self, name: str) -> Path | None:
        """Return the run directory of that name; None where there is none."""


class Fleet:
    """The runs below some folders.

    Args:
        folders: each is a run directory, or holds run directories.
        origin: name of the file that a run directory has before its ledger.
        nights: the runs of audits. stored: the runs of a store.
    """

    def __init__(
        self, folders: Sequence[Path], origin: str, clock: Clock, nights: Nights, stored: Stored | None = None
    ) -> None:
        self._folders, self._origin, self._clock = tuple(folders), origin, clock
        self._nights, self._stored = nights, stored
        self._ended: dict[Path, tuple[object, Look]] = {}
        self._live: dict[Path, tuple[float, Look]] = {}
        self._runs: dict[str, FleetRun] = {}
        self._unread, self._listed = tuple[str, ...](), set[Path]()
        self._looks_again_at = float("-inf")
        self._lock = threading.Lock()

    def runs(self) -> list[FleetRun]:
        """Return all runs, those that go on first, then the newest first."""
        with self._lock:
            began_at = self._clock.monotonic()
            if began_at >= self._looks_again_at:
                self._runs = {run.name: run for run in self._found()}
                looked_at = self._clock.monotonic()
                self._looks_again_at = looked_at + max(FRESH_S, min(LOOK_SHARE * (looked_at - began_at), MOST_STALE_S))
            found = list(self._runs.values())
        if self._stored is not None:
            found += self._stored.runs()
        return sorted(found, key=_age, reverse=True)

    @property
    def trouble(self) -> str:
        """Why some of the runs can't be listed, or are shown as they were; empty where all can."""
        stored = "" if self._stored is None else self._stored.trouble
        return "; ".join((*self._unread, *((f"what the store has is old: {stored}",) if stored else ())))

    def opened(self, name: str) -> Opened | None:
        """Return the run of that name; None where there is none.

        Raises:
            BulkError: the run can't be read.
        """
        if self._stored is not None and name.startswith(STORED):
            return self._stored.opened(name)
        run_dir = self.place_of(name)
        if run_dir is None:
            return None
        look = self.look(run_dir)
        return Opened(name, str(run_dir), LedgerView(run_dir), look, next_command(look.run_state, run_dir))

    def place_of(self, name: str) -> Path | None:
        """Return the run directory of that name; None where there is no such run."""
        known = self._runs.get(name)
        if known is None:
            self.runs()
            known = self._runs.get(name)
        return self._nights.run_dir(name) if known is None else known.run_dir

    def look(self, run_dir: Path) -> Look:
        """Return the state of the run in `run_dir`.

        Raises:
            RunDirectoryError: the ledger of the run can't be read.
        """
        signature = [_stamp(run_dir / name) for name in _FILES]
        kept = self._ended.get(run_dir)
        if kept is not None and kept[0] == signature:
            return kept[1]
        looked_at, live_look = self._live.get(run_dir, (float("-inf"), None))
        if live_look is not None and self._clock.monotonic() - looked_at < FRESH_S:
            return live_look
        live, in_force, is_silent = _asked(run_dir) if signature[-1] is not None else (None, {}, False)
        found = Look(run_state_of(LedgerView(run_dir), self._clock.now(), live), in_force, is_silent)
        self._ended.pop(run_dir, None)
        self._live.pop(run_dir, None)
        if found.run_state.is_live:
            self._live[run_dir] = (self._clock.monotonic(), found)
        else:
            self._ended[run_dir] = (signature, found)
        return found

    def forget(self, run: Opened) -> None:
        """Read the state of the run again the next time, because a person has just steered it."""
        self._live.pop(run.view.run_dir, None)
        self._looks_again_at = float("-inf")
        if self._stored is not None:
            self._stored.forget()

    def _found(self) -> Iterator[FleetRun]:
        self._unread = tuple(filter(None, map(self._why_unread, self._folders)))
        for number, folder in enumerate(self._folders, 1):
            looks: dict[Path, Look] = {}
            for listed in runs_below(folder, self._origin, self._run_state_into(looks)):
                run_dir = Path(listed.run_dir)
                name = text_of(run_dir.resolve().name if run_dir == folder else run_dir.name)
                yield FleetRun(name if number == 1 else f"{number}:{name}", run_dir, listed, looks.get(run_dir))
        for audit, name, place in self._nights.pending():
            looks = {}
            for listed in runs_below(place, self._origin, self._run_state_into(looks)):
                yield FleetRun(name, place, listed, looks.get(place), audit)

    def _why_unread(self, folder: Path) -> str:
        """Return why the folder can't be listed; empty where it can, or where its first run has not come yet."""
        try:
            with os.scandir(folder):
                self._listed.add(folder)
        except FileNotFoundError:
            return f"{folder} is gone" if folder in self._listed else ""
        except OSError as error:
            return f"{folder} can't be read: {error.strerror}"
        return ""

    def _run_state_into(self, looks: dict[Path, Look]) -> Callable[[Path], RunState]:
        def state_of(run_dir: Path) -> RunState:
            looks[run_dir] = self.look(run_dir)
            return looks[run_dir].run_state

        return state_of


def _age(run: FleetRun) -> tuple[bool, float, str]:
    is_live = run.look is not None and run.look.run_state.is_live
    return is_live or run.listed.state == "checking", run.listed.started_at or 0.0, run.name


def _asked(run_dir: Path) -> tuple[RunStatus | None, Mapping[str, Any], bool]:
    try:
        answer = client.ask(run_dir, "status", who="web")
    except client.Unreached:
        return None, {}, False
    except client.Silent:
        return None, {}, True
    return answer.status, answer.in_force, False


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def view_of(run_dir: Path) -> LedgerView | None:
    """Return the ledger of the run in `run_dir`; None where there is none that can be read."""
    try:
        return LedgerView(run_dir)
    except BulkError:
        return None
