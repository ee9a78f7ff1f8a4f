"""Waves of a run in a store: which wave of each job is open, and when the next one is opened.

Each shard has items of one wave, and no worker can claim a shard of a wave that is not open. It does no harm if the
worker that should open the next wave dies: another worker opens it a moment later. The decision is made while the row
of the run is locked, from the records in the store alone, by the rules of a run on one machine
(`engine.agreement.gates`).
"""

import shlex
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg

from bulk.bundle.checked import Checked
from bulk.cluster.assignment import ends_of_waves
from bulk.engine.agreement.gates import Judged, Openable, over_budget, refuse_higher
from bulk.errors import RunStopped, UsageError
from bulk.manifest.manifest import Job, Limits
from bulk.redaction import redact
from bulk.report.wave_gates import closed_gate, waits_to_be_opened
from bulk.store import sql
from bulk.store.connections import StoreConnection
from bulk.store.runs import COMPLETE, RUNNING, StoredRun, note_action

_SQL = sql.load("waves")


class JobWaves(NamedTuple):
    """Where the waves of a job stand.

    Attributes:
        job: the number of the job. items: how many items the job has (count); -1: not known yet.
        of: how many waves the job has (count). open: the last wave that is open (number).
        opens_in_s: when the next wave may begin (seconds from now); None: it does not wait for its time.
        next: the wave that comes next (number), if all shards of the open wave are done; None: they are not.
    """

    job: int
    items: int
    of: int
    open: int
    opens_in_s: float | None
    next: int | None


class WaveErrors(NamedTuple):
    """How many items of a wave of a job (numbers) ended with an error of that code (count)."""

    job: int
    wave: int
    code: str
    items: int


