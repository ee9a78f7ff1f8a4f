"""The page of one run, the list of all runs, and the budgets, as data. Blocking, and read only.

Counts come from the sums that the ledger keeps with each commit, so that their cost does not grow with the items.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bulk.clock import Clock
from bulk.errors import UNDECODABLE
from bulk.ledger.records import Action
from bulk.model import ErrorCode
from bulk.report.render import status_data
from bulk.report.render.status_data import StatusData
from bulk.report.render.status_words import most_first
from bulk.report.tally_rows import JobTallyRow, read_line
from bulk.report.wave_gates import ClosedGate, closed_gate
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
    """A run in the list; `waits_for`: the reason for which most of its items wait; `finish_at`: when it will end."""

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
    """The list of runs: the first ones that fit the query, how many runs there are (`total`), and how many of them fit
    (`fitting`); `trouble`: why some are missing."""

    runs: Sequence[Row]
    fitting: int
    total: int
    states: Mapping[str, int]
    is_read_only: bool
    trouble: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """How many items of a job ended with one code (count), and the message of the first of them."""

    job: str
    code: str
    items: int
    message: str


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """All data of the page of a run, apart from its plots.

    Attributes:
        name: its name in the fleet. limits: the limits in force that can be set; empty where no process reports them.
        is_silent: whether a process drives the run and does not answer.
        started_at: when the run was started. ended_at: when its last process ended; None while it goes on.
        shares: shards and workers, for a run in a store. gate: the gate of the wave for which the run has stopped.
    """

    name: str
    run: StatusData
    failures: Sequence[Failure]
    actions: Sequence[Action]
    limits: Mapping[str, Any]
    is_silent: bool
    is_read_only: bool
    started_at: float | None
    ended_at: float | None
    shares: Shares | None = None
    gate: ClosedGate | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket, as one run reports it."""

    run: str
    state: str
    bucket: BucketStatus


class FirstMessages:
    """The error messages of the first item for each run, job and code.

    Finding one may read all items of a run, so messages are kept.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[Path, float, str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: RunData, job: str, code: str) -> str:
        """Return the message of the first item of a job that ended with this code; empty where there is none.

        Raises:
            RunDirectoryError: the run can't be read.
        """
        key = (view.run_dir, view.began_at(), job, code)
        with self._lock:
            if key not in self._said:
                found = view.page((-1, -1), 1, job=job, code=code)
                with contextlib.suppress(*UNDECODABLE):
                    error = read_line(found[0].line).error if found else None
                    self._said[key] = error.message if error is not None else ""
                while len(self._said) > MOST_SAID:
                    self._said.popitem(last=False)
            return self._said.get(key, "")


class RunPages:
    """Makes the data of the pages of a fleet, anew at each call.

    Args:
        is_read_only: whether the pages can't steer runs, which they show.
    """

    def __init__(self, fleet: Fleet, clock: Clock, *, is_read_only: bool) -> None:
        self._fleet, self._clock, self._is_read_only = fleet, clock, is_read_only
        self._first = FirstMessages()

    def listed(self, query: str, state: str) -> Listed:
        """Return the runs whose name or folder contains `query`, and whose state is `state` (empty: any)."""
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
        """Return the data of the page of a run.

        Raises:
            BulkError: the run can't be read.
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
            actions=view.actions()[-MOST_ACTIONS:],
            limits=look.in_force,
            is_silent=look.is_silent,
            is_read_only=self._is_read_only,
            started_at=epochs[0].started_at if epochs else None,
            ended_at=epochs[-1].ended_at if epochs else None,
            shares=run.shares,
            gate=closed_gate(status.why) if status.state == "stopped" else None,
        )

    def budgets(self) -> list[Budget]:
        """Return every bucket from which a run that goes on spends, sorted by credential and category."""
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
    """Return the kinds of failure of a run, the most frequent first; superseded items are not failures."""
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
    """Return the error message of the first item of each job and code, where the ledger keeps tallies."""
    names = {number: job[0] for number, job in enumerate(view.identity().jobs)}
    return {
        (names[number], code): example.message
        for number, tally in (view.tallies() or {}).items()
        if number in names
        for code, example in msgspec.json.decode(tally.json, type=JobTallyRow).examples.items()
    }
