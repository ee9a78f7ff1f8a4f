"""`bulk report`: the completion report of a run, or its items."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.ledger.view import LedgerView

FORMATS = ("text", "json", "html", "csv", "jsonl")


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option("--format", "form", type=click.Choice(FORMATS), help="What to print; text by default.")
@click.option("--only", metavar="OUTCOME,…", help="Only these items: failed, skipped, unknown, unchanged, succeeded.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def report(run_dir: Path, *, form: str | None, only: str | None, as_json: bool) -> int:
    """Print the completion report of RUN.

    text, json and html are the whole report; csv and jsonl are its items, and so is text with --only.
    """
    from bulk.cli.progress.work import at_work
    from bulk.ledger.view import LedgerView
    from bulk.report.render import tables
    from bulk.report.render.terminal import is_terminal
    from bulk.status import silently

    if as_json and form not in (None, "json"):
        raise UsageError(f"--json is the same as --format json, and --format {form} was given: leave one of them out")
    form = "json" if as_json else form or "text"
    if only is not None and form in ("json", "html"):
        raise UsageError(f"--only chooses items, and {form} is the whole report: use --format text, csv or jsonl")
    kinds = None if only is None else tables.parse_only(only)
    view = LedgerView(run_dir)
    with at_work(f"reading {run_dir}"):
        view.refuse_edited()
        whole = b"" if form in ("csv", "jsonl") or kinds is not None else _whole(view, form)
    # where the lines go into a file, nothing else shows that they are written
    working = silently if is_terminal(sys.stdout) else at_work
    with working(f"writing the items of {run_dir}") as tell, output.binary_out() as stdout:
        match form:
            case "csv":
                tables.write_csv(view, stdout, kinds, tell)
            case "jsonl":
                tables.write_jsonl(view, stdout, kinds, tell)
            case _ if kinds is not None:
                tables.write_list(view, stdout, kinds, tell)
            case _:
                stdout.write(whole)
    return 0


def _whole(view: "LedgerView", form: str) -> bytes:
    """Return the whole report as text, json or html."""
    from bulk.report import report_files
    from bulk.report.exploration import explore
    from bulk.report.fold import fold
    from bulk.report.render import html, text

    found = fold(view)
    if form == "json":
        return report_files.as_json(found)
    page = html.render(found, explore(view, found)) if form == "html" else text.render(found, **output.look())
    return page.encode("utf-8", "replace")
