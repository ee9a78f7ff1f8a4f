"""The error of a command that needs a run of its own to be complete, and whose run is not."""

import signal

from bulk.errors import BudgetTooSmall, CredentialRefused, Interrupted, RunStopped
from bulk.exit_codes import COMPLETE, SIGNALLED, ExitCode
from bulk.report.fold import Report


def refuse_unfinished(report: Report, words: str = "", way_out: str = "") -> None:
    """Raise an error with the exit code of the run if the run has work left.

    Args:
        words: what could not be done, if there is more to say than the reason of the run; way_out: how it can be done.

    Raises:
        BulkError: the run has work left.
    """
    if report.exit_code in COMPLETE:
        return
    if report.exit_code in SIGNALLED:
        raise Interrupted(signal.Signals(report.exit_code - 128).name, report.exit_code)
    told = f"{words}: {report.why}{way_out}" if words else report.why
    match report.exit_code:
        case ExitCode.CREDENTIAL_REFUSED:
            raise CredentialRefused("default", told)
        case ExitCode.UNUSABLE:
            raise BudgetTooSmall(told)
    raise RunStopped(told)
