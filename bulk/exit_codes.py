"""The exit codes of commands, and the one function that decides the exit code of a run. Source: interface.md §4."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class ExitCode(IntEnum):
    """The exit codes of commands. Scripts of users depend on these numbers."""

    DONE = 0
    UNSUCCESSFUL = 1
    UNUSABLE = 2
    STOPPED = 3
    CREDENTIAL_REFUSED = 4
    RUN_DIRECTORY = 5
    UNKNOWN = 6
    DIFFERENT = 7
    GATE_CLOSED = 8
    BUG = 70  # `EX_SOFTWARE` of sysexits.h, so that it differs from all codes with a meaning of their own
    INTERRUPTED = 130
    TERMINATED = 143


COMPLETE = frozenset((ExitCode.DONE, ExitCode.UNSUCCESSFUL, ExitCode.UNKNOWN))
"""Exit codes of a run that went to its end, whatever the outcomes."""
SIGNALLED = frozenset((ExitCode.INTERRUPTED, ExitCode.TERMINATED))
"""Exit codes of a run that a signal stopped."""
RESUMABLE = SIGNALLED | {ExitCode.STOPPED, ExitCode.CREDENTIAL_REFUSED, ExitCode.BUG}
"""Exit codes that say that work is left, with which the same command goes on."""
STOPPED_EARLY = RESUMABLE | {ExitCode.UNUSABLE}
"""Exit codes of a run that began and has work left: a budget that it needs may have no room for it, which is 2."""

MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        ExitCode.DONE: "every item succeeded or was unchanged",
        ExitCode.UNSUCCESSFUL: "the run is complete, and some items failed or were skipped",
        ExitCode.UNUSABLE: "the command line or the manifest can't be used, or a credential is missing; "
        "nothing was sent",
        ExitCode.STOPPED: "stopped early with work left",
        ExitCode.CREDENTIAL_REFUSED: "a credential was refused",
        ExitCode.RUN_DIRECTORY: "the run directory can't be used",
        ExitCode.UNKNOWN: "the run is complete, and the outcome of some items is unknown",
        ExitCode.DIFFERENT: "something has changed, or a policy is violated",
        ExitCode.GATE_CLOSED: "the run was not approved; nothing was sent",
        ExitCode.INTERRUPTED: "interrupted by SIGINT",
        ExitCode.TERMINATED: "interrupted by SIGTERM",
    }
)


def of_audit(run: int, *, is_different: bool) -> int:
    """Return the exit code of an audit: the first of 4, 3, 6, 7, 1, 0 that applies.

    Args:
        run: exit code of the audit's run.
        is_different: something changed or a policy is violated, and the manifest says that this counts.
    """
    return ExitCode.DIFFERENT if is_different and run in (ExitCode.DONE, ExitCode.UNSUCCESSFUL) else run


def of_run(outcomes: Mapping[str, int], superseded: int, *, is_complete: bool, stopped_with: int | None) -> int:
    """Return the exit code of a run: 4 or 3 if work is left, else 6, else 1, else 0.

    Args:
        outcomes: number of items by outcome (counts).
        superseded: skipped items that were superseded, which don't count (count).
        is_complete: every item has an outcome.
        stopped_with: the exit code of what stopped the run: 3, 4, 130, 143; None: not known.
    """
    from bulk.model import OutcomeKind  # imported late, because it would slow down `bulk --help`

    if not is_complete:
        return stopped_with or ExitCode.STOPPED
    if outcomes.get(OutcomeKind.UNKNOWN, 0):
        return ExitCode.UNKNOWN
    if outcomes.get(OutcomeKind.FAILED, 0) or outcomes.get(OutcomeKind.SKIPPED, 0) > superseded:
        return ExitCode.UNSUCCESSFUL
    return ExitCode.DONE
