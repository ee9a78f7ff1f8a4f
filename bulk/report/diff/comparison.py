"""Compares two runs of the same audit: items added, items removed, and results that differ, field by field.

Items of a job are matched where their own `id` and their fields are equal; of the rest, where the `id` is equal; of the
rest, where the fields are. Several equal items are matched in their order. Values that differ in every run (attempts,
times, request ids, `succeeded` or `unchanged`) are not a difference. Both runs are streamed into a temporary SQLite
file and out of it again: millions of items cost disk, not memory. Source: interface.md §4.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from bulk.errors import UNDECODABLE, RunDirectoryError, UsageError
from bulk.ledger.database import Index
from bulk.ledger.directory import RESULTS
from bulk.ledger.records import RunIdentity
from bulk.ledger.view import LedgerView
from bulk.model import SUCCESSFUL, OutcomeKind
from bulk.operation import UnknownOperation, find
from bulk.report.diff.diff_record import KINDS, Change, Ending, JobDiff, Side, Summary
from bulk.report.diff.field_changes import FieldDifference, FieldRules, canonical, differences, rules_of, without
from bulk.report.render.formatting import counted
from bulk.report.run_state import RunState, run_state_of
from bulk.storage.scratch import scratch_folder

COMPARED = ("id", "item", "outcome", "error", "result")
"""The parts of a line of `results.jsonl` that are compared."""

_PASSES = (("own, fields", "TRUE", 2), ("own", "own != x''", 2), ("fields", "TRUE", 1))
"""For each pass: the columns of `entries` in which matched items are equal, the condition for entries to take part, and
the number of runs that a match needs. One run is enough in the last pass, so that it leaves no entry."""

_DONE = "done"
_HASH_BYTES = 16
_OFTEN = 1_000
"""After how many more items progress is told (count)."""
_SCHEMA = """
-- Every item that no pass has matched so far: hashes of its own id (empty: none), of its fields, and of how it ended.
CREATE TABLE entries (
    run INTEGER, job INTEGER, idx INTEGER, own BLOB, fields BLOB, ending BLOB, PRIMARY KEY (run, job, idx)
) WITHOUT ROWID;
-- An item in both runs, by its index there; NULL where it is not. `is_same`: nothing of it can differ.
CREATE TABLE pairs (pass INTEGER, job INTEGER, old INTEGER, new INTEGER, is_same INTEGER);
-- The lines of one job that are looked at.
CREATE TABLE lines (run INTEGER, idx INTEGER, line BLOB, PRIMARY KEY (run, idx));
CREATE TABLE changes (kind INTEGER, job INTEGER, idx INTEGER, json BLOB, PRIMARY KEY (kind, job, idx)) WITHOUT ROWID;
"""
_MATCH = """
INSERT INTO pairs
SELECT ?, job, max(idx) FILTER (WHERE run = 0), max(idx) FILTER (WHERE run = 1),
       count(*) = 2 AND min(own) = max(own) AND min(fields) = max(fields) AND min(ending) = max(ending)
FROM (SELECT *, row_number() OVER (PARTITION BY job, {key}, run ORDER BY idx) AS nth FROM entries WHERE {possible})
GROUP BY job, {key}, nth HAVING count(*) >= {least}
"""
_UNMATCHED = """
DELETE FROM entries WHERE (run, job, idx) IN (
    SELECT 0, job, old FROM pairs WHERE pass = ?1 UNION ALL SELECT 1, job, new FROM pairs WHERE pass = ?1)
