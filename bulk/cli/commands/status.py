"""`bulk status`, `bulk report`, `bulk diff`: how a run stands and how it differs from another. Nothing is changed."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory, as_json
from bulk.errors import RunDirectoryError, UsageError

FORMATS = ("text", "json", "html", "csv", "jsonl")


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@as_json
def status(run_dir: Path, *, as_json: bool) -> int:
    """Say where RUN stands, also while it runs.

    What is done, what is left, what waits for what, when it ends.
    """
    from bulk.clock import Clock
    from bulk.ledger.view import LedgerView
    from bulk.report.render import status_text

    view, now, manifest = LedgerView(run_dir), Clock().now(), _manifest(run_dir)
    if as_json:
        output.out_json(status_text.data(view, now=now, manifest=manifest))
    else:
        output.out(status_text.render(view, now=now, manifest=manifest, **output.look()))
    return 0


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="What to print.")
@click.option("--only", metavar="OUTCOME,…", help="Only these items: failed, skipped, unknown, unchanged, succeeded.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def report(run_dir: Path, *, form: str, only: str | None, as_json: bool) -> int:
    """Print the completion report of RUN.

    text, json and html are the whole report; csv and jsonl are its items, and so is text with --only.
    """
    from bulk.ledger.view import LedgerView
    from bulk.report import report_files
    from bulk.report.fold import fold
    from bulk.report.render import html, tables, text

    form = "json" if as_json else form
    if only is not None and form in ("json", "html"):
        raise UsageError(f"--only chooses items, and {form} is the whole report: use --format text, csv or jsonl")
    kinds = None if only is None else tables.parse_only(only)
    view, manifest = LedgerView(run_dir), _manifest(run_dir)
    view.refuse_edited()
    with output.binary_out() as stdout:
        match form:
            case "csv":
                tables.write_csv(view, stdout, kinds)
            case "jsonl":
                tables.write_jsonl(view, stdout, kinds)
            case "json":
                stdout.write(report_files.as_json(fold(view, manifest=manifest)))
            case "html":
                stdout.write(html.render(fold(view, manifest=manifest)).encode("utf-8", "replace"))
            case _ if kinds is not None:
                tables.write_list(view, stdout, kinds)
            case _:
                stdout.write(text.render(fold(view, manifest=manifest), **output.look()).encode("utf-8", "replace"))
    return 0


@click.command(cls=Command)
@click.argument("old", metavar="RUN_A", type=RunDirectory())
@click.argument("new", metavar="RUN_B", type=RunDirectory())
@click.option("--all", "is_all", is_flag=True, help="List every change, not only the first of each kind.")
@click.option("--ignore", metavar="FIELD", multiple=True, help="Don't compare it, as result.updated_at. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines: the counts, then every change.")
def diff(old: Path, new: Path, *, is_all: bool, ignore: tuple[str, ...], as_json: bool) -> int:
    """Say what changed from RUN_A to RUN_B.

    Items added, removed, and those whose outcome or result differs, field by field. They are matched by job and
    their own id or fields.
    """
    from bulk.clock import Clock
    from bulk.ledger.view import LedgerView
    from bulk.report.diff import comparison as runs
    from bulk.report.diff import diff_text

    comparison = runs.compare(LedgerView(old), LedgerView(new), now=Clock().now(), ignored=ignore)
    with comparison as found, output.binary_out() as stdout:
        if as_json:
            stdout.writelines(found.json_lines())
        else:
            lines = diff_text.lines(found, is_all=is_all, **output.look())
            stdout.writelines(f"{line}\n".encode("utf-8", "replace") for line in lines)
    return 0


def _manifest(run_dir: Path) -> Path | None:
    """Where the manifest of a run was, for the command that goes on; None where the run does not say."""
    from bulk.engine.origin import Origin

    try:
        return Path(Origin.load(run_dir).manifest)
    except RunDirectoryError:
        return None
