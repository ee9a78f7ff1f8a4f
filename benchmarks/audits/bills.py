"""Bills of materials of 5 kB to 5 MB, uploaded under a budget, and the same again.

    python -m benchmarks.audits.bills [COUNT] [--free]

Against a sandbox of its own, whose budget lets all of them through in five windows and a tenth of one (`--free`: all
at once). A window has 20 seconds, and a hundredth of one more for each bill beyond 2,000. For 10,000 bills it needs 3
GB of disk, and it ends by itself. First the package URLs and edges of every distinct bill are compared with what the
reference libraries find. Told: how long the upload took against the ideal time, which is when the last window of the
budget opens; how many were sent in each window; the largest size of its processes together (MB); how late its event
loop was (ms), in all and without the time in which the system gave the core to others; and what the second run sent.
What falls short of its bar is said, and the exit code is 1 then.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import ROOT, row
from bulk_jobs.shared.sboms.bill import graph_of
from bulk_jobs.shared.sboms.reading import read_bill
from tests.e2e.support.platform import Home, Served, served
from tests.jobs.shared.sboms.bills import FORMS, graph
from tests.jobs.shared.sboms.oracles import edges_of

TEXTS, LEAST_WINDOW_S, WINDOW_S_EACH, WINDOWS = 100, 20.0, 0.01, 5.1
"""Distinct bills, length of a window at least and for each bill (seconds), so that the budget and no machine is what
holds them up. And windows of the budget that all of them fill (count): the last one has room, so that what is left
unused in another one is told as what it is, and not as a whole window more. It gets few: what is sent when it has
opened is time beyond the ideal one.
"""
REPOSITORIES = 1_000
SMALLEST, LARGEST = 28, 27_000
"""Packages of a bill of 5 kB and of one of 5 MB (count)."""
MOST_OF_IDEAL, MOST_MB, MOST_LATE_MS, LEAST_USED = 1.03, 200, 4.0, 0.99
MOST_S, MOST_S_EACH = 900.0, 0.05
"""Longest time in all, or for each bill where there are many (seconds); an upload that takes longer is ended."""


def texts() -> Iterator[bytes]:
    """Bills of all sizes: most are small, as in life, and one of a hundred has 5 MB."""
    dice, forms = random.Random(5), list(FORMS.values())
    for number in range(TEXTS):
        share = 1.0 if number == TEXTS - 1 else 0.6 * dice.random() ** 4
        packages = int(SMALLEST * (LARGEST / SMALLEST) ** share)
        yield forms[number % len(forms)](graph(packages, number))


def differing(made: list[bytes]) -> int:
    """How many bills the reference libraries read in another way."""
    began = time.perf_counter()
    wrong = sum(graph_of(read_bill(text)).edges != edges_of(text) for text in made)
    took_s = time.perf_counter() - began
    print(
        f"{len(made)} distinct bills, {wrong} of them read unlike the reference libraries do; {took_s:.1f} s",
        flush=True,
    )
    return wrong


def write(home: Home, sandbox: Served, count: int, made: list[bytes]) -> None:
    """The manifest, its items and their files."""
    (home.folder / "sboms").mkdir()
    sizes = sorted(len(text) for text in made)
    average = sum(sizes) / TEXTS / 1e3
    print(f"{count:,} bills of {sizes[0] / 1e3:.0f} kB to {sizes[-1] / 1e6:.1f} MB, {average:.0f} kB on average")
    lines: list[dict[str, Any]] = []
    for number in range(count):
        (home.folder / "sboms" / f"{number}.json").write_bytes(made[number % TEXTS])
        lines.append(
            {
                "owner": "acme-fleet",
                "repo": f"repo-{number % REPOSITORIES:05}",
                "version": 0,
                "sha": f"{number + 1:040x}",
                "ref": "refs/heads/main",
                "job": {"id": "nightly", "correlator": f"job {number // REPOSITORIES}"},
                "detector": {"name": "scan", "version": "1.0.0", "url": "https://scan.example.com"},
                "sbom_file": f"sboms/{number}.json",
            }
        )
    home.lines("sboms.jsonl", lines)
    home.manifest(sandbox.base_url, {"sboms": {"operation": "snapshot.create", "items": "sboms.jsonl"}}, "sboms.yaml")


@dataclass(frozen=True, slots=True)
class Upload:
    """One run: its exit code, seconds, CPU seconds, the largest size of all its processes together (MB), and what the
    probe saw."""

    code: int
    took_s: float
    cpu_s: float
    peak_mb: int
    late: dict[str, float]


def upload(home: Home, run: str, most_s: float = MOST_S) -> Upload:
    """Run it once; it is ended when it has taken `most_s`."""
    probe, out = ROOT / "benchmarks/harness/probe.py", home.folder / f"{run}.json"
    command = [sys.executable, str(probe), str(out), "run", "sboms.yaml", "--run-dir", run, "--progress", "none"]
    began = time.perf_counter()
    most, ended = [0], threading.Event()
    with subprocess.Popen(command, cwd=home.folder, env=home.environment(), stdout=subprocess.DEVNULL) as process:

        def look() -> None:
            while not ended.wait(0.02):
                if time.perf_counter() - began > most_s:
                    process.kill()
                most.append(sum(_resident_kb(pid) for pid in (process.pid, *_children(process.pid))))

        looking = threading.Thread(target=look)
        looking.start()
        _, status, used = os.wait4(process.pid, 0)
        took_s, process.returncode = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
        ended.set()
        looking.join()
    peak_kb = max(used.ru_maxrss, *most)
    cpu_s = used.ru_utime + used.ru_stime
    return Upload(process.returncode, took_s, cpu_s, peak_kb // 1024, json.loads(out.read_text()))


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
            int(each)
            for task in Path(f"/proc/{pid}/task").iterdir()
            if task.name != str(pid)
            for each in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def _resident_kb(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(text.partition("VmRSS:")[2].split(maxsplit=1)[0]) if "VmRSS:" in text else 0


def main() -> int:
    """Upload twice, and tell; 1 where a bar does not hold."""
    if sys.argv[1:] == ["--compare"]:  # in a process of its own: its memory would count as that of what it starts
        return 1 if differing(list(texts())) else 0
    started = time.perf_counter()
    is_free = "--free" in sys.argv
    given = [each for each in sys.argv[1:] if each != "--free"]
    count = int(given[0]) if given else 10_000
    a_window, window_s = math.ceil(count / WINDOWS), math.ceil(max(LEAST_WINDOW_S, WINDOW_S_EACH * count))
    budget = f"{10 * count}/3600" if is_free else f"{a_window}/{window_s}"
    limit, most_s = f"dependency_snapshots={budget}", max(MOST_S, MOST_S_EACH * count)
    seed = {"repositories": [{"organization": "acme-fleet", "count": REPOSITORIES}]}
    made, short = list(texts()), list[str]()
    if subprocess.run([sys.executable, "-m", "benchmarks.audits.bills", "--compare"], check=False).returncode:
        short.append("package URLs and edges are those of the reference libraries")
    with tempfile.TemporaryDirectory(prefix="bulk-bills-") as folder:
        home = Home(Path(folder))
        with served(Path(folder) / "sandbox", "--rate-limit", limit, seed=seed) as sandbox:
            write(home, sandbox, count, made)
            before = 0
            for run, wanted in (("first run", count), ("the same again", 0)):
                ran = upload(home, run.replace(" ", "-"), most_s)
                lines = sandbox.requests(path="snapshots")[before:]
                before += len(lines)
                is_right = (ran.code, len(lines)) == (0, wanted)
                figure = f"exit {ran.code}, {len(lines):,} sent"
                row(f"{count:,} bills of materials, {run}", figure, f"exit 0, {wanted:,} sent", is_right)
                bars = {f"exit 0, {wanted:,} sent": is_right, **_told(run, ran, lines)}
                if lines and not is_free:
                    bars |= _under_a_budget(lines, a_window, window_s)
                short += [f"{run}: {bar}" for bar, holds in bars.items() if not holds]
    print(f"{(time.perf_counter() - started) / 60:.1f} minutes in all")
    if time.perf_counter() - started > most_s:
        short.append(f"at most {most_s / 60:.0f} minutes in all")
    print("\n".join(f"FALLS SHORT: {bar}" for bar in short) or "all bars hold")
    return 1 if short else 0


def _told(run: str, ran: Upload, lines: list[dict[str, Any]]) -> dict[str, bool]:
    """Print a run, and return which of its bars hold."""
    late, memory_mb, kept_ms = ran.late, ran.peak_mb, ran.late["kept_p99_ms"]
    print(
        f"{run}: exit {ran.code}, {len(lines):,} sent, {ran.took_s:.1f} s, CPU {ran.cpu_s:.1f} s, all processes at "
        f"most {ran.peak_mb} MB; the event loop was late by {late['p99_ms']} ms (99%), {late['most_ms']:.0f} ms at "
        f"most; its own thread held it for {late['held_p99_ms']} ms (99%), other threads for {late['kept_p99_ms']} ms",
        flush=True,
    )
    aims = memory_mb <= MOST_MB, kept_ms <= MOST_LATE_MS
    row(f"bills of materials, {run}: memory of all its processes", f"{memory_mb} MB", f"at most {MOST_MB} MB", aims[0])
    claim = f"bills of materials, {run}: lateness of the event loop (99%), waits for a core left out"
    row(claim, f"{kept_ms} ms", f"at most {MOST_LATE_MS:g} ms", aims[1])
    return {f"at most {MOST_MB} MB": aims[0], f"late by at most {MOST_LATE_MS} ms (99%)": aims[1]}


def _under_a_budget(lines: list[dict[str, Any]], a_window: int, window_s: int) -> dict[str, bool]:
    """Print how much of a budget was used, and return which bars hold; `a_window`: of each window (count)."""
    ideal_s, windows = float(math.floor(WINDOWS) * window_s), _windows(lines, a_window)
    least = min((used for _, used in windows[:-1]), default=0)
    told = ", ".join(f"{used:,} from {at:.1f} s on" for at, used in windows)
    share = _sending_s(lines) / ideal_s
    print(f"{share:.3f} of the ideal {ideal_s:.0f} s; of {a_window:,} each: {told}")
    is_used = least >= min(LEAST_USED * a_window, a_window - 1)
    claim = f"{len(lines):,} bills of materials under a budget, of the ideal time"
    row(claim, f"{share:.3f}", f"at most {MOST_OF_IDEAL}", share <= MOST_OF_IDEAL)
    return {
        f"at most {MOST_OF_IDEAL} of the ideal time": share <= MOST_OF_IDEAL,
        f"at least {LEAST_USED:.0%} of each window used, or all but one": is_used,
    }


def _sending_s(lines: list[dict[str, Any]]) -> float:
    """Return the time from the first request to the last (seconds)."""
    first, last = (datetime.fromisoformat(line["at"]) for line in (lines[0], lines[-1]))
    return (last - first).total_seconds()


def _windows(lines: list[dict[str, Any]], budget: int) -> list[tuple[float, int]]:
    """Return when each window of the budget was first used, and for how many (seconds after the first request)."""
    began = datetime.fromisoformat(lines[0]["at"])
    found, before = list[tuple[float, int]](), -budget
    for line in lines:
        if line["remaining"] > before + budget // 2:
            found.append(((datetime.fromisoformat(line["at"]) - began).total_seconds(), 0))
        found[-1] = found[-1][0], found[-1][1] + 1
        before = line["remaining"]
    return found


if __name__ == "__main__":
    sys.exit(main())
