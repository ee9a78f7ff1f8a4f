"""Answers that were kept, in the store's file: how they lie there, and how they are found again."""

import sqlite3
from collections.abc import Collection, Mapping
from typing import TypeAlias

from bulk.storage.bulk_insert import insert

VIEW_FINDS = 256
"""So many answers are looked up in one view of the file (count): beginning one takes longer than a look. A view that
stays open would keep the write-ahead log of every process growing."""

ALONE_FINDS = 4_096
"""So many answers are looked up without a view once something was written: the log is emptied while there is none."""

NOTED_BY = 3
"""So many bytes of a key say which bit is its own, of 2 MiB; several may share one (count)."""

VERSION = 6
"""Of the tables; those of an earlier one are begun anew, because what they hold is only a saving."""

SCHEMA = (
    "DROP TABLE IF EXISTS answer",
    "DROP TABLE IF EXISTS place",
    """
CREATE TABLE answer (
    number INTEGER PRIMARY KEY,  -- grows: what lies behind an answer was kept after it
    key BLOB NOT NULL,           -- method, path, query and media, hashed
    head TEXT NOT NULL,          -- lines, see cache_entry.py
    body BLOB NOT NULL,          -- decompressed, or as results have it
    used_at INTEGER NOT NULL     -- UTC epoch seconds
)""",
    "CREATE INDEX answer_used ON answer (used_at)",
    # no index of `answer`: what is kept at one time lies all over it, so it is small, and written in its own order
    """
CREATE TABLE place (
    hash INTEGER PRIMARY KEY,    -- part of the key
    number INTEGER NOT NULL      -- of the answer
)""",
    "CREATE TRIGGER replaced AFTER UPDATE ON place BEGIN DELETE FROM answer WHERE number = old.number; END",
    f"PRAGMA user_version = {VERSION}",
)

Row: TypeAlias = tuple[int, bytes, str, bytes, int]
"""number, key, head, body, used_at; see the table `answer`. Few columns, because for each of them Python lets other
threads run."""

_ONE = "SELECT number, key, head, body, used_at FROM place JOIN answer USING (number) WHERE hash = ? AND key = ?"
_TOUCH = "UPDATE answer SET used_at = ? WHERE number = (SELECT number FROM place WHERE hash = ?) AND key = ?"


def write_answers(writer: sqlite3.Connection, rows: Collection[Row], touched: Mapping[bytes, int]) -> None:
    """Keep answers in the order of `rows`, within a transaction; what was kept under their keys goes.

    Args:
        rows: with the hash of the key where the table has the number.
        touched: when others were used last (UTC epoch seconds), by their keys.
    """
    if rows:
        insert(writer, "answer (key, head, body, used_at)", [row[1:] for row in rows])
        (last,) = writer.execute("SELECT max(number) FROM answer").fetchone()
        numbers = range(last - len(rows) + 1, last + 1)
        # in their own order each page is read and written once, not once for each answer
        places = sorted(zip((row[0] for row in rows), numbers, strict=True))
        insert(writer, "place", places, "ON CONFLICT (hash) DO UPDATE SET number = excluded.number")
    writer.executemany(_TOUCH, [(at, hash_of(key), key) for key, at in touched.items()])


def drop_unused(writer: sqlite3.Connection, before: int) -> None:
    """Let go of answers that were not used since then (UTC epoch seconds), within a transaction."""
    unused = writer.execute("SELECT key FROM answer WHERE used_at < ?", (before,))
    # not written as a comprehension: compiled, that would be a list of them all
    writer.executemany("DELETE FROM place WHERE hash = ?", map(_hash_in, unused))
    writer.execute("DELETE FROM answer WHERE used_at < ?", (before,))


def _hash_in(row: tuple[bytes]) -> tuple[int]:
    return (hash_of(row[0]),)


class CacheTable:
    """Finds answers, in one view of the file after the other.

    Attributes:
        is_stale: the file was written to since the last look. Set by any thread.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.is_stale = False
        self._connection = connection
        self._finds_left = 0
        self._noted: bytearray | None = None

    def begin_empty(self) -> None:
        """The file holds nothing: as long as nobody else writes to it, all that it will hold is noted with `note`, and
        no other key is looked for. In a first run that is every key.
        """
        self._noted = bytearray(256**NOTED_BY // 8)

    def note(self, key: bytes) -> None:
        """An answer will be kept under that key."""
        noted = self._noted
        if noted is not None:
            place = int.from_bytes(key[:NOTED_BY])
            noted[place >> 3] |= 1 << (place & 7)

    def others_wrote(self) -> None:
        """The file holds what was not noted. May be called by any thread."""
        self._noted, self.is_stale = None, True

    def find(self, key: bytes) -> Row | None:
        """Return the answer kept under that key.

        Raises:
            sqlite3.Error: the file can't be read.
        """
        noted = self._noted
        if noted is not None:
            place = int.from_bytes(key[:NOTED_BY])
            if not noted[place >> 3] & (1 << (place & 7)):
                return None
        if self.is_stale or self._finds_left == 0:
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
            if self.is_stale:
                self.is_stale, self._finds_left = False, ALONE_FINDS
            else:
                self._connection.execute("BEGIN")
                self._finds_left = VIEW_FINDS
        self._finds_left -= 1
        row: Row | None = self._connection.execute(_ONE, (hash_of(key), key)).fetchone()
        return row

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def hash_of(key: bytes) -> int:
    """By what the table finds that key: several may share it."""
    return int.from_bytes(key[:8], signed=True)
