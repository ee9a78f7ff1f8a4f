"""A run in the foreground: its progress while it goes, its report at the end, and the command that goes on with it."""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bulk.cli import errors, event_loop, logs, output
from bulk.cli.options import ANY_PATH, CACHE, DISPLAYS, try_out
from bulk.errors import BulkError, Interrupted, UsageError
from bulk.exit_codes import STOPPED_EARLY, ExitCode

if TYPE_CHECKING:
    from bulk.engine.again import Again
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.status import Display

STARTED_BY = "BULK_STARTED_BY"
"""The environment variable in which a program that starts a command says what the program is."""
_STARTER = re.compile(r"[a-zA-Z]+(, wave [0-9]+ [a-z]+)?")

F = TypeVar("F", bound=Callable[..., Any])


_SHOWING = (
    *CACHE,
    click.option("--exact", is_flag=True, help="Never take a read for unchanged by its date alone."),
    click.option("--progress", type=click.Choice(DISPLAYS), default="auto", show_default=True, help="Kind of display."),
    click.option("--json", "as_json", is_flag=True, help="Print the report as JSON."),
    click.option(
        "--metrics",
        metavar="FILE",
        type=ANY_PATH,
        help="Keep figures for a collector of metrics in FILE, written anew every 15 seconds.",
    ),
)


def showing(command: F) -> F:
    """Add the options of commands that run in the foreground; they are passed on to `run`."""
    for option in reversed(_SHOWING):
        command = option(command)
    return command


def go_on(
    run_dir: Path,
    again: "Again",
    overrides: "Overrides",
    showing: dict[str, Any],
    accepted: AbstractSet[int] = frozenset(),
) -> int:
    """Go on with the run in `run_dir`, with the cache that it had where no other one is named; return the exit code.

    Args:
        showing: the values of the options of `showing`. accepted: waves that go on though they are over a budget.

    Raises:
        RunDirectoryError: no run was ever started there.
    """
    from bulk.engine import commands
    from bulk.engine.origin import Origin
    from bulk.engine.surroundings import Surroundings

    kept = Origin.load(run_dir).cache
    if not (showing["cache"] is not None or showing["no_cache"] or kept == ""):
        showing = {**showing, "cache": kept and Path(kept), "no_cache": kept is None}

    async def start(display: "Display", cache: Path | None) -> "Report":
        return await commands.resume_run(
            run_dir,
            again=again,
            overrides=overrides,
            display=display,
            environ=os.environ,
            surroundings=Surroundings(
                cache=cache, handles_signals=True, is_steered=True, accepted_waves=frozenset(accepted)
            ),
        )

    return run(start, run_dir, **showing)


def refuse_values(run_dir: Path, overrides: "Overrides", showing: Mapping[str, Any]) -> None:
    """Refuse options whose values a run would refuse, where the run is complete and nothing else looks at them.

    Names of credentials are those of its manifest, where that can still be read.

    Args:
        showing: the values of the options of `showing`.

    Raises:
        UsageError: the value of an option can't be used.
    """
    from bulk.engine.origin import manifest_of
    from bulk.ledger.view import LedgerView
    from bulk.manifest import settings

    settings.refuse_values(overrides)
    if overrides.named:
        try:
            manifest_of(LedgerView(run_dir), overrides, os.environ, needs_items=False)
        except UsageError:
            raise
        except BulkError:
            pass  # nothing of the manifest is needed any more
    if showing["metrics"] is not None:
        _refuse_metrics(showing["metrics"])


def started_by(environ: Mapping[str, str]) -> str:
    """Return the program that started the command, as a word or as `web, wave 2 opened`, for the table of actions;
    `cli` where `STARTED_BY` does not say it."""
    words = environ.get(STARTED_BY, "")
    return words if _STARTER.fullmatch(words) else "cli"


