"""How long a run may take: `limits.max_duration`, which `bulk set` can change while it goes on."""

import math
from collections.abc import Callable

import anyio

from bulk.clock import Clock
from bulk.errors import BulkError, RunStopped


class TimeLimit:
    """Stops a run when its time is over; `run` is its task.

    Args:
        began_at: from when on it is counted (monotonic); None: from when `run` is called.
    """

    def __init__(self, clock: Clock, most_s: float | None, began_at: float | None = None) -> None:
        self._clock, self._most_s, self._began_at = clock, most_s, began_at
        self._changed = anyio.Event()

    def set(self, most_s: float | None) -> None:
        """Let the run take that long from its start on (seconds); None: for ever."""
        self._most_s = most_s
        self._changed.set()

    async def run(self, stop: Callable[[BulkError], None]) -> None:
        """Call `stop` when the time is over."""
        began = self._clock.monotonic() if self._began_at is None else self._began_at
        while True:
            self._changed = anyio.Event()
            most_s = self._most_s
            left_s = math.inf if most_s is None else began + most_s - self._clock.monotonic()
            if most_s is not None and left_s <= 0.0:
                return stop(RunStopped(f"limits.max_duration of {most_s:g} s is over"))
            with anyio.move_on_after(left_s):
                await self._changed.wait()
