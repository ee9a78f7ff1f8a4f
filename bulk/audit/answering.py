"""Answers SQL over a folder, which is a run directory or the history of an audit."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bulk.audit.history import CHANGES, NAME, TABLES, VIOLATIONS, History
from bulk.audit.tables import asking, statements
from bulk.audit.tables.child import Query
from bulk.audit.tables.nights import tables_of_nights
from bulk.audit.tables.writing import answering as answering_run
from bulk.ledger.database import LEDGER
from bulk.ledger.view import LedgerView


@contextlib.contextmanager
def answering(place: Path, sql: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Answer a SELECT over the tables of `place`: `{"columns", "types"}` first, then `{"rows"}`, many at once.

    Raises:
        RunDirectoryError: `place` is neither a run directory nor the history of an audit.
        QueryFlaw: `sql` is not one SELECT, or can't be answered.
    """
    if (place / NAME).is_file() and not (place / LEDGER).is_file():
        asking.require_duckdb()
        task = tables_of_nights(_files(History.open(place)))
        made = (statements.ROOMY, *task.statements)
        queries = (Query(name="query", sql=sql),)
        yield asking.ask(msgspec.structs.replace(task, statements=made, queries=queries))
        return
    with answering_run(LedgerView(place), sql) as lines:
        yield lines


def _files(history: History) -> dict[str, list[Path]]:
    """Return the files of each table, of the nights that were compared."""
    folders = {folder.name: folder for folder in (history.path / TABLES).glob("*/")}
    folders |= {kind: history.path / kind for kind in (CHANGES, VIOLATIONS)}
    good = [night.run for night in history.good()]
    found = {name: [folder.absolute() / f"{run}.parquet" for run in good] for name, folder in folders.items()}
    there = {name: [asking.refuse_pattern(path) for path in files if path.is_file()] for name, files in found.items()}
    return {name: files for name, files in there.items() if files}
