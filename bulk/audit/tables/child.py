"""The process that holds DuckDB: its memory is not the engine's, and it can be ended whatever it does.

It reads tasks from standard input, a line of JSON each, and writes lines of JSON: rows of the answers, many on a
line, and at the end of each task `done` or `error`. Queries of users run only after everything is locked: no other file
can be read, none can be written, no setting changed back. Started by `processes.py` with
`python -m bulk.audit.tables.child`.

It ends with the process that started it, in the middle of a task as well: a task that is begun again writes the same
files.
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
"""The wrong line in a message, and the mark below it, both shifted by the word that was put before the query."""

_WRITES = "must be at the top level"
"""The message of DuckDB about a statement that writes, in a SELECT that is part of another statement."""

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
    "memory_limit": "512MB",
    "threads": "2",
}


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A SELECT that a user may have written.

    Attributes:
        name: name that comes back with the rows.
        sql: exactly one SELECT; anything else is refused.
        is_bound_only: whether only its columns are told, and it is not run.
        most: most rows that are returned (count); None: all.
    """

    name: str
    sql: str
    is_bound_only: bool = False
    most: int | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task for the process.

    Attributes:
        database: file of the database that is written; None: the database is in memory.
        statements: our own statements, which run one after the other before anything is locked.
        allowed: files that queries may read.
        queries: queries in order; the answer to each is a line with `query`, then lines with `rows`.
        spills: folder for data that does not fit into memory; empty: there is none. Queries could read what is in it.
    """

    database: str | None = None
    statements: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    queries: tuple[Query, ...] = ()
    spills: str = ""


class Refused(Exception):
    """A query is not one SELECT."""


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Do tasks until `source` ends, which ends this process at once; each task begins afresh."""
    given = Lines(source)
    import duckdb  # noqa: F401 - imported while the first task is still put together

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
    except orjson.JSONEncodeError:  # a number of more than 64 bits, or a text that is not UTF-8: both as texts
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

    A SELECT may begin with `WITH x AS (COPY … TO …)` or another statement that writes, and could then write the
    files that it may read. Within another statement, such as this DESCRIBE, that is an error.
    """
    import duckdb

    try:
        return [row[0] for row in connection.execute(_DESCRIBE + sql).fetchall()]
    except duckdb.BinderException as error:
        if _WRITES in str(error):
            raise Refused("expected a SELECT that reads and no more: nothing can be written or set") from None
        raise


def _plain(value: Any) -> Any:
    """Return the JSON form of a value: moments are RFC 3339 in UTC with milliseconds, as everywhere."""
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
