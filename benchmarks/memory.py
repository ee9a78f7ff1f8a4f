"""Peak memory of a run, from outside: it must not grow with the number of items, nor with the size of results.

    python -m benchmarks.memory [ITEMS ...]

Each size is a process of its own, against a platform of canned answers. The last column is the memory in parts of the
first size's. Ten million items are run without the store of validators, which takes half of the time, and a million
with it. Then files of several sizes, raw and saved, 64 in flight: a platform of canned files, each run checked for
whole files with the right hashes.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import environment, row
from benchmarks.throughput import CASES, Case, Ours

SIZES, STORED_SIZES = (10_000, 10_000_000), (10_000, 1_000_000)
MOST_MB, GROWTH_MB = 200.0, 20.0

FILES, FILE_BYTES = 60, (1_000, 1_000_000, 8_000_000, 20_000_000, 100_000_000)
"""Number of files of each size; what they are together grows from 60 kB to 6 GB."""
FILES_GROWTH_MB = 160.0


def main() -> None:
    sizes = [int(text.replace("_", "")) for text in sys.argv[1:]]
    os.environ.update(environment())
    for case, chosen in (("reads", sizes or SIZES), ("stored", sizes or STORED_SIZES)):
        print(f"{'items':>12}  {'items/s':>9}  {'peak MB':>8}  {'ratio':>6}")
        measure_items(CASES[case], chosen)
    measure_files()


def measure_items(case: Case, sizes: Sequence[int]) -> None:
    """Each size, the first one being what the others are compared with."""
    first = 0.0
    for size in sizes:
        with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
            found = Ours(Path(folder), base_url, case, size).run()
        first = first or found.peak_mb
        print(
            f"{size:12,}  {size / found.took_s:9,.0f}  {found.peak_mb:8.1f}  {found.peak_mb / first:6.2f}", flush=True
        )
        row(
            f"peak memory of {size:,} items: {case.claim}",
            f"{found.peak_mb:.0f} MB, {found.peak_mb - first:+.0f} MB to {sizes[0]:,}",
            f"at most {MOST_MB:g} MB, {GROWTH_MB:+g} MB",
            found.peak_mb <= MOST_MB and found.peak_mb - first <= GROWTH_MB,
        )


def measure_files() -> None:
    """The same for the sizes of results."""
    from tests.e2e.test_large_results import run

    print(f"{'file bytes':>12}  {'MB/s':>9}  {'peak MB':>8}  {'ratio':>6}")
    first = 0.0
    for size in FILE_BYTES:
        with tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
            found = run(Path(folder) / "home", [size] * FILES)
        first = first or found.peak_mb
        speed = size * FILES / 1e6 / found.took_s
        print(f"{size:12,}  {speed:9,.0f}  {found.peak_mb:8.1f}  {found.peak_mb / first:6.2f}", flush=True)
        row(
            f"peak memory of {FILES} saved files of {size:,} bytes, 64 in flight",
            f"{found.peak_mb:.0f} MB, {found.peak_mb - first:+.0f} MB to {FILE_BYTES[0]:,}",
            f"at most {FILES_GROWTH_MB:+g} MB",
            found.peak_mb - first <= FILES_GROWTH_MB,
        )


if __name__ == "__main__":
    main()
