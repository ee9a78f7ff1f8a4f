"""Answers that were kept, in the store's file: how they lie there, and how they are found again."""

import sqlite3
from collections.abc import Collection, Mapping
from typing import TypeAlias

from bulk.storage.bulk_insert import insert

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


def find_answer(reader: sqlite3.Connection, key: bytes) -> Row | None:
    """The answer kept under that key."""
    row: Row | None = reader.execute(_ONE, (hash_of(key), key)).fetchone()
    return row


def hash_of(key: bytes) -> int:
    """By what the table finds that key: several may share it."""
    return int.from_bytes(key[:8], signed=True)
