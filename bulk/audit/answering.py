"""SQL over one run or over a history, whichever a folder is."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bulk.audit.tables.writing import answering as answering_run
from bulk.ledger.view import LedgerView


@contextlib.contextmanager
def answering(place: Path, sql: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Answer a SELECT over the tables of `place`: `{"columns", "types"}` first, then a `{"row"}` for each row.

    Raises:
        RunDirectoryError: it is neither a run directory nor the history of an audit.
        QueryFlaw: `sql` is not one SELECT, or can't be answered.
    """
    with answering_run(LedgerView(place), sql) as lines:
        yield lines
