"""Measures how long a turn of the event loop takes, so that no more is in flight than this process can serve in time.

A turn serves every answer that is there. Where everything waits for this process, a thousand requests in flight only
make each turn longer and everything late, also timers, pacing and Ctrl-C. Answers set off the measurement, not a timer
of its own: a run that waits is left alone. Processor time is measured, not elapsed time: other users of the machine
don't count.
"""

import anyio
import anyio.lowlevel

from bulk.clock import Clock
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit

EVERY = 32
"""One turn is measured for this many answers (count)."""


class LoopLoad:
    """Measures the load of the event loop: one task runs `run` for ever; a `measure` is due once in `EVERY` answers."""

    def __init__(self, concurrency: AdaptiveLimit, clock: Clock) -> None:
        self._concurrency, self._clock = concurrency, clock
        self._due = anyio.Event()

    def measure(self) -> None:
        """Have the next turn measured."""
        self._due.set()

    async def run(self) -> None:
        """Measure a turn whenever one is due, and tell the adaptive limit."""
        clock = self._clock
        since, used_s = clock.monotonic(), clock.processor()
        while True:
            await self._due.wait()
            self._due = anyio.Event()
            await anyio.lowlevel.checkpoint()  # from here to the same place of the next turn
            before = clock.processor()
            await anyio.lowlevel.checkpoint()
            after, now = clock.processor(), clock.monotonic()
            if now > since:
                self._concurrency.turned(after - before, (after - used_s) / (now - since))
            since, used_s = now, after
