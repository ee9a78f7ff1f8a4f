"""A large run of several workers, one of which is killed half-way: time, takeover, memory, and what the database holds.

    python -m benchmarks.cluster [ITEMS] [--case reads|writes] [--workers N] [--kill SHARE] [--lease SECONDS]

The platform gives canned answers, the store is a PostgreSQL of its own that survives a crash of the machine, and all of
them share this machine, so that the speed is not that of several machines. Claims: each item ends once; what the killed
worker held is another's within its lease, the grace and 2 s; no process of Bulk takes more than 200 MB; after `forget`
the database is about as large as before.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import environment, row
from benchmarks.throughput import CASES, TOKEN, Ours
from bulk.manifest.manifest import Limits
from bulk.store import address, schema
from bulk.store.connections import StoreConnection
from bulk.store.leases import GRACE_S
from bulk.store.server.private_server import Server

BULK = [sys.executable, "-m", "bulk"]
MARGIN_S, MOST_MB, KEPT_MB = 2.0, 200.0, 8.0
LOOK_S, PATIENCE_S = 0.05, 7_200.0


class Command:
    """A command of Bulk: how long it took, and the most memory that it had."""

    def __init__(self, *arguments: str) -> None:
        self._began = time.perf_counter()
        environ = {**environment(), "BULK_TOKEN": TOKEN}
        self.process = subprocess.Popen(
            [*BULK, *arguments], env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.took_s = self.peak_mb = 0.0

    def _read(self) -> None:
        assert self.process.stderr is not None
        self._said += self.process.stderr

    def ended(self, *allowed: int) -> str:
        """Wait for its end; returns what it printed."""
        assert self.process.stdout is not None
        printed = self.process.stdout.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self._reader.join()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.took_s, self.peak_mb = time.perf_counter() - self._began, usage.ru_maxrss / 1024
        assert self.process.returncode in allowed, (self.process.args, self.process.returncode, self._said[-5:])
        return printed.strip()


class Watch:
    """Looks into the store from outside."""

    def __init__(self, text: str) -> None:
        self._connection = psycopg.connect(text, autocommit=True, options="-c search_path=bulk")

    def number(self, query: str, *values: object) -> float:
        """The only figure of the only row."""
        row = self._connection.execute(query.encode(), values).fetchone()
        assert row is not None
        return float(row[0] or 0)

    def size_mb(self) -> float:
        """The whole database (MB)."""
        return self.number("SELECT pg_database_size(current_database())") / 1e6

    def ended(self) -> float:
        """Items with an outcome (count)."""
        return self.number("SELECT sum(items) FROM count")

    def held_by(self, pid: int) -> list[tuple[int, int]]:
        """Shards of a worker that works, with their epochs."""
        query = b"SELECT s.no, s.epoch FROM shard s JOIN worker w ON w.id = s.owner WHERE w.name LIKE %s AND NOT s.done"
        return self._connection.execute(query, (f"%-{pid}",)).fetchall()

    def taken_over(self, held: list[tuple[int, int]]) -> int:
        """How many of these somebody else has, or had (count)."""
        epochs: dict[int, int] = dict(self._connection.execute(b"SELECT no, epoch FROM shard").fetchall())
        return sum(epochs[no] > epoch for no, epoch in held)

    def until(self, condition: Callable[[], bool]) -> float:
        """Wait for it; returns how long that took (seconds)."""
        began = time.perf_counter()
        pause = threading.Event()
        while not condition():
            assert time.perf_counter() < began + PATIENCE_S, "waited too long"
            pause.wait(LOOK_S)
        return time.perf_counter() - began


@contextlib.contextmanager
def a_store() -> Iterator[str]:
    server = Server()
    server.start()
    try:
        with StoreConnection(address.read(server.store()), "benchmark") as store:
            schema.init(store)
        yield server.store()
    finally:
        server.remove()


def measure(given: argparse.Namespace) -> None:
    with a_store() as text, canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
        Ours(Path(folder), base_url, CASES[given.case], given.items)
        watch, manifest, items = Watch(text), str(Path(folder) / "manifest.yaml"), given.items
        sizes = {"before": watch.size_mb()}
        submitting = Command("submit", manifest, "--store", text, "--yes")
        name = submitting.ended(0)
        sizes["submitted"] = watch.size_mb()
        options = ("--store", text, "--base-url", base_url, "--lease", str(given.lease))
        workers = [Command("worker", *options) for _ in range(given.workers)]
        began = time.perf_counter()
        watch.until(lambda: watch.ended() >= items * given.kill)
        victim = workers.pop(0)
        held = watch.held_by(victim.process.pid)
        victim.process.kill()
        killed = time.perf_counter()
        first_s = watch.until(lambda: watch.taken_over(held) > 0) if held else 0.0
        watch.until(lambda: watch.taken_over(held) == len(held))
        last_s = time.perf_counter() - killed
        watch.until(lambda: watch.number("SELECT count(*) FROM run WHERE state = 'complete'") == 1)
        took_s = time.perf_counter() - began
        for each in workers:
            each.process.send_signal(signal.SIGTERM)
        for each in (victim, *workers):
            each.ended(0, -signal.SIGKILL)
        sizes["complete"] = watch.size_mb()
        run_dir = Path(folder) / "run"
        exporting = Command("export", name, "--store", text, "--run-dir", str(run_dir))
        exporting.ended(0)
        lines = run_dir / "results.jsonl"
        once = is_each_once(lines, items)
        forgetting = Command("forget", name, "--store", text)
        forgetting.ended(0)
        sizes["forgotten"] = watch.size_mb()
        tell(given, took_s, (len(held), first_s, last_s), sizes, once=once)
        tell_processes(
            items,
            {"submit": submitting, "killed worker": victim, "export": exporting, "forget": forgetting}
            | {f"worker {number + 2}": each for number, each in enumerate(workers)},
        )


def is_each_once(lines: Path, items: int) -> bool:
    """Whether each item has one line."""
    seen = bytearray(items)
    with lines.open("rb") as file:
        for line in file:
            seen[json.loads(line)["index"]] += 1
    return seen == b"\x01" * items


def tell(
    given: argparse.Namespace, took_s: float, takeover: tuple[int, float, float], sizes: dict[str, float], *, once: bool
) -> None:
    """Rows of what the run took."""
    items, (held, first_s, last_s) = given.items, takeover
    what = f"{items:,} {given.case}, {given.workers} workers, one killed at {given.kill:.0%}"
    most_s = given.lease + Limits().request_timeout_s + GRACE_S + MARGIN_S
    row(f"{what}: each item ends once", "yes" if once else "no", "yes", once)
    row(f"{what}: time", f"{took_s:.1f} s, {items / took_s:,.0f}/s")
    figure = f"{held} shards, the first after {first_s:.1f} s, the last after {last_s:.1f} s"
    row(f"{what}: taken over", figure, f"the first within {most_s:g} s", first_s <= most_s)
    grown = sizes["forgotten"] - sizes["before"]
    figure = ", ".join(f"{name} {size:.1f} MB" for name, size in sizes.items())
    row(f"{what}: database", figure, f"at most {KEPT_MB:g} MB more than before", grown <= KEPT_MB)


def tell_processes(items: int, commands: dict[str, Command]) -> None:
    """Rows of what each command took."""
    for name, command in commands.items():
        figure = f"{command.peak_mb:.0f} MB, {command.took_s:.1f} s"
        row(f"{name}, {items:,} items", figure, f"at most {MOST_MB:g} MB", command.peak_mb <= MOST_MB)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cluster")
    parser.add_argument("items", type=lambda text: int(text.replace("_", "")), nargs="?", default=1_000_000)
    parser.add_argument("--case", choices=("reads", "writes"), default="reads")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", type=float, default=0.5, metavar="SHARE")
    parser.add_argument("--lease", type=float, default=30.0, metavar="SECONDS")
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
