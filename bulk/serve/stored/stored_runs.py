"""The runs of a store on the page: how they are listed, opened and steered.

While a page is open, a separate thread reads the list about once a second, so that a store that is slow or out of reach
never holds the page up: the list stays as it was then, and `trouble` says why.
"""

import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bulk.clock import Clock
from bulk.cluster.stored_limits import set_limits, settable
from bulk.cluster.stored_state import state_of
from bulk.cluster.stored_waves import open_waves, refuse_closed
from bulk.cluster.submission import next_command
from bulk.control.place import user_name
from bulk.errors import BulkError, RunDirectoryError
from bulk.report.run_list import ListedRun, damaged
from bulk.report.run_state import RunState
from bulk.report.wave_gates import closed_gate
from bulk.serve.fleet import STORED, FleetRun, Look, Opened
from bulk.serve.steer import WHO, Chosen, Done, NotDone, chosen_of, settings_of
from bulk.serve.stored.cluster_data import Cluster, ClusterData
from bulk.serve.stored.stored_view import StoredView
from bulk.store import runs
from bulk.store.address import StoreAddress
from bulk.store.connections import StoreConnection
from bulk.store.runs import DamagedRun, StoredRun
from bulk.store.schema import refuse_other

FRESH_S, WAIT_S, AGAIN_S = 1.0, 0.7, 5.0
"""How long a list is used, how long a call waits for a newer list, and how long after a failure the store is asked
again (seconds)."""
_VERBS = ("pause", "resume", "stop")


class StoredRuns:
    """The runs of one store. `close` ends its connections."""

    def __init__(self, address: StoreAddress, clock: Clock) -> None:
        self._clock = clock
        self._listing = StoreConnection(address, "serve")
        self._store = StoreConnection(address, "serve")
        self._lock = threading.Lock()
        self._found: dict[str, FleetRun] = {}
        self._next_at = float("-inf")
        self._reading: threading.Thread | None = None
        self._trouble = ""

    @property
    def trouble(self) -> str:
        """Why the store can't be reached; empty where it can."""
        return self._trouble

    @property
    def address(self) -> str:
        """The address of the store, as the user gave it."""
        return str(self._store.address)

    def close(self) -> None:
        """Close the connections to the store."""
        self._listing.close()
        self._store.close()

    def runs(self) -> list[FleetRun]:
        """Return all runs of the store, as far as they are known by now."""
        with self._lock:
            if self._reading is None and self._clock.monotonic() >= self._next_at:
                self._reading = threading.Thread(target=self._read, name="store", daemon=True)
                self._reading.start()
            reading = self._reading
        if reading is not None:
            reading.join(WAIT_S)
        return list(self._found.values())

    def forget(self) -> None:
        """Read the list again the next time, because a person has just steered a run."""
        self._next_at = float("-inf")

    def opened(self, name: str) -> Opened | None:
        """Return the run of that name; None where there is none.

        Raises:
            BulkError: the store can't be reached.
        """
        run = self._find(name)
        if run is None:
            return None
        view = StoredView(self._store, run)
        parts = runs.participants(self._store, run.id)
        run_state = state_of(run, parts, view.error_counts(), self._clock.now())
        return Opened(
            name=name,
            place=f"{run.name} in {self.address}",
            view=view,
            look=Look(run_state, settable(run.limits)),
            next_command=next_command(run, self.address),
            shares=self._cluster().of_run(run.name, parts, run.at),
        )

    def cluster(self) -> Cluster:
        """Return the workers, shards and budgets of the whole store.

        Raises:
            BulkError: the store can't be reached.
        """
        return self._cluster().all()

    def do(self, name: str, verb: str, args: Mapping[str, Any]) -> Done:
        """Do what a verb says to a run, and return the state of the run after that.

        Raises:
            NotDone: the verb was refused.
        """
        run = self._find(name)
        if run is None:
            raise NotDone("there is no such run any more")
        try:
            if verb == "retry":
                return self._retry(run, chosen_of(args))
            if verb == "set":
                return Done(state=run.state, in_force=set_limits(self._store, run, settings_of(args), _who()))
            if verb not in _VERBS:
                return self._open(run, args)
            if verb == "resume":
                refuse_closed(run, next_command(run, self.address))
            state = runs.steer(self._store, run, verb, _who(), _why(verb))
        except BulkError as error:
            raise NotDone(str(error)) from None
        return Done(state=state)

    def _open(self, run: StoredRun, args: Mapping[str, Any]) -> Done:
        """Open the wave that the run waits for, or accept the wave that is over its budget; workers go on at once."""
        gate = closed_gate(run.why) if run.state in ("stopping", runs.STOPPED) else None
        if gate is None or args != {"wave": gate.wave}:
            raise NotDone("it does not wait for that wave any more")
        if gate.is_over:
            return Done(state=open_waves(self._store, run, _who(), accepted=frozenset((gate.wave,))))
        return Done(state=open_waves(self._store, run, _who(), opened=gate.wave))

    def _retry(self, run: StoredRun, chosen: Chosen) -> Done:
        again = chosen.again()
        kinds, codes, jobs = again.chosen([job[0] for job in run.identity.jobs])
        if not runs.reopen(self._store, run, kinds, _who(), again.args, codes=codes, jobs=jobs):
            raise NotDone("no item fits any more")
        return Done(state="running")

    def _cluster(self) -> ClusterData:
        return ClusterData(self._store)

    def _find(self, name: str) -> StoredRun | None:
        return runs.named(self._store, name.removeprefix(STORED))

    def _read(self) -> None:
        try:
            refuse_other(self._listing)
            self._found = {run.name: run for run in map(self._listed, runs.list_all(self._listing))}
            self._trouble, pause_s = "", FRESH_S
        except (BulkError, ValueError) as error:
            self._trouble, pause_s = str(error), AGAIN_S
        with self._lock:
            self._next_at = self._clock.monotonic() + pause_s
            self._reading = None

    def _listed(self, run: StoredRun | DamagedRun) -> FleetRun:
        place, name = Path(f"{run.name} in {self.address}"), f"{STORED}{run.name}"
        if isinstance(run, DamagedRun):
            return FleetRun(name, Path(run.name), damaged(place, run.why), None)
        try:
            run_state = self._state_of(run)
        except RunDirectoryError as error:
            return FleetRun(name, Path(run.name), damaged(place, str(error)), None)
        listed = ListedRun(
            run_dir=str(place),
            name=run_state.name,
            state=run_state.state,
            items=run_state.items,
            outcomes=run_state.outcomes,
            started_at=run.began_at,
            ended_at=run.ended_at,
            exit_code=None if run_state.is_live else run_state.exit_code,
            why=run.why,
        )
        return FleetRun(name, Path(run.name), listed, Look(run_state))

    def _state_of(self, run: StoredRun) -> RunState:
        parts = runs.participants(self._listing, run.id) if run.state not in (runs.COMPLETE, runs.STOPPED) else []
        errors = StoredView(self._listing, run).error_counts()
        return state_of(run, parts, errors, self._clock.now())


def _who() -> str:
    return f"{user_name()}@{socket.gethostname()} ({WHO})"


def _why(verb: str) -> str:
    return {"pause": "it was paused from the page", "stop": "it was stopped from the page"}.get(verb, "")
