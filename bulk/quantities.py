"""Durations (`90s`, `15m`, `2h`, `30d`, seconds) and shares (`50`, `5%`), the same in manifests and on command lines.

A reader takes what YAML or the command line gave and raises ValueError with what was expected. Source: interface.md §2.
"""

import re
from dataclasses import dataclass
from typing import TypeAlias

from bulk.flaws import shown

Given: TypeAlias = object
"""A scalar as YAML or the command line gave it."""

_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([smhd]?)")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_S = 366 * 86400.0
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_COUNT = re.compile(r"[0-9]{1,15}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")

MOST_PRIORITY = 1_000_000
"""Highest priority of a job; minus that is the lowest."""


@dataclass(frozen=True, slots=True)
class Share:
    """A count (`50`) or a share (`5%`) of something.

    Attributes:
        count: absolute number; None when it is a share.
        fraction: 0.05 for `5%`; None when it is a count.
    """

    count: int | None = None
    fraction: float | None = None

    def of(self, whole: int) -> int:
        """Return the count that this means for `whole` items (rounded up)."""
        if self.count is not None:
            return self.count
        return -int(-whole * (self.fraction or 0.0) // 1)

    @property
    def given(self) -> int | str:
        """The count or the share as a manifest writes it."""
        return f"{_number((self.fraction or 0.0) * 100, 6)}%" if self.count is None else self.count


NOTHING = Share(count=0)


def duration_s(given: Given) -> float:
    """Return the seconds that `given` means, more than 0 and at most 366 days.

    Raises:
        ValueError: `given` is not a duration; the message says what was expected.
    """
    expected = "expected a duration such as 90s, 15m, 2h, 30d, or seconds"
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError(f"{expected}, got {kind_of(given)}")
    found = _DURATION.fullmatch(str(given).strip())
    if found is None:
        raise ValueError(f"{expected}, got {shown(str(given))}")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError(f"{expected}, more than 0 and at most 366d, got {shown(str(given))}")
    return seconds


def duration_text(seconds: float) -> str:
    """Return the text of a duration, in the form that `duration_s` reads."""
    return f"{_number(seconds, 9)}s"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def share(given: Given) -> Share:
    """Return a count or a share of something.

    Raises:
        ValueError: `given` is neither; the message says what was expected.
    """
    expected = "expected a count such as 50 or a share such as 5%"
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise ValueError(f"{expected}, got {kind_of(given)}")
    text = str(given).strip()
    if _COUNT.fullmatch(text):
        return Share(count=int(text))
    found = _SHARE.fullmatch(text)
    if found is None or float(found[1]) > 100:
        raise ValueError(f"{expected}, got {shown(text)}")
    return Share(fraction=float(found[1]) / 100)


def reserve(given: Given) -> Share:
    """Return a count or a share of a budget that is left to others.

    Raises:
        ValueError: `given` is neither, or is the whole budget.
    """
    found = share(given)
    if found.fraction is not None and found.fraction >= 1.0:
        raise ValueError("expected a count or a share below 100%, which would leave nothing to run with")
    return found


def count(given: Given, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`.

    Raises:
        ValueError: `given` is no such number; the message says what was expected.
    """
    expected = f"expected a whole number from {least:,} to {most:,}"
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise ValueError(f"{expected}, got {kind_of(given)}")
    text = str(given).strip()
    if not _COUNT.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{expected}, got {shown(text)}")
    return int(text)


def priority(given: Given) -> int:
    """Return the priority of a job; higher goes first.

    Raises:
        ValueError: `given` is not a priority; the message says what was expected.
    """
    expected = f"expected a whole number from -{MOST_PRIORITY:,} to {MOST_PRIORITY:,}"
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise ValueError(f"{expected}, got {kind_of(given)}")
    text = str(given).strip()
    if not _INTEGER.fullmatch(text) or abs(int(text)) > MOST_PRIORITY:
        raise ValueError(f"{expected}, got {shown(text)}")
    return int(text)


def kind_of(value: object) -> str:
    """Return `a string`, `a list`, …: what a value is, for messages."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
