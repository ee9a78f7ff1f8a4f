"""`bulk stop`: let what is in flight end, then end."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory
from bulk.errors import UsageError


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@stored.in_store
@click.option("--now", "is_now", is_flag=True, help="Don't wait for what is in flight; the next run settles it.")
def stop(run_dir: Path, *, store: str | None, is_now: bool) -> int:
    """End RUN, so that it can be resumed.

    What is in flight ends first. The run ends with exit code 3, and this command with 0 once it has ended.
    """
    if store is not None:
        if is_now:
            raise UsageError("--now is for run directories: workers let what is in flight end")
        return stored_steering.steer(str(run_dir), store, "stop")
    from bulk.cli.commands.steering import asking
    from bulk.ledger.directory import is_held
    from bulk.report.run_state import next_command

    asking.ask(run_dir, "stop", {"now": True} if is_now else {})
    while is_held(run_dir):
        asking.pause()
    run_state = asking.state_of(run_dir)
    command = "" if run_state is None else next_command(run_state, run_dir)
    output.say(f"{run_dir} has ended" + (f": {run_state.why}" if run_state is not None and run_state.why else ""))
    if command:
        output.say(command)
    return 0
