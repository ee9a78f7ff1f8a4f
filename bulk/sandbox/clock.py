"""The sandbox's only clock, and the only place that knows how instants are written.

All code that asks for the time, waits, or formats an instant uses this module. Instants are UTC epoch seconds (float).
A test or a simulation passes a clock of its own; nothing else in this package reads the system's time.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """The clock that a sandbox needs."""

    def now(self) -> float:
        """Return the present instant (UTC epoch seconds)."""

    async def sleep(self, seconds: float) -> None:
        """Come back after `seconds` (>= 0)."""


class SystemClock:
    """The machine's clock and the running event loop's timers."""

    def now(self) -> float:
        """Return the present instant (UTC epoch seconds)."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Come back after `seconds` (>= 0)."""
        await asyncio.sleep(seconds)


def iso(instant: float) -> str:
    """Return an instant as the platform writes it: `YYYY-MM-DDTHH:MM:SSZ`."""
    return datetime.fromtimestamp(int(instant), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_exact(instant: float) -> str:
    """Return an instant with microseconds, as the journal writes it."""
    return datetime.fromtimestamp(instant, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def parse_iso(text: str) -> float:
    """Return the instant that an ISO 8601 text names (UTC epoch seconds); a text without an offset is UTC.

    Raises:
        ValueError: the text is not an ISO 8601 timestamp with a date and a time, or `iso` could not write the instant.
    """
    if "T" not in text.upper():
        raise ValueError(f"{text!r} has no time of day")
    found = datetime.fromisoformat(text)
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except OverflowError:
        raise ValueError(f"{text!r} is not between the years 1 and 9999") from None


def http_date(instant: float) -> str:
    """Return an instant as HTTP headers write it: `Sat, 21 Nov 2026 08:00:00 GMT`."""
    return _http_date(int(instant))


@lru_cache(maxsize=1_000)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)


def parse_http_date(text: str) -> float | None:
    """Return the instant that an HTTP date names (UTC epoch seconds); None where the text is not one."""
    try:
        found = parsedate_to_datetime(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
