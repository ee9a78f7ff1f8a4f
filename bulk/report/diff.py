"""What changed between two runs of the same audit: items added, removed, and results that differ, field by field.

An item is the same in both runs where job, own `id` and fields are; of the rest, where the `id` is; of the rest, where
the fields are. Several of the same are matched in their order. What makes every run different (attempts, times, request
ids, `succeeded` or `unchanged`) is no difference. Both runs are streamed into a temporary SQLite file and out of it
again: millions of items cost disk, not memory. Source: interface.md §4.
"""

import contextlib
import hashlib
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bulk.errors import RunDirectoryError, UsageError
from bulk.ledger.directory import RESULTS
from bulk.ledger.records import RunIdentity
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from bulk.report.diff_fields import FieldDifference, canonical, differences, without
from bulk.report.figures import counted
from bulk.report.standing import Standing, stand

KINDS = ("added", "removed", "changed")
"""In the order in which they are shown."""

COMPARED = ("item", "outcome", "error", "result")
"""The parts of a line of `results.jsonl` that are compared."""

_DONE = "done"
_BATCH = 2_000
_HASH_BYTES = 16
_SCHEMA = """
-- Every item of both runs: hashes of its own id (empty: none), of its fields, and of how it ended.
CREATE TABLE entries (run INTEGER, job INTEGER, idx INTEGER, own BLOB, fields BLOB, ending BLOB);
-- Items that no pass has matched so far, by the number of the pass that they are left for.
CREATE TABLE rest (pass INTEGER, run INTEGER, job INTEGER, idx INTEGER, own BLOB, fields BLOB, ending BLOB);
CREATE TABLE pairs (job INTEGER, old INTEGER, new INTEGER, line BLOB, PRIMARY KEY (job, old)) WITHOUT ROWID;
CREATE UNIQUE INDEX pairs_by_new ON pairs (job, new);
CREATE TABLE changes (kind INTEGER, job INTEGER, idx INTEGER, json BLOB, PRIMARY KEY (kind, job, idx)) WITHOUT ROWID;
"""

