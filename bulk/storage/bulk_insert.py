"""Inserts many rows in one statement of SQLite: after each statement another thread may run, and is waited for."""

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

TOGETHER = 64
"""Most rows that one statement writes (count)."""


def insert(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[Any, ...]], otherwise: str = "") -> None:
    """Insert `rows`, all of one length, within a transaction.

    Args:
        into: the table, with its columns if not all are given. otherwise: `ON CONFLICT …`.
    """
    for start in range(0, len(rows), TOGETHER):
        together = rows[start : start + TOGETHER]
        places = ",".join([f"({','.join('?' * len(rows[0]))})"] * len(together))
        connection.execute(f"INSERT INTO {into} VALUES {places} {otherwise}", tuple(chain.from_iterable(together)))
