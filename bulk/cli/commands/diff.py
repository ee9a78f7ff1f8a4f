"""`bulk diff`: what changed from one run to another."""

import contextlib
from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory
from bulk.exit_codes import ExitCode


@click.command(cls=Command)
@click.argument("old", metavar="RUN_A", type=RunDirectory())
@click.argument("new", metavar="RUN_B", type=RunDirectory())
@click.option("--all", "is_all", is_flag=True, help="List every change, not only the first of each kind.")
@click.option("--ignore", metavar="FIELD", multiple=True, help="Don't compare it, as result.updated_at. Repeatable.")
@click.option("--volatile", is_flag=True, help="Compare also what changes by itself, such as addresses.")
@click.option(
    "--exit-code", "is_told", is_flag=True, help="Exit 7 where something changed, 1 where items can't be read."
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines: the counts, then every change.")
def diff(
    old: Path, new: Path, *, is_all: bool, ignore: tuple[str, ...], volatile: bool, is_told: bool, as_json: bool
) -> int:
    """Say what changed from RUN_A to RUN_B.

    Items added, removed, and those whose outcome or result differs, field by field. They are matched by job and
    their own id or fields.
    """
    from bulk.cli.progress.work import at_work
    from bulk.clock import Clock
    from bulk.ledger.view import LedgerView
    from bulk.report.diff import comparison as runs
    from bulk.report.diff import diff_text

    with contextlib.ExitStack() as stack:
        with at_work(f"comparing {old} with {new}") as tell:
            views, now = (LedgerView(old), LedgerView(new)), Clock().now()
            found = stack.enter_context(runs.compare(*views, now=now, ignored=ignore, is_all=volatile, progress=tell))
        stdout = stack.enter_context(output.binary_out())
        if as_json:
            stdout.writelines(found.json_lines())
        else:
            lines = diff_text.lines(found, is_all=is_all, **output.look())
            stdout.writelines(f"{line}\n".encode("utf-8", "replace") for line in lines)
        summary = found.summary
    if not is_told:
        return ExitCode.DONE
    if summary.added or summary.removed or summary.changed:
        return ExitCode.DIFFERENT
    return ExitCode.UNSUCCESSFUL if summary.lost_sight else ExitCode.DONE
