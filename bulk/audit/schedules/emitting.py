"""The files that a scheduler needs for one audit."""

import re
from collections.abc import Iterator
from datetime import datetime

from bulk.audit.schedules import actions, crontab, kubernetes, systemd
from bulk.audit.schedules.audited import Audited, Emitted
from bulk.audit.schedules.times import OddNights, Times, odd_nights
from bulk.errors import UsageError
from bulk.flaws import shown

FORMS = ("systemd", "cron", "kubernetes", "actions")

_OF_LINES = ("systemd", "cron")
"""Forms in which a word can't go on in the next line."""

_NOT_IN_LINES = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def emit(form: str, times: Times, audited: Audited, at: datetime) -> Emitted:
    """Return the files for the scheduler `form`, one of `FORMS`; `at`: now.

    Raises:
        UsageError: a path or an option can't stand in these files.
    """
    if form in _OF_LINES:
        _refuse_breaks(form, audited)
    match form:
        case "systemd":
            return systemd.emit(times, audited, odd_nights(times, at).left_out)
        case "cron":
            found = crontab.emit(times, audited)
        case "kubernetes":
            found = kubernetes.emit(times, audited)
        case _:
            return actions.emit(times, audited, at)  # which is in UTC
    return Emitted(found.files, [*found.warnings, *_warnings(odd_nights(times, at), times.zone)])


def _refuse_breaks(form: str, audited: Audited) -> None:
    for word in (str(audited.folder), *audited.command(audited.program, str(audited.manifest), str(audited.history))):
        if _NOT_IN_LINES.search(word):
            raise UsageError(f"--emit {form}: {shown(word)} holds a character that no line of it can have; rename it")


def _warnings(odd: OddNights, zone: str) -> Iterator[str]:
    """Yield warnings of the days on which not every scheduler starts the audit exactly once."""
    way_out = "take a time at which the clock never changes"
    if odd.left_out:
        first = odd.left_out[0].date()
        yield f"the clock of {zone} leaves the time out on {first}: no audit may start that night; {way_out}"
    if odd.repeated:
        first = odd.repeated[0].date()
        yield f"the time comes twice on {first} in {zone}: two audits may start that night; {way_out}"
