"""Where a request's microseconds go: CPU time of `bulk run` by stage and by function, from samples.

The process is interrupted every half millisecond of its CPU time; a sample counts for the stage of the innermost frame
that belongs to one: what SQLite does for the ledger is the ledger's, what the event loop does by itself nobody's.

    python -m benchmarks.stages [--items 50000] [--case reads|stored|writes] [--profile FILE]

--profile: also write every function with its own share and that with what it calls.
"""

import argparse
import collections
import contextlib
import os
import resource
import signal
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

from benchmarks.harness.measuring import CLIENT_CORE, ROOT, row

EVERY_S = 0.0005
STAGES = tuple(sorted(folder.name for folder in (ROOT / "bulk").iterdir() if (folder / "__init__.py").is_file()))
"""The folders of the engine."""
OTHERS = (("jobs", "jobs/"), ("benchmarks", "benchmarks/"))
CASES = ("reads", "stored", "unchanged", "writes")


class Samples:
    """Stacks that were met, by what they say."""

    def __init__(self) -> None:
        self.total = 0
        self.by_stage: collections.Counter[str] = collections.Counter()
        self.own: collections.Counter[str] = collections.Counter()
        self.all: collections.Counter[str] = collections.Counter()

    def take(self, _number: int, frame: FrameType | None) -> None:
        """One sample: of the main thread where it runs Python, else of the thread that writes the ledger."""
        self.total += 1
        others = [other for ident, other in sys._current_frames().items() if ident != threading.get_ident()]
        busy = [other for other in others if "/ledger/" in other.f_code.co_filename or "sqlite" in str(other.f_code)]
        chosen = frame
        if _is_waiting(frame) and busy:
            chosen = busy[0]
        names, stage = [], ""
        while chosen is not None:
            path = chosen.f_code.co_filename
            names.append(f"{_short(path)}:{chosen.f_code.co_qualname}")
            stage = stage or _stage_of(path)
            chosen = chosen.f_back
        self.by_stage[stage or "event loop"] += 1
        if names:
            self.own[names[0]] += 1
        self.all.update(set(names))


def _is_waiting(frame: FrameType | None) -> bool:
    """Whether the main thread is in the event loop itself: polling, or in its C code."""
    return frame is None or frame.f_code.co_filename.endswith(("asyncio/runners.py", "selectors.py"))


def _short(path: str) -> str:
    for root in ("site-packages/", f"{ROOT}/", "lib/python"):  # the environment lies in the root
        if root in path:
            return path.partition(root)[2]
    return path


def _stage_of(path: str) -> str:
    short = _short(path)
    if short.startswith("aiohttp/"):
        return "aiohttp"
    if short.startswith("bulk/"):
        folder = short.split("/")[1]
        return folder if folder in STAGES else "bulk"
    return next((name for name, start in OTHERS if short.startswith(start)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--case", choices=CASES, default="reads")
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    from benchmarks.harness.canned_platform import canned_platform
    from benchmarks.throughput import CASES as ALL
    from benchmarks.throughput import Ours

    with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
        ours = Ours(Path(folder), base_url, ALL[given.case], given.items)
        if ALL[given.case].is_again:
            ours.run()
        os.sched_setaffinity(0, {CLIENT_CORE})
        samples, cpu_s = run(ours.command())
    each_us = cpu_s / given.items * 1e6
    lines = [f"{given.case}: {each_us:.1f} µs of CPU time for each of {given.items:,} items", ""]
    for stage, count in samples.by_stage.most_common():
        lines.append(f"{count / samples.total * each_us:8.1f} µs  {count / samples.total:5.1%}  {stage}")
    print("\n".join(lines))
    shown = ", ".join(
        f"{stage} {count / samples.total * each_us:.0f}" for stage, count in samples.by_stage.most_common(8)
    )
    row(f"CPU time of an item by stage: {given.case}", f"{each_us:.0f} µs, sampled: {shown}")
    if given.profile is not None:
        given.profile.write_text("\n".join([*lines, "", *_functions(samples, each_us)]) + "\n")


def _functions(samples: Samples, each_us: float) -> list[str]:
    lines = ["own µs   with what it calls   function"]
    for name, count in samples.own.most_common(70):
        whole = samples.all[name] / samples.total * each_us
        lines.append(f"{count / samples.total * each_us:6.1f}   {whole:6.1f}                {name}")
    return lines


def run(command: list[str]) -> tuple[Samples, float]:
    """`bulk` in this process, sampled: the samples and its CPU time (seconds)."""
    from bulk.cli import main as bulk

    samples = Samples()
    signal.signal(signal.SIGPROF, samples.take)
    os.environ["BULK_TOKEN"] = "0123456789"
    sys.argv = ["bulk", *command]
    before = resource.getrusage(resource.RUSAGE_SELF)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            bulk()
    except SystemExit as end:
        if end.code:
            sys.exit(f"bulk ended with {end.code}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return samples, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
