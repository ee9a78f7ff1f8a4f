"""How long after a resume the first request leaves, with nine tenths of a manifest done.

    python -m benchmarks.resume [ITEMS ...] [--shape SHAPE]

The run directory is made, not run: a manifest of READMEs, its check, and a ledger and result lines for the done items,
as a run leaves them. Then `bulk run` goes on with it against a platform of canned answers; the clock runs from the
start of the command to the first README that the platform is asked for, and the command is stopped with SIGINT.
Shapes: `first` (the first nine tenths are done), `scattered` (every tenth item is to do), `killed` (as `first`, after a
process that left no end: the ledger is examined), `touched` (as `first`, the items file has a new time: it is hashed).
Claim: at most 5 s for 10,000,000 items.
"""

import argparse
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.harness.measuring import ROOT, environment, row

SIZES = (10_000, 10_000_000)
SHAPES = ("first", "scattered", "killed", "touched")
MOST_S = 5.0
NOW = 1_795_248_000.0


def is_done(shape: str, index: int, items: int) -> bool:
    """Whether an item has an outcome before the resume."""
    return index % 10 != 5 if shape == "scattered" else index < items // 10 * 9


def write_items(path: Path, items: int) -> None:
    """JSON lines of `items` repositories."""
    with path.open("w") as file:
        for first in range(0, items, 100_000):
            numbers = range(first, min(first + 100_000, items))
            file.write("".join(f'{{"owner":"acme-fleet","repo":"repo-{number:08}"}}\n' for number in numbers))


def make_run(folder: Path, base_url: str, shape: str, items: int) -> None:
    """`manifest.yaml`, `items.jsonl` and `run/` in `folder`, as a run leaves them that was stopped."""
    from bulk.check.checking import check
    from bulk.engine.identity import identity_of
    from bulk.ledger.directory import Claim
    from bulk.ledger.ledger import Ledger
    from bulk.manifest.reading import Overrides, read_manifest
    from bulk.status import RunStatus

    manifest_path, run_dir = folder / "manifest.yaml", folder / "run"
    job = {"operation": "readme.get", "items": "items.jsonl"}
    manifest = {"version": 1, "platform": {"base_url": base_url}, "jobs": {"readmes": job}}
    manifest_path.write_text(json.dumps(manifest))
    if not (folder / "items.jsonl").exists():
        write_items(folder / "items.jsonl", items)
    read = read_manifest(manifest_path, Overrides(), {})
    with Claim.take(run_dir) as claim:
        checked = check(read, run_dir)
        with Ledger.open(run_dir, identity_of(checked), now=NOW, claim=claim) as ledger:
            status = RunStatus(name="manifest", state="stopped", at=NOW + 1_000, started_at=NOW)
            if shape != "killed":
                ledger.finish(130, "interrupted", status)
    _fill(run_dir, shape, items)


def _fill(run_dir: Path, shape: str, items: int) -> None:
    """Outcomes and lines of the done items: all lines have one length, so that one statement makes all rows."""
    sample = _line(0)
    with (run_dir / "results.jsonl").open("wb") as file:
        done = 0
        for block in _blocks(shape, items):
            file.write(b"".join(map(_line, block)))
            done += len(block)
    with sqlite3.connect(run_dir / "ledger.db", isolation_level=None) as connection:
        (succeeded,) = connection.execute("SELECT number FROM words WHERE word = 'succeeded'").fetchone()
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        # which items are done, and how many before each
        where, before = (
            ("n % 10 != 5", "n - n / 10 - (n % 10 > 5)") if shape == "scattered" else (f"n < {items // 10 * 9}", "n")
        )
        connection.execute(
            f"WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {items}) "
            f"INSERT INTO outcomes SELECT 0, n, {succeeded}, 0, 200, 1, ({before}) * {len(sample)}, {len(sample)} "
            f"FROM numbers WHERE {where}"
        )
        connection.executemany("INSERT INTO tallies VALUES (?, ?, ?)", _tallies(done))
        connection.execute("INSERT INTO counts VALUES (0, ?, 0, ?, ?)", (succeeded, done, done * len(sample)))
        connection.execute("UPDATE meta SET results_bytes = ?", (done * len(sample),))
        connection.execute("COMMIT")
    connection.close()


