"""`bulk diff`: what changed from one run to another."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory


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
