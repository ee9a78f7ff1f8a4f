"""`bulk pause`: offer nothing new; the process stays."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@stored.in_store
def pause(run_dir: Path, *, store: str | None) -> int:
    """Let RUN send nothing until `bulk resume`.

    What is in flight ends first, and lost answers are settled. The process stays; --max-duration goes on.
    """
    if store is not None:
        return stored_steering.steer(str(run_dir), store, "pause")
    from bulk.cli.commands.steering import asking
    from bulk.ledger.directory import resuming

    answer = asking.ask(run_dir, "pause")
    if answer.state != "paused":
        output.say("pausing: what is in flight ends first")
        if asking.told_until(run_dir, "paused") != "paused":
            raise asking.nobody(run_dir, "pause")
    output.say(f"paused: nothing is sent until {resuming(run_dir)}")
    return 0
