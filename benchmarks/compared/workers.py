"""What workers cost beside `bulk run` on one machine: CPU of whole processes, in turns, on the same canned answers.

    python -m benchmarks.compared.workers [ITEMS] [ROUNDS]        (default 60,000 items, half as many writes, 3 rounds)

A worker's part is a whole `bulk worker` that does one run, or its share of it, and ends. The store, whoever submits and
whoever exports are other processes, on other machines where there are several; their CPU is not in it. The efficiency
of two workers is the CPU of one that does it all, in parts of what both take together; what they take before the first
item and after the last is left out of it, by a run of few items. For that row no worker is bound to a core: two that
take turns on one would cost each other a tenth, which workers with cores of their own do not.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import CLIENT_CORE, Spread, environment, on_core, ratios, row
from benchmarks.throughput import CASES, TOKEN, Ours
from bulk.store import address, schema
from bulk.store.connections import StoreConnection
from bulk.store.server.private_server import Server

BARS = {"reads": (1.15, 0.9), "writes": (1.25, 0.8)}
"""Of each case: what a worker may take, in times of one machine, and the least efficiency of two."""
FEW = 200
BULK = [sys.executable, "-m", "bulk"]


def workers_cpu_s(text: str, base_url: str, manifest: Path, count: int, *, is_bound: bool = False) -> float:
    """Submit the manifest, have `count` workers do it: what those processes take together (seconds)."""
    environ = {**environment(), "BULK_TOKEN": TOKEN}
    submitted = [*BULK, "submit", str(manifest), "--store", text, "--yes"]
    run = subprocess.run(submitted, env=environ, capture_output=True, text=True, check=True).stdout.strip()
    workers: list[subprocess.Popen[bytes]] = []
    for _ in range(count):
        with on_core(CLIENT_CORE) if is_bound else contextlib.nullcontext():
            command = [*BULK, "worker", "--store", text, "--base-url", base_url]
            workers.append(subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL))
    watched = [*BULK, "watch", run, "--store", text, "--progress", "none"]
    ended = subprocess.run(watched, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    cpu_s = 0.0
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(worker.pid, 0)
        worker.returncode = os.waitstatus_to_exitcode(status)
        assert worker.returncode == 0
        cpu_s += usage.ru_utime + usage.ru_stime
    subprocess.run([*BULK, "forget", run, "--store", text], env=environ, capture_output=True, check=True)
    return cpu_s


def measure(name: str, items: int, rounds: int) -> None:
    """Run a case on one machine, with one worker, and with two, in turns."""
    server = Server(is_durable=False)
    server.start()
    try:
        text = server.store()
        with StoreConnection(address.read(text), "benchmark") as store:
            schema.init(store)
        with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
            ours = Ours(Path(folder), base_url, CASES[name], items)
            manifest = Path(folder) / "manifest.yaml"
            few = Path(folder) / "few"
            few.mkdir()
            Ours(few, base_url, CASES[name], FEW)
            idle = [workers_cpu_s(text, base_url, few / "manifest.yaml", count) for count in (1, 2)]
            alone, bound, one, two = [ours.run().cpu_s], list[float](), list[float](), list[float]()
            for _ in range(rounds):
                bound.append(workers_cpu_s(text, base_url, manifest, 1, is_bound=True))
                one.append(workers_cpu_s(text, base_url, manifest, 1))
                two.append(workers_cpu_s(text, base_url, manifest, 2))
                alone.append(ours.run().cpu_s)
    finally:
        server.remove()
    most, least = BARS[name]
    tell(f"{items:,} {name}", items, (alone, bound, most))
    shares = Spread(tuple((one_s - idle[0]) / (both_s - idle[1]) for one_s, both_s in zip(one, two, strict=True)))
    row(f"efficiency of two workers, {items:,} {name}", shares.text(), f"at least {least}", shares.median >= least)


def tell(what: str, items: int, found: tuple[Sequence[float], Sequence[float], float]) -> None:
    """Print what a worker took beside one machine, and whether that is within its bar."""
    alone, one, most = found
    ratio = ratios(one, alone)
    ours, theirs = (Spread(tuple(cpu_s / items * 1e6 for cpu_s in each)) for each in (one, alone))
    figure = f"{ratio.text()} times one machine's: {ours.text(0)} µs an item beside {theirs.text(0)} µs"
    row(f"CPU of a worker, {what}", figure, f"at most {most} times", ratio.median <= most)


def main() -> None:
    given = [int(text.replace(",", "")) for text in sys.argv[1:]]
    items, rounds, *_ = (*given, *(60_000, 3)[len(given) :])
    measure("reads", items, rounds)
    measure("writes", items // 2, rounds)


if __name__ == "__main__":
    main()
