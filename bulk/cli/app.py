"""The group of all commands, and `main`, which turns the end of every command into an exit code."""

import sys
from collections.abc import Sequence
from itertools import pairwise

import click

from bulk.cli import errors, output, version
from bulk.cli.catalog.exit_status import EPILOG
from bulk.cli.commands import (
    check,
    completion,
    demo,
    diff,
    examples,
    init,
    operations,
    plan,
    rate_limit,
    report,
    retry,
    run,
    sandbox,
    status,
)
from bulk.cli.commands.audits import audit, schedule, sql, tables
from bulk.cli.commands.cluster import export, forget, store, submit, worker
from bulk.cli.commands.credentials import check as credentials_check
from bulk.cli.commands.credentials import login
from bulk.cli.commands.migrations import approve, rehearse, undo, verify
from bulk.cli.commands.steering import pause, resume, runs, serve, stop, watch
from bulk.cli.commands.steering import set as set_command
from bulk.errors import UsageError
from bulk.storage.names import is_text


class InOrder(click.Group):
    """Commands in the order of a user's way through them, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order in which they were added."""
        return list(self.commands)


@click.group(
    cls=InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=EPILOG,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=version.show,
    help="Show the version, and whether it is compiled, and exit.",
)
def commands() -> None:
    """Run bulk operations against a self-managed code-hosting platform: as fast as its limits allow, every effect
    exactly once, resumable at any moment. Try it without a platform: bulk demo
    """


for command in (
    run.run,
    plan.plan,
    rehearse.rehearse,
    approve.approve,
    check.check,
    status.status,
    report.report,
    runs.runs,
    watch.watch,
    serve.serve,
    pause.pause,
    resume.resume,
    stop.stop,
    set_command.set_,
    retry.retry,
    diff.diff,
    audit.audit,
    schedule.schedule,
    tables.tables,
    sql.sql,
    undo.undo,
    verify.verify,
    operations.operations,
    rate_limit.rate_limit,
    credentials_check.credentials,
    login.login,
    init.init,
    examples.examples,
    store.store,
    worker.worker,
    submit.submit,
    export.export,
    forget.forget,
    sandbox.sandbox,
    demo.demo,
    completion.completion,
):
    commands.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        arguments: the command line without the program's name; None: that of this process.

    Returns:
        The exit code (interface.md §4).
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    output.prepare_streams()
    is_help = not {"-h", "--help", "--version"}.isdisjoint(given)
    try:
        _refuse_bytes(given)
        exit_code = commands.main(given, prog_name="bulk", standalone_mode=False, obj=tuple(given))
        return exit_code if isinstance(exit_code, int) else 0
    except SystemExit as end:
        if output.is_unread() and is_help:
            output.give_up_stdout()  # click ends with 1 where nobody reads the help to its end
            return 0
        return errors.exit_code_of(end, is_json=_is_json(given))
    except OSError as error:
        if is_help and not isinstance(error, BrokenPipeError):  # click itself prints the help
            return errors.exit_code_of(output.unwritable(error))
        return errors.exit_code_of(error, is_json=_is_json(given))
    except BaseException as error:  # noqa: BLE001 - the one place where an error becomes an exit code
        return errors.exit_code_of(error, is_json=_is_json(given))


def _refuse_bytes(given: Sequence[str]) -> None:
    """Refuse arguments that are not UTF-8: paths and queries are written into files that are."""
    for place, argument in enumerate(given, 1):
        if not is_text(argument):
            raise UsageError(f"argument {place}: {argument!r} is not UTF-8: write it, or name the file, in UTF-8")


def _is_json(given: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, even if click can't read it."""
    return "--json" in given or "--format=json" in given or ("--format", "json") in pairwise(given)
