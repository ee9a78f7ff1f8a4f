"""The process that holds DuckDB: its memory is not the engine's, and it can be ended whatever it does.

It reads tasks from standard input, a line of JSON each, and writes lines of JSON: rows of what was asked, many on a
line, and at the end of each task `done` or `error`. Queries of users run only after everything is locked: no other file
can be read, none can be written, no setting changed back. Started by `processes.py` with
`python -m bulk.audit.tables.child`.

It ends with whoever started it, in the middle of a task as well: what is begun again then writes the same files.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import orjson

from bulk.storage.child_process import Lines

if TYPE_CHECKING:
    import duckdb

BATCH, BATCH_BYTES = 1_000, 256 * 1024
"""Rows that are fetched at once (count), and the size from which on a line of them is written (bytes)."""

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
    "memory_limit": "512MB",
    "threads": "2",
}


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A SELECT of somebody else.

    Attributes:
        name: comes back with its rows.
        sql: exactly one SELECT, or it is refused.
        is_bound_only: say its columns, and don't run it.
        most: rows that are given at most (count); None: all.
    """

    name: str
    sql: str
    is_bound_only: bool = False
    most: int | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the process does.

    Attributes:
        database: file that is written; None: memory.
        statements: of our own, one after the other, before anything is locked.
        allowed: files that queries may read.
        queries: in order; each is told by `query`, its rows and `end`.
    """

    database: str | None = None
    statements: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    queries: tuple[Query, ...] = ()


class Refused(Exception):
    """A query is not one SELECT."""


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Do tasks until `source` ends, which ends this process at once; each begins with nothing of the one before."""
    given = Lines(source)
    import duckdb  # noqa: F401 - while the first task is still put together

    while (line := given.next()) is not None:
        do(msgspec.json.decode(line, type=Task), target)
        target.flush()


def do(task: Task, target: BinaryIO) -> None:
    """Do one task."""
    import duckdb

    where = ""
    try:
        with duckdb.connect(task.database or ":memory:", config=SETTINGS) as connection:
            for statement in task.statements:
                connection.execute(statement)
            if task.queries:
                lock(connection, task.allowed)
            for query in task.queries:
                where = query.name
                target.writelines(_answer(connection, query))
                target.flush()
        target.write(b'{"done":true}\n')
    except (duckdb.Error, Refused) as error:
        kind = "refused" if isinstance(error, Refused) else type(error).__name__
        target.write(orjson.dumps({"error": {"kind": kind, "message": str(error), "query": where}}) + b"\n")


def lock(connection: "duckdb.DuckDBPyConnection", allowed: tuple[str, ...]) -> None:
    """Let nothing but `allowed` be read from now on, and nothing be written."""
    paths = ", ".join("'" + path.replace("'", "''") + "'" for path in allowed)
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _answer(connection: "duckdb.DuckDBPyConnection", query: Query) -> Iterator[bytes]:
    sql = _single_select(connection, query.sql)
    if query.is_bound_only:
        columns = [row[0] for row in connection.execute(f"DESCRIBE {sql}").fetchall()]
        yield orjson.dumps({"query": query.name, "columns": columns}) + b"\n"
        return
    found = connection.execute(sql)
    columns = [column[0] for column in found.description or ()]
    kinds = [str(column[1]) for column in found.description or ()]
    yield orjson.dumps({"query": query.name, "columns": columns, "types": kinds}) + b"\n"
    left = query.most
    while left is None or left > 0:
        rows = found.fetchmany(BATCH if left is None else min(BATCH, left))
        if not rows:
            break
        left = None if left is None else left - len(rows)
        yield from _lines(rows)


def _lines(rows: list[tuple[Any, ...]]) -> Iterator[bytes]:
    """Yield lines that hold these rows; no line is much longer than its longest row."""
    texts, size = list[bytes](), 0
    for number, row in enumerate(rows, 1):
        texts.append(orjson.dumps(row, _plain, orjson.OPT_NON_STR_KEYS))
        size += len(texts[-1])
        if size >= BATCH_BYTES or number == len(rows):
            yield b'{"rows":[' + b",".join(texts) + b"]}\n"
            texts, size = [], 0


def _single_select(connection: "duckdb.DuckDBPyConnection", sql: str) -> str:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise Refused(f"expected one SELECT, got {len(statements)} statements")
    (statement,) = statements
    if statement.type != duckdb.StatementType.SELECT:
        raise Refused(f"expected a SELECT, got {statement.type.name}: nothing can be written or set")
    found: str = statement.query
    return found.rstrip().rstrip(";")


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        text = value.isoformat(timespec="milliseconds") if hasattr(value, "hour") else value.isoformat()
        return text if not hasattr(value, "hour") or value.tzinfo else f"{text}Z"
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
