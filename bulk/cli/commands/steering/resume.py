"""`bulk resume`: go on with a run from its directory alone."""

import os
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bulk.cli import foreground, output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import ACCEPT_WAVE, LIMITS, PLATFORM, RunDirectory, overriding
from bulk.control import settable
from bulk.errors import RunDirectoryError, UsageError

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides
    from bulk.report.run_state import RunState

_ANYWHERE = ("run_dir", "store", "progress", "as_json")
"""Parameters that do not say how the run goes on."""


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
    beats them; where a process drives RUN, `bulk set` changes limits. Nothing is lost, nothing is done twice.
    """
    if store is not None:
        _refuse_unheard(["accepted"], settable.IN_STORES, [str(run_dir), "--store", store])
        return stored_steering.steer(str(run_dir), store, "resume", frozenset(accepted))
    from bulk.cli.commands.steering import asking
    from bulk.engine.again import Again
    from bulk.ledger.digests.file_digests import DIGESTS
    from bulk.ledger.view import LedgerView

    run_state = asking.state_of(run_dir)
    # a process that is killed at its very end leaves a run that is complete, without the files that show it
    if run_state is not None and run_state.state == "complete" and (run_dir / DIGESTS).exists():
        foreground.refuse_values(run_dir, overrides, showing)
        LedgerView(run_dir).refuse_edited()  # nothing else holds the lines of a run that is said to be complete
        return _say_complete(run_state, run_dir)
    if run_state is not None and run_state.is_live:
        _refuse_unheard([], settable.LIMITS, [str(run_dir)])
        if _went_on(run_dir):
            return 0
    again = Again(by=foreground.started_by(os.environ))
    return foreground.go_on(run_dir, again, overrides, showing, frozenset(accepted))


def _refuse_unheard(heard: Collection[str], names: Collection[str], place: Sequence[str]) -> None:
    """Refuse options that would not reach the process, or the workers, that do the run already.

    Args:
        heard: parameters that do reach them. names: those that `bulk set` has. place: words that name the run.

    Raises:
        UsageError: such an option was given; the message says which, and the way out.
    """
    context = click.get_current_context()
    given = [
        option
        for option in context.command.params
        if option.name not in (*_ANYWHERE, *heard)
        and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    ]
    lasting = [option for option in given if option.name not in names]
    if not given:
        return
    named = " and ".join(option.opts[0] for option in lasting or given)
    whom, it = ("workers do", "them") if len(place) > 1 else ("a process drives", "it")
    message = f"{whom} {place[0]} already, and {named} {'does' if len(lasting or given) == 1 else 'do'} not reach {it}"
    if not lasting:
        changes = [f"{option.name}={context.params[str(option.name)]}" for option in given]
        message += f"; give {'it' if len(given) == 1 else 'them'} with: {shlex.join(['bulk', 'set', *place, *changes])}"
    elif len(place) == 1:
        resuming, stopping = (shlex.join(["bulk", verb, *place]) for verb in ("resume", "stop"))
        message += f"; give {'it' if len(lasting) == 1 else 'them'} to `{resuming}` after: {stopping}"
    raise UsageError(message)


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
