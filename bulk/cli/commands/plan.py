"""`bulk plan`: what a manifest costs and when it would end."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, LIMITS, MANIFEST, PLATFORM, as_json, overriding, refuse_without, try_out
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@click.option("--live", "is_live", is_flag=True, help="Look at every item that writes: reads only.")
@click.option("-o", "--out", metavar="FILE", type=ANY_PATH, help="With --live: where to write the plan.")
@click.option(
    "--diff",
    "most_shown",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="With --live: show the first N items that would change.",
)
@overriding(*MANIFEST, *PLATFORM, *LIMITS)
@as_json
def plan(
    *,
    manifest: Path,
    is_live: bool,
    out: Path | None,
    most_shown: int,
    overrides: "Overrides",
    as_json: bool,
) -> int:
    """Say what MANIFEST costs and when it would end.

    Everything is checked; nothing but GET /rate_limit is sent. With --live every item that writes is looked at, and
    what would become of it is said, and written down to be approved.
    """
    if is_live:
        if as_json:
            raise UsageError("--json does not go with --live: the file that -o names is JSON")
        return _look(manifest, out, most_shown, overrides)
    refuse_without("--live", "out", "most_shown")
    from bulk.cli.progress.work import at_work
    from bulk.report.render import plan_text
    from bulk.status import Counting

    with at_work(f"planning {manifest}") as tell:
        from bulk.engine import commands  # takes a good part of the second that a command may be silent

        shown = Counting(tell)
        found = event_loop.run(
            lambda: commands.plan_manifest(manifest, overrides=overrides, environ=os.environ, display=shown)
        )
    if as_json:
        output.out_json(found)
    else:
        output.out(plan_text.render(found, **output.look()))
    return 0


def _refuse_taken(out: Path | None) -> None:
    """Refuse a file that a plan can't be written to, before anything is looked at.

    Raises:
        UsageError: the file exists and is not a plan, or can't be written.
    """
    from bulk.engine.agreement import plan_file

    if out is None:
        return
    if out.is_file() and not plan_file.is_plan(out):
        raise UsageError(
            f"-o: {out} exists already and is not a plan, so that it is not overwritten; name another file"
        )
    try_out("-o", out)


def _look(manifest: Path, out: Path | None, most_shown: int, overrides: "Overrides") -> int:
    import platformdirs

    from bulk.cli.progress.painter import display
    from bulk.engine.agreement import plan_file
    from bulk.engine.migrations import live_plan
    from bulk.engine.surroundings import Surroundings
    from bulk.report.render import live_plan_text

    _refuse_taken(out)
    around = Surroundings(handles_signals=True, cache=platformdirs.user_cache_path("bulk"))
    with display("auto", sys.stderr) as shown:
        found = event_loop.run(
            lambda: live_plan.look_at(
                manifest,
                overrides=overrides,
                environ=os.environ,
                display=shown,
                most_shown=most_shown,
                surroundings=around,
            )
        )
    if out is not None:
        plan_file.write_plan(found.plan, out)
    jobs = [(job.name, job.counts, job.records is not None) for job in found.plan.jobs]
    output.out("\n".join(live_plan_text.lines(jobs, found.requests, found.free, found.shown)))
    if out is not None:
        output.say("Next: " + shlex.join(["bulk", "approve", str(out)]))
    return 0
