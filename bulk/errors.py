"""Every error that Bulk raises on purpose, with the exit code that ends the command.

A call that the platform refuses is a value (`model.Outcome`); these are for the user's input, the environment and
stops.

    BulkError
    ├── UsageError                 2  the command line can't be used
    ├── ManifestError              2  the manifest or its items can't be used: a list of flaws, nothing was sent
    ├── CredentialMissing          2  the place where a token should be has none
    ├── BudgetTooSmall             2  a budget that the run needs has room for nothing: nothing was sent
    ├── RunStopped                 3  stopped early with work left; resumable
    ├── CredentialRefused          4  the platform refused a credential, or its token has ended; resumable
    ├── RunDirectoryError          5  foreign, changed, in use, damaged or not writable
    ├── GateClosed                 8  the run was not approved: nothing was sent
    └── Interrupted          130/143  SIGINT or SIGTERM; resumable

Exit codes 1 and 6 are not errors: the run is complete, and its report says which items did not succeed.
Source: interface.md §4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bulk.exit_codes import ExitCode

ANOTHER_RUN = "begin another run: bulk run MANIFEST --run-dir NEW"
"""The way out of a run directory that can't be used, for whatever command has met it."""

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The errors of msgspec for bytes that are not JSON of the expected type: not UTF-8 and too deep are errors apart."""


class BulkError(Exception):
    """Base class of all these errors.

    Attributes:
        exit_code: the exit code of the command.
    """

    exit_code: int = ExitCode.UNSUCCESSFUL


class UsageError(BulkError):
    """The command line can't be used; the message names the option and the way out."""

    exit_code = ExitCode.UNUSABLE


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong with a manifest or an items file.

    Attributes:
        path: the file as the user named it; `<stdin>` for standard input.
        line: line in the file, counted from 1; 0: the whole file is meant.
        field: dotted name of the field, such as `committer.email`; empty: no single field is meant.
        message: what is wrong and what was expected, without the place.
    """

    path: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


class ManifestError(BulkError):
    """The manifest can't be run. Nothing has been sent when this is raised, unless the error is about a policy that
    fails on what an audit has read.

    Attributes:
        flaws: up to 50 flaws, in the order of the files.
        more: number of further flaws that were found and are not listed (count).
    """

    exit_code = ExitCode.UNUSABLE

    def __init__(self, flaws: Sequence[Flaw], more: int = 0) -> None:
        self.flaws, self.more = tuple(flaws), more
        lines = [str(flaw) for flaw in self.flaws]
        if more:
            lines.append(f"and {more:,} more")
        super().__init__("\n".join(lines))


class CredentialMissing(BulkError):
    """The source of a credential is missing or can't be read. Nothing has been sent with it."""

    exit_code = ExitCode.UNUSABLE


class BudgetTooSmall(BulkError):
    """The platform's limit, less `limits.reserve`, allows no request of the run. Nothing but `GET /rate_limit` has been
    sent."""

    exit_code = ExitCode.UNUSABLE


class RunStopped(BulkError):
    """The run stopped early and work is left: a limit, an unreachable platform, a full disk. The run can be resumed."""

    exit_code = ExitCode.STOPPED


class CredentialRefused(BulkError):
    """The platform answered 401, or the token has ended: everything that uses this credential stopped. The run can be
    resumed.

    Attributes:
        credential: name of the credential in the manifest, never the token; empty where the message alone names it.
        is_gone: the App of the credential is not installed any more: items that need it fail.
    """

    exit_code = ExitCode.CREDENTIAL_REFUSED

    def __init__(self, credential: str, message: str, *, is_gone: bool = False) -> None:
        super().__init__(message)
        self.credential, self.is_gone = credential, is_gone


class RunDirectoryError(BulkError):
    """The run directory belongs to another manifest, is in use, is damaged or can't be written."""

    exit_code = ExitCode.RUN_DIRECTORY


class GateClosed(BulkError):
    """The run needs an approval that it did not get. Nothing was sent, and no run directory was left."""

    exit_code = ExitCode.GATE_CLOSED


class Interrupted(BulkError):
    """SIGINT or SIGTERM ended the run. The run can be resumed."""

    def __init__(self, signal_name: str, exit_code: int) -> None:
        super().__init__(f"interrupted by {signal_name}")
        self.exit_code = exit_code