"""


class _Line(msgspec.Struct):
    """The part of a line of `results.jsonl` that is compared."""

    index: Index
    outcome: OutcomeKind
    id: str | None = None
    item: dict[str, Any] = {}
    result: Any = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """Two runs compared. The changes stay on disk until the block of `compare` ends."""

    summary: Summary
    _connection: sqlite3.Connection

    def changes(self, kind: str | None = None, most: int | None = None) -> Iterator[Change]:
        """Yield the changes kind by kind, as `KINDS` has them, each in the order of jobs and items; streamed.

        Args:
            kind: the kind of the changes; None: all kinds.
            most: most changes to yield (count); None: all.
        """
        for line in self._lines(kind, most):
            yield msgspec.json.decode(line, type=Change)

    def json_lines(self) -> Iterator[bytes]:
        """Yield the summary, then every change, each as one line of JSON with its newline."""
        yield msgspec.json.encode(self.summary) + b"\n"
        for line in self._lines(None, None):
            yield line + b"\n"

    def _lines(self, kind: str | None, most: int | None) -> Iterator[bytes]:
        kinds = tuple(range(len(KINDS))) if kind is None else (KINDS.index(kind),)
        rows = self._connection.execute(
            f"SELECT json FROM changes WHERE kind IN ({','.join('?' * len(kinds))}) ORDER BY kind, job, idx LIMIT ?",
            (*kinds, -1 if most is None else most),
        )
        return (row[0] for row in rows)


@contextlib.contextmanager
def compare(
    old: LedgerView,
    new: LedgerView,
    *,
    now: float,
    ignored: Collection[str] = (),
    is_all: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Diff]:
    """Compare the run of `old` with the run of `new` for the time of the block.

    Args:
        now: UTC epoch seconds.
        ignored: names of fields that are not compared, as `result.updated_at`; in arrays the field of every entry.
        is_all: compare also the fields that change by themselves (`Returns.volatile`).
        progress: called often with the number of items that were read so far.

    Raises:
        RunDirectoryError: a run is still going or damaged, or the disk for temporary files is full.
        UsageError: a name in `ignored` is not the name of a field that is compared.
    """
    for name in ignored:
        part, dot, inner = name.partition(".")
        if part not in COMPARED or bool(dot) != bool(inner) or name == "item":
            raise UsageError(f"--ignore {name}: expected a field such as result.updated_at or error.message")
    run_states = _ended(old, now), _ended(new, now)
    with scratch_folder("diff") as folder:
        try:
            with contextlib.closing(sqlite3.connect(folder / "diff.db", isolation_level=None)) as connection:
                connection.executescript(
                    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16000; BEGIN;" + _SCHEMA
                )
                comparison = _Comparison(connection, (old, new), frozenset(ignored), is_all=is_all, progress=progress)
                yield Diff(comparison.run(run_states), connection)
        except sqlite3.Error as error:
            raise RunDirectoryError(
                f"{folder}: {error}; the comparison needs room there: set TMPDIR to another folder"
            ) from error


def _ended(view: LedgerView, now: float) -> RunState:
    run_state = run_state_of(view, now)
    if run_state.is_live:
        raise RunDirectoryError(
            f"{view.run_dir} is still running: compare it when it has ended; `bulk status` shows where it stands"
        )
    return run_state


class _Comparison:
    """The work of `compare`, in its temporary file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        views: tuple[LedgerView, LedgerView],
        ignored: frozenset[str],
        *,
        is_all: bool,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._items, self._progress = 0, progress or (lambda _: None)
        self._connection, self._views, self._ignored = connection, views, ignored
        self._decoder = msgspec.json.Decoder(_Line)
        self._identities = (views[0].identity(), views[1].identity())
        operations = {name: operation for each in self._identities for name, operation, _ in each.jobs}
        self._jobs = [JobDiff(name=name, operation=operation) for name, operation in operations.items()]
        self._rules = [rules_of(name, is_all=is_all) for name in operations.values()]
        self._reads = [_is_read(name) for name in operations.values()]

    def run(self, run_states: tuple[RunState, RunState]) -> Summary:
        """Compare the two runs, and return the summary."""
        execute = self._connection.execute
        for number, job in enumerate(self._jobs):
            job.old_items, job.new_items = self._enter(0, number), self._enter(1, number)
        for number, (key, possible, least) in enumerate(_PASSES):
            execute(_MATCH.format(key=key, possible=possible, least=least), (number,))
            execute(_UNMATCHED, (number,))
        execute("CREATE INDEX pairs_by_job ON pairs (job) WHERE NOT is_same")
        for number, job in enumerate(self._jobs):
            self._tell(number)
            for kind, count in execute("SELECT kind, count(*) FROM changes WHERE job = ? GROUP BY kind", (number,)):
                setattr(job, KINDS[kind], count)
            job.same = job.old_items - job.removed - job.changed - job.lost_sight
        sides = self._side(0, run_states[0]), self._side(1, run_states[1])
        counts = {name: sum(getattr(job, name) for job in self._jobs) for name in ("same", *KINDS)}
        return Summary(
            old=sides[0],
            new=sides[1],
            jobs=tuple(self._jobs),
            ignored=tuple(sorted(self._ignored)),
            notes=tuple(_notes(self._identities, run_states, sides)),
            **counts,
        )

    def _side(self, run: int, run_state: RunState) -> Side:
        identity = self._identities[run]
        return Side(
            run_dir=str(self._views[run].run_dir),
            name=identity.name,
            base_url=identity.base_url,
            state=run_state.state,
            items=sum(job.new_items if run else job.old_items for job in self._jobs),
        )

    def _lines(self, run: int, job: int) -> Iterator[tuple[_Line, bytes]]:
        """Yield each line of a job in one run: the part that is compared, and the line as it is in the file."""
        view = self._views[run]
        for line in view.lines(job=self._jobs[job].name):
            try:
                yield self._decoded(line, job), line
            except UNDECODABLE as error:
                place = view.run_dir / RESULTS
                raise RunDirectoryError(f"{place} is damaged: {error}; restore it from a copy") from error

    def _decoded(self, line: bytes, job: int) -> _Line:
        found = self._decoder.decode(line)
        found.result = self._rules[job].steady(found.result)
        found.item.pop("id", None)
        if found.error is not None:
            found.error.pop("attempts", None)
        if self._ignored:
            found.id = None if "id" in self._ignored else found.id
            found.item = without(found.item, "item", self._ignored)
            found.error = None if "error" in self._ignored else without(found.error, "error", self._ignored)
            found.result = None if "result" in self._ignored else without(found.result, "result", self._ignored)
        return found

    def _outcome(self, line: _Line) -> str:
        """Return the outcome as it is compared: in a second audit, `unchanged` is what `succeeded` was in the first."""
        is_done = line.outcome in SUCCESSFUL
        return _DONE if is_done or "outcome" in self._ignored else line.outcome.value

    def _enter(self, run: int, job: int) -> int:
        """Enter the items of a job in one run into `entries`; returns their number."""
        rows = (
            (
                run,
                job,
                line.index,
                b"" if line.id is None else _hash(line.id),
                _hash(line.item),
                _hash([self._outcome(line), line.error, line.result]),
            )
            for line, _ in self._counted(self._lines(run, job))
        )
        return self._connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", rows).rowcount

    def _counted(self, lines: Iterator[tuple[_Line, bytes]]) -> Iterator[tuple[_Line, bytes]]:
        for line in lines:
            self._items += 1
            if self._items % _OFTEN == 0:
                self._progress(self._items)
            yield line

    def _tell(self, job: int) -> None:
        """Write the added, removed and changed items of a job into `changes`."""
        execute = self._connection.execute
        execute("DELETE FROM lines")
        for run, side in enumerate(("old", "new")):
            query = f"SELECT {side} FROM pairs WHERE job = ? AND NOT is_same AND {side} IS NOT NULL ORDER BY 1"
            lines = self._found(run, job, execute(query, (job,)))
            self._connection.executemany("INSERT INTO lines VALUES (?, ?, ?)", lines)
        texts = execute(
            "SELECT a.line, b.line FROM pairs LEFT JOIN lines AS a ON a.run = 0 AND a.idx = old "
            "LEFT JOIN lines AS b ON b.run = 1 AND b.idx = new WHERE job = ? AND NOT is_same",
            (job,),
        )
        for both in texts:
            old, new = (None if text is None else self._decoded(text, job) for text in both)
            change = self._change(job, old, new)
            if change is not None:
                index = change.new_index if old is None else change.old_index
                row = (KINDS.index(change.kind), job, index, msgspec.json.encode(change))
                execute("INSERT INTO changes VALUES (?, ?, ?, ?)", row)

    def _found(self, run: int, job: int, wanted: Iterator[tuple[int]]) -> Iterator[tuple[int, int, bytes]]:
        """Yield (run, index, line) of each wanted index; `wanted` is in the order of the items."""
        row = next(wanted, None)
        for line, text in self._lines(run, job) if row is not None else ():
            if row is not None and line.index == row[0]:
                yield run, line.index, text
                row = next(wanted, None)
                if row is None:
                    return
        if row is not None:
            raise RunDirectoryError(f"{self._views[run].run_dir} was changed while it was compared: compare it again")

    def _change(self, number: int, old: _Line | None, new: _Line | None) -> Change | None:
        """Return the change of an item that one run has or both have; None where nothing of the item differs."""
        shown, job = new or old, self._jobs[number].name
        assert shown is not None, "it is in one of them"
        if old is not None and new is not None:
            fields = list(self._differences(old, new, self._rules[number]))
            if not fields:
                return None
            is_lost = self._reads[number] and old.outcome in SUCCESSFUL and new.outcome not in SUCCESSFUL
            return Change(
                kind="lost_sight" if is_lost and "outcome" not in self._ignored else "changed",
                job=job,
                id=shown.id,
                item=shown.item,
                old_index=old.index,
                new_index=new.index,
                fields=[field for field in fields if not is_lost or not field.field.startswith("result")],
            )
        ending = Ending(shown.outcome, shown.error, shown.result)
        if old is None:
            return Change(kind="added", job=job, id=shown.id, item=shown.item, new_index=shown.index, new=ending)
        return Change(kind="removed", job=job, id=shown.id, item=shown.item, old_index=shown.index, old=ending)

    def _differences(self, old: _Line, new: _Line, rules: FieldRules) -> Iterator[FieldDifference]:
        if old.id != new.id:
            yield FieldDifference("id", old.id, new.id)
        yield from differences(old.item, new.item, "item")
        if self._outcome(old) != self._outcome(new):
            yield FieldDifference("outcome", old.outcome, new.outcome)
        yield from differences(old.error or {}, new.error or {}, "error")
        yield from differences(old.result, new.result, "result", rules)


def _is_read(name: str) -> bool:
    try:
        return find(name).is_read
    except UnknownOperation:
        return False


def _hash(value: Any) -> bytes:
    return hashlib.blake2b(canonical(value), digest_size=_HASH_BYTES).digest()


def _notes(
    identities: tuple[RunIdentity, RunIdentity], run_states: tuple[RunState, RunState], sides: tuple[Side, Side]
) -> Iterator[str]:
    old, new = identities
    if old.name != new.name:
        yield f"These are runs of different manifests: {old.name} and {new.name}."
    if old.base_url != new.base_url:
        yield f"They ran against different platforms: {old.base_url} and {new.base_url}."
    for run_state, side in zip(run_states, sides, strict=True):
        if run_state.state != "complete":
            left = "some items" if run_state.left is None else counted(run_state.left, "item")
            yield f"{side.run_dir} is not complete: {left} of it without an outcome count as not there."
    jobs, others = ({name: operation for name, operation, _ in each.jobs} for each in identities)
    for name in dict.fromkeys((*jobs, *others)):
        if name not in others or name not in jobs:
            yield f"The job {name} is only in {sides[name not in jobs].run_dir}."
        elif jobs[name] != others[name]:
            yield f"The job {name} was {jobs[name]} and is {others[name]}."
