"""The page for the fleet over many large runs: how soon it answers, how far it is behind, what it costs the run.

    python -m benchmarks.serve [--runs N] [--items N] [--live-items N] [--rounds N]

The runs are written through the ledger, in this process, the first few of them; the others are copies. The server is
the command, in a process of its own. What a live run loses is told by its processor time for each item, with and
without five pages that ask as the page does: time on the wall depends on what else the machine does.
"""

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import Cost, Spread, environment, row
from benchmarks.throughput import CASES, Ours
from bulk.clock import Clock
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Finished, Record, RunIdentity
from bulk.model import ErrorCode, ItemError, OutcomeKind
from bulk.status import JobStatus, RunStatus

NOW = 1_795_248_000.0
GROUP, WRITTEN = 20_000, 4
LIST_MS, SEARCH_MS, BEHIND_S, LOST, MEMORY_MB = 300.0, 300.0, 1.0, 0.02, 200.0
PAGES = 5
ASKS, SHOWN = 40, 100
clock = Clock()


def write_run(run_dir: Path, items: int, seed: int) -> None:
    """A run of `items` items, one in thirty of which failed."""
    identity = RunIdentity(
        name=f"migration-{seed}",
        base_url="https://code.example.com/api/v3",
        vendor="service",
        manifest_digest="a" * 64,
        items_digest="b" * 64,
        jobs=(("readmes", "readme.get", items),),
    )
    with Ledger.open(run_dir, identity, now=NOW) as ledger:
        for first in range(0, items, GROUP):
            ledger.commit([Record(0, finished(index, seed)) for index in range(first, min(items, first + GROUP))])
        job = JobStatus(name="readmes", operation="readme.get", items=items, outcomes={})
        last = RunStatus(name=identity.name, state="complete", at=NOW + 100 + seed, started_at=NOW, jobs=(job,))
        ledger.finish(1, "", last)


def finished(index: int, seed: int) -> Finished:
    code = {0: ErrorCode.NOT_FOUND, 1: ErrorCode.FORBIDDEN}.get(index % 60)
    wrong = ItemError(code, f"service-{index % 977:06d} is closed", 404, 1) if code is not None else None
    return Finished(
        job="readmes",
        index=index,
        id=None,
        item={"owner": f"team-{index % 40}", "repo": f"service-{index * 7919 % 10**6:06d}-api", "path": "README.md"},
        outcome=OutcomeKind.SUCCEEDED if wrong is None else OutcomeKind.FAILED,
        http_status=200 if wrong is None else 404,
        attempts=1,
        started_at=NOW + index / 10_000,
        elapsed_ms=41.7,
        request_id=f"{(index * 2654435761 + seed) % 2**40:010X}",
        result=None if wrong is not None else {"name": "README.md", "size": 3072, "sha": "a" * 40},
        error=wrong,
    )


