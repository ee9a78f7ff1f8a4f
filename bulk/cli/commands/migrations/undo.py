"""`bulk undo`: a manifest that takes a run back."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, DISPLAYS, PLATFORM, RunDirectory, overriding
from bulk.exit_codes import ExitCode

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option("-o", "--out", metavar="FILE", required=True, type=ANY_PATH, help="The manifest to write.")
@click.option("--progress", type=click.Choice(DISPLAYS), default="auto", show_default=True, help="Kind of display.")
@overriding(*PLATFORM)
def undo(run_dir: Path, *, out: Path, progress: str, overrides: "Overrides") -> int:
    """Write a manifest that takes RUN back, as far as that can be.

    It reads the bytes that files had, and changes nothing. What can't be taken back is listed, with the reason.
    """
    from bulk.cli.progress.painter import display
    from bulk.cli.progress.work import beside
    from bulk.engine.migrations.undo import write_undo
    from bulk.report.render.formatting import counted

    with display(progress, sys.stderr) as shown:
        found = event_loop.run(
            lambda: write_undo(
                run_dir, out, overrides=overrides, display=shown, environ=os.environ, working=beside(shown, progress)
            )
        )
    parts = [f"undo: {counted(found.items, 'item')} in {counted(found.jobs, 'job')}"]
    if found.manifest is None:
        nothing = "nothing that can be taken back" if found.irreversible else "nothing to take back"
        parts = [f"undo: {nothing}, and {out} was not written"]
    if found.partly:
        parts.append(f"partly {found.partly:,}")
    if found.irreversible:
        parts.append(f"cannot be undone {found.irreversible:,}")
    listed = f", listed in {found.list}" if found.list is not None else ""
    output.out(" · ".join(parts) + listed)
    if found.manifest is not None:
        output.say("Next: " + shlex.join(["bulk", "plan", found.manifest]))
    return ExitCode.UNSUCCESSFUL if found.manifest is None and found.irreversible else ExitCode.DONE
