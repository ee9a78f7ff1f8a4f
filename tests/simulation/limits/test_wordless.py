"""Refusals without a word, a header or an answering `/rate_limit`: a limit of all, or the permission of one item."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.schedules import OWNER, put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World, now, simulate, world

NO = answer(403, b"", "text/plain")
ITEMS = 300
READS = {"operation": "contents.get", "items": [{"owner": OWNER, "repo": f"repo-{n:05d}"} for n in range(ITEMS)]}
PUTS = {"operation": "contents.put", "items": [put(f"repo-{n:05d}", "a", "b") for n in range(ITEMS)]}


async def played(made: World, jobs: dict[str, Any]) -> tuple[Counter[str], float]:
    """How the items ended, and how long that took (seconds)."""
    began = now()
    manifest = made.write("run", jobs, {"concurrency": 32})
    await made.run(manifest)
    return Counter(line["outcome"] for line in made.lines(manifest)), now() - began


@pytest.mark.parametrize("job", [READS, PUTS], ids=["reads", "writes"])
@pytest.mark.parametrize("seconds", [20.0, 60.0])
def test_what_all_are_refused_for_a_while_is_waited_out_together(
    folder: Path, job: dict[str, Any], seconds: float
) -> None:
    """One request at a time goes to see; no item fails, and all are sent soon after."""
    refused = 0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal refused
        if not 0.05 < now() < 0.05 + seconds:
            return FINE
        refused += "rate_limit" not in exchange.path
        return NO

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            ended, took_s = await played(made, {"job": job})
            assert ended == {"succeeded": ITEMS}
            assert refused <= 32 + 16
            assert took_s < seconds + 20.0

    simulate(main)


def test_what_one_item_is_refused_holds_up_no_other(folder: Path) -> None:
    """A permission that the credential lacks for one in ten: the others are served as fast as without them. When these
    are all that is left, they wait for a limit to end, once."""
    served_at = 0.0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal served_at
        if "0/contents" in exchange.path:
            return NO
        served_at = served_at if "rate_limit" in exchange.path else now()
        return FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            ended, took_s = await played(made, {"job": READS})
            assert ended == {"succeeded": ITEMS - ITEMS // 10, "failed": ITEMS // 10}
            assert served_at < 3.0
            assert took_s < 64.0 + 25.0

    simulate(main)


def test_what_all_are_refused_for_good_ends_soon(folder: Path) -> None:
    """A limit does not last that long: after a minute in vain each item waits by itself, once and for all."""

    async def main() -> None:
        async with world(folder, fate_of=lambda each: NO if "contents" in each.path else FINE) as made:
            ended, took_s = await played(made, {"job": READS, "later": {**READS, "needs": ["job"]}})
            assert ended == {"failed": ITEMS, "skipped": ITEMS}
            assert took_s < 64.0 + 12 * 21.0

    simulate(main)
