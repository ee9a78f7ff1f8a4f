"""Runs in a store: how they are listed, steered, reopened and forgotten. Calls block, and need no worker."""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import msgspec
import psycopg

from bulk import exit_codes
from bulk.errors import RunDirectoryError, UsageError
from bulk.exit_codes import ExitCode
from bulk.ledger.records import RunIdentity
from bulk.model import SUCCESSFUL, ErrorCode, OutcomeKind
from bulk.redaction import redact, redact_json
from bulk.store import sql
from bulk.store.connections import StoreConnection, sound
from bulk.store.view import with_tuples

_SQL = sql.load("runs")

COMPLETE, STOPPED, RUNNING, PAUSED = "complete", "stopped", "running", "paused"
ENDED = (COMPLETE, STOPPED, PAUSED)
"""No worker works on a run in one of these states."""

_STEERING: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pause": ("pausing", ("running", "pausing")),
    "resume": ("running", ("pausing", "paused", "stopping", "stopped", "running")),
    "stop": ("stopping", ("running", "pausing", "paused", "stopping")),
}
"""Verb -> the state that the run gets, and the states in which the verb is allowed."""

_DONE = {"pause": "paused", "resume": "resumed", "stop": "stopped"}


class StoredWave(NamedTuple):
    """Where the waves of a job stand.

    Attributes:
        open: the wave that is open (number). of: how many waves the job has (count).
        opens_at: when the next wave begins (by the database's clock, UTC epoch seconds); None: none waits for its time.
    """

    open: int
    of: int
    opens_at: float | None


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the store.

    Attributes:
        id: the number of the run.
        state, why: running, pausing, paused, stopping, stopped or complete; and the reason.
        began_at, ended_at, at: moments by the database's clock, UTC epoch seconds; `at`: when the run was read.
        shards, done: how many shards the run has, and how many of them are done (counts).
        workers: how many workers hold a shard now (count).
        superseded: skipped items that don't count against the exit code (count).
        ended_with: exit codes of workers whose part in it has ended, each once.
        requests: how many requests its workers have sent, by their last status (count).
        names_secrets: whether its items name secrets.
        counts: job number -> outcome -> items (count). waves: the waves of each job that has several, by its number.
    """

    id: int
    name: str
    identity: RunIdentity
    bundle: bytes
    engine: str
    limits: Mapping[str, Any]
    state: str
    why: str
    began_at: float
    ended_at: float | None
    shards: int
    done: int
    workers: int
    at: float
    superseded: int
    ended_with: Collection[int]
    requests: int
    names_secrets: bool
    counts: Mapping[int, Mapping[str, int]]
    waves: Mapping[int, StoredWave] = {}

    @property
    def is_live(self) -> bool:
        """Whether workers may work on it."""
        return self.state not in ENDED

    @property
    def has_its_time(self) -> bool:
        """Whether workers are at work on it, or a wave waits for its time, during which no worker may hold a shard."""
        return self.workers > 0 or any(its.opens_at is not None for its in self.waves.values())

    @property
    def exit_code(self) -> int:
        """The exit code of a command that waits for the end of the run; 3 while the run goes on."""
        outcomes: Counter[str] = Counter()
        for each in self.counts.values():
            outcomes.update(each)
        refused = ExitCode.CREDENTIAL_REFUSED
        return exit_codes.of_run(
            outcomes,
            self.superseded,
            is_complete=self.state == COMPLETE,
            stopped_with=refused if refused in self.ended_with else None,
        )


class DamagedRun(msgspec.Struct, frozen=True):
    """A run in the store whose row, or what belongs to it, can't be read; `why` says so, and the way out."""

    name: str
    why: str


