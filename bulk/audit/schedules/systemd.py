"""A timer and its service: a missed night is caught up once, and nights begin at a moment that stays the same."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from bulk.audit.schedules.audited import LONGEST_S, Audited, Emitted
from bulk.audit.schedules.times import Times

_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


def emit(times: Times, audited: Audited, left_out: Sequence[datetime]) -> Emitted:
    """Return the two units.

    Args:
        left_out: moments to begin at on days on which the clock leaves the time out: systemd would start nothing.
    """
    calendars = "\n".join(f"OnCalendar={each}" for each in (*calendars_of(times), *_made_up(left_out, times.zone)))
    timer = f"""[Unit]
Description=Audit {_escaped(audited.name)}

[Timer]
{calendars}
Persistent=true
RandomizedDelaySec=300
FixedRandomDelay=true

[Install]
WantedBy=timers.target
"""
    command = audited.command(audited.program, str(audited.manifest), str(audited.history))
    service = f"""[Unit]
Description=Audit {_escaped(audited.name)}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
WorkingDirectory={_escaped(str(audited.folder))}
EnvironmentFile=-/etc/bulk/{audited.unit}.env
ExecStart={" ".join(map(_quoted, command))}
TimeoutStartSec={LONGEST_S}
KillSignal=SIGINT
SuccessExitStatus=7
"""
    secrets = ", ".join(audited.secrets) or "nothing"
    return Emitted(
        {f"{audited.unit}.timer": timer, f"{audited.unit}.service": service},
        [
            f"/etc/bulk/{audited.unit}.env, which only root can read, has to hold {secrets}",
            "exit 7, something changed or is violated, does not make the unit fail; audit.notify tells people",
        ],
    )


def calendars_of(times: Times) -> Iterator[str]:
    """Yield expressions for `OnCalendar`: two where either the day of the month or that of the week is enough."""
    clock = f"{_list(times.hours)}:{_list(times.minutes)}:00 {times.zone}"
    week = "" if times.weekdays is None else ",".join(_WEEKDAYS[day] for day in times.weekdays) + " "
    if times.is_any_day:
        yield f"*-{_list(times.months)}-{_list(times.days)} {clock}"
        yield f"{week}*-{_list(times.months)}-* {clock}"
    else:
        yield f"{week}*-{_list(times.months)}-{_list(times.days)} {clock}"


def _made_up(left_out: Sequence[datetime], zone: str) -> Iterator[str]:
    for at in left_out:
        yield f"{at:%Y-%m-%d %H:%M}:00 {zone}"


def _list(values: tuple[int, ...] | None) -> str:
    return "*" if values is None else ",".join(f"{value:02}" for value in values)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    if word and all(letter.isalnum() or letter in "-_./=:,@+" for letter in word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
