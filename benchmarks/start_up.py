"""The time from `bulk --help` to its output, against that of an interpreter that does nothing (claim: below 0.3 s)."""

import statistics
import subprocess
import sys
import time

from benchmarks.harness.measuring import environment, row

ROUNDS = 15
CLAIM_S = 0.3


def main() -> int:
    """Print both medians and their ratio; exit 1 where the claim does not hold."""
    help_s, nothing_s = [], []
    for _ in range(ROUNDS):
        help_s.append(took("-m", "bulk", "--help"))
        nothing_s.append(took("-c", "pass"))
    ours, least = statistics.median(help_s), statistics.median(nothing_s)
    print(f"bulk --help {ours * 1000:.0f} ms (from {min(help_s) * 1000:.0f} to {max(help_s) * 1000:.0f}), ", end="")
    print(f"python alone {least * 1000:.0f} ms: {ours / least:.1f} times; {ours / CLAIM_S:.2f} of {CLAIM_S} s")
    figure = f"{ours * 1000:.0f} ms, {ours / least:.1f} times that of an interpreter alone"
    row("from `bulk --help` to its output", figure, f"below {CLAIM_S * 1000:.0f} ms", ours < CLAIM_S)
    return 0 if ours < CLAIM_S else 1


def took(*arguments: str) -> float:
    """Seconds that a cold process takes."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=environment())
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
