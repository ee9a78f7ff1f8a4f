"""Reads a run from outside: while another process writes it, after a crash, from read-only media. Nothing is changed.

Every look is short: a connection is opened, read and closed again, so that a report of an hour neither holds up the
writer nor lets its log grow. A stream over a run that is being written has each item at most once, as it was when its
page was read. Source: interface.md §4, §5.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from bulk.errors import RunDirectoryError
from bulk.ledger.database import LEDGER, behind, has_table, open_reader, refuse_foreign
from bulk.ledger.directory import RESULTS, Holder, is_held, no_ledger, read_holder
from bulk.ledger.records import Action, Epoch, Minute, RunIdentity, StoredTally
from bulk.ledger.results import lines_at, rewritten_path
from bulk.ledger.rows import read_counts, read_elsewhere, read_identity, read_open, read_words
from bulk.ledger.seal import refuse_edited
from bulk.model import OutcomeKind
from bulk.status import RunStatus
from bulk.storage.private_files import open_regular

PAGE_ROWS = 5_000
"""Lines that are looked up at once (count)."""
CUT_BYTES = 32 * 1024
"""How much of a line is read where many lines are shown (bytes)."""

_EPOCH = tuple[int, float, float | None, int, str, int | None, str]
_PLACES = "SELECT job, idx, position, length FROM outcomes"


class Appended(NamedTuple):
    """Lines of `results.jsonl`: the generation of the file, their first byte, the lines, and the length of the file."""

    generation: int
    start: int
    lines: bytes
    end: int


class Cut(NamedTuple):
    """An item that has ended: the number of its job, its place in it, and the first `CUT_BYTES` of its line of `length`
    bytes."""

    job: int
    place: int
    line: bytes
    length: int


class LedgerView:
    """The ledger of one run, read only: a `RunView`, with more methods for reports. `lent`: the connection of `at_once`
    for all looks; None: each look opens the ledger for itself."""

    def __init__(self, run_dir: Path) -> None:
        """Check that there is a run in `run_dir`.

        Raises:
            RunDirectoryError: there is no run, or it is from a newer version, or can't be read. So do all methods.
        """
        self.run_dir = run_dir
        self._path = run_dir / LEDGER
        try:
            refuse_foreign(self._path)
        except OSError as error:
            raise no_ledger(run_dir, error) from None
        self.lent: sqlite3.Connection | None = None

    @contextlib.contextmanager
    def at_once(self) -> "Iterator[LedgerView]":
        """Lend a view of one moment, for a few short looks: opening the ledger costs more than each of them."""
        view = copy(self)
        with self._look() as view.lent:
            yield view

    def _look(self) -> AbstractContextManager[sqlite3.Connection]:
        return open_reader(self._path) if self.lent is None else contextlib.nullcontext(self.lent)

    def identity(self) -> RunIdentity:
        """Return the identity of the run; `jobs` in their order."""
        with self._look() as connection:
            return read_identity(connection)

    def holder(self) -> Holder | None:
        """Return the process that has the run open, or had it open when it was killed; None after a clean end."""
        return read_holder(self.run_dir)

    def elsewhere(self) -> str:
        """Return the command (for a shell) by which a store goes on with the run; empty if none does."""
        with self._look() as connection:
            return read_elsewhere(connection)

    def is_held(self) -> bool:
        """Return whether a process of this machine has the run open."""
        return is_held(self.run_dir)

    def status(self) -> RunStatus | None:
        """Return the last status of the run that was stored; None before the first one."""
        with self._look() as connection:
            (data,) = connection.execute("SELECT json FROM status").fetchone()
            return _status(data)

    def epochs(self) -> list[Epoch]:
        """Return every process that worked on the run, oldest first."""
        with self._look() as connection:
            rows = connection.execute(
                "SELECT number, started_at, ended_at, pid, host, exit_code, coalesce(why, ''), status "
                "FROM epochs ORDER BY number"
            ).fetchall()
            return [Epoch(*(*msgspec.convert(row, _EPOCH), _status(data))) for *row, data in rows]

    def began_at(self) -> float:
        """Return when the first process opened the run (UTC epoch seconds); 0.0 before that."""
        with self._look() as connection:
            return float(connection.execute("SELECT coalesce(min(started_at), 0.0) FROM epochs").fetchone()[0])

    def actions(self) -> list[Action]:
        """Return the actions of people on the run while it went on, oldest first."""
        with self._look() as connection:
            if not has_table(connection, "actions"):
                return []
            rows = connection.execute("SELECT at, who, verb, args, result FROM actions ORDER BY at, rowid").fetchall()
            return [
                Action(at=at, who=who, verb=verb, args=msgspec.json.decode(args), result=result)
                for at, who, verb, args, result in rows
            ]

    def counts(self) -> dict[int, dict[str, int]]:
        """Return how many items have each outcome: job number -> outcome -> count. Jobs and outcomes without items are
        left out."""
        with self._look() as connection:
            return read_counts(connection)

    def error_counts_of(self, job: int, start: int, stop: int) -> dict[str, int]:
        """Return how many of these items of the job with that number ended with each error code."""
        query = (
            "SELECT w.word, count(*) FROM outcomes o JOIN words w ON w.number = o.code "
            "WHERE o.job = ? AND o.idx >= ? AND o.idx < ? AND o.code != 0 GROUP BY o.code"
        )
        with self._look() as connection:
            return dict(connection.execute(query, (job, start, stop)).fetchall())

    def errors_of(self, job: int) -> list[tuple[int, str]]:
        """Return (index, error code) of the items of the job with that number that ended with an error."""
        query = "SELECT o.idx, w.word FROM outcomes o JOIN words w ON w.number = o.code WHERE o.job = ? AND o.code != 0"
        with self._look() as connection:
            return connection.execute(query, (job,)).fetchall()

    def open_items(self, job: int) -> list[int]:
        """Return the items of the job with that number whose write may have been sent, and that have no outcome."""
        with self._look() as connection:
            return [index for number, index in read_open(connection) if number == job]

    def last_index(self, job: int) -> int:
        """Return the last item of the job with that number that has an outcome or an intent; -1 where no item has."""
        last = "SELECT max(idx) AS idx FROM {} WHERE job = :job"  # for each table by itself: one step in its key
        query = f"SELECT max(idx) FROM ({last.format('outcomes')} UNION ALL {last.format('intents')})"
        with self._look() as connection:
            (last,) = connection.execute(query, {"job": job}).fetchone()
            return -1 if last is None else int(last)

    def befores(self, job: int, start: int, stop: int) -> dict[int, Any]:
        """Return the before-images of these items' writes that can be undone, by index."""
        with self._look() as connection:
            if not has_table(connection, "befores"):
                return {}
            query = "SELECT idx, before FROM befores WHERE job = ? AND idx >= ? AND idx < ?"
            rows = connection.execute(query, (job, start, stop))
            return {index: orjson.loads(before) for index, before in rows}

    def head(self) -> str | None:
        """Return the head of the digest chain, in hexadecimal; None for a run without a chain."""
        with self._look() as connection:
            if not has_table(connection, "links"):
                return None
            row = connection.execute("SELECT head FROM links ORDER BY number DESC LIMIT 1").fetchone()
            return None if row is None else bytes.hex(row[0])

    def tallies(self) -> dict[int, StoredTally] | None:
        """Return the tallies of jobs by their number, and that of the run (-1); None where they do not cover all
        outcomes."""
        with self._look() as connection:
            if not has_table(connection, "tallies"):
                return None
            found = {job: StoredTally(*row) for job, *row in connection.execute("SELECT * FROM tallies")}
            counts = dict(connection.execute("SELECT job, sum(items) FROM counts GROUP BY job").fetchall())
        counts[-1] = sum(counts.values())
        kept = {job: tally.items for job, tally in found.items()}
        return found if all(kept.get(job, 0) == items for job, items in counts.items()) else None

    def timeline(self, *, newest: bool = False, since: int = 0) -> list[Minute]:
        """Return figures by time, for plots, in order; empty where the run kept none. `newest`: only the last minute;
        `since`: only minutes from that one on.
        """
        with self._look() as connection:
            if not has_table(connection, "timeline"):
                return []
            order = "DESC LIMIT 1" if newest else ""
            query = f"SELECT minute, data FROM timeline WHERE minute >= ? ORDER BY minute {order}"
            found = connection.execute(query, (since,))
            return [Minute(*row) for row in found]

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Return the sums that are kept with each commit."""
        with self._look() as connection:
            return connection.execute(
                "SELECT j.name, w.word, sum(c.items) FROM counts c JOIN jobs j ON j.number = c.job "
                "JOIN words w ON w.number = c.code GROUP BY c.job, c.code ORDER BY c.job, sum(c.items) DESC, w.word"
            ).fetchall()

    def sums(self) -> list[tuple[int, str, str, int]]:
        """Return job number, outcome, error code (empty: none) and how many items have these three."""
        with self._look() as connection:
            return connection.execute(
                "SELECT c.job, o.word, coalesce(w.word, ''), c.items FROM counts c "
                "JOIN words o ON o.number = c.outcome LEFT JOIN words w ON w.number = c.code WHERE c.items > 0"
            ).fetchall()

    def finished(
        self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the current lines of `results.jsonl`, decoded, in the order of jobs and items; a page at a time."""
        for line in self.lines(kinds=kinds, job=job):
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError:
                raise RunDirectoryError(f"{self.run_dir / RESULTS} is damaged: a line of it is not JSON") from None

    def lines(self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None) -> Iterator[bytes]:
        """Yield each line of `finished` as it is in the file, with its newline."""
        fd, generation, after = -1, -1, (-1, -1)
        try:
            while True:
                found, rows = self._page(after, kinds, job)
                if found != generation:
                    # The page is read again with the file open: only if the generation is still the same then, the
                    # file is the one that the page points into.
                    if fd >= 0:
                        os.close(fd)
                        fd = -1
                    fd, generation = self._open_results(found), found
                    continue
                if not rows:
                    return
                yield from lines_at(fd, [(row[2], row[3]) for row in rows], self.run_dir / RESULTS)
                after = rows[-1][:2]
        finally:
            if fd >= 0:
                os.close(fd)

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """See `RunView`; each line is looked up by itself."""
        found, left = dict[int, bytes](), most_bytes
        with self._look() as connection, self._results(connection) as (fd, _):
            for index in dict.fromkeys(indexes):
                query = "SELECT position, length FROM outcomes WHERE job = ? AND idx = ?"
                place = connection.execute(query, (job, index)).fetchone()
                if place is not None and left > 0:
                    (found[index],) = lines_at(fd, [place], self.run_dir / RESULTS)
                    left -= place[1]
        return found

    def refuse_edited(self) -> None:
        """Compare `results.jsonl` with its digests: the newest GiB of it, in one to three seconds.

        Raises:
            RunDirectoryError: a line is not as it was written, or the file can't be read.
        """
        with self._look() as connection, self._results(connection) as (fd, end):
            refuse_edited(connection, fd, end, self.run_dir / RESULTS)

    def whole_results(self) -> Path | None:
        """Return `results.jsonl` where it holds the current lines and no others, so that it can be read as it is."""
        path = self.run_dir / RESULTS
        with self._look() as connection, self._results(connection) as (fd, end):
            (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
            (current,) = connection.execute("SELECT coalesce(sum(length), 0) FROM outcomes").fetchone()
            is_whole = not rewritten_path(path, generation).exists() and os.fstat(fd).st_size == end == current
        return path if is_whole else None

    def longest_line(self) -> int:
        """Return the length of the longest current line (bytes); 0 where there is none."""
        with self._look() as connection:
            return int(connection.execute("SELECT coalesce(max(length), 0) FROM outcomes").fetchone()[0])

    def appended(self, generation: int, start: int, most_bytes: int) -> Appended:
        """Return whole lines of `results.jsonl` from byte `start` on, about `most_bytes` of them, as committed.

        Among them may be lines that were replaced since. Where the file is no longer of that `generation`, it was
        written anew, and the lines are those from its beginning; so they are where no line begins at `start`.
        """
        with self._look() as connection, self._results(connection) as (fd, end):
            (found,) = connection.execute("SELECT generation FROM meta").fetchone()
            if found != generation or (start and (start > end or os.pread(fd, 1, start - 1) != b"\n")):
                start = 0
            size = most_bytes
            while True:
                data = os.pread(fd, min(size, end - start), start)
                whole = data.rfind(b"\n") + 1
                if whole or len(data) < size:
                    return Appended(found, start, data[:whole], end)
                size *= 2

    def page(
        self,
        after: tuple[int, int],
        most: int,
        *,
        job: str = "",
        outcome: str = "",
        code: str = "",
        until: tuple[int, int] | None = None,
    ) -> list[Cut]:
        """Return up to `most` items that have ended, in the order of jobs and items.

        Args:
            after: job number and index of the item before the first one. until: the same of the last one looked at.
            job, outcome, code: only items of that job, with that outcome and that error code; empty: any.
        """
        with self._look() as connection:
            words = read_words(connection)
            wheres, values = behind(connection, after, until, job)
            for column, word in (("outcome", outcome), ("code", code)):
                if word:
                    wheres.append(f"{column} = ?")
                    values.append(words.get(word, -1))
            query = f"{_PLACES} WHERE {' AND '.join(wheres)} ORDER BY job, idx LIMIT ?"
            return self._cut(connection, connection.execute(query, (*values, most)).fetchall())

    def current(self, places: Iterable[tuple[int, int, int]]) -> list[Cut]:
        """Return items by job number, index and place of their line, without those that have another line now."""
        query = f"{_PLACES} WHERE job = ? AND idx = ? AND position = ?"
        with self._look() as connection:
            rows = [row for place in places for row in connection.execute(query, place)]
            return self._cut(connection, rows)

    def _cut(self, connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int, int]]) -> list[Cut]:
        with self._results(connection) as (fd, _):
            return [Cut(job, index, os.pread(fd, min(size, CUT_BYTES), at), size) for job, index, at, size in rows]

    def newest_lines(self, size_bytes: int) -> list[bytes]:
        """Return the end of `results.jsonl`, in one read."""
        with self._look() as connection, self._results(connection) as (fd, end):
            start = max(0, end - size_bytes)
            lines = os.pread(fd, end - start, start).splitlines()
        return lines[1:] if start else lines

    def _page(
        self, after: tuple[int, int], kinds: AbstractSet[OutcomeKind] | None, job: str | None
    ) -> tuple[int, list[tuple[int, int, int, int]]]:
        """Return the generation of results.jsonl, and job, index, position and length of the next lines."""
        with self._look() as connection:
            (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
            wheres, values = behind(connection, after, None, job or "")
            if kinds is not None:
                words = read_words(connection)
                numbers = [words[kind] for kind in kinds if kind in words]
                wheres.append(f"outcome IN ({','.join('?' * len(numbers))})")
                values.extend(numbers)
            query = f"{_PLACES} WHERE {' AND '.join(wheres)} ORDER BY job, idx LIMIT {PAGE_ROWS}"
            rows = connection.execute(query, values).fetchall()
        return generation, rows

    @contextlib.contextmanager
    def _results(self, connection: sqlite3.Connection) -> Iterator[tuple[int, int]]:
        """Lend a descriptor of the results.jsonl that the ledger points into, and its length that counts (bytes)."""
        generation, end = connection.execute("SELECT generation, results_bytes FROM meta").fetchone()
        fd = self._open_results(generation)
        try:
            yield fd, end
        except OSError as error:
            raise _unreadable(self.run_dir / RESULTS, error) from None
        finally:
            os.close(fd)

    def _open_results(self, generation: int) -> int:
        path = self.run_dir / RESULTS
        try:
            with contextlib.suppress(FileNotFoundError):
                return open_regular(rewritten_path(path, generation))
            return open_regular(path)
        except OSError as error:
            raise _unreadable(path, error) from None


def _status(data: bytes | None) -> RunStatus | None:
    return None if data is None else msgspec.json.decode(data, type=RunStatus)


def _unreadable(path: Path, error: OSError) -> RunDirectoryError:
    return RunDirectoryError(f"{path} can't be read: {error.strerror}; correct that, or restore it from a copy")
