"""Answers that were kept, in the store's file: how they are written, and how they are read again, some of them ahead.

A second run of the same work asks in the order in which the first run kept its answers, so the rows behind an answer
are those that are asked for next: an answer that is read together with others costs a third of one that is read alone.
An answer that came late was kept late, so an answer that was read ahead stays in memory until its turn comes. If the
order is another, nothing is read ahead. The bytes in memory are bounded as well.
"""

import sqlite3
from collections.abc import Collection, Mapping
from typing import TypeAlias

from bulk.storage.bulk_insert import insert

AHEAD_MOST, AHEAD_FIRST = 64, 8
"""Answers that are read ahead at once, and the first time (count): twice as many each time that they were used."""

WAITING_MOST = 256
"""Most answers that wait in memory to be asked for (count): those that have waited longest are dropped first."""

AHEAD_BYTES = 1024 * 1024
"""Reading ahead stops once it has read this many bytes of bodies; at most twice as many wait to be asked for."""

NEAR_ROWS = 128
"""An answer is next in order if it lies at most this far from the one before (rows): answers of one time are mixed."""

VIEW_FINDS = 256
"""How many answers are looked up in one view of the file (count): beginning a view takes longer than a look-up. A view
that stays open would keep the write-ahead log of another process growing."""

NOTED_BY = 3
"""Bytes of a key that tell which bit of 2 MiB is its own (count); several keys may share a bit."""

VERSION = 8
"""Version of the tables; tables of an earlier version are begun anew, because their content is only a saving."""

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
    # no index of `answer`: answers of one time lie all over this table, so it is small, and written in its own order
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

_NOWHERE = -2 * NEAR_ROWS

# a file that is damaged may have values of other types
_COLUMNS = "number, CAST(key AS BLOB), CAST(head AS TEXT), CAST(body AS BLOB), CAST(used_at AS INTEGER)"
_ONE = f"SELECT {_COLUMNS} FROM place JOIN answer USING (number) WHERE hash = ? AND key = ?"
_AHEAD = f"SELECT {_COLUMNS} FROM answer WHERE number > ? ORDER BY number LIMIT ?"
_TOUCH = "UPDATE answer SET used_at = ? WHERE number = (SELECT number FROM place WHERE hash = ?) AND key = ?"


def write_answers(writer: sqlite3.Connection, rows: Collection[Row], touched: Mapping[bytes, int]) -> None:
    """Keep answers in the order of `rows`, within a transaction; earlier answers under the same keys are removed.

    Args:
        rows: rows of answers, with the hash of the key in the place of the number.
        touched: when other answers were used last (UTC epoch seconds), by their keys.
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
    """Remove the answers that were not used since `before` (UTC epoch seconds), within a transaction."""
    unused = writer.execute("SELECT key FROM answer WHERE used_at < ?", (before,))
    # no comprehension: when this module is compiled, that would be a list of all keys
    writer.executemany("DELETE FROM place WHERE hash = ?", map(_hash_in, unused))
    writer.execute("DELETE FROM answer WHERE used_at < ?", (before,))


def _hash_in(row: tuple[bytes]) -> tuple[int]:
    return (hash_of(row[0]),)


class CacheTable:
    """Finds answers, in one view of the file after the other.

    Attributes:
        is_stale: answers that were seen may have been replaced: the next look-up needs a new view. Set by any thread.
        is_without_view: each look-up is made without a view for now, so that the write-ahead log can be emptied. Set by
            any thread.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.is_stale = self.is_without_view = False
        self._connection = connection
        self._finds_left = 0
        self._ahead: dict[bytes, Row] = {}
        self._bytes = 0
        self._count = AHEAD_FIRST
        self._last = self._end = _NOWHERE
        self._noted: bytearray | None = None

    def begin_empty(self) -> None:
        """Note that the file holds nothing.

        As long as no other process writes to it, every key that it will hold is noted with `note`, and no other key is
        looked for. In a first run that is every key.
        """
        self._noted = bytearray(256**NOTED_BY // 8)

    def note(self, key: bytes) -> None:
        """Note that an answer will be kept under that key."""
        noted = self._noted
        if noted is not None:
            place = int.from_bytes(key[:NOTED_BY])
            noted[place >> 3] |= 1 << (place & 7)

    def others_wrote(self) -> None:
        """Note that the file holds answers that were not noted. May be called by any thread."""
        if self._noted is not None:
            self._noted, self.is_stale = None, True

    def find(self, key: bytes) -> Row | None:
        """Return the answer kept under `key`; None if there is none.

        Raises:
            sqlite3.Error: the file can't be read.
        """
        if self.is_stale:
            self.is_stale = False
            self._finds_left = 0
            self._start_at(_NOWHERE)
        self._finds_left -= 1
        if self.is_without_view and self._connection.in_transaction:
            self._connection.execute("COMMIT")
            self._finds_left = 0
        noted = self._noted
        if noted is not None:
            place = int.from_bytes(key[:NOTED_BY])
            if not noted[place >> 3] & (1 << (place & 7)):
                return None
        row = self._ahead.pop(key, None)
        if row is not None:
            self._bytes -= len(row[3])
        else:
            if self._finds_left < 0 and not self.is_without_view:
                self._new_view()
            row = self._connection.execute(_ONE, (hash_of(key), key)).fetchone()
            if row is None:
                return None
            rowid: int = row[0]
            if abs(rowid - self._last) <= NEAR_ROWS and not 0 <= self._end - rowid <= NEAR_ROWS:
                self._read_ahead(rowid)
        self._last = row[0]
        return row

    @property
    def ahead(self) -> int:
        """Answers that were read and not asked for yet (count)."""
        return len(self._ahead)

    def close(self) -> None:
        """Close the file and drop the answers that were read ahead."""
        self._ahead.clear()
        self._connection.close()

    def _read_ahead(self, rowid: int) -> None:
        """Read ahead the rows behind row `rowid`, or behind those read ahead before, if it lies near to them."""
        if not 0 < rowid - self._end <= NEAR_ROWS:
            self._start_at(rowid)
        ahead, size = self._ahead, 0
        cursor = self._connection.execute(_AHEAD, (self._end, self._count))
        for row in cursor:
            self._end = row[0]
            size += len(row[3])
            if self._end != rowid:
                replaced = ahead.pop(row[1], None)  # another process has kept the answer anew
                ahead[row[1]] = row
                self._bytes += len(row[3]) - (len(replaced[3]) if replaced is not None else 0)
            if size >= AHEAD_BYTES:
                break
        cursor.close()
        unused = 0
        while len(ahead) > WAITING_MOST or self._bytes > 2 * AHEAD_BYTES:
            self._bytes -= len(ahead.pop(next(iter(ahead)))[3])
            unused += 1
        self._count = AHEAD_FIRST if unused * 2 > self._count else min(AHEAD_MOST, self._count * 2)

    def _start_at(self, rowid: int) -> None:
        """Let reading ahead begin behind row `rowid`; drop the answers that were read ahead before."""
        self._ahead.clear()
        self._bytes = 0
        self._end, self._count = rowid, AHEAD_FIRST

    def _new_view(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")
        self._finds_left = VIEW_FINDS


def hash_of(key: bytes) -> int:
    """Return the hash by which the table finds `key`; several keys may share a hash."""
    return int.from_bytes(key[:8], signed=True)
