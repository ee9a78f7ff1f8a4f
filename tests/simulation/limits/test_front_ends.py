"""A front end before the platform that answers 429 to what comes too fast, without a word."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.schedules import OWNER, put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import now, simulate, world

RATE, BURST = 40.0, 10.0
TOO_FAST = {"page": answer(429), "nothing": answer(429, b"", "text/plain")}
READS = {"operation": "contents.get", "items": [{"owner": OWNER, "repo": f"repo-{n:05d}"} for n in range(600)]}
PUTS = {"operation": "contents.put", "items": [put(f"repo-{n:05d}", "a", "b") for n in range(200)]}


@pytest.mark.parametrize("said", TOO_FAST)
@pytest.mark.parametrize("job", [READS, PUTS], ids=["reads", "writes"])
def test_what_a_front_end_lets_through_is_used(folder: Path, job: dict[str, Any], said: str) -> None:
    """failures.md row 19: no item fails, few requests are refused, and a run takes little longer than it must: a
    quarter of a minute goes by until the rate is found."""
    excess = last = 0.0
    served = refused = 0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal excess, last, served, refused
        filled = max(0.0, excess - (now() - last) * RATE + 1.0)
        if filled > BURST:
            refused += 1
            return TOO_FAST[said]
        excess, last, served = filled, now(), served + 1
        return FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of, latency_ms=50.0) as made:
            began = now()
            manifest = made.write("run", {"job": job})
            await made.run(manifest)
            assert Counter(line["outcome"] for line in made.lines(manifest)) == {"succeeded": len(job["items"])}
            assert refused < 0.2 * served
            assert now() - began < served / (0.9 * RATE) + 15.0

    simulate(main)
