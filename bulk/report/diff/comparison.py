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
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bulk.errors import RunDirectoryError, UsageError
from bulk.ledger.directory import RESULTS
from bulk.ledger.records import RunIdentity
from bulk.ledger.view import LedgerView
from bulk.model import SUCCESSFUL, OutcomeKind
from bulk.report.diff.diff_record import KINDS, Change, Ending, JobDiff, Side, Summary
from bulk.report.diff.field_changes import FieldDifference, canonical, differences, without
from bulk.report.render.formatting import counted
from bulk.report.run_state import Standing, stand

COMPARED = ("id", "item", "outcome", "error", "result")
"""The parts of a line of `results.jsonl` that are compared."""

BY_ALL, BY_ID, BY_FIELDS, LEFT = range(4)
"""The passes in which items are matched, and what none of them has matched."""

_DONE = "done"
_BATCH = 2_000
_HASH_BYTES = 16
_SCHEMA = """
-- Every item of both runs: hashes of its own id (empty: none), of its fields, and of how it ended.
CREATE TABLE entries (run INTEGER, job INTEGER, idx INTEGER, own BLOB, fields BLOB, ending BLOB);
-- Items that no pass has matched so far, by the number of the pass that they are left for.
CREATE TABLE rest (pass INTEGER, run INTEGER, job INTEGER, idx INTEGER, own BLOB, fields BLOB, ending BLOB);
CREATE TABLE pairs (job INTEGER, old INTEGER, new INTEGER);
-- The lines of one job in RUN_B that have a pair, while its lines in RUN_A are read.
CREATE TABLE new_lines (idx INTEGER PRIMARY KEY, line BLOB);
CREATE TABLE changes (kind INTEGER, job INTEGER, idx INTEGER, json BLOB, PRIMARY KEY (kind, job, idx)) WITHOUT ROWID;
"""

