"""Makes the tables of a run: one for each operation, and `items`, `runs` and `schema_drift`."""

import contextlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bulk.audit.tables import asking, processes, statements
from bulk.audit.tables.child import Query, Task
from bulk.audit.tables.columns import RUNS, SCHEMA_DRIFT, Table, table_named
from bulk.audit.tables.drift import drift_rows
from bulk.audit.tables.source import lines_of, sample_of
from bulk.clock import iso_utc
from bulk.errors import RunDirectoryError, UsageError
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from bulk.report.fold import fold
from bulk.status import Tell, untold
from bulk.storage.new_files import arriving, settle

RUN, DRIFT = ALL = ("runs", "schema_drift")
"""Tables that take time to make."""


@dataclass(frozen=True, slots=True)
class RunTables:
    """The tables of one run, as SELECTs over its lines.

    Attributes:
        lines: the file of its lines. view: the statement that makes the view of them.
        queries: the SELECT of each table, by the name of the table.
    """

    lines: Path
    view: str
    queries: Mapping[str, str]


@contextlib.contextmanager
def tables_of(view: LedgerView, run: str, wanted: Container[str] = ALL) -> Iterator[RunTables]:
    """Lend the SELECTs of all tables of a run, while its lines can be read.

    Args:
        run: name of the run in the tables.
        wanted: names of the tables to make of `runs` and `schema_drift`, which take time; the others are empty.

    Raises:
        UsageError: an operation of the run is not installed. RunDirectoryError: its lines can't be read.
    """
    jobs = {name: operation for name, operation, _ in view.identity().jobs}
    tables = {operation: table_named(operation) for operation in jobs.values()}
    processes.begin()  # meanwhile the ledger is asked about its lines, which takes long where there are many
    with lines_of(view) as lines:
        read = statements.Lines(str(lines), view.longest_line())
        own = read.view()
        queries = {
            table.name: read.of_operation(table, [job for job in jobs if jobs[job] == operation], run)
            for operation, table in tables.items()
        }
        queries["items"] = statements.of_items(jobs, run)
        queries[RUN] = statements.of_rows(RUNS, [_row_of_run(view, run)] if RUN in wanted else [])
        by_job = {job: tables[operation] for job, operation in jobs.items()}
        drift = _drift(read, by_job, run) if DRIFT in wanted else []
        queries[DRIFT] = statements.of_rows(SCHEMA_DRIFT, drift)
        yield RunTables(lines, own, queries)


def _drift(lines: statements.Lines, tables: Mapping[str, Table], run: str) -> list[list[Any]]:
    query = Query(name=DRIFT, sql=statements.of_structures())
    with sample_of(Path(lines.path)) as sample:
        view = replace(lines, path=str(sample), is_sample=str(sample) != lines.path).view()
        task = Task(statements=(view,), allowed=(str(sample),), queries=(query,))
        asked = asking.ask(task, seconds=asking.limit_s(sample))
        found = [row for line in asked for row in line.get("rows", ())]
    return drift_rows(run, tables, ((job, structure, count) for job, structure, count in found))


def write_parquet(tables: RunTables, places: Mapping[str, Path]) -> None:
    """Write tables into files, each at the place that is named.

    Raises:
        RunDirectoryError: the disk is full, or a file can't be written.
    """
    copies = (statements.copy(tables.queries[name], str(path)) for name, path in places.items())
    asking.run(Task(statements=(tables.view, *copies)), tables.lines)


def export(view: LedgerView, kind: str, out: Path, tell: Tell = untold) -> list[str]:
    """Write all tables of a run: `parquet` into a new folder, `duckdb` and `sqlite` into a new file.

    Args:
        tell: is told how many items are written (count), now and then, where that is known: DuckDB does not say it.

    Returns:
        One line for people for each thing that was written.

    Raises:
        UsageError: `out` is there already, or is not a place where files can be. RunDirectoryError: the disk is full.
    """
    settle(out.absolute().parent)
    if out.exists() and not (kind == "parquet" and out.is_dir() and not any(out.iterdir())):
        raise UsageError(f"--out {out}: is there already; name a new {'folder' if kind == 'parquet' else 'file'}")
    place = out.absolute()
    if kind != "sqlite":
        asking.require_duckdb()
        asking.refuse_pattern(place)
    try:
        with arriving(place.parent) as part:  # a killed process leaves no half of a table that looks whole
            names = _written(view, kind, part / place.name, place, tell)
    except OSError as error:
        raise UsageError(f"--out {out}: can't be written: {error.strerror}; name another one") from None
    return [str(out / f"{name}.parquet") for name in names] if kind == "parquet" else [f"{out}: {', '.join(names)}"]


def _written(view: LedgerView, kind: str, made: Path, place: Path, tell: Tell) -> list[str]:
    """Write all tables at `made`, which will be moved to `place`, and return their names."""
    run = view.run_dir.resolve().name
    try:
        if kind == "sqlite":
            from bulk.audit.tables.sqlite_tables import write_sqlite

            return write_sqlite(view, run, made, tell)
        with tables_of(view, run) as tables:
            if kind == "parquet":
                made.mkdir()
                write_parquet(tables, {name: made / f"{name}.parquet" for name in tables.queries})
            else:
                queries = tables.queries.items()
                tabled = (f"CREATE TABLE {statements.name(name)} AS {query}" for name, query in queries)
                dropped = f"DROP VIEW {statements.LINES}"
                asking.run(Task(database=str(made), statements=(tables.view, *tabled, dropped)), tables.lines)
            return list(tables.queries)
    except RunDirectoryError as error:  # it names the file where it was written
        raise RunDirectoryError(str(error).replace(str(made), str(place))) from error


@contextlib.contextmanager
def answering(view: LedgerView, sql: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Answer a SELECT over the tables of a run, straight from its lines.

    Raises:
        QueryFlaw: `sql` is not one SELECT, or can't be answered.
    """
    asking.require_duckdb()
    with tables_of(view, view.run_dir.resolve().name, wanted=sql.casefold()) as tables:  # names have no case in SQL
        views = (f"CREATE VIEW {statements.name(name)} AS {query}" for name, query in tables.queries.items())
        query = Query(name="query", sql=sql)
        made = (statements.ROOMY, tables.view, *views)
        yield asking.ask(Task(statements=made, allowed=(str(tables.lines),), queries=(query,)))


def _row_of_run(view: LedgerView, run: str) -> list[Any]:
    import bulk

    report = fold(view)
    return [
        run,
        report.name,
        report.base_url,
        bulk.__version__,
        report.state,
        report.exit_code,
        _moment(report.started_at),
        _moment(report.ended_at),
        report.done,
        *(report.outcomes.get(kind, 0) for kind in OutcomeKind),
        report.requests,
        sum(bucket.used for bucket in report.buckets),
        report.not_modified,
    ]


def _moment(at: datetime) -> str:
    return iso_utc(at.timestamp())[:-1]
