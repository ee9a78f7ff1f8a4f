"""Hours of each day in which another part of every budget is left to others: `limits.hours` (interface.md §2)."""

import re
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from bulk import quantities
from bulk.flaws import shown, unknown_name
from bulk.manifest.fields import Fields
from bulk.quantities import Share

_SPAN = re.compile(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})\s+(\S+)")
_DAY = 24 * 60
_NO_ZONES = frozenset({"localtime", "Factory"})
"""Names that stand for another time zone on each machine."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of every day, from `first` until before `behind`; over midnight if `behind` is not later.

    Attributes:
        first, behind: local time in `zone` (minutes after midnight).
        reserve: part of every bucket that is left to others then.
    """

    first: int
    behind: int
    zone: str
    reserve: Share

    @property
    def text(self) -> str:
        """The hours as a manifest writes them."""
        first, behind = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (self.first, self.behind))
        return f"{first}-{behind} {self.zone}"

    def holds(self, at: float) -> bool:
        """Return whether a time (UTC epoch seconds) lies within these hours."""
        local = datetime.fromtimestamp(at, ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        if self.first < self.behind:
            return self.first <= minute < self.behind
        return minute >= self.first or minute < self.behind


def hours_of(part: Fields) -> tuple[Hours, ...]:
    """Return `hours` of a manifest's `limits`, with a flaw noted for each entry that can't be used."""
    found: list[Hours] = []
    given = part.inner("hours")
    for name in given.names():
        inner = given.inner(name)
        reserve = inner.scalar("reserve", None, quantities.reserve)
        if inner.is_object and "reserve" not in inner:
            inner.flaw("", "expected {reserve: 50%}")
        inner.finish()
        try:
            first, behind, zone = _span(name)
        except ValueError as error:
            given.flaw(name, str(error))
            continue
        if reserve is not None:
            found.append(Hours(first, behind, zone, reserve))
    given.finish()
    return tuple(found)


def _span(text: str) -> tuple[int, int, str]:
    expected = 'expected hours and a time zone such as "08:00-18:00 Europe/Berlin"'
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(expected)
    first, behind = (int(found[at]) * 60 + int(found[at + 1]) for at in (1, 3))
    if max(int(found[2]), int(found[4])) > 59 or first >= _DAY or behind > _DAY:
        raise ValueError(f"{expected}; times lie between 00:00 and 24:00")
    if first == behind % _DAY:
        raise ValueError(f"{expected}; these are all hours or none: use limits.reserve")
    check_zone(found[5])
    return first, behind, found[5]


def check_zone(zone: str) -> None:
    """Refuse a name that is no time zone, or that stands for another one on each machine.

    Raises:
        ValueError: the name is one of these; the message says which zone may be meant.
    """
    try:
        if zone not in _NO_ZONES:
            ZoneInfo(zone)
            return
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    known = available_timezones() - _NO_ZONES
    same = next((each for each in known if each.casefold() == zone.casefold()), "")
    why = f"unknown time zone; did you mean {same}?" if same else unknown_name(zone, known, "time zone")
    raise ValueError(f"{shown(zone)}: {why}")