def run(
    start: "Callable[[Display, Path | None], Awaitable[Report]]",
    run_dir: Path,
    *,
    cache: Path | None,
    no_cache: bool,
    progress: str,
    as_json: bool,
    metrics: Path | None = None,
    is_resumable: bool = True,
) -> int:
    """Run in the foreground, print the report, and return the exit code.

    Args:
        start: begins the run and returns its report at the end. run_dir: the directory of the run.
        is_resumable: whether a later command can go on with the run.
    """
    has_begun, command = False, ""
    try:
        report = report_of(start, run_dir, cache=cache, no_cache=no_cache, progress=progress, metrics=metrics)
    except KeyboardInterrupt:
        exit_code = errors.exit_code_of(Interrupted("SIGINT", ExitCode.INTERRUPTED), is_json=as_json)
    except Exception as error:  # noqa: BLE001 - after a bug, too, people are told how the run goes on
        exit_code = errors.exit_code_of(error, is_json=as_json)
        is_resumable = is_resumable and (exit_code != ExitCode.BUG or _has_work_left(run_dir))
    else:
        exit_code, has_begun, command = report.exit_code, True, report.next_command
        try:
            output.out_report(report, as_json=as_json)
        except BulkError as error:  # the report is in the run directory; where work is left, that is what counts
            unprinted = errors.exit_code_of(error)
            exit_code = exit_code if exit_code in STOPPED_EARLY else unprinted
    if is_resumable:
        errors.say_how_to_go_on(command or _way_on(run_dir), exit_code, has_begun=has_begun)
    return exit_code


def report_of(
    start: "Callable[[Display, Path | None], Awaitable[Report]]",
    run_dir: Path,
    *,
    cache: Path | None,
    no_cache: bool,
    progress: str,
    metrics: Path | None = None,
) -> "Report":
    """Run in the foreground with the progress shown, and return the report.

    Raises:
        BulkError: nothing could be run. KeyboardInterrupt: a second signal stopped it.
    """
    import platformdirs

    from bulk.cli.progress.painter import display
    from bulk.clock import Clock
    from bulk.report.render import terminal
    from bulk.status import JobStatus, RunStatus

    where = None if no_cache else cache or platformdirs.user_cache_path("bulk")
    with contextlib.ExitStack() as stack:
        stack.enter_context(logs.about_run(run_dir))
        if metrics is not None:
            stack.enter_context(_kept(metrics, run_dir))
        shown = stack.enter_context(display(progress, sys.stderr))
        if progress in ("auto", "rich") and terminal.is_terminal(sys.stderr):
            stack.enter_context(logs.noted_by(shown.note))
        if progress in ("auto", "rich") and terminal.is_movable(sys.stderr, os.environ):
            # until the run has a status: a large ledger is read for seconds
            now, items = Clock().now(), JobStatus(name="items", operation="check", items=None, outcomes={"checked": 0})
            shown.update(RunStatus(name=run_dir.name, state="checking", at=now, started_at=now, jobs=(items,)))
        return event_loop.run(lambda: start(shown, where))


def _kept(path: Path, run_dir: Path) -> contextlib.AbstractContextManager[object]:
    """Return a block in which the file of `--metrics` is kept up to date.

    Raises:
        UsageError: the file can't be written, or holds something else.
    """
    from bulk.clock import Clock
    from bulk.serve.metrics.metrics_file import MetricsFile

    _refuse_metrics(path)
    return MetricsFile(path, run_dir, Clock(), output.say)


def _refuse_metrics(path: Path) -> None:
    from bulk.serve.metrics.metrics_file import is_replaceable

    if path.is_file() and not is_replaceable(path):
        raise UsageError(f"--metrics: {path} exists already and holds no figures of a run; name another file")
    try_out("--metrics", path)


def _way_on(run_dir: Path) -> str:
    """Return the command that goes on with the run; this command again where nothing of it was written down yet."""
    from bulk.ledger.directory import ORIGIN, resuming

    if os.path.isfile(run_dir / ORIGIN):  # noqa: PTH113 - Path.is_file raises where the folder may not be searched
        return resuming(run_dir)
    return shlex.join(["bulk", *(click.get_current_context().find_object(tuple) or ())])


def _has_work_left(run_dir: Path) -> bool:
    """Return whether a run has begun there, and is not complete."""
    from bulk.clock import Clock
    from bulk.ledger.view import LedgerView
    from bulk.report.run_state import run_state_of

    try:
        return run_state_of(LedgerView(run_dir), Clock().now()).state != "complete"
    except BulkError:
        return False
