"""How late the event loop is during whole runs: a timer every 2 ms within the loop, beside the work (`probe.py`).

    python -m benchmarks.lateness [CASE ...] [--items 60000]

Cases are those of `throughput.py`, client and platform on a core each. The claim is about the 99th percentile.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import ROOT, cost_of, row
from benchmarks.throughput import CASES, Case, Ours

MOST_MS = 20.0


def measure(case: Case, items: int) -> None:
    """One case, once."""
    with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
        folder = Path(name)
        ours, out = Ours(folder, base_url, case, items), folder / "probe.json"
        if case.is_again:
            ours.run()  # fills the store
        command = [sys.executable, str(ROOT / "benchmarks/harness/probe.py"), str(out), *ours.command()]
        cost_of(command, environ={"BULK_TOKEN": "0123456789"})
        found = json.loads(out.read_text())
    row(
        f"event loop delay: {case.claim}",
        f"99% within {found['p99_ms']:.1f} ms, 99.9% {found['p999_ms']:.1f} ms, most {found['most_ms']:.0f} ms",
        f"99% within {MOST_MS:g} ms",
        found["p99_ms"] <= MOST_MS,
    )


def main() -> None:
    """Measure every case, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--items", type=int, default=60_000)
    given = parser.parse_args()
    for name in given.cases or CASES:
        if name not in CASES:
            parser.error(f"no case {name!r}; there are {', '.join(CASES)}")
        measure(CASES[name], given.items)


if __name__ == "__main__":
    main()
