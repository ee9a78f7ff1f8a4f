"""Ends a command: every error becomes a message on standard error and an exit code here, and nowhere else.

A traceback is never shown: that of a bug goes to a file of its own, and to the log at the level debug.
"""

import errno
import logging
import os
import resource
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import click

from bulk.cli import output
from bulk.errors import BulkError, Interrupted, RunDirectoryError, RunStopped, UsageError
from bulk.exit_codes import RESUMABLE, STOPPED_EARLY, ExitCode
from bulk.storage.names import is_text

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
_CLOSED = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP)
_OF_RUNS = ("ledger.db", "origin.json", "audit.json")
"""Files that a command looks for where it is told that a run, or the history of an audit, is. Their names are not
imported, because each error would load the ledger and the audits."""
_MORE_MEMORY = "give this process more memory (ulimit -v, the limit of its container)"
_NO_MEMORY = f"there is not enough memory: {_MORE_MEMORY}; nothing that was recorded is lost"

log = logging.getLogger(__name__)


def exit_code_of(error: BaseException, *, is_json: bool = False) -> int:
    """Tell the user about `error` and return the exit code that it means.

    Args:
        is_json: print the error on standard output too, as an object (`error_data.ErrorsData`), for a program.
    """
    try:
        return _exit_code_of(error, is_json=is_json)
    except MemoryError:  # too little may be left to search a message for secrets; this one holds none
        os.write(2, f"bulk: {_NO_MEMORY}\n".encode())
        return ExitCode.STOPPED


def _exit_code_of(error: BaseException, *, is_json: bool) -> int:
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1
        case click.ClickException():
            return _misused(error, is_json=is_json)
        case click.exceptions.Exit():
            return error.exit_code
        case click.Abort(__cause__=EOFError() as cause):
            # a full disk has cut the bytecode of a module short, and Click takes that for Ctrl-D
            return _bug(cause, is_json=is_json)
        case click.Abort() | KeyboardInterrupt():
            return _told(Interrupted("SIGINT", ExitCode.INTERRUPTED), is_json=is_json)
        case BulkError():
            return _told(error, is_json=is_json)
        case BrokenPipeError():
            output.give_up_stdout()
            return 0
        case _:
            told = shortage(error)
            return _bug(error, is_json=is_json) if told is None else _told(told, is_json=is_json)


def shortage(error: BaseException) -> BulkError | None:
    """Return an error that says what this machine lacks, if that caused `error`: memory, threads, open files, space, a
    usable name of a file or folder, the permission to open it, the current folder. Otherwise return None."""
    for leaf in _leaves(error):
        if _is_out_of_memory(leaf):
            return RunStopped(_NO_MEMORY)
        if isinstance(leaf, RuntimeError) and str(leaf) == "can't start new thread":
            return RunStopped(f"no thread can be started: raise the limit of processes (ulimit -u), or {_MORE_MEMORY}")
        if isinstance(leaf, OSError) and leaf.errno in (errno.EMFILE, errno.ENFILE):
            return RunStopped("too many open files: raise the limit (ulimit -n), or lower limits.concurrency")
        if isinstance(leaf, OSError) and leaf.errno in _NO_SPACE:
            return RunDirectoryError(f"{leaf.filename or 'standard output or a file'}: {leaf.strerror}")
        if isinstance(leaf, OSError) and leaf.errno in _CLOSED and leaf.filename is not None:
            return _closed_path(leaf)
        if isinstance(leaf, RuntimeError) and str(leaf).startswith("Symlink loop"):  # what pathlib raises
            return UsageError(f"{leaf}: it can't be opened; name another path")
        if isinstance(leaf, UnicodeEncodeError) and (named := _not_utf8(leaf.object)):
            return UsageError(named)
        if isinstance(leaf, FileNotFoundError) and "temporary directory" in str(leaf.strerror):
            return UsageError("no folder for temporary files can be written: set TMPDIR to one that can")
        if isinstance(leaf, FileNotFoundError) and leaf.filename is None and not _has_folder():
            return UsageError("the folder of this command has been deleted: change into another one")
    return None


def _closed_path(error: OSError) -> BulkError:
    """Return an error that says that the system refuses to look at a path that the user named: a folder on the way is
    closed to this user, or a name is too long."""
    path = Path(os.fsdecode(error.filename))
    kind = RunDirectoryError if path.name in _OF_RUNS else UsageError
    return kind(f"{path} can't be used: {error.strerror}; correct that, or name another place")


def _not_utf8(text: str) -> str:
    """Return what comes from outside, is not UTF-8, and is in `text`, which could not be encoded; empty where nothing
    is."""
    if _has_folder() and not is_text(folder := str(Path.cwd())):
        return f"the path of this folder is not UTF-8: {folder!r}: work in another one, or rename it"
    for name, value in os.environ.items():
        if value in text and not is_text(value):
            return f"the variable {name} is not UTF-8: {value!r}: give it another value"
    return ""


def _has_folder() -> bool:
    """Return whether the current folder still exists."""
    try:
        return bool(Path.cwd())
    except FileNotFoundError:
        return False


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory has run out. Where it is limited (`ulimit -v`), the interpreter now and then loses its own
    error and raises a SystemError instead."""
    if isinstance(error, SystemError):
        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group and in the groups inside it; `error` itself where it is not a group."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for inner in error.exceptions:
        yield from _leaves(inner)


def say_how_to_go_on(command: str, exit_code: int, *, has_begun: bool = False) -> None:
    """Make `command` the last line on standard error, where the exit code means that work is left.

    Args:
        has_begun: the exit code is that of a run, and not of a command that was refused.
    """
    if exit_code in (STOPPED_EARLY if has_begun else RESUMABLE):
        is_closed = command.startswith("bulk approve ")
        does = "opens the wave that waits for it" if is_closed else "continues it, and does nothing twice"
        output.say(f"\nWork is left. This command {does}:")
        output.say(command)


def _told(error: BulkError, *, is_json: bool) -> int:
    if is_json:
        from bulk.cli import error_data

        error_data.print_quietly(error_data.of_error(error))
    for line in str(error).splitlines() or [type(error).__name__]:
        output.say(f"bulk: {line}")
    return error.exit_code


def _misused(error: click.ClickException, *, is_json: bool) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        output.say(error.format_message())
        return 2
    if is_json:
        from bulk.cli import error_data

        error_data.print_quietly(error_data.of_misuse(error))
    if isinstance(error, click.UsageError) and error.ctx is not None:
        output.say(error.ctx.get_usage())
        output.say(f"Try '{error.ctx.command_path} --help' for help.\n")
    output.say(f"bulk: {error.format_message()}")
    return 2


def _bug(error: BaseException, *, is_json: bool) -> int:
    log.debug("a bug ended the command", exc_info=error)
    summary = output.redacted("".join(traceback.format_exception_only(error)).strip().splitlines()[-1])
    text = output.redacted("".join(traceback.format_exception(error)))
    try:
        descriptor, path = tempfile.mkstemp(prefix="bulk-bug-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        where = f"its traceback is in {path}"
    except OSError as reason:
        where = f"its traceback could not be written ({reason.strerror}); --log-level debug shows it"
    message = f"this is a bug in Bulk: {summary}: {where}"
    if is_json:
        from bulk.cli import error_data

        error_data.print_quietly(error_data.of_bug(message))
    output.say(f"bulk: {message}")
    return ExitCode.BUG
