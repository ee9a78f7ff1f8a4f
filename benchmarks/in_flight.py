"""Requests in flight from 16 to 2,000: requests a second of `bulk run` and of the bare loop, with no collapse of ours.

Every number in flight is a run of the whole command against one of the bare loop with as many workers, in turns; see
`throughput.py`.

    python -m benchmarks.in_flight [--items 60000] [--rounds 1]
"""

import argparse
from dataclasses import replace

from benchmarks.measuring import row
from benchmarks.throughput import CASES, in_turns, speeds

LEVELS = (16, 64, 250, 1_000, 2_000)
LEAST_RATIO, LEAST_OF_BEST = 0.65, 0.8


def measure(level: int, items: int, rounds: int) -> float:
    """One number in flight; returns items a second of ours."""
    runs, references = in_turns(replace(CASES["reads"], in_flight=level), items, rounds)
    speed, fastest = speeds(runs, references), max(items / run.took_s for run in runs)
    row(
        f"READMEs, {level:,} in flight, of a bare loop with as many",
        f"{speed.text()} by time; {fastest:,.0f} items/s",
        f"{LEAST_RATIO:g}",
        speed.median >= LEAST_RATIO,
    )
    return fastest


def main() -> None:
    """Measure every level, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    found = {level: measure(level, given.items, given.rounds) for level in LEVELS}
    least = min(found, key=lambda level: found[level])
    share = found[least] / max(found.values())
    row(
        f"no collapse from {LEVELS[0]} to {LEVELS[-1]:,} in flight",
        f"slowest with {least:,}: {share:.2f} of the fastest",
        f"{LEAST_OF_BEST:g}",
        share >= LEAST_OF_BEST,
    )


if __name__ == "__main__":
    main()
