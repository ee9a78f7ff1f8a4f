"""Requests in flight from 16 to 2,000: requests a second of `bulk run` and of the bare loop, with no collapse of ours.

Every number in flight is a run of the whole command, and one of the bare loop with as many workers; see
`throughput.py`. All numbers have their turn in each round, first ours and then the bare loop's, which leaves thousands
of connections to be cleared away, and are compared within it: a machine that is slower for a minute slows them all.
Medians of the rounds.

    python -m benchmarks.in_flight [--items 60000] [--rounds 3]
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import Spread, row
from benchmarks.throughput import CASES, Ours, bare

LEVELS = (16, 64, 250, 1_000, 2_000)
LEAST_RATIO, LEAST_OF_BEST = 0.65, 0.8


def measure(items: int) -> tuple[list[float], list[float]]:
    """One round: of each number in flight ours in parts of the bare loop, and our items a second."""
    cases = [replace(CASES["reads"], in_flight=level) for level in LEVELS]
    rates = []
    with canned_platform() as base_url:
        for case in cases:
            with tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
                rates.append(items / Ours(Path(folder), base_url, case, items).run().took_s)
        references = [items / bare(base_url, case, items).took_s for case in cases]
    return [rate / reference for rate, reference in zip(rates, references, strict=True)], rates


def tell(parts: Sequence[Sequence[float]], rates: Sequence[Sequence[float]]) -> None:
    """The rows of the table; a list of levels for each round."""
    shares = []
    for place, level in enumerate(LEVELS):
        part, rate = (Spread(tuple(each[place] for each in rounds)) for rounds in (parts, rates))
        claim = f"READMEs, {level:,} in flight, of a bare loop with as many"
        row(claim, f"{part.text()} by time; {rate.text(0)} items/s", f"{LEAST_RATIO:g}", part.median >= LEAST_RATIO)
        shares.append(statistics.median(each[place] / max(each) for each in rates))
    least = min(shares)
    row(
        f"no collapse from {LEVELS[0]} to {LEVELS[-1]:,} in flight",
        f"slowest with {LEVELS[shares.index(least)]:,}: {least:.2f} of the fastest of its round",
        f"{LEAST_OF_BEST:g}",
        least >= LEAST_OF_BEST,
    )


def main() -> None:
    """Measure every level in each round, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rounds = [measure(given.items) for _ in range(given.rounds)]
    tell([parts for parts, _ in rounds], [rates for _, rates in rounds])


if __name__ == "__main__":
    main()
