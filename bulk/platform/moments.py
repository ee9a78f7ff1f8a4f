"""Moments and waits as platforms write them: HTTP dates, ISO 8601, and counts of seconds. Pure, and never raises.

The specification names the end of a window in epoch seconds, and shows no header for it. Platforms and gateways write
it in milliseconds, as the seconds that are left, or as a date, too, and `Retry-After` as well. Each of these tells the
same moment, so each is understood.
Source: specification.md, Rate limit status; open-points.md (limits); failures.md rows 31, 34.
"""

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

MOST_WAIT_S = 3_700.0
"""Longest wait that the platform can ask for: a window of an hour and some skew (failures.md row 34)."""
DAY_S = 86_400.0
"""A number of seconds below this counts from now, and moments further apart are not of one run (seconds)."""
MILLISECONDS_FROM = 10**11
"""A number from here on counts milliseconds: as seconds it would lie beyond the year 5000."""
MOMENTS_FROM = 10**9
"""A number from here on may be a moment, and no wait (UTC epoch seconds)."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{0,9})?")
_WAIT = re.compile(r"([+-]?[0-9]{1,15}(?:\.[0-9]{0,9})?) ?(?:s|secs?|seconds?)?", re.IGNORECASE | re.ASCII)
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}.{0,20}", re.ASCII)


@lru_cache(maxsize=256)
def http_date(text: str) -> float | None:
    """Return the moment that an HTTP date names (UTC epoch seconds); None if the text is not a date."""
    # many answers carry the same second, and parsing it takes longer than all else here
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def any_date(text: str) -> float | None:
    """Return the moment that an HTTP date or an ISO 8601 timestamp names (UTC epoch seconds); None if it is neither."""
    if _ISO.fullmatch(text) is None:
        return http_date(text)
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def window_end(told: object, date: float | None) -> int:
    """Return the end of a window that a header or a body names (UTC epoch seconds, >= 0); 0 where none can be read.

    Args:
        told: text, or a number of JSON.
        date: when the answer was made (UTC epoch seconds, whole); None: it does not say.
    """
    if type(told) is str and len(told) == 10 and told.isdecimal() and told.isascii():  # as nearly always
        return int(told)
    seconds: float | None = None
    if isinstance(told, str):
        text = told.strip()
        seconds = float(text) if _NUMBER.fullmatch(text) else any_date(text)
    elif isinstance(told, int | float) and not isinstance(told, bool) and abs(told) < 1e15:
        seconds = float(told)
    if seconds is None or seconds <= 0.0:
        return 0
    if seconds >= MILLISECONDS_FROM:
        seconds /= 1000.0
    elif seconds < DAY_S:
        if date is None:
            return 0
        seconds += date  # both are cut to whole seconds: the end may be a little later, which costs nothing
    return math.ceil(seconds)


def wait_s(text: str, now: float) -> float | None:
    """Return how long a `Retry-After` asks to wait (seconds, 0..3700); None where it can't be understood.

    Args:
        now: platform time (UTC epoch seconds); nan: it is not known, and moments can't be understood.
    """
    text = text.strip()
    found = _WAIT.fullmatch(text)
    if found is None:
        if text.isdecimal() and text.isascii():
            return MOST_WAIT_S
        moment = any_date(text)
        return _within(moment - now) if moment is not None and math.isfinite(now) else None
    seconds = float(found[1])
    if seconds < MOMENTS_FROM:
        return _within(seconds)
    moment = seconds / 1000.0 if seconds >= MILLISECONDS_FROM else seconds
    if math.isnan(now):
        return None
    return _within(moment - now) if abs(moment - now) < DAY_S else MOST_WAIT_S


def _within(seconds: float) -> float:
    return min(MOST_WAIT_S, max(0.0, seconds))
