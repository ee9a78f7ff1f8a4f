"""Feels how long a turn of this process's own event loop takes, so that no more is in flight than it can serve in time.

A turn serves every answer that is there: where this process is what everything waits for, a thousand in flight only
make each turn longer and everything late, timers, pacing and Ctrl-C as well. Looked at with the answers, not with a
timer of its own: a run that waits is left alone. Processor time is measured, not time: other users of the machine don't
count.
"""

import anyio
import anyio.lowlevel

from bulk.clock import Clock
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit

EVERY = 32
"""One turn is measured for so many answers (count)."""


class LoopLoad:
    """One task (`run`), for ever; `beat` for each answer."""

    def __init__(self, concurrency: AdaptiveLimit, clock: Clock) -> None:
        self._concurrency, self._clock = concurrency, clock
        self._beats = 0
        self._due = anyio.Event()

    def beat(self) -> None:
        """Note that an answer came."""
        self._beats += 1
        if self._beats >= EVERY:
            self._beats = 0
            self._due.set()

    async def run(self) -> None:
        """Measure a turn whenever one is due, and tell."""
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
