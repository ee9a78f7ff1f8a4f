"""The process that holds DuckDB: its memory is not the engine's, and it can be ended whatever it does.

It reads tasks from standard input, a line of JSON each, and writes lines of JSON: rows of what was asked, many on a
line, and at the end of each task `done` or `error`. Queries of users run only after everything is locked: no other file
can be read, none can be written, no setting changed back. Started by `processes.py` with
`python -m bulk.audit.tables.child`.

It ends with whoever started it, in the middle of a task as well: what is begun again then writes the same files.
"""

import datetime
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import orjson

from bulk.storage.child_process import Lines, work

if TYPE_CHECKING:
    import duckdb

BATCH, BATCH_BYTES = 1_000, 256 * 1024
"""Rows that are fetched at once (count), and the size from which on a line of them is written (bytes)."""

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME

_DESCRIBE = "DESCRIBE "
_DESCRIBED = re.compile(rf"(LINE 1: ){_DESCRIBE}(.*\n) {{{len(_DESCRIBE)}}}")
"""A line that is wrong, and what points into it, with the word before it that nobody has written."""

_WRITES = "must be at the top level"
"""What DuckDB says of a statement that writes, within a SELECT that is part of another statement."""

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
        spills: folder for what does not fit into memory; empty: nothing goes there. Queries could read what is in it.
    """

    database: str | None = None
    statements: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    queries: tuple[Query, ...] = ()
    spills: str = ""


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
        settings = {**SETTINGS, "temp_directory": task.spills}
        with duckdb.connect(task.database or ":memory:", config=settings) as connection:
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
        said = _DESCRIBED.sub(r"\1\2", str(error))
        target.write(orjson.dumps({"error": {"kind": kind, "message": said, "query": where}}) + b"\n")


def lock(connection: "duckdb.DuckDBPyConnection", allowed: tuple[str, ...]) -> None:
    """Let nothing but `allowed` be read from now on, and nothing be written."""
    paths = ", ".join("'" + path.replace("'", "''") + "'" for path in allowed)
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _answer(connection: "duckdb.DuckDBPyConnection", query: Query) -> Iterator[bytes]:
    sql = _single_select(connection, query.sql)
    columns = _columns(connection, sql)
    if query.is_bound_only:
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
        texts.append(_encoded(row))
        size += len(texts[-1])
        if size >= BATCH_BYTES or number == len(rows):
            yield b'{"rows":[' + b",".join(texts) + b"]}\n"
            texts, size = [], 0


def _encoded(row: tuple[Any, ...]) -> bytes:
    try:
        return orjson.dumps(row, _plain, _OPTIONS)
    except orjson.JSONEncodeError:  # a number of more than 64 bits, or a text that is no UTF-8: both as texts
        return orjson.dumps(_told(row), _plain, _OPTIONS)


def _told(value: Any) -> Any:
    match value:
        case bool() | None:
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else str(value)
        case str():
            return value.encode("utf-8", "replace").decode()
        case list() | tuple():
            return [_told(each) for each in value]
        case dict():
            return {str(_told(key)): _told(each) for key, each in value.items()}
        case _:
            return value


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


def _columns(connection: "duckdb.DuckDBPyConnection", sql: str) -> list[str]:
    """Return the names of the columns of a SELECT, without running it.

    A SELECT may begin with `WITH x AS (COPY … TO …)` or another statement that writes, and would be allowed to write
    what it may read. Within another statement that is an error, as it is here.
    """
    import duckdb

    try:
        return [row[0] for row in connection.execute(_DESCRIBE + sql).fetchall()]
    except duckdb.BinderException as error:
        if _WRITES in str(error):
            raise Refused("expected a SELECT that reads and no more: nothing can be written or set") from None
        raise


def _plain(value: Any) -> Any:
    """Return what JSON has for a value: moments are RFC 3339 in UTC with milliseconds, as everywhere."""
    match value:
        case datetime.datetime():
            moment = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
            return f"{moment.isoformat(timespec='milliseconds')}Z"
        case datetime.date() | datetime.time():
            return value.isoformat()
        case bytes() | bytearray():
            return value.hex()
        case _:
            return str(value)


if __name__ == "__main__":
    work(main)
