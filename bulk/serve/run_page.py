"""What the page of one run and the list of all runs say, as data. Blocking, and read only.

Counts come from the sums that the ledger keeps with each commit: nothing here looks at items, however many there are.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bulk.clock import Clock
from bulk.engine.agreement.gates import ClosedGate, closed_gate
from bulk.model import ErrorCode
from bulk.report.render import status_data
from bulk.report.render.status_data import StatusData
from bulk.report.render.status_words import most_first
from bulk.report.tally_rows import JobTallyRow, read_line
from bulk.serve.fleet import Fleet, FleetRun, Opened
from bulk.serve.run_data import RunData
from bulk.serve.shares import Shares
from bulk.status import BucketStatus, RunStatus

MOST_RUNS = 100
MOST_ACTIONS = 50
MOST_CAUSES = 50
MOST_WAITS = 20
MOST_BUDGETS = 200
MOST_SAID = 2_000


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list; `waits_for` names what most of its items wait for, `finish_at` when it will end."""

    name: str
    run_dir: str
    title: str
    state: str
    is_silent: bool
    items: int | None
    outcomes: Mapping[str, int]
    per_second: float
    waits_for: str
    until: float | None
    finish_at: float | None
    started_at: float | None
    ended_at: float | None
    exit_code: int | None
    why: str


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """The list: the first runs that fit, and how many there are (`total`) and fit (`fitting`); `trouble`: why some are
    missing."""

    runs: Sequence[Row]
    fitting: int
    total: int
    states: Mapping[str, int]
    is_read_only: bool
    trouble: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Items of a job that ended with one code, and what was said of the first."""

    job: str
    code: str
    items: int
    message: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a person did."""

    at: float
    who: str
    verb: str
    args: Mapping[str, Any]
    result: str


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page of a run shows beside its plots.

    Attributes:
        name: here. limits: those that can be set, as they are in force; empty where no process says them.
        is_silent: a process drives it and does not answer.
        started_at: of the run; ended_at: of its last process.
        shares: who works on it, of a run in a store. gate: of a wave, where one keeps it from going on.
    """

    name: str
    run: StatusData
    failures: Sequence[Failure]
    actions: Sequence[Done]
    limits: Mapping[str, Any]
    is_silent: bool
    is_read_only: bool
    started_at: float | None
    ended_at: float | None
    shares: Shares | None = None
    gate: ClosedGate | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket, and the run that says so."""

    run: str
    state: str
    bucket: BucketStatus


