"""Errors for programs: what a command that was asked for JSON prints on standard output where it could not do its work.

People read the same on standard error. The codes are stable; messages are for people.
"""

import contextlib
import re

import click
import msgspec

from bulk import errors
from bulk.cli import output
from bulk.errors import BulkError, Flaw, ManifestError
from bulk.exit_codes import ExitCode

CODES: dict[type[BulkError], str] = {
    errors.UsageError: "usage",
    errors.CredentialMissing: "credential_missing",
    errors.BudgetTooSmall: "budget_too_small",
    errors.RunStopped: "run_stopped",
    errors.CredentialRefused: "credential_refused",
    errors.RunDirectoryError: "run_directory",
    errors.Interrupted: "interrupted",
}
REMEDIES = {
    "missing": "Add the field.",
    "unknown": "`bulk operations NAME` lists the fields of an operation; docs/interface.md those of a manifest.",
    "invalid": "Correct it, then check again.",
    "usage": "The option --help of the command shows what it takes.",
    "credential_missing": "Put the token where the manifest, or the option, says that it is.",
    "budget_too_small": "Lower limits.reserve, or wait for the next window.",
    "run_stopped": "`bulk resume RUN` goes on where it stopped.",
    "credential_refused": "Renew the token, then `bulk resume RUN` goes on.",
    "run_directory": "Correct what the message names, or begin another run: bulk run MANIFEST --run-dir NEW.",
    "interrupted": "`bulk resume RUN` goes on where it stopped.",
    "bug": "Report it with the file that the message names; the run can be resumed.",
}
"""For each code the way out, where the message does not say it itself."""


class ErrorData(msgspec.Struct, frozen=True, kw_only=True):
    """One error.

    Attributes:
        code: of an error in a file `missing`, `unknown` or `invalid`; else `usage`, `credential_missing`,
            `budget_too_small`, `run_stopped`, `credential_refused`, `run_directory`, `interrupted` or `bug`.
        file: the file as the user named it, `<stdin>` for standard input; None where no file is meant.
        line: its line, from 1; None where the whole file is meant, or no file.
        field: dotted name of the field; None where no one field is meant.
        message: what is wrong and what was expected, for people.
        remedy: the way out, for people.
    """

    code: str
    file: str | None = None
    line: int | None = None
    field: str | None = None
    message: str
    remedy: str


class ErrorsData(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command could not do its work.

    Attributes:
        errors: up to 50 errors, in the order of the files.
        more: further errors that were found and are not listed (count).
        exit_code: what the command exits with.
    """

    errors: tuple[ErrorData, ...]
    more: int = 0
    exit_code: int


def of_error(error: BulkError) -> ErrorsData:
    """Return an error that Bulk raised on purpose, as data."""
    if isinstance(error, ManifestError):
        flaws = tuple(_of_flaw(flaw) for flaw in error.flaws)
        return ErrorsData(errors=flaws, more=error.more, exit_code=error.exit_code)
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "usage")
    return _one(code, str(error), error.exit_code)


def of_misuse(error: click.ClickException) -> ErrorsData:
    """Return a command line that can't be read, as data."""
    return _one("usage", error.format_message(), ExitCode.UNUSABLE)


def of_bug(message: str) -> ErrorsData:
    """Return a bug in Bulk, as data."""
    return _one("bug", message, ExitCode.BUG)


def print_quietly(data: ErrorsData) -> None:
    """Print `data` on standard output; where that fails, the error is told on standard error alone."""
    with contextlib.suppress(OSError):
        output.out_json(data)


def _one(code: str, message: str, exit_code: int) -> ErrorsData:
    error = ErrorData(code=code, message=message, remedy=_remedy(code, message))
    return ErrorsData(errors=(error,), exit_code=exit_code)


def _of_flaw(flaw: Flaw) -> ErrorData:
    kind = re.match(r"(?:'[^']*': |\$\{[^}]*\}: )?(is missing|unknown)", flaw.message)
    code = "invalid" if kind is None else {"is missing": "missing"}.get(kind[1], kind[1])
    return ErrorData(
        code=code,
        file=flaw.path,
        line=flaw.line or None,
        field=flaw.field or None,
        message=flaw.message,
        remedy=_remedy(code, flaw.message),
    )


def _remedy(code: str, message: str) -> str:
    """Return the way out of an error: by the style of our messages, the text behind the first semicolon. Where there is
    none, it is that of `REMEDIES`; of a missing field, it says to add the field."""
    said = message.partition("; ")[2].strip()
    if code == "missing" and said.startswith("expected"):
        return f"Add the field: {said}."
    return said[:1].upper() + said[1:].rstrip(".") + ("" if said.endswith("?") else ".") if said else REMEDIES[code]
