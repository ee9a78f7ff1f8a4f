"""Digests over `results.jsonl`, a chunk each, kept in the ledger: a line that was edited is noticed.

The chunk that grows has its digest renewed in each commit, in the same transaction that points to the new lines.
Source: failures.md row 46.
"""

import hashlib
import os
import sqlite3
from pathlib import Path

from bulk.errors import RunDirectoryError
from bulk.ledger.database import has_table
from bulk.ledger.seal import WAY_OUT

CHUNK_BYTES = 8 * 1024 * 1024
"""A chunk of results.jsonl that is as long as this is closed, and the next one begins."""
CHECKED_BYTES = 1024 * 1024 * 1024
"""So much of the newest results is read when a run is resumed or reported on (a second or so); more is not."""


_READ_BYTES = 1024 * 1024


class Chunks:
    """Digests over `results.jsonl`, as it grows.

    Attributes:
        start: where the chunk begins that grows now; end: where it ends (bytes).
    """

    def __init__(self, fd: int, start: int, end: int) -> None:
        """Make a digest of the bytes from `start` to `end`, which are read."""
        self.start, self.end = start, end
        self._digest = _digest_of(fd, start, end)
        self._next = start, end, self._digest

    def cover(self, connection: sqlite3.Connection, fd: int, position: int, lines: bytes | bytearray) -> None:
        """Note that lines were written at `position`; in the same transaction as what points to them, then `accept`."""
        start, digest = self.start, self._digest.copy()
        if self.end - start >= CHUNK_BYTES:
            start, digest = self.end, hashlib.sha256()
        if position > self.end:  # what could not be cut off lies between
            _read_into(digest, fd, self.end, position)
        digest.update(lines)
        end = position + len(lines)
        connection.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", (start, end - start, digest.digest()))
        self._next = (start, end, digest)

    def accept(self) -> None:
        """Note that the transaction of the last `cover` is durable."""
        self.start, self.end, self._digest = self._next


def cover_all(connection: sqlite3.Connection, fd: int, end: int) -> None:
    """Note digests of a file that was written anew, within the transaction that points into it."""
    connection.execute("DELETE FROM chunks")
    for start in range(0, end, CHUNK_BYTES):
        size = min(CHUNK_BYTES, end - start)
        digest = _digest_of(fd, start, start + size).digest()
        connection.execute("INSERT INTO chunks VALUES (?, ?, ?)", (start, size, digest))


def open_chunks(connection: sqlite3.Connection, fd: int, end: int) -> Chunks:
    """Go on with the chunk that was written last; what was written before there were digests has none."""
    last = connection.execute("SELECT start, size FROM chunks ORDER BY start DESC LIMIT 1").fetchone()
    start = last[0] if last is not None and last[0] + last[1] == end else end
    return Chunks(fd, start, end)


def refuse_edited(connection: sqlite3.Connection, fd: int, end: int, path: Path) -> None:
    """Read the newest `CHECKED_BYTES` of the results and compare their digests.

    Args:
        end: how much of the file counts (bytes).

    Raises:
        RunDirectoryError: a byte of them is not what was written.
        OSError: they can't be read.
    """
    if not has_table(connection, "chunks"):
        return
    first = max(0, end - CHECKED_BYTES)
    for start, size, digest in connection.execute("SELECT * FROM chunks WHERE start >= ? ORDER BY start", (first,)):
        if _digest_of(fd, start, start + size).digest() != digest:
            raise RunDirectoryError(
                f"{path} was edited, or is an older copy: between bytes {start:,} and {start + size:,} it is not what "
                f"was written; undo that, or {WAY_OUT}"
            )


def _digest_of(fd: int, start: int, end: int) -> "hashlib._Hash":
    digest = hashlib.sha256()
    _read_into(digest, fd, start, end)
    return digest


def _read_into(digest: "hashlib._Hash", fd: int, start: int, end: int) -> None:
    while start < end:
        piece = os.pread(fd, min(_READ_BYTES, end - start), start)
        if not piece:
            return
        digest.update(piece)
        start += len(piece)
