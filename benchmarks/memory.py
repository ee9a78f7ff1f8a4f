"""Peak memory of a run, from outside: it must not grow with the number of items, nor with the size of results.

    python -m benchmarks.memory [ITEMS ...]

Each size is a process of its own, against a platform of canned answers, the validators kept as in any run. The last
column is the memory in parts of the first size's. Then files of several sizes, raw and saved, 64 in flight: a platform
of canned files, each run checked for whole files with the right hashes.
"""

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import ROOT, row

SIZES = (10_000, 10_000_000)
MOST_MB, GROWTH_MB = 200.0, 20.0

FILES, FILE_BYTES = 60, (1_000, 1_000_000, 8_000_000, 20_000_000, 100_000_000)
"""So many files of each size; what they are together grows from 60 kB to 6 GB."""
FILES_GROWTH_MB = 160.0


def main() -> None:
    from tests.e2e.platform import Home
    from tests.e2e.programs import canned
    from tests.e2e.test_many_items import run

    sizes = [int(text.replace("_", "")) for text in sys.argv[1:]] or list(SIZES)
    os.environ["PYTHONPATH"] = str(ROOT)
    print(f"{'items':>12}  {'items/s':>9}  {'peak MB':>8}  {'ratio':>6}")
    first = 0.0
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder, canned() as base_url:
            found = run(Home(Path(folder)), base_url, size)
        first = first or found.peak_mb
        print(
            f"{size:12,}  {size / found.took_s:9,.0f}  {found.peak_mb:8.1f}  {found.peak_mb / first:6.2f}", flush=True
        )
        row(
            f"peak memory of {size:,} items",
            f"{found.peak_mb:.0f} MB, {found.peak_mb - first:+.0f} MB to {sizes[0]:,}",
            f"at most {MOST_MB:g} MB, {GROWTH_MB:+g} MB",
            found.peak_mb <= MOST_MB and found.peak_mb - first <= GROWTH_MB,
        )
    measure_files()


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
