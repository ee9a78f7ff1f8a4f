"""Answers written into the store's file: one behind the other, and where each lies, by key, a part at a time.

A key is a hash, so that its place in an index is anywhere. Entered with each group of answers, nearly every page of a
large index would be written anew for every group, which takes longer than the answers themselves. So each group enters
the keys of one part only, `PARTS` groups after which all had their turn; until then they are known in memory, and by
the number of the last answer before them, so that the next process finds what a killed one had not entered.
"""

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
    number INTEGER NOT NULL    -- keys of answers up to this one have their place, unless two processes write
);
"""

Row: TypeAlias = tuple[bytes, str | None, str | None, int, str | None, str | None, bytes, int]
"""key, etag, last_modified, status, content_type, link, body, used_at; see the table `answer`."""

_ADD = "INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TOUCH = "UPDATE answer SET used_at = ? WHERE number = ?"
_REMOVE = "DELETE FROM answer WHERE number = ?"
_REPLACED = "DELETE FROM answer WHERE number = (SELECT number FROM place WHERE key = ?) AND number < ?"
_ENTER = "INSERT INTO place VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET number = max(number, excluded.number)"
_NOT_ENTERED = "SELECT number, key FROM answer WHERE number > (SELECT min(number) FROM entered) ORDER BY number"
_DROP_PLACES = """
    DELETE FROM place WHERE key IN (SELECT key FROM answer WHERE used_at < :before)
    AND number IN (SELECT number FROM answer WHERE used_at < :before)"""
_DROP = "DELETE FROM answer WHERE used_at < :before"


class Keeping:
    """Writes answers.

    Args:
        connection: to a file with `SCHEMA`, in autocommit mode.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waiting: list[dict[bytes, int]] = [{} for _ in range(PARTS)]
        self._turn = 0
        if connection.execute("SELECT 1 FROM entered").fetchone() is None:
            connection.execute("INSERT INTO entered VALUES (0)")
        for number, key in connection.execute(_NOT_ENTERED):
            self._wait(key, number)

    @property
    def is_waiting(self) -> bool:
        """Whether keys have no place yet."""
        return any(self._waiting)

    def number_of(self, key: bytes) -> int | None:
        """The newest answer of a key that has no place yet. May be called by any thread."""
        return self._waiting[key[0] % PARTS].get(key)

    def drop_unused(self, before: int) -> None:
        """Forget what was last used before that time (UTC epoch seconds)."""
        for statement in (_DROP_PLACES, _DROP):
            self._connection.execute(statement, {"before": before})

    def write(self, rows: Sequence[Row], touched: Iterable[tuple[int, int]], *, is_last: bool) -> None:
        """Add answers, and enter the keys of one part, or where `is_last` of all, in one transaction.

        Args:
            rows: each with another key.
            touched: when answers were used (UTC epoch seconds), each with its number.

        Raises:
            sqlite3.Error: it can't be done, and nothing was; not to be used any more.
        """
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM answer").fetchone()
        connection.executemany(_ADD, [(number, *row) for number, row in enumerate(rows, last + 1)])
        replaced = [self._wait(row[0], number) for number, row in enumerate(rows, last + 1)]
        connection.executemany(_REMOVE, [(number,) for number in replaced if number is not None])
        connection.executemany(_TOUCH, touched)
        self._turn = (self._turn + 1) % PARTS
        turns = range(PARTS) if is_last else range(self._turn, self._turn + 1)
        for turn in turns:
            entered = sorted(self._waiting[turn].items())
            for start in range(0, len(entered), NEAR_KEYS):  # both look at the same pages
                near = entered[start : start + NEAR_KEYS]
                connection.executemany(_REPLACED, near)
                connection.executemany(_ENTER, near)
        first = [min(part.values()) for turn, part in enumerate(self._waiting) if part and turn not in turns]
        connection.execute("UPDATE entered SET number = ?", (min(first, default=last + len(rows) + 1) - 1,))
        connection.execute("COMMIT")
        for turn in turns:
            self._waiting[turn].clear()

    def _wait(self, key: bytes, number: int) -> int | None:
        """Note a key that has no place yet; returns the answer that it stood for, if any."""
        part = self._waiting[key[0] % PARTS]
        before = part.get(key)
        part[key] = number
        return before
