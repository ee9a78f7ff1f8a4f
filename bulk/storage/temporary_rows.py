"""Rows that are compared with each other, in a temporary file of SQLite: memory does not grow with them."""

import sqlite3
from collections.abc import Iterator
from typing import Any, Self

from bulk.storage.bulk_insert import insert

_BATCH_ROWS = 5_000


class TemporaryRows:
    """Tables that are gone when their connection is closed. A context manager.

    Args:
        schema: SQL that makes the tables. into: the table that `keep` fills.
    """

    def __init__(self, schema: str, into: str) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA temp_store=FILE; {schema} BEGIN;")
        self._into = into
        self._rows: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def keep(self, row: tuple[Any, ...]) -> None:
        """Add one row."""
        self._rows.append(row)
        if len(self._rows) >= _BATCH_ROWS:
            self._flush()

    def select(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Return the result of a query over all rows."""
        self._flush()
        return self._database.execute(query)

    def _flush(self) -> None:
        insert(self._database, self._into, self._rows)
        self._rows.clear()
