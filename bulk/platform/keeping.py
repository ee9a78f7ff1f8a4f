"""Answers written into the store's file: one behind the other, and where each lies, by key, a part at a time.

A key is a hash, so that its place in an index is anywhere. Entered with each group of answers, nearly every page of a
large index would be written anew for every group, which takes longer than the answers themselves. So each group enters
the keys of one part only, `PARTS` groups after which all had their turn; until then they are known in memory. Each
process notes which answers may lie behind its last entered one, so that the next finds what a killed one left.
"""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TypeAlias

PARTS = 16
"""Keys are entered in so many turns (count): the more, the fewer pages are written, and the more keys wait."""

NEAR_KEYS = 50
"""So many keys are looked up, and then entered (count): few enough for their pages to be in memory still."""

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

_ADD = "INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TOUCH = "UPDATE answer SET used_at = ? WHERE number = ?"
_REMOVE = "DELETE FROM answer WHERE number = ?"
_REPLACED = """
    DELETE FROM answer WHERE key = ?1 AND number =
    (SELECT min(number, ?2) FROM place WHERE key = ?1 AND number != ?2)"""
_ENTER = "INSERT INTO place VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET number = max(number, excluded.number)"
_NOT_ENTERED = """
    SELECT key, number FROM answer WHERE number > (SELECT min(number) FROM entered)
    AND typeof(key) = 'blob' AND length(key) > 0 ORDER BY number"""
_DROP_PLACES = """
    DELETE FROM place WHERE key IN (SELECT key FROM answer WHERE used_at < :before)
    AND number IN (SELECT number FROM answer WHERE used_at < :before)"""
_DROP = "DELETE FROM answer WHERE used_at < :before"


class Keeping:
    """Writes answers.

    Args:
        connection: to a file with `SCHEMA`, in autocommit mode.
        before: what was last used before that time is forgotten (UTC epoch seconds).
    """

    def __init__(self, connection: sqlite3.Connection, before: int) -> None:
        self._connection = connection
        self._process = os.urandom(8)
        self._waiting: list[dict[bytes, int]] = [{} for _ in range(PARTS)]
        self._turn = 0
        connection.execute("BEGIN IMMEDIATE")
        for statement in (_DROP_PLACES, _DROP):
            connection.execute(statement, {"before": before})
        self._wait(connection.execute(_NOT_ENTERED).fetchall())
        # theirs wait here now; who still lives notes what it writes from now on anew
        connection.execute("DELETE FROM entered")
        self._note_entered()
        connection.execute("COMMIT")

    @property
    def is_waiting(self) -> bool:
        """Whether keys have no place yet."""
        return any(self._waiting)

    def number_of(self, key: bytes) -> int | None:
        """The newest answer of a key that has no place yet. May be called by any thread."""
        return self._waiting[key[0] % PARTS].get(key)

    def write(self, rows: Sequence[Row], touched: Iterable[tuple[int, int]], *, is_last: bool) -> None:
        """Add answers, and enter the keys of one part, or where `is_last` of all, in one transaction.

        Args:
            rows: each with another key.
            touched: when answers were used (UTC epoch seconds), each with its number.

        Raises:
            sqlite3.Error: it can't be done, and nothing was; not to be used any more.
        """
        try:
            self._write(rows, touched, is_last=is_last)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _write(self, rows: Sequence[Row], touched: Iterable[tuple[int, int]], *, is_last: bool) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM answer").fetchone()
        connection.executemany(_ADD, [(number, *row) for number, row in enumerate(rows, last + 1)])
        self._wait([(row[0], number) for number, row in enumerate(rows, last + 1)])
        connection.executemany(_TOUCH, touched)
        self._turn = (self._turn + 1) % PARTS
        turns = range(PARTS) if is_last else range(self._turn, self._turn + 1)
        entered = [sorted(self._waiting[turn].items()) for turn in turns]
        for keys in entered:
            for start in range(0, len(keys), NEAR_KEYS):  # both look at the same pages
                near = keys[start : start + NEAR_KEYS]
                connection.executemany(_REPLACED, near)
                connection.executemany(_ENTER, near)
        self._note_entered(turns)
        connection.execute("COMMIT")
        for turn in turns:
            self._waiting[turn].clear()

    def _wait(self, keys: Iterable[tuple[bytes, int]]) -> None:
        """Note answers whose keys have no place yet; those that they replace, and had none either, are removed."""
        for key, number in keys:
            part = self._waiting[key[0] % PARTS]
            if key in part:
                self._connection.execute(_REMOVE, (part[key],))
            part[key] = number

    def _note_entered(self, turns: range = range(0)) -> None:
        """Note what will wait still, once the keys of these parts are entered."""
        first = [min(part.values()) for turn, part in enumerate(self._waiting) if part and turn not in turns]
        self._connection.execute("DELETE FROM entered WHERE process = ?", (self._process,))
        if first:
            self._connection.execute("INSERT INTO entered VALUES (?, ?)", (self._process, min(first) - 1))
