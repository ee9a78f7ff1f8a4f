"""`bulk retry`: what did not succeed, once more."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bulk.cli import foreground, output
from bulk.cli.logs import Command
from bulk.cli.options import LIMITS, PLATFORM, RunDirectory, overriding

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.status import Display


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option(
    "--overwrite",
    "overwrites",
    is_flag=True,
    help="Write files all the same that somebody else seems to have written since an answer was lost.",
)
@overriding(*PLATFORM, *LIMITS)
@foreground.showing
def retry(*, run_dir: Path, overwrites: bool, overrides: "Overrides", **showing: Any) -> int:
    """Run again what did not succeed in RUN.

    That is what failed, was skipped or is unknown; new lines replace the old ones in the same run directory. What is
    unknown is looked at first, and nothing is overwritten that somebody else has written since.
    """
    from bulk.clock import Clock
    from bulk.engine import commands
    from bulk.ledger.view import LedgerView
    from bulk.report.run_state import stand

    standing = stand(LedgerView(run_dir), Clock().now())
    if standing.state == "complete" and not standing.is_to_retry:
        output.say(f"There is nothing to retry in {run_dir}: every item succeeded or was unchanged.")
        return standing.exit_code
    showing = foreground.remembered(run_dir, showing)

    async def start(display: "Display", cache: Path | None) -> "Report":
        return await commands.retry_run(
            run_dir,
            overrides=overrides,
            cache=cache,
            display=display,
            environ=os.environ,
            overwrites=overwrites,
        )

    return foreground.run(start, run_dir, **showing)
