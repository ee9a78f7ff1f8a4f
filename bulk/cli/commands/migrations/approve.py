"""`bulk approve`: agree to a live plan."""

import shlex
from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored, stored_steering, with_workers
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH
from bulk.errors import UsageError


@click.command(cls=Command)
@click.argument("plan", metavar="FILE|RUN", type=ANY_PATH)
@click.option("--wave", metavar="N", type=click.IntRange(min=1), help="Open the waves of RUN up to this one.")
@stored.in_store
def approve(plan: Path, *, wave: int | None, store: str | None) -> int:
    """Agree to the plan in FILE, or to the next wave of RUN.

    Who agreed, by the name of the system, and when are written into it. `bulk run FILE` then does exactly that.
    """
    if wave is not None:
        return _open(plan, wave) if store is None else stored_steering.approve(str(plan), store, wave)
    if store is not None:
        raise UsageError("--store: of a run in a store a wave is opened, --wave N; a plan is a file")
    if plan.is_dir():
        raise UsageError(f"{plan} is a folder: name the plan's file, or with --wave N the wave of a run to open")
    from bulk.clock import Clock
    from bulk.control.place import user_name
    from bulk.engine.agreement import plan_file

    agreed = plan_file.approve(plan, user_name(), Clock().now())
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in agreed.counts.items() if count)
    assert agreed.approval is not None, "it was just given"
    output.out(f"approved by {agreed.approval.who}: {counts or 'nothing to look at'}; digest {agreed.digest}")
    output.say("Next: " + shlex.join(["bulk", "run", str(plan)]))
    return 0


def _open(run_dir: Path, wave: int) -> int:
    if with_workers.is_under_way(run_dir):
        return with_workers.approve(run_dir, wave)
    from bulk.clock import Clock
    from bulk.control.place import user_name
    from bulk.engine.migrations.wave_opening import open_waves
    from bulk.ledger.directory import is_held, resuming

    opened = open_waves(run_dir, wave, Clock().now(), f"{user_name()} (cli)")
    already = "" if opened else " already"
    through = f": it goes through {len(opened)} of them without a stop" if len(opened) > 1 else ""
    output.out(f"waves up to {opened.stop - 1} of {run_dir} are open{already}{through}")
    if is_held(run_dir):
        output.say(
            f"The process that drives {run_dir} goes on with the next one, when the one that it is at has ended."
        )
    else:
        output.say("Next: " + resuming(run_dir))
    return 0
