"""A line of a crontab."""

import shlex

from bulk.audit.schedules.audited import Audited, Emitted
from bulk.audit.schedules.times import Times


def emit(times: Times, audited: Audited) -> Emitted:
    """Return the lines; a percent sign is special in a crontab."""
    command = f"cd {shlex.quote(str(audited.folder))} && {audited.line}".replace("%", r"\%")
    return Emitted(
        {f"{audited.unit}.cron": f"CRON_TZ={times.zone}\n{times.expression} {command}\n"},
        [
            "cron does not catch up a night that was missed while the machine was off",
            "not every cron knows CRON_TZ; where it does not, the times are the machine's own",
            f"{', '.join(audited.secrets) or 'no variable'} has to be in the environment of cron",
        ],
    )
