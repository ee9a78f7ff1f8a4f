"""What deciding costs, from one lane to a million, and that a lane with nine tenths of all items holds up nobody.

    python -m benchmarks.lanes [ITEMS]

The scheduler of a run over the index on disk that the check of a real manifest made (`contents.put`, one repository for
each lane); 64 items are in flight at a time, and no request is made: every item takes one step, so that the order of
what is offered decides, and nothing else. CPU time for each item; the time of the others in steps.
"""

import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.measuring import row
from bulk.bundle.streams import LaneIndex
from bulk.check.checking import check
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import succeeded
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.queues import Work
from bulk.schedule.scheduler import Scheduler

ITEMS = 1_000_000
WORKERS = 64
MOST_RATIO = 3.0
MOST_US = 40.0
HOT_MOST = 1.1


def write_items(path: Path, items: int, lane_of: Callable[[int], int]) -> None:
    """Writes of one file each."""
    with path.open("w") as file:
        file.writelines(
            f'{{"owner":"acme","repo":"repo-{lane_of(number)}","path":"f{number}","content":"eA==","message":"m"}}\n'
            for number in range(items)
        )


class Offered:
    """A checked manifest of writes, and its scheduler."""

    def __init__(self, folder: Path, items: int, lane_of: Callable[[int], int]) -> None:
        write_items(folder / "items.jsonl", items, lane_of)
        job = {"operation": "contents.put", "items": "items.jsonl"}
        manifest = {"version": 1, "platform": {"base_url": "http://127.0.0.1:9/api/v3"}, "jobs": {"files": job}}
        (folder / "manifest.yaml").write_text(json.dumps(manifest))
        started = time.process_time()
        checked = check(read_manifest(folder / "manifest.yaml", Overrides(), {}), folder)
        self.checking_s = time.process_time() - started
        self.index = LaneIndex(checked, folder)
        self.progress = JobProgress(items, bytearray((items + 7) // 8))
        self.scheduler = Scheduler(checked.manifest.jobs, [self.progress], lambda _: None, self.index, WORKERS)

    def play(self, noted: Callable[[Work, int], None] = lambda _, __: None) -> float:
        """Offer every item, `WORKERS` in flight, each for one step; returns the CPU time (seconds)."""
        one, done = self.scheduler, succeeded({})
        flying: deque[tuple[int, Work]] = deque()
        step = 0
        started = time.process_time()
        one.begin()
        (queue,) = one.queues.values()
        while not one.is_complete:
            while len(flying) < WORKERS and (work := one.take(queue)) is not None:
                flying.append((step + 1, work))
            step = flying[0][0]
            while flying and flying[0][0] == step:
                _, work = flying.popleft()
                noted(work, step)
                one.ended(work, done, 1)
        self.index.close()
        return time.process_time() - started


def cost(items: int, lanes: int) -> float:
    """CPU microseconds to decide on one item, its reading included."""
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
        offered = Offered(Path(folder), items, lambda number: number % lanes)
        taken_us = offered.play() / items * 1e6
        print(f"{lanes:12,} lanes  {taken_us:8.1f} us/item  checked {items / offered.checking_s:10,.0f}/s", flush=True)
    return taken_us


def others_end(items: int, *, is_hot: bool) -> int:
    """When the last item of the other lanes ends (steps), beside a lane with nine times as many, or alone."""
    lane_of: Callable[[int], int] = lambda number: 0 if number % 10 else 1 + number // 10 % 1_000  # noqa: E731
    count = items
    if not is_hot:
        count, lane_of = items // 10, lambda number: 1 + number % 1_000
    last = 0

    def noted(work: Work, step: int) -> None:
        nonlocal last
        if work.lane is not None and work.lane.label != "acme/repo-0":
            last = step

    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
        Offered(Path(folder), count, lane_of).play(noted)
    return last


def main() -> None:
    """Measure, tell."""
    items = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else ITEMS
    costs = {lanes: cost(items, min(lanes, items)) for lanes in (1, 1_000, 100_000, 1_000_000)}
    ratio = max(costs.values()) / costs[1_000]
    text = ", ".join(f"{lanes:,}: {us:.1f} µs" for lanes, us in costs.items())
    row(
        f"scheduling cost of an item against lanes ({items:,} items)",
        f"{text}; most {ratio:.2f} times that of 1,000",
        f"at most {MOST_RATIO:g} times",
        ratio <= MOST_RATIO,
    )
    alone, beside = others_end(items // 5, is_hot=False), others_end(items // 5, is_hot=True)
    print(f"others alone {alone:,} steps, beside a lane with 90% {beside:,}", flush=True)
    row(
        f"the others beside one lane with 90% of {items // 5:,} items",
        f"{beside / alone:.3f} of their time alone",
        f"at most {HOT_MOST:g}",
        beside <= alone * HOT_MOST,
    )


if __name__ == "__main__":
    main()