@dataclass(frozen=True, slots=True)
class Found:
    """The records in the store about the waves of a run.

    Attributes:
        may_open: the last wave that may be opened (number). accepted: waves that go on over a budget (numbers).
        has_turn: whether a shard can be worked on, or is worked on.
    """

    jobs: Sequence[JobWaves]
    errors: Sequence[WaveErrors]
    may_open: int
    accepted: Sequence[int]
    has_turn: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about the waves of a run.

    Attributes:
        stop: why the run has to stop; empty: it need not. opening: job -> the wave that begins (numbers).
        waiting: jobs whose next wave waits for its time from now on (numbers).
    """

    stop: str = ""
    opening: Mapping[int, int] = field(default_factory=dict)
    waiting: frozenset[int] = frozenset()


NOTHING = Decision()


def decide(found: Found, jobs: Sequence[Job], ends: Mapping[int, Sequence[int]], limits: Limits) -> Decision:
    """Return which waves begin, which wait for their time, and whether the run has to stop. Pure.

    Args:
        ends: the index behind the last item of each wave, for each job that goes in waves, by its number.
    """
    if why := _over(found, jobs, ends, limits):
        return Decision(why)
    opening, waiting, closed = dict[int, int](), set[int](), list[JobWaves]()
    is_awaited = False
    for each in found.jobs:
        if each.next is None:
            continue
        if each.next > found.may_open:
            closed.append(each)
        elif limits.gate_after_s and each.opens_in_s is None:
            waiting.add(each.job)
        elif each.opens_in_s is not None and each.opens_in_s > 0.0:
            is_awaited = True
        else:
            opening[each.job] = each.next
    if closed and not (opening or waiting or is_awaited or found.has_turn):
        first = closed[0]
        assert first.next is not None, "it is among those that have one"
        return Decision(waits_to_be_opened(jobs[first.job].name, first.next, first.of, "limits.gate is manual"))
    return Decision("", opening, frozenset(waiting))


def _over(found: Found, jobs: Sequence[Job], ends: Mapping[int, Sequence[int]], limits: Limits) -> str:
    """Return why a wave that has begun has to stop; empty: no wave has to."""
    run_state = {each.job: each for each in found.jobs}
    for error in found.errors:
        its = run_state[error.job]
        if error.wave > its.open or error.wave in found.accepted or its.items < 0:
            continue
        bounds = (0, *ends.get(error.job, (its.items,)))
        judged = Judged(error.wave, its.of, bounds[error.wave] - bounds[error.wave - 1])
        if why := over_budget(jobs[error.job].name, judged, error.code, error.items, limits):
            return why
    return ""


class StoredWaves:
    """The waves of one run, for one of its workers.

    Args:
        number: the number of the run in the store.

    Attributes:
        is_wanted: whether the manifest has waves or budgets for errors.
        codes: the error codes that have a budget.
    """

    def __init__(self, checked: Checked, number: int) -> None:
        self._jobs, self._limits = checked.manifest.jobs, checked.manifest.limits
        self._ends = ends_of_waves(checked)
        self._number = number
        self.is_wanted = bool(self._limits.waves or self._limits.errors)
        self.codes = frozenset(self._limits.errors)

    def judge(self, store: StoreConnection) -> None:
        """Open the waves that are due, or stop the run where a gate is closed or a budget is exceeded; blocks.

        Raises:
            RunStopped: the store can't be reached.
        """
        with store.using() as connection:
            if self._decision(connection) == NOTHING:
                return
        with store.transaction() as connection:
            row = connection.execute(_SQL["lock"], (self._number,)).fetchone()
            if row is None or row[0] != "running":
                return
            decision = self._decision(connection)
            for job, wave in decision.opening.items():
                connection.execute(_SQL["open"], (wave, self._number, job))
            if decision.waiting:
                connection.execute(_SQL["wait"], (self._limits.gate_after_s, self._number, list(decision.waiting)))
            if decision.stop:
                connection.execute(_SQL["stop"], (redact(decision.stop), self._number))
            if decision.opening or decision.stop:
                channel = "bulk_state" if decision.stop else "bulk_shard"
                connection.execute("SELECT pg_notify(%s, %s)", (channel, str(self._number)))

    def _decision(self, connection: psycopg.Connection) -> Decision:
        jobs = connection.execute(_SQL["jobs"], (self._number,)).fetchall()
        errors = []
        if self.codes:
            errors = connection.execute(_SQL["errors"], (self._number, list(self.codes))).fetchall()
        gate = connection.execute(_SQL["gate"], (self._number,)).fetchone()
        if gate is None:
            return NOTHING
        found = Found([JobWaves(*row) for row in jobs], [WaveErrors(*row) for row in errors], *gate)
        return decide(found, self._jobs, self._ends, self._limits)


def refuse_closed(run: StoredRun, next_command: str) -> None:
    """Refuse a run that has stopped for a wave: a plain `resume` is not enough for it, a person has to decide.

    Raises:
        RunStopped: the run has stopped for a wave; the message names the wave and the way out.
    """
    if run.state in ("stopping", "stopped") and closed_gate(run.why) is not None:
        raise RunStopped(f"{run.name} does not go on: {run.why}; next: {next_command}")


def open_waves(
    store: StoreConnection, run: StoredRun, who: str, *, opened: int = 1, accepted: AbstractSet[int] = frozenset()
) -> str:
    """Open waves that wait for a person, and accept waves that are over a budget; returns the state of the run.

    A run that has stopped for one of these waves goes on.

    Args:
        opened: waves up to this number may begin.
        accepted: numbers of the waves that go on though they are over a budget.

    Raises:
        UsageError: the run was forgotten, it has no such wave or has passed it, or its waves do not wait for a person.
    """
    with store.transaction() as connection:
        row = connection.execute(_SQL["lock"], (run.id,)).fetchone()
        if row is None:
            raise UsageError(f"the store {store.address} has no run {run.name} any more")
        state, why, is_manual = row
        of = max((its.of for its in run.waves.values()), default=1)
        refuse_higher(accepted, of)
        if not accepted:
            command = f"bulk approve {shlex.quote(run.name)} --store {shlex.quote(str(store.address))} --wave"
            if refusal := Openable(run.name, of, is_manual, state == COMPLETE, why, command).refusal(opened):
                raise UsageError(refusal)
        if state == COMPLETE:
            return COMPLETE
        connection.execute(_SQL["decide"], (opened, sorted(accepted), run.id))
        gate = closed_gate(why) if state in ("stopping", "stopped") else None
        if gate is not None and (gate.wave in accepted if gate.is_over else gate.wave <= opened):
            connection.execute(_SQL["go_on"], (run.id,))
            state = RUNNING
        args = {"accepted": sorted(accepted)} if accepted else {"wave": opened}
        note_action(connection, run, who, "approve", args, state)
        connection.execute("SELECT pg_notify('bulk_state', %s)", (str(run.id),))
    return str(state)
