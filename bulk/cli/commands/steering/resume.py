"""`bulk resume`: go on with a run from its directory alone."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bulk.cli import foreground, output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import ACCEPT_WAVE, LIMITS, PLATFORM, RunDirectory, overriding
from bulk.errors import RunDirectoryError

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.report.run_state import RunState
    from bulk.status import Display


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@stored.in_store
@ACCEPT_WAVE
@overriding(*PLATFORM, *LIMITS)
@foreground.showing
def resume(
    *, run_dir: Path, store: str | None, accepted: tuple[int, ...], overrides: "Overrides", **showing: Any
) -> int:
    """Go on with RUN, as it was started, or after `bulk pause`.

    The manifest, the platform, the sources of credentials and the limits are those that it was started with; an option
    beats them. Nothing is lost, nothing is done twice.
    """
    if store is not None:
        return stored_steering.steer(str(run_dir), store, "resume", frozenset(accepted))
    from bulk.cli.commands.steering import asking
    from bulk.engine import commands
    from bulk.engine.surroundings import Surroundings

    run_state = asking.state_of(run_dir)
    if run_state is not None and run_state.state == "complete":
        return _say_complete(run_state, run_dir)
    if run_state is not None and run_state.is_live and _went_on(run_dir):
        return 0
    showing = foreground.remembered(run_dir, showing)

    async def start(display: "Display", cache: Path | None) -> "Report":
        return await commands.resume_run(
            run_dir,
            overrides=overrides,
            cache=cache,
            display=display,
            environ=os.environ,
            surroundings=Surroundings(handles_signals=True, is_steered=True, accepted_waves=frozenset(accepted)),
            by=foreground.started_by(os.environ),
        )

    return foreground.run(start, run_dir, **showing)


def _went_on(run_dir: Path) -> bool:
    """Have the process that drives the run go on; return False where that process has ended meanwhile.

    Raises:
        BulkError: the process refuses, or does not answer.
    """
    from bulk.cli.commands.steering import asking
    from bulk.ledger.directory import is_held

    try:
        answer = asking.ask(run_dir, "resume")
    except RunDirectoryError:
        if is_held(run_dir):
            raise
        return False
    output.say(f"{run_dir} is {answer.state}, in the process that drives it")
    return True


def _say_complete(run_state: "RunState", run_dir: Path) -> int:
    from bulk.report.run_state import next_command

    command = next_command(run_state, run_dir)
    output.say(
        f"{run_dir} is complete: no item is left." + (" Some did not succeed; run them again:" if command else "")
    )
    if command:
        output.say(command)
    return run_state.exit_code
