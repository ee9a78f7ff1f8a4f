"""The only clock. Nothing else in Bulk asks the system for the time or sleeps; a simulation passes another clock."""

import time
from datetime import UTC, datetime
from functools import lru_cache, partial

import anyio

_MILLISECONDS = tuple(f".{count:03d}Z" for count in range(1_000))


class Clock:
    """Local wall time, monotonic time, processor time and sleeping, all in seconds."""

    now = staticmethod(time.time)
    """This machine's idea of UTC (epoch seconds). It may jump; waits never rely on it."""

    monotonic = staticmethod(time.monotonic)
    """Seconds that never jump, on the same scale as the event loop's own time."""

    elapsed = staticmethod(partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)))
    """As `monotonic`, but this clock also goes on while the machine sleeps, if the system has such a clock."""

    processor = staticmethod(time.thread_time)
    """Processor time that the calling thread has used (seconds); none in a simulation."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of monotonic time; at least one turn of the event loop."""
        await anyio.sleep(max(0.0, seconds))


def iso_utc(at: float) -> str:
    """Return `2026-11-21T08:00:00.123Z` for UTC epoch seconds."""
    second = int(at)
    micros = round((at - second) * 1e6)
    if 0 <= micros < 1_000_000:  # nearly always; the text of the second is kept, because many times share it
        return _iso_second(second) + _MILLISECONDS[micros // 1_000]
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


@lru_cache(maxsize=64)
def _iso_second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().removesuffix("+00:00")
