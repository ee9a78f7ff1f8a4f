"""`bulk sql`: a question about a run, or about all nights of an audit, in SQL."""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory, as_json
from bulk.errors import UsageError


@click.command(cls=Command)
@click.argument("place", metavar="RUN_OR_HISTORY", type=RunDirectory(or_history=True))
@click.argument("query")
@as_json
@click.option("--csv", "as_csv", is_flag=True, help="CSV instead of a table.")
def sql(place: Path, query: str, *, as_json: bool, as_csv: bool) -> int:
    """Answer QUERY, one SELECT, over the results of runs.

    Nothing else can be read, and nothing is written.
    """
    from bulk.audit.answering import answering
    from bulk.cli.progress.work import at_work

    if as_json and as_csv:
        raise UsageError("--json and --csv: name one of them")
    with answering(place, query) as lines:
        with at_work(f"reading {place}"):
            head = next(lines)
        rows = (row for line in lines for row in line["rows"])
        if as_json:
            names = list(_distinct(head["columns"]))
            for row in rows:
                output.out(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))
        elif as_csv:
            from bulk.report.render.tables import cell

            with output.binary_out():
                writer = csv.writer(sys.stdout, lineterminator="\n")
                writer.writerow(map(cell, head["columns"]))
                writer.writerows(map(cell, row) for row in rows)
                sys.stdout.flush()
        else:
            output.out_table(head["columns"], _cells(rows))
    return 0


def _distinct(columns: list[str]) -> Iterator[str]:
    """Yield the names of columns; a repeated name becomes `name_2`, as an object would keep only the last value."""
    seen = set(columns)
    for place, name in enumerate(columns):
        number, other = 2, name
        while name in columns[:place] and other in seen:
            number, other = number + 1, f"{name}_{number}"
        seen.add(other)
        yield other


def _cells(rows: Iterator[list[Any]]) -> Iterator[list[str]]:
    for row in rows:
        yield [
            value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
            for value in row
        ]
