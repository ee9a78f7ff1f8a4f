"""Reading a run from outside: while another process writes it, after a crash, from read-only media. Nothing is changed.

Every look is short: a connection is opened, read and closed again, so that a report of an hour neither holds up the
writer nor lets its log grow. A stream over a run that is being written has each item at most once, as it was when its
page was read. Source: interface.md §4, §5.
"""

import os
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import msgspec
import orjson

from bulk.errors import RunDirectoryError
from bulk.ledger.chunks import refuse_edited
from bulk.ledger.compaction import rewritten_path
from bulk.ledger.database import LEDGER, open_reader, refuse_foreign
from bulk.ledger.directory import RESULTS, Holder, is_held, read_holder
from bulk.ledger.records import Action, Epoch, RunIdentity, StoredTally
from bulk.ledger.results import lines_at
from bulk.ledger.rows import read_counts, read_identity, read_words
from bulk.model import OutcomeKind
from bulk.status import RunStatus

PAGE_ROWS = 5_000
"""Lines that are looked up at once."""


class LedgerView:
    """The ledger of one run, read only. It holds nothing open between two calls."""

    def __init__(self, run_dir: Path) -> None:
        """Look whether a run lives in `run_dir`.

        Raises:
            RunDirectoryError: there is none, or it is from a newer version, or can't be read. So do all methods.
        """
        self.run_dir = run_dir
        self._path = run_dir / LEDGER
        try:
            refuse_foreign(self._path)
        except OSError as error:
            reason = f"{LEDGER} can't be read: {error.strerror}" if self._path.exists() else f"it has no {LEDGER}"
            raise RunDirectoryError(f"{run_dir} is no run directory: {reason}") from None

    def identity(self) -> RunIdentity:
        """Whose run it is; `jobs` in their order."""
        with open_reader(self._path) as connection:
            return read_identity(connection)

    def holder(self) -> Holder | None:
        """The process that has the run open, or had it when it was killed; None after a clean end."""
        return read_holder(self.run_dir)

    def is_held(self) -> bool:
        """Whether a process of this machine has the run open."""
        return is_held(self.run_dir)

    def status(self) -> RunStatus | None:
        """Where the run stood when that was last written down; None before the first time."""
        with open_reader(self._path) as connection:
            (data,) = connection.execute("SELECT json FROM status").fetchone()
            return None if data is None else msgspec.json.decode(data, type=RunStatus)

    def epochs(self) -> list[Epoch]:
        """Every process that worked on the run, oldest first."""
        with open_reader(self._path) as connection:
            rows = connection.execute(
                "SELECT number, started_at, ended_at, pid, host, exit_code, why, status FROM epochs ORDER BY number"
            ).fetchall()
            return [
                Epoch(
                    number=number,
                    started_at=started_at,
                    ended_at=ended_at,
                    pid=pid,
                    host=host,
                    exit_code=exit_code,
                    why=why or "",
                    status=None if status is None else msgspec.json.decode(status, type=RunStatus),
                )
                for number, started_at, ended_at, pid, host, exit_code, why, status in rows
            ]

    def actions(self) -> list[Action]:
        """What people did to the run while it went on, oldest first."""
        with open_reader(self._path) as connection:
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'actions'").fetchone() is None:
                return []
            rows = connection.execute("SELECT at, who, verb, args, result FROM actions ORDER BY at, rowid").fetchall()
            return [
                Action(at=at, who=who, verb=verb, args=msgspec.json.decode(args), result=result)
                for at, who, verb, args, result in rows
            ]

    def counts(self) -> dict[int, dict[str, int]]:
        """How many items ended how: job number -> outcome -> count. Jobs and outcomes without items are left out."""
        with open_reader(self._path) as connection:
            return read_counts(connection)

    def tallies(self) -> dict[int, StoredTally] | None:
        """The tallies of jobs by their number, and that of the run (-1); None where they are not of all outcomes."""
        with open_reader(self._path) as connection:
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'tallies'").fetchone() is None:
                return None
            found = {job: StoredTally(*row) for job, *row in connection.execute("SELECT * FROM tallies")}
            counts = dict(connection.execute("SELECT job, sum(items) FROM counts GROUP BY job").fetchall())
        counts[-1] = sum(counts.values())
        kept = {job: tally.items for job, tally in found.items()}
        return found if all(kept.get(job, 0) == items for job, items in counts.items()) else None

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Job name, error code and how many items ended with it; jobs in their order, then the most frequent first."""
        with open_reader(self._path) as connection:
            return connection.execute(
                "SELECT j.name, w.word, sum(c.items) FROM counts c JOIN jobs j ON j.number = c.job "
                "JOIN words w ON w.number = c.code GROUP BY c.job, c.code ORDER BY c.job, sum(c.items) DESC, w.word"
            ).fetchall()

    def finished(
        self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """The current lines of `results.jsonl`, decoded, in the order of jobs and items; streamed.

        Args:
            kinds: only items that ended so; None: all.
            job: only items of the job with this name; None: all.
        """
        for line in self.lines(kinds=kinds, job=job):
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError:
                raise RunDirectoryError(f"{self.run_dir / RESULTS} is damaged: a line of it is not JSON") from None

    def lines(self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None) -> Iterator[bytes]:
        """As `finished`, each line as it is in the file, with its newline."""
        fd, generation = -1, -1
        after = (-1, -1)
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
                yield from lines_at(fd, [(row[2], row[3]) for row in rows])
                after = rows[-1][:2]
        finally:
            if fd >= 0:
                os.close(fd)

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """The current lines of these items of the job with that number, by index.

        Those without one are left out, and the last of them once there are `most_bytes` of lines: the first is there.
        """
        found: dict[int, bytes] = {}
        left = most_bytes
        with open_reader(self._path) as connection:
            (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
            fd = self._open_results(generation)
            try:
                for index in dict.fromkeys(indexes):
                    query = "SELECT position, length FROM outcomes WHERE job = ? AND idx = ?"
                    place = connection.execute(query, (job, index)).fetchone()
                    if place is not None and left > 0:
                        (found[index],) = lines_at(fd, [place])
                        left -= place[1]
            finally:
                os.close(fd)
        return found

    def refuse_edited(self) -> None:
        """Compare `results.jsonl` with its digests: the newest GiB of it, which takes about a second.

        Raises:
            RunDirectoryError: a line is not as it was written, or it can't be read.
        """
        with open_reader(self._path) as connection:
            generation, end = connection.execute("SELECT generation, results_bytes FROM meta").fetchone()
            fd = self._open_results(generation)
            try:
                refuse_edited(connection, fd, end, self.run_dir / RESULTS)
            except OSError as error:
                raise RunDirectoryError(f"{self.run_dir / RESULTS} can't be read: {error.strerror}") from None
            finally:
                os.close(fd)

    def newest_lines(self, size_bytes: int) -> list[bytes]:
        """The last lines of `results.jsonl`, so many bytes together, in their order; replaced ones are among them.

        Raises:
            RunDirectoryError: they can't be read.
        """
        with open_reader(self._path) as connection:
            generation, end = connection.execute("SELECT generation, results_bytes FROM meta").fetchone()
            fd, start = self._open_results(generation), max(0, end - size_bytes)
        try:
            lines = os.pread(fd, end - start, start).splitlines()
        except OSError as error:
            raise RunDirectoryError(f"{self.run_dir / RESULTS} can't be read: {error.strerror}") from None
        finally:
            os.close(fd)
        return lines[1:] if start else lines

    def _page(
        self, after: tuple[int, int], kinds: AbstractSet[OutcomeKind] | None, job: str | None
    ) -> tuple[int, list[tuple[int, int, int, int]]]:
        """The generation of results.jsonl, and job, index, position and length of the next lines."""
        wheres, values = ["(job, idx) > (?, ?)"], [*after]
        with open_reader(self._path) as connection:
            (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
            if job is not None:
                number = connection.execute("SELECT number FROM jobs WHERE name = ?", (job,)).fetchone()
                wheres.append("job = ?")
                values.append(-1 if number is None else number[0])
            if kinds is not None:
                words = read_words(connection)
                numbers = [words[kind] for kind in kinds if kind in words]
                wheres.append(f"outcome IN ({','.join('?' * len(numbers))})")
                values.extend(numbers)
            rows = connection.execute(
                f"SELECT job, idx, position, length FROM outcomes WHERE {' AND '.join(wheres)} "
                f"ORDER BY job, idx LIMIT {PAGE_ROWS}",
                values,
            ).fetchall()
        return generation, rows

    def _open_results(self, generation: int) -> int:
        path = self.run_dir / RESULTS
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(rewritten_path(path, generation), flags)
        except FileNotFoundError:
            pass
        try:
            return os.open(path, flags)
        except OSError as error:
            raise RunDirectoryError(f"{path} can't be read: {error.strerror}") from None
