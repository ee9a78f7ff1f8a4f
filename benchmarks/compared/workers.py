"""What a worker costs beside `bulk run` on one machine: CPU of whole processes, in turns, on the same canned answers.

    python -m benchmarks.compared.workers [ITEMS] [ROUNDS]        (default 40,000 items, 3 rounds)

The worker's part is a whole `bulk worker` that does one run and ends. The store, whoever submits and whoever exports
are other processes, on other machines where there are several; their CPU is not in it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import CLIENT_CORE, Spread, environment, on_core, ratios, row
from benchmarks.throughput import CASES, TOKEN, Ours
from bulk.store import address, schema
from bulk.store.connections import StoreConnection
from bulk.store.server.private_server import Server

MOST = 1.15
BULK = [sys.executable, "-m", "bulk"]


def worker_cpu_s(text: str, base_url: str, manifest: Path) -> float:
    """Submit the manifest, have one worker do it: that process's CPU (seconds)."""
    environ = {**environment(), "BULK_TOKEN": TOKEN}
    submitted = [*BULK, "submit", str(manifest), "--store", text, "--yes"]
    run = subprocess.run(submitted, env=environ, capture_output=True, text=True, check=True).stdout.strip()
    with on_core(CLIENT_CORE):
        command = [*BULK, "worker", "--store", text, "--base-url", base_url]
        worker = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE)
    assert worker.stderr is not None
    threading.Thread(target=worker.stderr.read, daemon=True).start()
    watched = [*BULK, "watch", run, "--store", text, "--progress", "none"]
    ended = subprocess.run(watched, env=environ, capture_output=True, text=True, check=False)
    worker.send_signal(signal.SIGTERM)
    _, status, usage = os.wait4(worker.pid, 0)
    worker.returncode = os.waitstatus_to_exitcode(status)
    assert (ended.returncode, worker.returncode) == (0, 0), ended.stderr
    subprocess.run([*BULK, "forget", run, "--store", text], env=environ, capture_output=True, check=True)
    return usage.ru_utime + usage.ru_stime


def measure(items: int, rounds: int) -> None:
    server = Server(is_durable=False)
    server.start()
    try:
        text = server.store()
        with StoreConnection(address.read(text), "benchmark") as store:
            schema.init(store)
        with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
            ours = Ours(Path(folder), base_url, CASES["reads"], items)
            manifest = Path(folder) / "manifest.yaml"
            alone, workers = [ours.run().cpu_s], []
            for _ in range(rounds):
                workers.append(worker_cpu_s(text, base_url, manifest))
                alone.append(ours.run().cpu_s)
    finally:
        server.remove()
    tell(items, alone, workers)


def tell(items: int, alone: Sequence[float], workers: Sequence[float]) -> None:
    ratio = ratios(workers, alone)
    ours, theirs = (Spread(tuple(cpu_s / items * 1e6 for cpu_s in each)) for each in (workers, alone))
    figure = f"{ratio.text()} times one machine's: {ours.text(0)} µs an item beside {theirs.text(0)} µs"
    row(f"CPU of a worker, {items:,} READMEs", figure, f"at most {MOST} times", ratio.median <= MOST)


def main() -> None:
    given = [int(text.replace(",", "")) for text in sys.argv[1:]]
    items, rounds, *_ = (*given, *(40_000, 3)[len(given) :])
    measure(items, rounds)


if __name__ == "__main__":
    main()
