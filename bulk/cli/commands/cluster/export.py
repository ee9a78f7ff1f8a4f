"""`bulk export`: a run goes out of a store into an ordinary run directory."""

import contextlib
from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, RUNS
from bulk.errors import BulkError


@click.command(cls=Command)
@click.argument("run", metavar="RUN")
@stored.needed_store
@click.option("--run-dir", type=ANY_PATH, help=f"Where it goes. Default: {RUNS}/RUN.")
def export(run: str, store: str, run_dir: Path | None) -> int:
    """Write a run of a store into a run directory.

    From then on `bulk report`, `bulk diff` and all the rest need no store. A run that is not complete can be exported
    to look at it; the store goes on with it, and nothing is sent from there.
    """
    with stored.opened(store, "export") as connection:
        from bulk.cli.progress.work import at_work
        from bulk.ledger.view import LedgerView
        from bulk.report.exploration import explore
        from bulk.report.fold import fold
        from bulk.report.report_files import HTML_NAME, write_reports
        from bulk.report.timeline import merged
        from bulk.store import runs
        from bulk.store.export import end_wait, is_export_of
        from bulk.store.export import export as write

        target = RUNS / run if run_dir is None else run_dir
        found = runs.find(connection, run)
        with at_work(f"writing {target}") as tell:
            is_left = is_export_of(found, target) and not (target / HTML_NAME).is_file()  # by a command that was killed
            is_complete = is_left or write(connection, found, target, merged, tell).state == runs.COMPLETE
            view = LedgerView(target)
            report = fold(view)
            write_reports(report, target, explore(view, report))
        if is_complete:
            with contextlib.suppress(BulkError):  # a reader may export, and not say that it is done
                end_wait(connection, found)
    output.out(str(target))
    return 0
