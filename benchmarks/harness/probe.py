"""Runs a command of `bulk` in this process and tells how late its event loop was: a timer every 2 ms, beside the work.

    python benchmarks/harness/probe.py OUT.json run manifest.yaml --run-dir somewhere

OUT.json has the lateness (ms) at the median, the 99th and 99.9th percentile and its maximum, and how many looks there
were. A loop that is held for a second misses many looks: they count as if each had been made when it was due.
`held_…`: the processor time of the loop's own thread between two looks (ms), which tells on a machine that does other
things beside whether it was this program that held the loop. `kept_…`: the lateness without the time in which the
system gave the core to somebody else (ms, Linux): what is left of it is what other threads of this program have cost.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

EVERY_S = 0.002
STEP_MS, STEPS = 0.1, 200_000


class Probe:
    """Attributes:
    seen: how often the loop was late by so many steps of 0.1 ms; the last one counts what was later. held: as `seen`,
        of processor time of its thread between two looks. kept: as `seen`, without the wait for a core.
    """

    def __init__(self) -> None:
        self.seen = [0] * (STEPS + 1)
        self.held = [0] * (STEPS + 1)
        self.kept = [0] * (STEPS + 1)
        self.most_ms = 0.0
        self._due = self._used_s = self._queued_s = 0.0

    def start(self) -> None:
        """Begin to look; within the running loop."""
        self._loop = asyncio.get_running_loop()
        self._due, self._used_s, self._queued_s = time.monotonic() + EVERY_S, time.thread_time(), _queued_s()
        self._loop.call_later(EVERY_S, self._look)

    def _look(self) -> None:
        now, used_s, queued_s = time.monotonic(), time.thread_time(), _queued_s()
        waited_s, self._queued_s = queued_s - self._queued_s, queued_s
        self.held[min(STEPS, int((used_s - self._used_s) * 1_000 / STEP_MS))] += 1
        self._used_s = used_s
        self.most_ms = max(self.most_ms, (now - self._due) * 1_000)
        while self._due <= now:
            late_s = now - self._due
            self.seen[min(STEPS, int(late_s * 1_000 / STEP_MS))] += 1
            self.kept[min(STEPS, max(0, int((late_s - waited_s) * 1_000 / STEP_MS)))] += 1
            self._due += EVERY_S
        self._loop.call_later(self._due - now, self._look)

    @staticmethod
    def below(steps: list[int], share: float) -> float:
        """The delay that this share of the looks did not exceed (ms)."""
        wanted, seen = share * sum(steps), 0
        for step, count in enumerate(steps):
            seen += count
            if seen >= wanted:
                return round(step * STEP_MS, 1)
        return STEPS * STEP_MS

    def figures(self) -> dict[str, float]:
        """What OUT.json holds."""
        return {
            "looks": sum(self.seen),
            "p50_ms": self.below(self.seen, 0.5),
            "p99_ms": self.below(self.seen, 0.99),
            "p999_ms": self.below(self.seen, 0.999),
            "held_p99_ms": self.below(self.held, 0.99),
            "kept_p99_ms": self.below(self.kept, 0.99),
            "most_ms": round(self.most_ms, 1),
        }


def _queued_s() -> float:
    """Return how long this thread was ready to run and had no core, since it began (seconds); 0 where nobody says."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def main() -> int:
    """Run the command with the probe in its loop."""
    from bulk.cli import app, event_loop

    out, sys.argv = Path(sys.argv[1]), ["bulk", *sys.argv[2:]]
    probe, plain = Probe(), event_loop.run

    def run(function: Callable[[], Awaitable[T]]) -> T:
        async def probed() -> T:
            probe.start()
            return await function()

        return plain(probed)

    event_loop.run = run
    try:
        return app.main()
    finally:
        out.write_text(json.dumps(probe.figures()))


if __name__ == "__main__":
    sys.exit(main())