@dataclass(frozen=True)
class Server:
    """`bulk serve`, and who asks it."""

    pid: int
    port: int
    key: str

    def get(self, path: str, tag: str = "") -> tuple[float, Any, str]:
        """How long an answer took (milliseconds), what it says, and its tag."""
        headers = {"Authorization": f"Bearer {self.key}", "If-None-Match": tag}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        started = time.perf_counter()
        connection.request("GET", f"/api{path}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        took_ms = (time.perf_counter() - started) * 1000
        connection.close()
        assert answer.status in (200, 304), (path, answer.status, body[:200])
        return took_ms, json.loads(body) if body else None, answer.getheader("ETag", "")

    def cpu_s(self) -> float:
        """Processor time that it has used (seconds)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> tuple[float, float]:
        """Its own memory, and all that it shows, files that are mapped included (MB)."""
        found = {}
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, _, rest = line.partition(":")
            found[name] = int(rest.split()[0]) / 1024
        return found["Private_Clean"] + found["Private_Dirty"] - found.get("Private_Hugetlb", 0), found["Rss"]


@contextlib.contextmanager
def serving(folder: Path, cache: Path) -> Iterator[Server]:
    environ = {**environment(), "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "bulk", "serve", "--port", "0", "--runs", str(folder), "--read-only"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        url, _, key = address.partition("/#key=")
        try:
            yield Server(process.pid, int(url.rpartition(":")[2]), key)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def spread(milliseconds: Sequence[float]) -> tuple[str, float]:
    """Half and 99% of them, in words; the latter."""
    ordered = sorted(milliseconds)
    worst = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"half {statistics.median(ordered):.0f} ms, 99% {worst:.0f} ms", worst


def lists(server: Server, runs: int, items: int) -> None:
    first_ms, told, _ = server.get("/runs")
    assert len(told["runs"]) == runs, told
    said, worst = spread([server.get(f"/runs?turn={turn}")[0] for turn in range(ASKS)])
    what = f"list of {runs} runs of {items:,} items"
    row(what, f"{said}; the first {first_ms:.0f} ms", f"below {LIST_MS:g} ms", worst < LIST_MS)
    paths = [f"/runs/run-0/items?outcome=failed&code=forbidden&after=0:{items - 9_000 - turn}" for turn in range(ASKS)]
    said, worst = spread([server.get(path)[0] for path in paths])
    row("page of a filter, near the end of the run", said, f"below {LIST_MS:g} ms", worst < LIST_MS)


def searches(server: Server, items: int, cache: Path) -> None:
    started = time.perf_counter()
    while server.get("/runs/run-0/items?q=nothing-such")[1]["indexed"] < 1:
        pass
    index_s = time.perf_counter() - started
    size = sum(path.stat().st_size for path in cache.rglob("*") if path.name in ("text", "rows"))
    row("search: making the index, once", f"{index_s:.1f} s, {size / items:.0f} bytes an item")
    needles = (
        ("q=service-{n:06d}", "a name"),
        ("q={n:06d}", "a number"),
        ("q=service", "what all hold"),
        ("q=nothing-such-{n}", "what none holds"),
        ("q=team-7&outcome=failed&code=forbidden", "with a rare filter"),
        ("q=closed&outcome=succeeded", "what only others hold"),
        ("q=not_found&outcome=failed&code=forbidden", "what only others hold, with a rare filter"),
    )
    every = []
    for pattern, what in needles:
        took, before_s = [], server.cpu_s()
        for turn in range(ASKS):
            path = "/runs/run-0/items?" + pattern.format(n=turn * 24_631 % 10**6)
            took.append(searched(server, f"{path}&turn={turn}"))
        every += took
        cpu_ms = (server.cpu_s() - before_s) / ASKS * 1000
        print(f"  search for {what}: {spread(took)[0]}, {cpu_ms:.0f} ms of a processor", flush=True)
    said, worst = spread(every)
    row(f"search of a run of {items:,} items", said, f"below {SEARCH_MS:g} ms", worst < SEARCH_MS)


def searched(server: Server, path: str) -> float:
    """How long the page has to ask until it has a hundred hits, or all (milliseconds)."""
    took, hits, after = 0.0, 0, ""
    while True:
        milliseconds, page, _ = server.get(f"{path}&after={after}")
        assert page["indexed"] == 1
        took, hits, after = took + milliseconds, hits + len(page["rows"]), page["next"]
        if not after or hits >= SHOWN:
            return took


class Watchers:
    """Pages that are open: each asks as the page does, once a second, and every five seconds for the plots."""

    def __init__(self, server: Server, pages: int) -> None:
        self._server, self._is_over = server, threading.Event()
        self.ages_s: list[float] = []
        self._threads = [threading.Thread(target=self._watch, args=(number,)) for number in range(pages)]

    def __enter__(self) -> "Watchers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _watch(self, number: int) -> None:
        self._is_over.wait(number / len(self._threads))
        tag, turn = "", 0
        while not self._is_over.wait(1.0):
            try:
                _, told, tag = self._server.get("/runs/run", tag)
                if told is not None and told["run"]["state"] == "running" and told["run"]["status"]:
                    at = datetime.fromisoformat(told["run"]["status"]["at"]).timestamp()
                    self.ages_s.append(clock.now() - at)
                if turn % 5 == 0:
                    self._server.get("/runs/run/plots")
            except AssertionError:
                tag = ""  # the run has not begun
            turn += 1


def live(items: int, rounds: int) -> None:
    """Runs with and without pages that look, in turns."""
    alone: list[Cost] = []
    watched: list[Cost] = []
    ages: list[float] = []
    shares: list[float] = []
    with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
        folder = Path(name)
        ours = Ours(folder, base_url, CASES["reads"], items)
        with serving(folder, folder / "served") as server:
            ours.run()  # the machine is warm
            for turn in range(rounds):
                for is_watched in (False, True) if turn % 2 else (True, False):
                    if is_watched:
                        before_s = server.cpu_s()
                        with Watchers(server, PAGES) as watchers:
                            watched.append(ours.run())
                        shares.append((server.cpu_s() - before_s) / watched[-1].took_s)
                        ages += watchers.ages_s
                    else:
                        alone.append(ours.run())
                print(f"  {alone[-1].took_s:.1f} s alone, {watched[-1].took_s:.1f} s watched", flush=True)
    said, _ = spread([age * 1000 for age in ages])
    behind = sorted(ages)[int(len(ages) * 0.99)]
    row(f"page of a live run, {len(ages)} looks: behind it", said, f"at most {BEHIND_S:g} s", behind <= BEHIND_S)

    def ratio(of: Callable[[Cost], float]) -> Spread:
        return Spread(tuple(of(mine) / of(other) for mine, other in zip(watched, alone, strict=True)))

    cpu, wall = ratio(lambda cost: cost.cpu_s), ratio(lambda cost: cost.took_s)
    row(
        f"{PAGES} pages open: processor time of the run for an item, {items:,} items",
        f"{cpu.text(3)} of that without",
        f"at most {1 + LOST:g}",
        cpu.median <= 1 + LOST,
    )
    row(f"{PAGES} pages open: time of the run", f"{wall.text(3)} of that without")
    row(f"{PAGES} pages open: processor time of the page's server", f"{statistics.median(shares):.1%} of a core")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--live-items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
        folder = Path(name)
        started = time.perf_counter()
        for number in range(given.runs):
            place = folder / "runs" / f"run-{number}"
            if number < WRITTEN:
                write_run(place, given.items, number)
            else:
                shutil.copytree(folder / "runs" / f"run-{number % WRITTEN}", place)
        print(f"  {given.runs} runs were written in {time.perf_counter() - started:.0f} s", flush=True)
        with serving(folder / "runs", folder / "cache") as server:
            lists(server, given.runs, given.items)
            searches(server, given.items, folder / "cache")
            for number in range(given.runs):
                server.get(f"/runs/run-{number}")
                server.get(f"/runs/run-{number}/plots")
            own, all_of_it = server.memory_mb()
            row(
                "memory of the page's server after all of it",
                f"{own:.0f} MB, {all_of_it:.0f} MB with mapped files",
                f"below {MEMORY_MB:g} MB",
                all_of_it < MEMORY_MB,
            )
    live(given.live_items, given.rounds)


if __name__ == "__main__":
    main()
