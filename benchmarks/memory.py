"""Peak memory of a run of READMEs, from outside, and its speed: it must not grow with the number of items.

    python -m benchmarks.memory [ITEMS ...]

Each size is a process of its own, against a platform of canned answers, the validators kept as in any run. The last
column is the memory in parts of the first size's.
"""

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import ROOT, row

SIZES = (10_000, 1_000_000)
MOST_MB, GROWTH_MB = 200.0, 20.0


def main() -> None:
    from tests.e2e.canned import canned
    from tests.e2e.platform import Home
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


if __name__ == "__main__":
    main()
