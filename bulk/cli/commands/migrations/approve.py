"""`bulk approve`: agree to a live plan."""

import shlex
from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command


@click.command(cls=Command)
@click.argument("plan", metavar="FILE", type=click.Path(path_type=Path))
def approve(plan: Path) -> int:
    """Agree to the plan in FILE, which `bulk plan --live` wrote.

    Who agreed, by the name of the system, and when are written into it. `bulk run FILE` then does exactly that.
    """
    from bulk.clock import Clock
    from bulk.engine.migrations import plan_file

    found = plan_file.read_plan(plan)
    agreed = plan_file.approved(found, plan_file.user(), Clock().now())
    plan_file.write_plan(agreed, plan)
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in found.counts.items() if count)
    assert agreed.approval is not None, "it was just given"
    output.out(f"approved by {agreed.approval.who}: {counts or 'nothing to look at'}; digest {found.digest}")
    output.say("Next: " + shlex.join(["bulk", "run", str(plan)]))
    return 0