class FirstMessages:
    """What was said of the first item of a run, job and code.

    A look at it may go through all items, so it is kept.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[Path, float, str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: RunData, job: str, code: str) -> str:
        """Return it; empty where there is none.

        Raises:
            RunDirectoryError: the run can't be read.
        """
        key = (view.run_dir, view.began_at(), job, code)
        with self._lock:
            if key not in self._said:
                found = view.page((-1, -1), 1, job=job, code=code)
                with contextlib.suppress(msgspec.DecodeError):
                    error = read_line(found[0].line).error if found else None
                    self._said[key] = error.message if error is not None else ""
                while len(self._said) > MOST_SAID:
                    self._said.popitem(last=False)
            return self._said.get(key, "")


class RunPages:
    """What the pages of a fleet say, each time anew.

    Args:
        is_read_only: the pages may change nothing, and say so.
    """

    def __init__(self, fleet: Fleet, clock: Clock, *, is_read_only: bool) -> None:
        self._fleet, self._clock, self._is_read_only = fleet, clock, is_read_only
        self._first = FirstMessages()

    def listed(self, query: str, state: str) -> Listed:
        """Return the runs whose name or folder holds `query`, and that stand at `state` (empty: any)."""
        runs = self._fleet.runs()
        needle = query.strip().casefold()
        named = [run for run in runs if needle in f"{run.name}\n{run.listed.name}".casefold()]
        states: dict[str, int] = {}
        for run in named:
            states[run.listed.state] = states.get(run.listed.state, 0) + 1
        fitting = [run for run in named if state in ("", run.listed.state)]
        return Listed(
            runs=[_row(run) for run in fitting[:MOST_RUNS]],
            fitting=len(fitting),
            total=len(runs),
            states=states,
            is_read_only=self._is_read_only,
            trouble=self._fleet.trouble,
        )

    def of(self, run: Opened) -> RunPage:
        """Return what there is to say about a run.

        Raises:
            BulkError: it can't be read.
        """
        look, view = run.look, run.view
        status = status_data.told(
            look.run_state, view.identity().base_url, run.place, run.next_command, self._clock.now()
        )
        epochs = look.run_state.epochs
        return RunPage(
            name=run.name,
            run=msgspec.structs.replace(status, status=_shortened(status.status)),
            failures=failures(view, look.run_state.last, self._first),
            actions=[
                Done(at=done.at, who=done.who, verb=done.verb, args=done.args, result=done.result)
                for done in view.actions()[-MOST_ACTIONS:]
            ],
            limits=look.in_force,
            is_silent=look.is_silent,
            is_read_only=self._is_read_only,
            started_at=epochs[0].started_at if epochs else None,
            ended_at=epochs[-1].ended_at if epochs else None,
            shares=run.shares,
            gate=closed_gate(status.why) if status.state == "stopped" else None,
        )

    def budgets(self) -> list[Budget]:
        """Return every bucket that a run which goes on spends, those of one credential and category together."""
        found = [
            Budget(run=run.name, state=run.listed.state, bucket=bucket)
            for run in self._fleet.runs()
            if run.look is not None and run.look.live is not None
            for bucket in run.look.live.buckets
        ]
        found.sort(key=lambda each: (each.bucket.credential, each.bucket.category, each.run))
        return found[:MOST_BUDGETS]


def _row(run: FleetRun) -> Row:
    said, live = run.listed, run.look.live if run.look is not None else None
    waits = most_first(live.waits) if live is not None else []
    return Row(
        name=run.name,
        run_dir=said.run_dir,
        title=said.name,
        state=said.state,
        is_silent=run.look is not None and run.look.is_silent,
        items=said.items,
        outcomes=said.outcomes or {},
        per_second=live.per_second if live is not None else 0.0,
        waits_for=waits[0].what if waits else "",
        until=waits[0].until if waits else None,
        finish_at=live.finish_at if live is not None else None,
        started_at=said.started_at,
        ended_at=said.ended_at,
        exit_code=said.exit_code,
        why=said.why,
    )


def _shortened(status: RunStatus | None) -> RunStatus | None:
    if status is None:
        return None
    return msgspec.structs.replace(status, waits=tuple(most_first(status.waits)[:MOST_WAITS]))


def failures(view: RunData, last: RunStatus | None, first: FirstMessages) -> list[Failure]:
    """Return what went wrong, the most frequent first; of an item that a later one replaces nothing has."""
    found = [each for each in view.error_counts() if each[1] != ErrorCode.SUPERSEDED]
    if not found:
        return []
    said = _examples(view)
    for job in last.jobs if last is not None else ():
        code, _, message = job.failure.partition(": ")
        said.setdefault((job.name, code), message)
    found.sort(key=lambda each: -each[2])
    return [
        Failure(job=job, code=code, items=items, message=said.get((job, code)) or first.of(view, job, code))
        for job, code, items in found[:MOST_CAUSES]
    ]


def _examples(view: RunData) -> dict[tuple[str, str], str]:
    """Return what was said of the first item of each job and code, where the ledger keeps that."""
    names = {number: job[0] for number, job in enumerate(view.identity().jobs)}
    return {
        (names[number], code): example.message
        for number, tally in (view.tallies() or {}).items()
        if number in names
        for code, example in msgspec.json.decode(tally.json, type=JobTallyRow).examples.items()
    }