def _tallies(done: int) -> list[tuple[int, int, bytes]]:
    """As a run that did `done` items keeps them."""
    from bulk.report.active_time import ActiveTime
    from bulk.report.tally import Tally

    tally = Tally(["readmes"], ActiveTime([(NOW, NOW + 1_000)]))
    tally.read([_line(0)])
    return [(0, done, tally.jobs["readmes"].state), (-1, done, msgspec.json.encode([0.05, []]))]


def _blocks(shape: str, items: int) -> Iterator[list[int]]:
    for first in range(0, items, 10_000):
        block = [index for index in range(first, min(first + 10_000, items)) if is_done(shape, index, items)]
        if block:
            yield block


def _line(index: int) -> bytes:
    return (
        b'{"job":"readmes","index":%8d,"id":null,"item":{"owner":"acme-fleet","repo":"repo-%08d"},'
        b'"outcome":"succeeded","http_status":200,"attempts":1,"started_at":"2026-11-21T08:00:00.123Z",'
        b'"elapsed_ms":4.2,"request_id":null,"result":{"name":"README.md","path":"README.md","size":51,'
        b'"sha":"9c3aadf1a2e7bcb1f5ad1d2d2ad1f5d3b9ecb1a5"},"error":null}\n' % (index, index)
    )


def first_request(folder: Path, log: Path) -> dict[str, float]:
    """Go on with the run in `folder` until the platform's log has a README: seconds, and the loop's lateness."""
    from tests.e2e.support.platform import Home, has_ended

    home, before = Home(folder), _readmes(log)
    out = folder / "probe.json"
    command = [sys.executable, str(ROOT / "benchmarks/harness/probe.py"), str(out), "run", "manifest.yaml"]
    command += ["--run-dir", "run", "--progress", "none", "--no-cache"]
    started = time.monotonic()
    with home.start_any(command) as process:
        while _readmes(log) == before and not has_ended(process, 0.02):
            pass
        cpu_s = _cpu_s(process.pid)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    stopped_s = time.monotonic() - started
    assert process.returncode == 130, err
    with log.open() as file:
        moments = [float(line.split()[0]) for line in file if "/readme" in line]
    return {"first_s": moments[before] - started, "cpu_s": cpu_s, "stopped_s": stopped_s, **json.loads(out.read_text())}


def _cpu_s(pid: int) -> float:
    """What a process has used so far: a figure that other work on the machine changes less (seconds)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _readmes(log: Path) -> int:
    return log.read_text().count("/readme")


def main() -> None:
    """Make, resume, tell."""
    from tests.e2e.support.programs import canned

    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=lambda text: int(text.replace("_", "")))
    parser.add_argument("--shape", action="append", choices=SHAPES)
    given = parser.parse_args()
    os.environ.update(environment())
    heads = ("first request s", "of 5 s", "CPU s", "loop p99 ms", "most ms", "stopped s")
    print(f"{'items':>12}  {'shape':>9}  {'  '.join(heads)}", flush=True)
    for size in given.sizes or SIZES:
        for shape in given.shape or SHAPES:
            with tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
                folder, log = Path(name), Path(name) / "requests.log"
                with canned("--log", str(log)) as base_url:
                    make_run(folder, base_url, shape, size)
                    if shape == "touched":
                        os.utime(folder / "items.jsonl")
                    found = first_request(folder, log)
            figures = (found["first_s"], found["first_s"] / MOST_S, found["cpu_s"], found["p99_ms"], found["most_ms"])
            pairs = zip(heads, (*figures, found["stopped_s"]), strict=True)
            print(
                f"{size:12,}  {shape:>9}  {'  '.join(f'{value:{len(head)}.2f}' for head, value in pairs)}", flush=True
            )
            row(
                f"resume of {size:,} items, {size // 10 * 9:,} done ({shape}): the first request leaves",
                f"{found['first_s']:.1f} s ({found['cpu_s']:.1f} s of CPU)",
                f"at most {MOST_S:g} s",
                found["first_s"] <= MOST_S,
            )


if __name__ == "__main__":
    main()
