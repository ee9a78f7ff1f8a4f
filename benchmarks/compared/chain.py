"""What the digest chain takes: its own CPU time for an item, of all that the command takes for one.

    python -m benchmarks.compared.chain [ITEMS]

The chain is made by itself, over the lines and intents of such items, in groups as the recorder's are. Beside it the
whole command runs in turns with the chain and without: there a few hundredths are lost in what a machine's speed varies
by from one run to the next.
"""

import contextlib
import math
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import ratios, row
from benchmarks.ledger import finished, intent
from benchmarks.throughput import CASES, Ours
from bulk.ledger import rows
from bulk.ledger.digests import chain as digests
from bulk.ledger.results import encode_all

ITEMS, TURNS = 40_000, 5
GROUP, GROUPS, ROUNDS = 64, 500, 7
"""Items of a group, groups of a round (counts)."""
MOST = 0.03
WITHOUT = "benchmarks.compared.without_chain"


def measure(name: str, items: int) -> None:
    """One case, with the chain and without, in turns."""
    case = CASES[name]
    items = int(items * case.share)
    with_it: list[float] = []
    with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as place:
        ours = Ours(Path(place), base_url, case, items)
        without = [ours.run(WITHOUT).cpu_s]
        for _ in range(TURNS):
            with_it.append(ours.run().cpu_s)
            without.append(ours.run(WITHOUT).cpu_s)
            print(f"{case.claim}: with the chain {with_it[-1]:.2f} s, without {without[-1]:.2f} s", flush=True)
    whole_us = statistics.median(with_it) / items * 1e6
    own_us = chain_us(is_write=case.kind == "write")
    row(
        f"digest chain of {case.claim}, of the CPU time of an item",
        f"{own_us / whole_us:.1%} ({own_us:.2f} of {whole_us:.0f} µs)",
        f"at most {MOST:.0%}",
        own_us / whole_us <= MOST,
    )
    row(f"CPU time of {case.claim} with the digest chain, of the same without", ratios(with_it, without).text(3))


def chain_us(*, is_write: bool) -> float:
    """The CPU time of leaves and links for an item (microseconds), the best of several rounds."""
    indexes = range(GROUP)
    lines, lengths = encode_all(map(finished, indexes))
    intents = rows.intent_rows([intent(index) for index in indexes]) if is_write else []
    items = [(0, index) for index in indexes]
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE links (number INTEGER PRIMARY KEY, head BLOB NOT NULL, leaves BLOB NOT NULL)")
        chain = digests.Chain(database)

        def add_group() -> None:
            if intents:  # they are durable before anything is sent
                chain.add(database, digests.row_leaves(digests.LeafKind.INTENT, intents))
                chain.accept()
            chain.add(database, digests.ended_leaves((), items, digests.line_digests(lines, lengths)))
            chain.accept()

        best = math.inf
        for _ in range(ROUNDS):
            began = time.process_time()
            for _ in range(GROUPS):
                add_group()
            best = min(best, time.process_time() - began)
    return best / GROUPS / GROUP * 1e6


def main() -> None:
    """Measure, tell."""
    items = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else ITEMS
    for name in ("reads", "writes"):
        measure(name, items)


if __name__ == "__main__":
    main()
