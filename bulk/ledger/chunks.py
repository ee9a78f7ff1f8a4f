"""Digests over `results.jsonl`, one for each chunk, kept in the ledger, so that a line that was edited is noticed.

A chunk's digest is taken over the digests of its lines, which the digest chain needs as well: so each byte is hashed
once. The chunk that grows has its digest renewed in each commit, in the same transaction that points to the new lines.
Source: failures.md row 46.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from bulk.errors import RunDirectoryError
from bulk.ledger.database import has_table
from bulk.ledger.seal import WAY_OUT

CHUNK_BYTES = 8 * 1024 * 1024
"""Length at which a chunk of results.jsonl is closed, and the next chunk begins (bytes)."""
CHECKED_BYTES = 1024 * 1024 * 1024
"""Most of the newest results that is read when a run is resumed or reported on (bytes; one to three seconds)."""


_READ_BYTES = 1024 * 1024


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
    if not has_table(connection, "line_chunks"):
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
