"""Where the lines of a run are, so that DuckDB can read them as one file."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bulk.audit.tables.asking import refuse_pattern
from bulk.ledger.view import LedgerView


@contextlib.contextmanager
def lines_of(view: LedgerView) -> Iterator[Path]:
    """Lend the file of the current lines: `results.jsonl` where it holds these alone, otherwise a copy for a while."""
    whole = view.whole_results()
    if whole is not None:
        yield refuse_pattern(whole.absolute())
        return
    with tempfile.TemporaryDirectory(prefix="bulk-tables-") as folder:
        path = Path(folder) / "results.jsonl"
        with path.open("wb") as file:
            file.writelines(view.lines())
        yield refuse_pattern(path)
