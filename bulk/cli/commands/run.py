"""`bulk run` and `bulk retry`: they start the engine, show how it goes and print what came out."""

import contextlib
import os
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bulk.cli import errors, event_loop, logs, output
from bulk.cli.logs import Command
from bulk.cli.options import DISPLAYS, LIMITS, PLATFORM, RunDirectory, overriding
from bulk.errors import BulkError, Interrupted

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.status import Display

F = TypeVar("F", bound=Callable[..., Any])

_SHOWING = (
    click.option("--cache", metavar="DIR", type=click.Path(path_type=Path), help="Where reads are remembered."),
    click.option("--no-cache", is_flag=True, help="Remember no reads."),
    click.option("--progress", type=click.Choice(DISPLAYS), default="auto", show_default=True, help="Kind of display."),
    click.option("--json", "as_json", is_flag=True, help="Print the report as JSON."),
)


def _showing(command: F) -> F:
    for option in reversed(_SHOWING):
        command = option(command)
    return command


@click.command(cls=Command)
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--run-dir", metavar="DIR", type=RunDirectory(), help="Default: runs/NAME-TIME. An existing one resumes.")
@overriding(*PLATFORM, *LIMITS)
@_showing
@click.pass_obj
def run(
    arguments: tuple[str, ...], /, *, manifest: Path, run_dir: Path | None, overrides: "Overrides", **showing: Any
) -> int:
    """Check MANIFEST, run it, print its report.

    With the run directory of an earlier run it goes on with that run: nothing is lost, nothing is done twice.
    """
    from bulk.engine import commands

    if run_dir is None:
        run_dir = _new_run_dir(manifest, overrides)
        arguments = (*arguments[:1], "--run-dir", str(run_dir), *arguments[1:])

    async def start(display: "Display", cache: Path | None) -> "Report":
        return await commands.run_manifest(
            manifest, overrides=overrides, run_dir=run_dir, cache=cache, display=display, environ=os.environ
        )

    return _go(start, shlex.join(["bulk", *arguments]), **showing)


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option(
    "--overwrite",
    "overwrites",
    is_flag=True,
    help="Write files all the same that somebody else seems to have written since an answer was lost.",
)
@overriding(*PLATFORM, *LIMITS)
@_showing
@click.pass_obj
def retry(
    arguments: tuple[str, ...], /, *, run_dir: Path, overwrites: bool, overrides: "Overrides", **showing: Any
) -> int:
    """Run again what did not succeed in RUN.

    That is what failed, was skipped or is unknown; new lines replace the old ones in the same run directory. What is
    unknown is looked at first, and nothing is overwritten that somebody else has written since.
    """
    from bulk.engine import commands

    async def start(display: "Display", cache: Path | None) -> "Report":
        return await commands.retry_run(
            run_dir,
            overrides=overrides,
            cache=cache,
            display=display,
            environ=os.environ,
            overwrites=overwrites,
        )

    return _go(start, shlex.join(["bulk", *arguments]), **showing)


def _go(
    start: "Callable[[Display, Path | None], Awaitable[Report]]",
    same_command: str,
    *,
    cache: Path | None,
    no_cache: bool,
    progress: str,
    as_json: bool,
) -> int:
    import platformdirs

    from bulk.cli.progress.painter import display
    from bulk.report.render import terminal

    where = None if no_cache else cache or platformdirs.user_cache_path("bulk")
    try:
        with contextlib.ExitStack() as stack:
            shown = stack.enter_context(display(progress, sys.stderr))
            if progress in ("auto", "rich") and terminal.is_terminal(sys.stderr):
                stack.enter_context(logs.noted_by(shown.note))
            report = event_loop.run(lambda: start(shown, where))
    except KeyboardInterrupt:
        exit_code = errors.exit_code_of(Interrupted("SIGINT", errors.INTERRUPTED))
    except Exception as error:
        if not isinstance(error, BulkError) and errors.shortage(error) is None:
            raise
        exit_code = errors.exit_code_of(error)
    else:
        _print(report, as_json=as_json)
        exit_code = report.exit_code
    errors.say_how_to_go_on(same_command, exit_code)
    return exit_code


def _new_run_dir(manifest: Path, overrides: "Overrides") -> Path:
    from bulk.clock import Clock
    from bulk.engine.commands import new_run_dir
    from bulk.manifest.reading import read_manifest

    return new_run_dir(read_manifest(manifest, overrides, os.environ).name, Clock())


def _print(report: "Report", *, as_json: bool) -> None:
    from bulk.report import report_files
    from bulk.report.render import text

    output.out(report_files.as_json(report).decode() if as_json else text.render(report, **output.look()))
