"""The last read of each item: a SQLite file for each night, made from the file of the night before.

A read that fails changes nothing here, so that an item that can't be read for a while is not taken for gone, and its
changes meanwhile are found when it is read again. One that never was is here as well, so that it is not taken for new
when it is. Results are kept as tables hold them: without fields that change by themselves, content and signed
addresses.
"""

import contextlib
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bulk.errors import RunDirectoryError
from bulk.report.diff.field_changes import canonical

_TABLE = """
CREATE TABLE reads (
    key BLOB PRIMARY KEY, job TEXT, operation TEXT, id TEXT, item BLOB, missing INTEGER, result BLOB,
    read_at TEXT, -- when it was last read
    run TEXT, -- the last one that has the item
    lost INTEGER -- it could not be read since
) WITHOUT ROWID;
"""
_INDEX = "CREATE INDEX IF NOT EXISTS reads_by_run ON reads (run);"
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")
"""The errors of SQLite for a file that is not its own, has lost pages, or lacks the table."""
_HASH_BYTES = 16


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """One item as it was last read.

    Attributes:
        result: empty where it never was. read_at: RFC 3339; empty where it never was.
    """

    job: str
    operation: str
    id: str | None
    item: dict[str, Any]
    is_missing: bool
    result: bytes
    read_at: str
    is_lost: bool = False


def key_of(job: str, own_id: str | None, item: dict[str, Any]) -> bytes:
    """Return the key of an item, the same in each night: a hash of its own `id`, otherwise of its fields."""
    named = [job, own_id] if own_id is not None else [job, None, item]
    return hashlib.blake2b(canonical(named), digest_size=_HASH_BYTES).digest()


class Baseline:
    """The reads of one file, open for this night."""

    def __init__(self, connection: sqlite3.Connection, run: str) -> None:
        self._connection, self._run = connection, run

    def get(self, key: bytes) -> Read | None:
        """Return an item as it was last read; None where it was not in the list."""
        query = "SELECT job, operation, id, item, missing, result, read_at, lost FROM reads WHERE key = ?"
        row = self._connection.execute(query, (key,)).fetchone()
        return None if row is None else _read(row)

    def put(self, key: bytes, read: Read) -> None:
        """Note an item as it was read this night, or that it is there and never was."""
        values = (read.job, read.operation, read.id, canonical(read.item), read.is_missing, read.result, read.read_at)
        query = "INSERT OR REPLACE INTO reads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._connection.execute(query, (key, *values, self._run, read.is_lost))

    def lose(self, key: bytes) -> None:
        """Note that an item could not be read this night; its last read stays."""
        self._connection.execute("UPDATE reads SET run = ?, lost = 1 WHERE key = ?", (self._run, key))

    def take_gone(self) -> Iterator[Read]:
        """Take out the items that this night's run does not have any more."""
        query = "SELECT job, operation, id, item, missing, result, read_at, lost FROM reads WHERE run != ?"
        for row in self._connection.execute(query, (self._run,)):
            yield _read(row)
        self._connection.execute("DELETE FROM reads WHERE run != ?", (self._run,))


@contextlib.contextmanager
def next_baseline(before: Path | None, place: Path, run: str) -> Iterator[Baseline]:
    """Make the baseline of a night, begun from the file `before`; it stands at `place` only when the block has ended.

    Raises:
        RunDirectoryError: the disk is full, or a file is damaged.
    """
    part = place.with_name(place.name + ".part")
    try:
        part.unlink(missing_ok=True)
        if before is not None:
            shutil.copyfile(before, part)
        with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as connection:
            made = _INDEX if before is not None else _TABLE + _INDEX  # an empty file would pass for one without reads
            connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + made)
            connection.execute("BEGIN")
            yield Baseline(connection, run)
            connection.execute("COMMIT")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(place)
    except (sqlite3.Error, OSError) as error:
        if before is not None and getattr(error, "sqlite_errorname", "") in _DAMAGED:
            raise RunDirectoryError(f"{before} is damaged ({error}): restore it from a copy") from error
        raise RunDirectoryError(f"{place}: {error}; free some space, or restore it from a copy") from error
    finally:
        part.unlink(missing_ok=True)


def _read(row: tuple[Any, ...]) -> Read:
    job, operation, own_id, item, missing, result, read_at, lost = row
    return Read(
        job=job,
        operation=operation,
        id=own_id,
        item=msgspec.json.decode(item),
        is_missing=bool(missing),
        result=result,
        read_at=read_at,
        is_lost=bool(lost),
    )
