"""Binds the files of a run directory together, so that an older or edited part is not taken for the newest one.

Three things bind them. The ledger counts its commits, and `run.seal`, a small file beside it, gets each count once that
commit is durable: a ledger whose count is lower is an older copy, or has lost its write-ahead log. The ledger holds
digests of `results.jsonl`, so that a line that was edited is noticed, and of the files that the check has made
(`companion_files.py`). None of this helps if the whole directory is replaced by an older copy of it: that can't be
noticed.

There is one digest for each chunk of `results.jsonl`. It is taken over the digests of its lines, which the digest chain
needs as well: so each byte is hashed once. The chunk that grows has its digest renewed in each commit, in the same
transaction that points to the new lines.

The seal is never ahead of the durable commits, wherever a process is killed or the power fails. It may be behind by any
number of commits, which is no sign of damage. Source: failures.md rows 43, 46.
"""

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bulk.errors import ANOTHER_RUN, UNDECODABLE, RunDirectoryError
from bulk.ledger import database
from bulk.storage.private_files import open_private, open_regular, sync_directory, write_whole

SEAL = "run.seal"

CHUNK_BYTES = 8 * 1024 * 1024
"""Length at which a chunk of results.jsonl is closed, and the next chunk begins (bytes)."""
CHECKED_BYTES = 1024 * 1024 * 1024
"""Most of the newest results that is read when a run is resumed or reported on (bytes; one to three seconds)."""
_READ_BYTES = 1024 * 1024
_WIDTH = 160
_WAL_MODE = 2
WAY_OUT = f"restore the whole run directory from one copy, or {ANOTHER_RUN}"


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `run.seal`.

    Attributes:
        run: the run that the seal belongs to (32 hex digits).
        commits: durable commits of the ledger (count); there may be more.
        is_checking: the parts that the check makes are being made again; they are not trusted until they are bound.
        is_naming: likewise for `origin.json` and `manifest.yaml`.
    """

    run: str
    commits: int
    is_checking: bool = False
    is_naming: bool = False


def read_seal(run_dir: Path) -> Seal | None:
    """Return the seal; None where there is none.

    Raises:
        RunDirectoryError: the seal is damaged.
        OSError: the seal can't be read.
    """
    try:
        fd = open_regular(run_dir / SEAL)
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(os.read(fd, 4_096), type=Seal)
    except UNDECODABLE:
        raise RunDirectoryError(f"{run_dir / SEAL} is damaged; {WAY_OUT}") from None
    finally:
        os.close(fd)


def write_seal(run_dir: Path, seal: Seal) -> None:
    """Write the seal, whole or not at all, and make it durable.

    Raises:
        OSError: the disk refused.
    """
    write_whole(run_dir / SEAL, _text(seal))
    sync_directory(run_dir)


def _text(seal: Seal) -> bytes:
    return msgspec.json.encode(seal).ljust(_WIDTH - 1) + b"\n"


def begin(connection: sqlite3.Connection, *, is_sealed: bool) -> None:
    """Count the commit that begins an epoch, within its transaction.

    Args:
        is_sealed: whether there is a seal. Until there is one, a killed process may leave no more than this commit.
    """
    connection.execute("INSERT OR IGNORE INTO seal VALUES (1, ?, 0, NULL)", (os.urandom(16).hex(),))
    connection.execute(f"UPDATE seal SET commits = {'commits + 1' if is_sealed else '1'}")


def refuse_older(path: Path) -> None:
    """Compare the ledger at `path` with the seal beside it.

    Raises:
        RunDirectoryError: the ledger is older than the rest of the run directory, its write-ahead log was lost, or it
            is another run's. No file was changed.
        OSError: the seal can't be read.
    """
    # this comes before SQLite opens the file, which makes an empty log where there is none
    is_without_log = not _has_bytes(path.with_name(path.name + "-wal")) and _is_in_wal_mode(path)
    seal = read_seal(path.parent)
    with database.open_reader(path) as connection:
        last = connection.execute("SELECT ended_at FROM epochs ORDER BY number DESC LIMIT 1").fetchone()
        row = _row(connection)
    if seal is None:
        if row is not None and row[1] > 1:  # the first commit begins an epoch, and the seal comes next
            raise RunDirectoryError(
                f"{path.parent} has lost its {SEAL}, which was there when it was used last; {WAY_OUT}"
            )
        return
    if row is not None and row[0] != seal.run:
        raise RunDirectoryError(f"{path} and {SEAL} beside it are of two runs; {WAY_OUT}")
    commits = 0 if row is None else row[1]
    if commits < seal.commits:
        log = ", or its write-ahead log ledger.db-wal was lost" if is_without_log else ""
        raise RunDirectoryError(
            f"{path} is older than the rest of the run directory (it has {commits:,} of at least {seal.commits:,} "
            f"commits): it was replaced by an older copy{log}. It does not know what was sent since, and going on "
            f"would send that again; {WAY_OUT}: what was done already is then found by reading"
        )
    if is_without_log and last is not None and last[0] is None and commits != seal.commits:
        raise database.damaged(path, "the process before was killed, and its write-ahead log ledger.db-wal is gone")


def _row(connection: sqlite3.Connection) -> tuple[str, int] | None:
    if not database.has_table(connection, "seal"):
        return None
    found: tuple[str, int] | None = connection.execute("SELECT run, commits FROM seal").fetchone()
    return found


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _is_in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[18:] == bytes((_WAL_MODE, _WAL_MODE))


class Sealing:
    """Counts the commits of an open ledger, in the ledger and in the seal.

    Attributes:
        commits: durable commits (count).
    """

    def __init__(self, run_dir: Path, connection: sqlite3.Connection) -> None:
        """Write to the seal that an epoch has begun, and keep the file open; it is made where there is none.

        Raises:
            OSError: the disk refused.
        """
        self._planned_from: float | None
        row = connection.execute("SELECT run, commits, planned_from FROM seal").fetchone()
        run, self.commits, self._planned_from = row
        self._stored = self._planned_from
        self._run_dir, self._fd = run_dir, -1
        found = read_seal(run_dir) or Seal(run=run, commits=0)
        self.seal = msgspec.structs.replace(found, commits=self.commits)
        self._write()

    def planned_from(self, guess: float | None) -> float | None:
        """See `RunLedger.planned_from`."""
        moment = guess if self._planned_from is None else self._planned_from
        self._planned_from = moment
        return moment

    def count(self, connection: sqlite3.Connection) -> None:
        """Count one more commit, within its transaction."""
        connection.execute("UPDATE seal SET commits = ?", (self.commits + 1,))
        if self._planned_from != self._stored:
            connection.execute("UPDATE seal SET planned_from = ?", (self._planned_from,))

    def counted(self) -> None:
        """Write to the seal that the transaction is durable. A failure to write does no harm."""
        self.commits += 1
        self._stored = self._planned_from
        self.seal = msgspec.structs.replace(self.seal, commits=self.commits)
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, _text(self.seal), 0)

    def bound(self) -> None:
        """Note that all parts are bound, and none of them is being made.

        Raises:
            OSError: the disk refused.
        """
        self.seal = msgspec.structs.replace(self.seal, is_checking=False, is_naming=False)
        self._write()

    def _write(self) -> None:
        self.close()
        write_seal(self._run_dir, self.seal)
        self._fd = open_private(self._run_dir / SEAL, os.O_WRONLY)

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Chunks:
    """Digests over `results.jsonl`, as it grows.

    Attributes:
        start: where the chunk that grows now begins. end: where it ends (bytes).
    """

    def __init__(self, fd: int, start: int, end: int) -> None:
        """Read the bytes from `start` to `end`, and make their digest."""
        self.start, self.end = start, end
        self._digest = _digest_of(fd, start, end)
        self._next = start, end, self._digest

    def cover(
        self, connection: sqlite3.Connection, fd: int, position: int, size: int, digests: Iterable[bytes]
    ) -> None:
        """Note that lines were written at `position`, in the transaction that points to them; then call `accept`.

        Args:
            size: size of all lines (bytes). digests: the digest of each line, in their order.
        """
        start, digest = self.start, self._digest.copy()
        if position > self.end:  # lines that the ledger did not take, and that could not be cut off, lie between
            _keep(connection, self.end, position, _digest_of(fd, self.end, position))
            start, digest = position, hashlib.sha256()
        elif self.end - start >= CHUNK_BYTES:
            start, digest = self.end, hashlib.sha256()
        digest.update(b"".join(digests))
        end = position + size
        _keep(connection, start, end, digest)
        self._next = (start, end, digest)

    def accept(self) -> None:
        """Note that the transaction of the last `cover` is durable."""
        self.start, self.end, self._digest = self._next


def _keep(connection: sqlite3.Connection, start: int, end: int, digest: "hashlib._Hash") -> None:
    connection.execute("INSERT OR REPLACE INTO line_chunks VALUES (?, ?, ?)", (start, end - start, digest.digest()))


def cover_all(connection: sqlite3.Connection, fd: int, end: int) -> None:
    """Note digests of a file that was written anew, within the transaction that points into it."""
    connection.execute("DELETE FROM line_chunks")
    for start in range(0, end, CHUNK_BYTES):
        _keep(connection, start, min(start + CHUNK_BYTES, end), _digest_of(fd, start, min(start + CHUNK_BYTES, end)))


def open_chunks(connection: sqlite3.Connection, fd: int, end: int) -> Chunks:
    """Go on with the chunk that was written last; lines from before there were digests have none."""
    last = connection.execute("SELECT start, size FROM line_chunks ORDER BY start DESC LIMIT 1").fetchone()
    start = last[0] if last is not None and last[0] + last[1] == end else end
    return Chunks(fd, start, end)


def refuse_edited(connection: sqlite3.Connection, fd: int, end: int, path: Path) -> None:
    """Read the newest `CHECKED_BYTES` of the results and compare their digests.

    Args:
        end: how much of the file counts (bytes).

    Raises:
        RunDirectoryError: a byte of the results is not what was written.
        OSError: the results can't be read.
    """
    for start, stop in edited(connection, fd, max(0, end - CHECKED_BYTES)):
        raise RunDirectoryError(
            f"{path} was edited, or is an older copy: between bytes {start:,} and {stop:,} it is not what was written; "
            f"undo that, or {WAY_OUT}"
        )


def edited(connection: sqlite3.Connection, fd: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each chunk that is not as it was written, from byte `first` on.

    Raises:
        OSError: the file can't be read.
    """
    if not database.has_table(connection, "line_chunks"):
        return
    rows = connection.execute("SELECT * FROM line_chunks WHERE start >= ? ORDER BY start", (first,))
    for start, size, digest in rows:
        if _digest_of(fd, start, start + size).digest() != digest:
            yield start, start + size


def _digest_of(fd: int, start: int, end: int) -> "hashlib._Hash":
    """Return the digest of the digests of lines, the first and the last of which may be cut off."""
    digest, line, is_begun = hashlib.sha256(), hashlib.sha256(), False
    while start < end:
        data = os.pread(fd, min(_READ_BYTES, end - start), start)
        if not data:
            break
        start += len(data)
        first, *whole = data.split(b"\n")
        line.update(first)
        if whole:
            rest = whole.pop()
            line.update(b"\n")
            digest.update(line.digest() + b"".join([hashlib.sha256(each + b"\n").digest() for each in whole]))
            line = hashlib.sha256(rest)
        is_begun = data[-1:] != b"\n"
    if is_begun:
        digest.update(line.digest())
    return digest