T = TypeVar("T")
_Row = tuple[int, int, bytes, bytes, bytes]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs: `state` as in a report; `items` that have an outcome (count)."""

    run_dir: str
    name: str
    base_url: str
    state: str
    items: int


class JobDiff(msgspec.Struct, kw_only=True):
    """One job of either run: items (counts). `old_items` is `same` + `removed` + `changed`."""

    name: str
    operation: str
    old_items: int = 0
    new_items: int = 0
    same: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a diff: its first line as JSON.

    Attributes:
        kind: tells this line from the changes.
        old: RUN_A; new: RUN_B.
        ignored: fields that were not compared.
        notes: what a person should know before trusting the counts.
    """

    kind: str = "summary"
    version: int = 1
    old: Side
    new: Side
    same: int
    added: int
    removed: int
    changed: int
    jobs: tuple[JobDiff, ...]
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Ending(msgspec.Struct, frozen=True):
    """How an item ended, in a change that only one of the runs has."""

    outcome: str
    error: Any
    result: Any


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item that was added or removed, or whose outcome or result differs: one line as JSON.

    Attributes:
        kind: `added`, `removed` or `changed`.
        id: the user's own, in RUN_B where it is there.
        item: its fields, likewise.
        old_index, new_index: its place among the job's items in RUN_A and in RUN_B.
        old: how a removed item had ended; new: how an added one did.
        fields: of a changed one, what differs.
    """

    kind: str
    job: str
    id: str | None
    item: Mapping[str, Any]
    old_index: int | msgspec.UnsetType = msgspec.UNSET
    new_index: int | msgspec.UnsetType = msgspec.UNSET
    old: Ending | msgspec.UnsetType = msgspec.UNSET
    new: Ending | msgspec.UnsetType = msgspec.UNSET
    fields: list[FieldDifference] | msgspec.UnsetType = msgspec.UNSET


class _Line(msgspec.Struct):
    """What is compared of a line of `results.jsonl`."""

    index: int
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
        """Added, then removed, then changed items, each in the order of jobs and items; streamed.

        Args:
            kind: only these; None: all.
            most: stop after so many (count); None: never.
        """
        for line in self._lines(kind, most):
            yield msgspec.json.decode(line, type=Change)

    def json_lines(self) -> Iterator[bytes]:
        """The summary, then every change, each as one line of JSON with its newline."""
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
def compare(old: LedgerView, new: LedgerView, *, now: float, ignored: Collection[str] = ()) -> Iterator[Diff]:
    """What changed from the run of `old` to the run of `new`.

    Args:
        now: UTC epoch seconds.
        ignored: names of fields that are not compared, as `result.updated_at`; in arrays it is that of every entry.

    Raises:
        RunDirectoryError: a run is still going or damaged, or the disk for temporary files is full.
        UsageError: a name of `ignored` is none of a field that is compared.
    """
    for name in ignored:
        if name not in COMPARED and not name.startswith(tuple(f"{part}." for part in COMPARED)):
            raise UsageError(f"--ignore {name}: expected a field such as result.updated_at or error.message")
    standings = tuple(_ended(view, now) for view in (old, new))
    with tempfile.TemporaryDirectory(prefix="bulk-diff-", ignore_cleanup_errors=True) as folder:
        try:
            with contextlib.closing(sqlite3.connect(Path(folder) / "diff.db", isolation_level=None)) as connection:
                connection.executescript(
                    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32000; BEGIN;" + _SCHEMA
                )
                comparison = _Comparison(connection, (old, new), frozenset(ignored))
                yield Diff(comparison.run(standings), connection)
        except sqlite3.Error as error:
            raise RunDirectoryError(
                f"{folder}: {error}; the comparison needs room there: set TMPDIR to another folder"
            ) from error


def _ended(view: LedgerView, now: float) -> Standing:
    standing = stand(view, now)
    if standing.state == "running":
        raise RunDirectoryError(
            f"{view.run_dir} is still running: compare it when it has ended; `bulk status` shows where it stands"
        )
    return standing


class _Comparison:
    """The work of `compare`, in its temporary file."""

    def __init__(
        self, connection: sqlite3.Connection, views: tuple[LedgerView, LedgerView], ignored: frozenset[str]
    ) -> None:
        self._connection, self._views, self._ignored = connection, views, ignored
        self._decoder = msgspec.json.Decoder(_Line)
        identities = [view.identity() for view in views]
        self._identities: tuple[RunIdentity, RunIdentity] = (identities[0], identities[1])
        operations = {name: operation for each in reversed(identities) for name, operation, _ in each.jobs}
        names = dict.fromkeys(name for each in identities for name, _, _ in each.jobs)
        self._jobs = [JobDiff(name=name, operation=operations[name]) for name in names]

    def run(self, standings: tuple[Standing, ...]) -> Summary:
        """Compare, and sum up."""
        for run in (0, 1):
            for job in range(len(self._jobs)):
                self._enter(run, job)
        left_for = "entries WHERE 1"
        for number, key in enumerate(("own, fields", "own, x''", "x'', fields")):
            self._match(number, left_for, key)
            left_for = f"rest WHERE pass = {number + 1}"
        self._connection.execute("CREATE INDEX rest_by_item ON rest (pass, run, job, idx)")
        for job in range(len(self._jobs)):
            self._tell_new(job)
            self._tell_old(job)
        sides = [
            Side(
                run_dir=str(view.run_dir),
                name=identity.name,
                base_url=identity.base_url,
                state=standing.state,
                items=sum(standing.outcomes.values()),
            )
            for view, identity, standing in zip(self._views, self._identities, standings, strict=True)
        ]
        return Summary(
            old=sides[0],
            new=sides[1],
            same=sum(job.same for job in self._jobs),
            added=sum(job.added for job in self._jobs),
            removed=sum(job.removed for job in self._jobs),
            changed=sum(job.changed for job in self._jobs),
            jobs=tuple(self._jobs),
            ignored=tuple(sorted(self._ignored)),
            notes=tuple(_notes(self._identities, standings, sides)),
        )

    def _lines(self, run: int, job: int) -> Iterator[tuple[_Line, bytes]]:
        """The lines of a job in one run, without what is ignored, and as they are in the file."""
        view = self._views[run]
        for line in view.lines(job=self._jobs[job].name):
            yield self._decoded(view, line), line

    def _decoded(self, view: LedgerView, line: bytes) -> _Line:
        try:
            found = self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            place = view.run_dir / RESULTS
            raise RunDirectoryError(f"{place} is damaged: {error}; restore it from a copy") from error
        found.item.pop("id", None)
        if found.error is not None:
            found.error.pop("attempts", None)
        if self._ignored:
            found.item = without(found.item, "item", self._ignored)
            found.result = without(found.result, "result", self._ignored) if "result" not in self._ignored else None
            found.error = without(found.error, "error", self._ignored) if "error" not in self._ignored else None
        return found

    def _ending(self, line: _Line) -> tuple[str, Any, Any]:
        """What is compared of how an item ended. In a second audit, `unchanged` is what `succeeded` was in the first."""
        is_done = line.outcome in (OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED)
        outcome = _DONE if is_done or "outcome" in self._ignored else line.outcome.value
        return outcome, line.error, line.result

    def _enter(self, run: int, job: int) -> None:
        def rows() -> Iterator[tuple[int, int, int, bytes, bytes, bytes]]:
            for line, _ in self._lines(run, job):
                own = b"" if line.id is None else _hash(line.id.encode())
                ending = _hash(canonical(self._ending(line)))
                yield run, job, line.index, own, _hash(canonical(line.item)), ending

        self._connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", rows())

    def _match(self, number: int, left_for: str, key: str) -> None:
        """One pass: match what has the same key; hand on the rest. `left_for` and `key` are SQL of `run`."""
        old, new = (
            self._connection.execute(
                f"SELECT job, idx, own, fields, ending, {key} FROM {left_for} AND run = {run} ORDER BY 1, 6, 7, 2"
            )
            for run in (0, 1)
        )
        rest: list[tuple[Any, ...]] = []
        pairs: list[tuple[int, int, int]] = []
        for before, after in _merged(old, new, number == 1):
            if before is not None and after is not None:
                is_same = before[2:5] == after[2:5] or (number == 0 and before[4] == after[4])
                if is_same:
                    self._jobs[before[0]].same += 1
                else:
                    pairs.append((before[0], before[1], after[1]))
            else:
                rest += [(number + 1, run, *row[:5]) for run, row in ((0, before), (1, after)) if row is not None]
            if len(rest) + len(pairs) >= _BATCH:
                self._keep(rest, pairs)
        self._keep(rest, pairs)

    def _keep(self, rest: list[tuple[Any, ...]], pairs: list[tuple[int, int, int]]) -> None:
        self._connection.executemany("INSERT INTO rest VALUES (?, ?, ?, ?, ?, ?, ?)", rest)
        self._connection.executemany("INSERT INTO pairs (job, old, new) VALUES (?, ?, ?)", pairs)
        rest.clear()
        pairs.clear()
