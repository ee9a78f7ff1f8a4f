"""The tables of a run as one SQLite file, made with the standard library alone: objects and arrays are JSON texts."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from bulk.audit.tables.columns import ENVELOPE, Shape, Table, column_of, table_named
from bulk.audit.tables.statements import name
from bulk.errors import RunDirectoryError
from bulk.ledger.view import LedgerView
from bulk.status import Tell, telling

_KINDS = {"BIGINT": "INTEGER", "DOUBLE": "REAL", "BOOLEAN": "INTEGER"}
BATCH = 10_000


def write_sqlite(view: LedgerView, run: str, out: Path, tell: Tell) -> list[str]:
    """Write one table for each operation, and return their names.

    Args:
        tell: is told how many items are written (count), now and then.

    Raises:
        RunDirectoryError: the file can't be written. UsageError: an operation is not installed here.
    """
    jobs: dict[str, list[str]] = {}
    for job, operation, _ in view.identity().jobs:
        jobs.setdefault(operation, []).append(job)
    tables = {operation: table_named(operation) for operation in jobs}
    try:
        connection = sqlite3.connect(out, isolation_level=None)
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for operation, names in jobs.items():
            _write(connection, view, run, tables[operation], names, tell)
        connection.execute("COMMIT")
        connection.close()
    except (sqlite3.Error, OSError) as error:
        raise RunDirectoryError(f"{out}: {error}") from error
    return [table.name for table in tables.values()]


def _write(
    connection: sqlite3.Connection, view: LedgerView, run: str, table: Table, jobs: list[str], tell: Tell
) -> None:
    columns = [f"{name(column)} {_KINDS.get(kind, 'TEXT')}" for column, kind in ENVELOPE.items()]
    columns += [f"{name(column_of(field))} {_kind(shape)}" for field, shape in table.item.items()]
    connection.execute(f'CREATE TABLE {name(table.name)} ({", ".join(columns)}, "result" TEXT)')
    marks = ", ".join("?" * (len(columns) + 1))
    rows = (row for job in jobs for row in _rows(view, run, table, job))
    told = telling(rows, lambda _: tell(connection.total_changes))  # of all tables together
    connection.executemany(f"INSERT INTO {name(table.name)} VALUES ({marks})", told)


def _rows(view: LedgerView, run: str, table: Table, job: str) -> Iterator[list[Any]]:
    for line in view.finished(job=job):
        item, result = line["item"], line["result"]
        if table.list_field and isinstance(result, list):
            result = {table.list_field: result}
        yield [
            run,
            job,
            line["index"],
            line["id"],
            line["outcome"],
            line.get("missing", False),
            line["started_at"][:-1].replace("T", " "),
            *(_value(item.get(field), shape) for field, shape in table.item.items()),
            None if result is None else orjson.dumps(shaped(result, table.result)).decode(),
        ]


def shaped(value: Any, shape: Shape) -> Any:
    """Return `value` with only the fields that `shape` has."""
    if isinstance(shape, list) and isinstance(value, list):
        return [shaped(entry, shape[0]) for entry in value]
    if isinstance(shape, dict) and isinstance(value, dict):
        return {field: shaped(value[field], inner) for field, inner in shape.items() if field in value}
    return value if isinstance(shape, str) else None


def _kind(shape: Shape) -> str:
    return _KINDS.get(shape, "TEXT") if isinstance(shape, str) else "TEXT"


def _value(value: Any, shape: Shape) -> Any:
    if value is None or (isinstance(shape, str) and not isinstance(value, dict | list)):
        return value
    return orjson.dumps(shaped(value, shape)).decode()
