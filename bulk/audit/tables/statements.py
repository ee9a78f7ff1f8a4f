"""The SQL that makes tables of a run's lines. Pure.

Items and results are read by their declared shape, and a value of another type becomes NULL, which is counted in
`schema_drift`: guessed types would change from night to night, and strict ones fail for one bad value.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bulk.audit.tables.columns import Shape, Table, column_of, sql_type

LINES = "lines"
"""The view of the lines of a run."""

ROOMY = "SET memory_limit = '25%'"
"""Memory for questions of people, of which one runs at a time: what does not fit goes to disk, a fifth slower."""

LEAST_BUFFER_BYTES = 4 * 1024 * 1024
ROW_GROUP = 30_720
"""Rows of one group of a Parquet file (count); each thread holds two groups in memory while it writes."""

_LINE = {
    "job": "VARCHAR",
    "index": "BIGINT",
    "id": "VARCHAR",
    "item": "JSON",
    "outcome": "VARCHAR",
    "http_status": "BIGINT",
    "attempts": "BIGINT",
    "started_at": "TIMESTAMP",
    "elapsed_ms": "DOUBLE",
    "result": "JSON",
    "error": "JSON",
    "missing": "BOOLEAN",
}
_ENVELOPE = """{run} AS run, job, "index" AS idx, id, outcome, coalesce(missing, false) AS missing,
       started_at AS observed_at"""


def text(value: str) -> str:
    """Return a string as it stands in SQL."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """Return a name as it stands in SQL."""
    return '"' + value.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a run: the file that holds them and no others, and the longest of them (bytes).

    Lines of a sample are not checked for being JSON.
    """

    path: str
    longest: int
    is_sample: bool = False

    def view(self) -> str:
        """Return the statement that makes the view of all lines."""
        return f"CREATE VIEW {LINES} AS SELECT * FROM {self._read({})}"

    def of_operation(self, table: Table, jobs: Sequence[str], run: str) -> str:
        """Return the SELECT of the rows of one operation.

        Each line is parsed once, into the types of this operation. The parser is lenient, so that neither a bad value
        nor lines of other operations stop it. A line that is not JSON would become a row of NULLs, and is refused.
        """
        kinds = {"item": sql_type(table.item)} if table.item else {}
        result = "result"
        if table.list_field:
            wrapped = f"json_object({text(table.list_field)}, result)"
            result = _converted(f"CASE WHEN json_type(result) = 'ARRAY' THEN {wrapped} ELSE result END", table.result)
        else:
            kinds["result"] = sql_type(table.result)
        fields = "".join(f", item.{name(field)} AS {name(column_of(field))}" for field in table.item)
        damaged = f"error({text(f'a line of {self.path} is not JSON: restore the file from a copy')})"
        return (
            f"SELECT {_ENVELOPE.format(run=text(run))}{fields}, {result} AS result FROM {self._read(kinds)} "
            f"WHERE CASE WHEN job IS NULL THEN {damaged} ELSE job IN ({_texts(jobs)}) END"
        )

    def _read(self, kinds: Mapping[str, str]) -> str:
        """Return the SQL that reads the lines; `kinds`: types of columns, where these are not those of `_LINE`.

        Buffers are only as large as the longest line needs: DuckDB takes several of them for each thread.
        """
        columns = ", ".join(f"{name(field)}: {text(kind)}" for field, kind in {**_LINE, **kinds}.items())
        is_lenient = bool(kinds) or self.is_sample
        return (
            f"read_json({text(self.path)}, format = 'newline_delimited', ignore_errors = {str(is_lenient).lower()}, "
            f"maximum_object_size = {max(self.longest + 1, LEAST_BUFFER_BYTES)}, columns = {{{columns}}})"
        )


def of_items(operations: Mapping[str, str], run: str) -> str:
    """Return the SELECT of all items; `operations`: name of the operation by job."""
    cases = " ".join(f"WHEN {text(job)} THEN {text(operation)}" for job, operation in operations.items())
    return (
        f"SELECT {_ENVELOPE.format(run=text(run))}, CASE job {cases} END AS operation, item, http_status, attempts, "
        f"elapsed_ms, error->>'code' AS error_code, error->>'message' AS error_message FROM {LINES}"
    )


def of_rows(columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the SELECT of rows that are given, such as the one of `runs`."""
    kinds = list(columns.values())
    casts = ", ".join(f"CAST({name(column)} AS {kind}) AS {name(column)}" for column, kind in columns.items())
    given = [", ".join(_literal(value) for value in row) for row in rows]
    names = ", ".join(map(name, columns))
    if not given:
        return f"SELECT {casts} FROM (SELECT {', '.join('NULL' for _ in kinds)}) AS t({names}) WHERE false"
    return f"SELECT {casts} FROM (VALUES {', '.join(f'({row})' for row in given)}) AS t({names})"


def empty(columns: Mapping[str, str]) -> str:
    """Return the SELECT of a table with these columns and no rows."""
    return (
        "SELECT "
        + ", ".join(f"CAST(NULL AS {kind}) AS {name(column)}" for column, kind in columns.items())
        + (" WHERE false")
    )


def of_structures() -> str:
    """Return the SELECT that counts the structures of results, by job.

    Results are compared with `null` as texts: their type would be known only after each is parsed once more.
    """
    return (
        f"SELECT job, json_structure(result) AS structure, count(*) AS count FROM {LINES} "
        "WHERE CAST(result AS VARCHAR) != 'null' GROUP BY ALL"
    )


def copy(query: str, path: str) -> str:
    """Return the statement that writes a SELECT into a Parquet file."""
    return f"COPY ({query}) TO {text(path)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP})"


def _converted(value: str, shape: Shape) -> str:
    return value if shape == "JSON" else f"from_json({value}, {text(json.dumps(shape))})"


def _texts(values: Iterable[str]) -> str:
    return ", ".join(map(text, values))


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return text(value if isinstance(value, str) else json.dumps(value))
