"""What items that wait for single items of another job take, so many of them: in the check, and once they are loaded.

    python -m benchmarks.needs.edges [EDGES]

Two jobs read the same repositories, each in an order of its own; each item of the second waits for one of the first.
The peak of the check stands beside that of the same with whole jobs. Each part is a process of its own.
"""

import json
import multiprocessing
import random
import sys
import tempfile
import time
from array import array
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import row
from bulk.bundle.columns import Columns
from bulk.bundle.index import INDEX, SCHEMA, opened
from bulk.bundle.links import load_links
from bulk.check.checking import check
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import succeeded
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.keyed_needs import KeyedNeeds

EDGES = 10_000_000
ENDED = 100_000
"""Items that end, in any order (count)."""
MOST_MB = 20.0


def memory_mb(name: str) -> float:
    """What the system says of this process: `VmHWM`, the peak, or `RssAnon`, what is its own (MB)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) / 1_000


def write(folder: Path, edges: int) -> None:
    """Two items files, and the manifest with and without keys."""
    repositories = array("I", range(edges))
    for job in ("first", "second"):
        random.Random(job).shuffle(repositories)
        with (folder / f"{job}.jsonl").open("w") as file:
            file.writelines(f'{{"owner": "acme", "repo": "api-{number}"}}\n' for number in repositories)
    for name, need in (("key", {"first": {"repo": "repo"}}), ("whole", "first")):
        jobs: dict[str, Any] = {
            job: {"operation": "readme.get", "items": f"{job}.jsonl"} for job in ("first", "second")
        }
        jobs["second"]["needs"] = [need]
        head = {"version": 1, "platform": {"base_url": "https://code.example.com"}, "jobs": jobs}
        (folder / f"{name}.yaml").write_text(json.dumps(head))
        (folder / name).mkdir()


def manifest_in(folder: Path, name: str) -> Manifest:
    """One of the two."""
    return read_manifest(folder / f"{name}.yaml", Overrides(), {})


def checked(folder: Path, name: str) -> float:
    """The peak of a check (MB)."""
    check(manifest_in(folder, name), folder / name)
    return memory_mb("VmHWM")


def loaded(folder: Path, edges: int) -> tuple[float, float]:
    """What all of them take in memory (MB), and the end of one item (seconds)."""
    jobs, done = manifest_in(folder, "key").jobs, succeeded({})
    progress = [JobProgress(edges, bytearray(edges // 8 + 1)) for _ in jobs]
    before = memory_mb("RssAnon")
    needs = KeyedNeeds(jobs, load_links(jobs, Columns(opened(folder / "key" / INDEX, SCHEMA))), progress, {})
    took_mb = memory_mb("RssAnon") - before
    ending = random.Random(1).sample(range(edges), min(edges, ENDED))
    began = time.process_time()
    for index in ending:
        needs.ended(0, index, done)
        needs.opened[1].take(1)
    took_s = time.process_time() - began
    return took_mb, took_s / len(ending)


def main() -> None:
    """Measure, tell."""
    edges = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else EDGES
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as name, processes.Pool(1, maxtasksperchild=1) as pool:
        folder = Path(name)
        pool.apply(write, (folder, edges))
        whole_mb, key_mb = (pool.apply(checked, (folder, how)) for how in ("whole", "key"))
        loaded_mb, each_s = pool.apply(loaded, (folder, edges))
    row(f"peak of the check of {edges:,} edges", f"{key_mb:.0f} MB ({whole_mb:.0f} with whole jobs)", "-", None)
    row(
        f"memory of {edges:,} edges",
        f"{loaded_mb:.1f} MB; {each_s * 1e6:.1f} us for each item that ends",
        f"at most {MOST_MB:g} MB",
        loaded_mb <= MOST_MB,
    )


if __name__ == "__main__":
    main()