_Row = tuple[int, int, bytes, bytes, bytes, bytes, bytes]
"""Job, index, hashes of id, fields and ending, and the key of a pass in two parts."""


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
        part, dot, inner = name.partition(".")
        if part not in COMPARED or bool(dot) != bool(inner) or name == "item":
            raise UsageError(f"--ignore {name}: expected a field such as result.updated_at or error.message")
    standings = _ended(old, now), _ended(new, now)
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
    if standing.is_live:
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
        self._identities = (views[0].identity(), views[1].identity())
        operations = {name: operation for each in self._identities for name, operation, _ in each.jobs}
        self._jobs = [JobDiff(name=name, operation=operation) for name, operation in operations.items()]

    def run(self, standings: tuple[Standing, Standing]) -> Summary:
        """Compare, and sum up."""
        for number, job in enumerate(self._jobs):
            job.old_items, job.new_items = self._enter(0, number), self._enter(1, number)
        self._match(BY_ALL, "entries WHERE TRUE", "own, fields")
        self._match(BY_ID, f"rest WHERE pass = {BY_ID}", "own, x''")
        self._match(BY_FIELDS, f"rest WHERE pass = {BY_FIELDS}", "x'', fields")
        self._connection.execute("CREATE INDEX rest_by_item ON rest (pass, run, job, idx)")
        self._connection.execute("CREATE INDEX pairs_by_job ON pairs (job)")
        for number in range(len(self._jobs)):
            self._tell_new(number)
            self._tell_old(number)
        sides = self._side(0, standings[0]), self._side(1, standings[1])
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

    def _side(self, run: int, standing: Standing) -> Side:
        identity = self._identities[run]
        return Side(
            run_dir=str(self._views[run].run_dir),
            name=identity.name,
            base_url=identity.base_url,
            state=standing.state,
            items=sum(job.new_items if run else job.old_items for job in self._jobs),
        )

    def _lines(self, run: int, job: int) -> Iterator[tuple[_Line, bytes]]:
        """The lines of a job in one run: what is compared of them, and as they are in the file."""
        view = self._views[run]
        for line in view.lines(job=self._jobs[job].name):
            try:
                yield self._decoded(line), line
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                place = view.run_dir / RESULTS
                raise RunDirectoryError(f"{place} is damaged: {error}; restore it from a copy") from error

    def _decoded(self, line: bytes) -> _Line:
        found = self._decoder.decode(line)
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
        """The outcome as it is compared: in a second audit, `unchanged` is what `succeeded` was in the first."""
        is_done = line.outcome in SUCCESSFUL
        return _DONE if is_done or "outcome" in self._ignored else line.outcome.value

    def _enter(self, run: int, job: int) -> int:
        """Take the items of a job in; returns how many (count)."""
        number = 0

        def rows() -> Iterator[tuple[int, int, int, bytes, bytes, bytes]]:
            nonlocal number
            for line, _ in self._lines(run, job):
                own = b"" if line.id is None else _hash(line.id)
                ending = _hash([self._outcome(line), line.error, line.result])
                number += 1
                yield run, job, line.index, own, _hash(line.item), ending

        self._connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", rows())
        return number

    def _match(self, number: int, left: str, key: str) -> None:
        """One pass: match what has the same key, and leave the rest for the next one. `left` and `key` are SQL."""
        old, new = (
            self._connection.execute(
                f"SELECT job, idx, own, fields, ending, {key} FROM {left} AND run = {run} ORDER BY 1, 6, 7, 2"
            )
            for run in (0, 1)
        )
        rest: list[tuple[Any, ...]] = []
        pairs: list[tuple[int, int, int]] = []
        for before, after in _merged(old, new):
            if before is None or after is None or (number == BY_ID and not before[2]):
                rest += [(number + 1, run, *row[:5]) for run, row in ((0, before), (1, after)) if row is not None]
            elif number == BY_ALL and before[4] == after[4]:
                self._jobs[before[0]].same += 1
            else:
                pairs.append((before[0], before[1], after[1]))
            if len(rest) + len(pairs) >= _BATCH:
                self._keep(rest, pairs)
        self._keep(rest, pairs)

    def _keep(self, rest: list[tuple[Any, ...]], pairs: list[tuple[int, int, int]]) -> None:
        self._connection.executemany("INSERT INTO rest VALUES (?, ?, ?, ?, ?, ?, ?)", rest)
        self._connection.executemany("INSERT INTO pairs VALUES (?, ?, ?)", pairs)
        rest.clear()
        pairs.clear()

    def _tell_new(self, job: int) -> None:
        """Write down what was added, and keep the new lines of what may have changed."""
        self._connection.execute("DELETE FROM new_lines")
        wanted = self._connection.execute(
            f"SELECT idx, 0 FROM rest WHERE pass = {LEFT} AND run = 1 AND job = ?1 "
            "UNION ALL SELECT new, 1 FROM pairs WHERE job = ?1 ORDER BY 1",
            (job,),
        )
        name = self._jobs[job].name
        for (index, has_pair), line, text in self._found(1, job, wanted):
            if has_pair:
                self._connection.execute("INSERT INTO new_lines VALUES (?, ?)", (index, text))
                continue
            self._jobs[job].added += 1
            ending = Ending(line.outcome, line.error, line.result)
            self._write(
                job, index, Change(kind="added", job=name, id=line.id, item=line.item, new_index=index, new=ending)
            )

    def _tell_old(self, job: int) -> None:
        """Write down what was removed, and what has changed."""
        wanted = self._connection.execute(
            f"SELECT idx, NULL, NULL FROM rest WHERE pass = {LEFT} AND run = 0 AND job = ?1 UNION ALL "
            "SELECT p.old, p.new, l.line FROM pairs p JOIN new_lines l ON l.idx = p.new WHERE p.job = ?1 ORDER BY 1",
            (job,),
        )
        counts = self._jobs[job]
        for (index, new_index, new_text), line, _ in self._found(0, job, wanted):
            if new_text is None:
                counts.removed += 1
                ending = Ending(line.outcome, line.error, line.result)
                change = Change(
                    kind="removed", job=counts.name, id=line.id, item=line.item, old_index=index, old=ending
                )
            else:
                new = self._decoded(new_text)
                fields = list(self._differences(line, new))
                if not fields:
                    counts.same += 1
                    continue
                counts.changed += 1
                change = Change(
                    kind="changed",
                    job=counts.name,
                    id=new.id,
                    item=new.item,
                    old_index=index,
                    new_index=new_index,
                    fields=fields,
                )
            self._write(job, index, change)

    def _found(
        self, run: int, job: int, wanted: Iterator[tuple[Any, ...]]
    ) -> Iterator[tuple[tuple[Any, ...], _Line, bytes]]:
        """Each wanted row, which begins with an item's index, with its line; both are in the order of the items."""
        row = next(wanted, None)
        if row is None:
            return
        for line, text in self._lines(run, job):
            if line.index == row[0]:
                yield row, line, text
                row = next(wanted, None)
                if row is None:
                    return
        raise RunDirectoryError(f"{self._views[run].run_dir} was changed while it was compared: compare it again")

    def _differences(self, old: _Line, new: _Line) -> Iterator[FieldDifference]:
        if old.id != new.id:
            yield FieldDifference("id", old.id, new.id)
        yield from differences(old.item, new.item, "item")
        if self._outcome(old) != self._outcome(new):
            yield FieldDifference("outcome", old.outcome, new.outcome)
        yield from differences(old.error or {}, new.error or {}, "error")
        yield from differences(old.result, new.result, "result")

    def _write(self, job: int, index: int, change: Change) -> None:
        row = (KINDS.index(change.kind), job, index, msgspec.json.encode(change))
        self._connection.execute("INSERT INTO changes VALUES (?, ?, ?, ?)", row)


def _hash(value: Any) -> bytes:
    return hashlib.blake2b(canonical(value), digest_size=_HASH_BYTES).digest()


def _merged(old: Iterator[_Row], new: Iterator[_Row]) -> Iterator[tuple[_Row | None, _Row | None]]:
    """Rows of both, sorted by job and key: those with the same as pairs, in their order, the others alone."""
    before, after = next(old, None), next(new, None)
    while before is not None or after is not None:
        if after is None or (before is not None and _key(before) < _key(after)):
            yield before, None
            before = next(old, None)
        elif before is None or _key(after) < _key(before):
            yield None, after
            after = next(new, None)
        else:
            yield before, after
            before, after = next(old, None), next(new, None)


def _key(row: _Row) -> tuple[int, bytes, bytes]:
    return row[0], row[5], row[6]


def _notes(
    identities: tuple[RunIdentity, RunIdentity], standings: tuple[Standing, Standing], sides: tuple[Side, Side]
) -> Iterator[str]:
    old, new = identities
    if old.name != new.name:
        yield f"These are runs of different manifests: {old.name} and {new.name}."
    if old.base_url != new.base_url:
        yield f"They ran against different platforms: {old.base_url} and {new.base_url}."
    for standing, side in zip(standings, sides, strict=True):
        if standing.state != "complete":
            left = "some items" if standing.left is None else counted(standing.left, "item")
            yield f"{side.run_dir} is not complete: {left} of it without an outcome count as not there."
    jobs, others = ({name: operation for name, operation, _ in each.jobs} for each in identities)
    for name in dict.fromkeys((*jobs, *others)):
        if name not in others or name not in jobs:
            yield f"The job {name} is only in {sides[name not in jobs].run_dir}."
        elif jobs[name] != others[name]:
            yield f"The job {name} was {jobs[name]} and is {others[name]}."
