"""`bulk tables`: the results of a run as typed tables."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, RunDirectory

KINDS = ("parquet", "duckdb", "sqlite")


@click.command(cls=Command)
@click.argument("run", metavar="RUN", type=RunDirectory())
@click.option("--to", "kind", type=click.Choice(KINDS), required=True, help="Kind of tables.")
@click.option("--out", "-o", metavar="PATH", type=ANY_PATH, required=True, help="New file or folder.")
def tables(run: Path, kind: str, out: Path) -> int:
    """Write the results of RUN as tables, one for each operation.

    Parquet makes a folder of files, DuckDB and SQLite one file.
    """
    from bulk.audit.tables.writing import export
    from bulk.cli.progress.work import at_work
    from bulk.ledger.view import LedgerView

    with at_work(f"writing {out}") as tell:
        lines = export(LedgerView(run), kind, out, tell)
    for line in lines:
        output.out(line)
    return 0
