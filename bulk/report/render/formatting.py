"""Writes counts, rates, durations and moments for people, the same on every face. Pure; local time.

Nothing here raises for a number that makes no sense: what a platform sends may be anything.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from bulk.clock import iso_utc

_DAY_S = 86_400.0


def count(number: int) -> str:
    """Return a number as text, such as `12,340`."""
    return f"{number:,}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with what it counts, such as `1 item` and `12,340 items`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def span(least: int, most: int) -> str:
    """Return `12`, or `12 to 340` where the two counts differ."""
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def requests(least: int, most: int) -> str:
    """Return a span of requests, such as `12 to 340 requests`."""
    return f"{span(least, most)} {'request' if most == 1 else 'requests'}"


def rate(per_second: float) -> str:
    """Return `412/s`, `8.3/s`, or `12/min` for a rate below one a second."""
    if not math.isfinite(per_second) or per_second <= 0:
        return "0/s"
    if per_second >= 10:
        return f"{per_second:,.0f}/s"
    if per_second >= 1:
        return f"{per_second:.1f}/s"
    return f"{per_second * 60:.1f}/min" if per_second < 1 / 6 else f"{per_second * 60:.0f}/min"


def duration(seconds: float) -> str:
    """Return `41 ms`, `1.4 s`, `41 s`, `4 min 12 s`, `1 h 12 min`, `2 d 3 h`; `?` for a value that is not finite."""
    if not math.isfinite(seconds):
        return "?"
    seconds = max(0.0, seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two(whole, 60, "min", 1, "s")
    return _two(whole, 3600, "h", 60, "min") if whole < _DAY_S else _two(whole, int(_DAY_S), "d", 3600, "h")


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    first, rest = divmod(whole, large)
    second = rest // small
    return f"{first:,} {large_name} {second} {small_name}" if second else f"{first:,} {large_name}"


def moment(at: float, now: float) -> str:
    """Return the local time of `at` as short as it can be understood at `now` (both UTC epoch seconds).

    `14:05:07` within two minutes, `14:05` today, `Sat 14:05` within six days, else `2026-11-21 14:05`; `?` where the
    calendar has no such day.
    """
    try:
        then, today = (datetime.fromtimestamp(each, UTC).astimezone() for each in (at, now))
    except (ValueError, OverflowError, OSError):
        return "?"
    if abs(at - now) < 120:
        return then.strftime("%H:%M:%S")
    if then.date() == today.date():
        return then.strftime("%H:%M")
    return then.strftime("%a %H:%M") if abs(at - now) < 6 * _DAY_S else then.strftime("%Y-%m-%d %H:%M")


def iso(at: float) -> str | None:
    """Return `2026-11-21T08:00:00.123Z` for UTC epoch seconds; None where the calendar has no such day."""
    try:
        return iso_utc(at)
    except (ValueError, OverflowError, OSError):
        return None


def percent(part: int, whole: int) -> str:
    """Return `41%`; `100%` only for the whole and `0%` only for nothing at all."""
    if whole <= 0 or part <= 0:
        return "0%"
    if part >= whole:
        return "100%"
    return f"{min(99, max(1, round(100 * part / whole)))}%"


def outcomes(counts: Mapping[str, int], order: Iterable[str]) -> str:
    """Return `118 succeeded, 2 failed`: the outcomes that occurred, in `order`."""
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in order if counts.get(kind))
