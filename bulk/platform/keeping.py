"""Answers written into the store's file: one behind the other, and where each lies, by key, a part at a time.

A key is a hash, so that its place in an index is anywhere. Entered with each group of answers, nearly every page of a
large index would be written anew for every group, which takes longer than the answers themselves. So each group enters
the keys of one part only, `PARTS` groups after which all had their turn; until then they are known in memory. Each
process notes which answers may lie behind its last entered one, so that the next finds what a killed one left.
"""

import os
import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

PARTS = 64
"""Keys are entered in so many turns, by their first six bits (count): the more, the fewer pages are written, and the
more keys wait."""

VERSION = 2
SCHEMA = """
CREATE TABLE IF NOT EXISTS answer (
    number INTEGER PRIMARY KEY,
    key BLOB NOT NULL,         -- method, path, query and media, hashed
    etag TEXT,
    last_modified TEXT,
    status INTEGER NOT NULL,
    content_type TEXT,
    link TEXT,                 -- the next page: a 304 need not repeat it
    body BLOB NOT NULL,        -- decompressed
    used_at INTEGER NOT NULL   -- UTC epoch seconds
);
CREATE INDEX IF NOT EXISTS answer_used ON answer (used_at);
CREATE TABLE IF NOT EXISTS place (
    key BLOB PRIMARY KEY,
    number INTEGER NOT NULL    -- of the newest answer
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entered (
    process BLOB PRIMARY KEY,  -- one that writes, or was killed
    number INTEGER NOT NULL    -- of its answers, the keys of those up to this one have their place
) WITHOUT ROWID;
"""

Row: TypeAlias = tuple[bytes, str | None, str | None, int, str | None, str | None, bytes, int]
"""key, etag, last_modified, status, content_type, link, body, used_at; see the table `answer`."""

_WAITING = """
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE waiting (key BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
"""

_DROP_PLACES = """
    DELETE FROM place WHERE key IN (SELECT key FROM answer WHERE used_at < :before)
    AND number IN (SELECT number FROM answer WHERE used_at < :before)"""
_DROP = "DELETE FROM answer WHERE used_at < :before"
_LAST_ENTERED = "SELECT min(number) FROM entered"
_LAST = "SELECT coalesce(max(number), 0) FROM answer"
_ADD = "INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TOUCH = "UPDATE answer SET used_at = ? WHERE number = ?"
_WAIT = """
    INSERT INTO waiting SELECT key, number FROM answer
    WHERE number > ? AND typeof(key) = 'blob' AND length(key) > 0 ORDER BY number
    ON CONFLICT (key) DO UPDATE SET number = excluded.number"""
_REMOVE_REST = "DELETE FROM answer WHERE number > ? AND number NOT IN (SELECT number FROM waiting)"
_REMOVE = "DELETE FROM answer WHERE number = ?"

# Each is one step of SQLite, however many keys. A thread that has a step for each key asks for the interpreter's lock
# thousands of times, and so holds up the event loop: 24 to 37 ms (99%) in place of 15.
_REPLACED = """
    DELETE FROM answer WHERE number IN (
        SELECT min(waiting.number, place.number) FROM waiting JOIN place USING (key)
        WHERE waiting.key >= :first AND waiting.key < :end AND waiting.number != place.number)"""
_ENTER = """
    INSERT INTO place SELECT key, number FROM waiting WHERE key >= :first AND key < :end ORDER BY key
    ON CONFLICT (key) DO UPDATE SET number = max(number, excluded.number)"""
_ENTERED = "DELETE FROM waiting WHERE key >= :first AND key < :end"


class Keeping:
    """Writes answers.

    Args:
        connection: to a file with `SCHEMA`, in autocommit mode.
        before: what was last used before that time is forgotten (UTC epoch seconds).
    """

    def __init__(self, connection: sqlite3.Connection, before: int) -> None:
        self._connection = connection
        self._process = os.urandom(8)
        self._turn = 0
        # the last answer before each of the last groups: up to the first of these, all keys have their place
        self._lasts: deque[int] = deque(maxlen=PARTS)
        connection.executescript(_WAITING)
        connection.execute("BEGIN IMMEDIATE")
        for statement in (_DROP_PLACES, _DROP):
            connection.execute(statement, {"before": before})
        (last,) = connection.execute(_LAST_ENTERED).fetchone()
        if last is not None:
            connection.execute(_WAIT, (last,))
            connection.execute(_REMOVE_REST, (last,))
            self._lasts.append(last)
        # theirs wait here now; who still lives notes what it writes from now on anew
        connection.execute("DELETE FROM entered")
        self._note_entered()
        connection.execute("COMMIT")
        self._numbers: list[dict[bytes, int]] = [{} for _ in range(PARTS)]
        for key, number in connection.execute("SELECT key, number FROM waiting"):
            self._numbers[key[0] >> 2][key] = number

    @property
    def is_waiting(self) -> bool:
        """Whether keys have no place yet."""
        return any(self._numbers)

    def number_of(self, key: bytes) -> int | None:
        """The newest answer of a key that has no place yet. May be called by any thread."""
        return self._numbers[key[0] >> 2].get(key)

    def write(self, rows: Sequence[Row], touched: Iterable[tuple[int, int]], *, is_last: bool) -> None:
        """Add answers, and enter the keys of one part, or where `is_last` of all, in one transaction.

        Args:
            rows: each with another key.
            touched: when answers were used (UTC epoch seconds), each with its number.

        Raises:
            sqlite3.Error, ValueError: it can't be done, and nothing was; not to be used any more.
        """
        connection = self._connection
        self._turn = (self._turn + 1) % PARTS
        turns = range(PARTS) if is_last else range(self._turn, self._turn + 1)
        waiting = self._numbers
        bounds = {"first": _bound(turns.start), "end": _bound(turns.stop)}
        try:
            connection.execute("BEGIN IMMEDIATE")
            (last,) = connection.execute(_LAST).fetchone()
            numbered = [(number, *row) for number, row in enumerate(rows, last + 1)]
            connection.executemany(_ADD, numbered)
            connection.executemany(_TOUCH, touched)
            if self.is_waiting:
                replaced = [(waiting[row[1][0] >> 2][row[1]],) for row in numbered if row[1] in waiting[row[1][0] >> 2]]
                connection.executemany(_REMOVE, replaced)
            connection.execute(_WAIT, (last,))
            for statement in (_REPLACED, _ENTER, _ENTERED):
                connection.execute(statement, bounds)
            self._lasts.append(last)
            if is_last:
                self._lasts.clear()
            self._note_entered()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        for number, key, *_ in numbered if len(turns) < PARTS else ():
            waiting[key[0] >> 2][key] = number
        for turn in turns:
            waiting[turn].clear()

    def _note_entered(self) -> None:
        """Note up to which answer none waits."""
        self._connection.execute("DELETE FROM entered WHERE process = ?", (self._process,))
        if self._lasts:
            self._connection.execute("INSERT INTO entered VALUES (?, ?)", (self._process, self._lasts[0]))


def _bound(part: int) -> bytes:
    """The first key of a part; behind the last one, what is behind every key."""
    return bytes([part << 2]) if part < PARTS else b"\xff" * 64