class Participant(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's part in a run.

    Attributes:
        status: its last status, as JSON.
        began_at, seen_at: when the worker began, and when the store last heard of it (UTC epoch seconds).
        shards: how many shards it holds now (count).
    """

    worker: str
    engine: str
    status: bytes | None
    exit_code: int | None
    why: str
    began_at: float
    seen_at: float
    shards: int


def find(store: StoreConnection, name: str) -> StoredRun:
    """Return the run of that name.

    Raises:
        UsageError: there is no such run; the message names a similar one, or the command that lists all.
        RunStopped: the store can't be reached.
    """
    found = named(store, name)
    if found is not None:
        return found
    import difflib

    names = [run.name for run in list_all(store)]
    near = difflib.get_close_matches(name, names, 1)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"`bulk runs --store {shlex.quote(str(store.address))}` lists those that it has"
    )
    raise UsageError(f"the store {store.address} has no run {redact(name)}; {hint}")


def named(store: StoreConnection, name: str) -> StoredRun | None:
    """Return the run of that name; None where there is none.

    Raises:
        BulkError: the store can't be reached, or refuses this user.
    """
    is_text = "\0" not in name and name.encode(errors="ignore").decode() == name  # as PostgreSQL can hold it
    found = _read(store, name) if is_text else []
    return found[0] if found else None


def numbered(store: StoreConnection, number: int) -> StoredRun | None:
    """Return the run of that number; None where there is none. Other runs are not read, whatever is wrong with them."""
    found = _read(store, None, number)
    return found[0] if found else None


def list_all(store: StoreConnection) -> list[StoredRun | DamagedRun]:
    """Return all runs, the newest first; one that is damaged hides no other."""
    found: list[StoredRun | DamagedRun] = []
    with store.using() as connection:
        for row in connection.execute(_SQL["about"], {"name": None, "number": None}).fetchall():
            try:
                found.append(_run_of(connection, row))
            except RunDirectoryError as error:
                found.append(DamagedRun(row[1], str(error)))
    return found


def _read(store: StoreConnection, name: str | None, number: int | None = None) -> list[StoredRun]:
    with store.using() as connection:
        rows = connection.execute(_SQL["about"], {"name": name, "number": number}).fetchall()
        return [_run_of(connection, row) for row in rows]


def _run_of(connection: psycopg.Connection, row: Sequence[Any]) -> StoredRun:
    """Return the run in a row.

    Raises:
        RunDirectoryError: it is damaged.
    """
    fields = StoredRun.__struct_fields__[:-1]
    with sound():
        counts: dict[int, dict[str, int]] = {}
        for job, word, items in connection.execute(_SQL["run_counts"], (row[0],)):
            counts.setdefault(job, {})[word] = items
        run = msgspec.convert(dict(zip(fields, (*row, counts), strict=True)), StoredRun)
        waves = {each[0]: StoredWave(*each[1:]) for each in connection.execute(_SQL["run_waves"], (row[0],))}
        return msgspec.structs.replace(run, identity=with_tuples(run.identity), waves=waves)


def participants(store: StoreConnection, run: int) -> list[Participant]:
    """Return every worker that has worked on the run, in the order in which they were registered."""
    fields = Participant.__struct_fields__
    with store.using() as connection:
        rows = connection.execute(_SQL["participants"], (run,)).fetchall()
    with sound():
        return [msgspec.convert(dict(zip(fields, row, strict=True)), Participant) for row in rows]


def steer(store: StoreConnection, run: StoredRun, verb: str, who: str, why: str = "") -> str:
    """Pause, resume or cancel a run, and record who did so; returns the state that the run has now.

    What is paused or stopped already is so: whoever lost the answer may ask again.

    Raises:
        RunDirectoryError: the verb is not allowed in the state of the run.
        UsageError: the run was forgotten.
    """
    state, allowed = _STEERING[verb]
    with store.transaction() as connection:
        _hold(store, connection, run)
        changed = connection.execute(_SQL["set_state"], (state, redact(why), run.id, list(allowed))).fetchone()
        if not changed:
            run = numbered(store, run.id) or run
            state = run.state
        is_so = changed is not None or state == _DONE[verb]
        result = state if is_so else f"refused: the run is {state}"
        note_action(connection, run, who, verb, {}, result)
        connection.execute("SELECT pg_notify('bulk_state', %s)", (str(run.id),))
    if not is_so:
        why = f" ({run.why})" if run.why else ""
        raise RunDirectoryError(f"{run.name} is {run.state}{why}: it can't be {_DONE[verb]}")
    return state


def _hold(store: StoreConnection, connection: psycopg.Connection, run: StoredRun) -> None:
    """Keep everybody else from forgetting a run, or changing its row, until the transaction ends.

    Raises:
        UsageError: the run was forgotten since it was found.
    """
    if connection.execute(_SQL["hold"], (run.id,)).fetchone() is None:
        raise UsageError(f"the store {store.address} has no run {run.name} any more: it was forgotten")


def note_action(
    connection: psycopg.Connection, run: StoredRun, who: str, verb: str, args: Mapping[str, Any], result: str
) -> None:
    """Record in the table of actions who has done what to a run, and how that ended."""
    given = redact_json(msgspec.json.encode(args)).decode()
    connection.execute(_SQL["note_action"], (run.id, redact(who), verb, given, result))


def change_limits(
    store: StoreConnection,
    run: StoredRun,
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    who: str,
    args: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Change the limits in the row of a run, and record who asked for that; returns the new limits.

    An error that `change` raises is passed on, and nothing has changed then.

    Raises:
        UsageError: the run was forgotten since it was found.
    """
    with store.transaction() as connection:
        _hold(store, connection, run)
        row = connection.execute(_SQL["limits"], (run.id,)).fetchone()
        assert row is not None
        limits = change(row[0])
        connection.execute(_SQL["set_limits"], (msgspec.json.encode(limits).decode(), run.id))
        note_action(connection, run, who, "set", args, run.state)
        connection.execute("SELECT pg_notify('bulk_state', %s)", (str(run.id),))
    return limits


def reopen(
    store: StoreConnection,
    run: StoredRun,
    kinds: AbstractSet[OutcomeKind],
    who: str,
    args: Mapping[str, Any] | None = None,
    *,
    codes: AbstractSet[ErrorCode] = frozenset(),
    jobs: AbstractSet[int] = frozenset(),
) -> int:
    """Reopen the items that ended with these outcomes, as for a retry, and let workers have them; returns how many.

    Args:
        who, args: recorded in the table of actions, if at least one item is reopened.
        codes, jobs: only items with one of these errors, of jobs with one of these numbers; empty: any.

    Raises:
        RunDirectoryError: workers are at work on the run, or on another one of the same manifest and items.
        UsageError: items that succeeded would be reopened, and a job of the run makes its items from results; or the
            run was forgotten since it was found.
    """
    with store.unhurried(), store.transaction() as connection:
        _hold(store, connection, run)
        if kinds & SUCCESSFUL and connection.execute(_SQL["is_made"], (run.id,)).fetchone():
            raise UsageError(
                f"{run.name}: a job has its items from results of others: what succeeded can't be run again in a store"
            )
        numbers = dict(connection.execute(_SQL["numbers"]).fetchall())
        chosen, spared = [numbers[kind] for kind in kinds], [numbers[ErrorCode.SUPERSEDED]]
        only = ([numbers[code] for code in codes] if codes else None, list(jobs) if jobs else None)
        try:
            found = connection.execute(_SQL["reopen"], (run.id, chosen, spared, *only)).fetchone()
        except psycopg.errors.UniqueViolation:  # of `run_going_on`
            raise RunDirectoryError(
                f"the store {store.address} has another run of the same manifest and items, which is not complete; "
                f"retry {run.name} when that one is: bulk runs --store {shlex.quote(str(store.address))}"
            ) from None
        count = int(found[0]) if found else 0
        if count:
            note_action(connection, run, who, "retry", args or {}, RUNNING)
    return count


def forget(store: StoreConnection, run: StoredRun) -> None:
    """Delete a run from the store for good, and its bundle if no other run has the same one.

    Raises:
        RunDirectoryError: workers are at work on the run.
        UsageError: the run was forgotten since it was found.
    """
    with store.unhurried(), store.transaction() as connection:
        _hold(store, connection, run)
        connection.execute(_SQL["forget"], (run.id,))
