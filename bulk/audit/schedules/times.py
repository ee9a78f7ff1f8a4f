"""Cron expressions: checked, asked for the next times, and turned into the sets that other forms are written from.

They are read by cronsim, which is right at changes of clock: a time that happens twice counts once, and one that is
left out counts when the clock has gone on.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from bulk.errors import UsageError
from bulk.flaws import shown
from bulk.manifest.hours import check_zone

SUNDAY = 7
"""The second number of Sunday, beside 0."""

_NAMES = re.compile("JUL|WED")
_STEP_OF_ONE = re.compile(r"(?:(?<=,)|^)\w+/\w*")

NEXT = 5
"""Times that are shown (count)."""

YEARS = 10
"""How far ahead days are looked for on which the clock changes (years)."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times that a cron expression stands for.

    Attributes:
        expression: five fields, separated by one space.
        zone: name of the time zone.
        minutes, hours, days, months, weekdays: values that fit; Sunday is 0. None: all of them.
        is_any_day: whether days of the month and of the week are both given: one of them is then enough.
    """

    expression: str
    zone: str
    minutes: tuple[int, ...] | None
    hours: tuple[int, ...] | None
    days: tuple[int, ...] | None
    months: tuple[int, ...] | None
    weekdays: tuple[int, ...] | None
    is_any_day: bool

    def after(self, at: datetime) -> Iterator[datetime]:
        """Yield the times after `at`, which has a time zone."""
        from cronsim import CronSim

        yield from CronSim(self.expression, at.astimezone(ZoneInfo(self.zone)))

    def next_times(self, at: datetime) -> list[datetime]:
        """Return the next five times."""
        return list(islice(self.after(at), NEXT))


def times_of(expression: str, zone: str) -> Times:
    """Read a cron expression.

    Raises:
        UsageError: the expression is not one of cron, some scheduler does not know it, or there is no such zone.
    """
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise UsageError("schedules need cronsim: pip install 'bulkops[audit]'") from None
    _check_zone(zone)
    fields = expression.split()
    flaw = _flaw_of(fields)
    if flaw:
        raise UsageError(f"--cron {shown(expression)}: {flaw}")
    try:
        found = CronSim(" ".join(fields), datetime(2026, 1, 1))  # noqa: DTZ001 - only its fields are read
    except CronSimError as error:
        raise UsageError(f"--cron {shown(expression)}: {str(error).lower()}") from None
    if SUNDAY in found.weekdays and not fields[4].startswith("*"):  # not every scheduler knows Sunday as 7
        fields[4] = ",".join(map(str, sorted({day % 7 for day in found.weekdays if isinstance(day, int)})))
    return Times(
        expression=" ".join(fields),
        zone=zone,
        minutes=_some(found.minutes, 60),
        hours=_some(found.hours, 24),
        days=_some(found.days, 31) if fields[2] != "*" else None,
        months=_some(found.months, 12),
        weekdays=_some({day % 7 for day in found.weekdays if isinstance(day, int)}, 7) if fields[4] != "*" else None,
        is_any_day=fields[2] != "*" and fields[4] != "*",
    )


def _check_zone(zone: str) -> None:
    try:
        check_zone(zone)
    except ValueError as error:
        raise UsageError(f"--tz {error}") from None


def _flaw_of(fields: Sequence[str]) -> str:
    """Return the part of an expression that schedulers lack or read differently; empty where they agree."""
    if len(fields) != 5:
        return "expected five fields (minute hour day month weekday), as in '30 2 * * *'"
    _, _, day, _, weekday = fields
    if re.search("[LW#]", _NAMES.sub("", " ".join(fields).upper())):
        return "L, W and # are not known to every scheduler"
    found = next((each[0] for field in fields if (each := _STEP_OF_ONE.search(field))), "")
    if found:
        return f"{found}: a step of one value is not known to every scheduler; give a range, as in 5-59/15, or a list"
    if "*" not in (day, weekday) and (day.startswith("*") or weekday.startswith("*")):
        return (
            "some schedulers want both the day of the month and the weekday to fit where one begins with *, others one "
            "of them; give a list instead, as in 1,3,5"
        )
    return ""


@dataclass(frozen=True, slots=True)
class OddNights:
    """Times of the next years on days on which the clock changes, as they are meant: each once.

    Attributes:
        left_out: times that the clock leaves out, as the moments at which it has gone on.
        repeated: times that come twice, as the first moment of each.
    """

    left_out: tuple[datetime, ...]
    repeated: tuple[datetime, ...]


def odd_nights(times: Times, at: datetime) -> OddNights:
    """Return the times of the next `YEARS` after `at` that not every scheduler gets right."""
    left_out: list[datetime] = []
    repeated: list[datetime] = []
    if times.hours is None:
        return OddNights((), ())
    for midnight in _days_of_change(ZoneInfo(times.zone), at):
        for found in times.after(midnight - timedelta(seconds=1)):
            if found.hour not in times.hours or (times.minutes is not None and found.minute not in times.minutes):
                if found not in left_out:  # it may be the first moment of the next day
                    left_out.append(found)
            elif found.date() != midnight.date():
                break
            elif found.utcoffset() != found.replace(fold=1 - found.fold).utcoffset():
                repeated.append(found)
    return OddNights(tuple(left_out), tuple(repeated))


def _days_of_change(zone: ZoneInfo, at: datetime) -> Iterator[datetime]:
    """Yield the midnight with which each day begins on which the clock may change."""
    noon = at.astimezone(zone).replace(hour=12, minute=0, second=0, microsecond=0, fold=0)
    days: dict[datetime, None] = {}
    for _ in range(YEARS * 366):
        later = noon + timedelta(days=1)
        if noon.utcoffset() != later.utcoffset():
            days |= dict.fromkeys((noon.replace(hour=0), later.replace(hour=0)))
        noon = later
    yield from days


def _some(values: object, whole: int) -> tuple[int, ...] | None:
    found = tuple(sorted(value for value in values if isinstance(value, int))) if isinstance(values, set) else ()
    return None if len(found) == whole else found
