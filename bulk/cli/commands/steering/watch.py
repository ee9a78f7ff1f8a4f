"""`bulk watch`: attach the display to a run that another process drives."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import DISPLAYS, RunDirectory, refuse_without
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.report.run_state import RunState
    from bulk.status import RunStatus


EVENTS_S = 0.25
"""Time between two looks for new events (seconds)."""


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@stored.in_store
@click.option("--progress", type=click.Choice(DISPLAYS), default="auto", show_default=True, help="Kind of display.")
@click.option("--events", "is_events", is_flag=True, help="Print items that end and actions as JSON lines instead.")
@click.option("--after", metavar="POSITION", help="With --events: only what came after that line's position.")
def watch(run_dir: Path, *, store: str | None, progress: str, is_events: bool, after: str | None) -> int:
    """Show RUN while another process drives it.

    Ctrl-C detaches, and the run goes on. When the run has ended, the command exits with its exit code.
    """
    if store is not None:
        if is_events or after is not None:
            raise UsageError("--events and --after are for run directories, not for runs of a store; export it first")
        return stored_steering.watch(str(run_dir), store, progress)
    if is_events:
        if progress != "auto":
            raise UsageError("--progress is a display, and --events prints lines instead: leave one of them out")
        return _tell_events(run_dir, after)
    refuse_without("--events", "after")
    from bulk.cli.commands.steering import asking
    from bulk.cli.progress.painter import display
    from bulk.report.render.text import verdict
    from bulk.report.run_state import next_command

    asking.state_of(run_dir)  # refuses a folder without a run, before anything is painted
    try:
        with display(progress, sys.stderr) as shown:
            for status in _statuses(run_dir):
                shown.update(status)
    except KeyboardInterrupt:
        output.say(f"detached from {run_dir}, which goes on")
        return 0
    run_state = asking.state_of(run_dir)
    if run_state is None:
        raise asking.nobody(run_dir, "watch")
    output.say(f"{run_state.name} {verdict(run_state)} (exit {run_state.exit_code})")
    command = next_command(run_state, run_dir)
    if command:
        output.say(command)
    return run_state.exit_code


def _tell_events(run_dir: Path, after: str | None) -> int:
    """Print past and new events as JSON lines, until the run has ended."""
    from bulk.cli.commands.steering import asking
    from bulk.ledger.directory import is_held
    from bulk.ledger.view import LedgerView
    from bulk.serve import events

    try:
        position = events.Position() if after is None else events.Position.from_text(after)
    except ValueError:
        raise UsageError(f"--after: {after!r} is not a position; it stands in each line of --events") from None
    try:
        while True:
            run_state = asking.state_of(run_dir)  # before the look at what happened, so that nothing is missed
            if run_state is not None:
                with output.binary_out() as out:
                    for line, told in events.since(LedgerView(run_dir), position):
                        out.write(line)
                        position = told
                    if not run_state.is_live:
                        state, code = run_state.state, run_state.exit_code
                        end = events.EndEvent(kind="end", position=str(position), state=state, exit_code=code)
                        out.write(events.encoded(end))
                        return code
            elif not is_held(run_dir):
                raise asking.nobody(run_dir, "watch")
            asking.pause(EVENTS_S)
    except KeyboardInterrupt:
        return 0


def _statuses(run_dir: Path) -> "Iterator[RunStatus]":
    """Yield the status of the run again and again until it ends: from its process, or else from its ledger."""
    from bulk.cli.commands.steering import asking
    from bulk.control import client
    from bulk.ledger.directory import is_held

    while True:
        try:
            yield from client.watch(run_dir)
        except (client.Unreached, client.Silent):
            run_state = asking.state_of(run_dir)
            if run_state is not None and run_state.last is not None:
                yield _shown(run_state, run_state.last)
            if not is_held(run_dir) and (run_state is None or not run_state.is_live):
                return
        asking.pause()


def _shown(run_state: "RunState", last: "RunStatus") -> "RunStatus":
    import msgspec

    return msgspec.structs.replace(last, state=run_state.state, why=run_state.why)
