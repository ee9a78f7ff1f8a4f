"""A front end before the platform that refuses what comes too fast, without a word."""

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


class FrontEnd:
    """A leaky bucket as nginx has it: what is refused does not count. `served`, `refused`: so far (counts)."""

    def __init__(self, too_fast: Fate) -> None:
        self._too_fast, self._excess, self._last = too_fast, 0.0, 0.0
        self.served = self.refused = 0

    def fate_of(self, exchange: Exchange) -> Fate:
        """What befalls an exchange."""
        filled = max(0.0, self._excess - (now() - self._last) * RATE + 1.0)
        if filled > BURST:
            self.refused += 1
            return self._too_fast
        self._excess, self._last, self.served = filled, now(), self.served + 1
        return FINE


@pytest.mark.parametrize("said", TOO_FAST)
@pytest.mark.parametrize("job", [READS, PUTS], ids=["reads", "writes"])
def test_what_a_front_end_lets_through_is_used(folder: Path, job: dict[str, Any], said: str) -> None:
    """failures.md row 19: no item fails, few requests are refused, and a run takes little longer than it must: a
    quarter of a minute goes by until the rate is found."""
    front_end = FrontEnd(TOO_FAST[said])

    async def main() -> None:
        async with world(folder, fate_of=front_end.fate_of, latency_ms=50.0) as made:
            began = now()
            manifest = made.write("run", {"job": job})
            await made.run(manifest)
            assert Counter(line["outcome"] for line in made.lines(manifest)) == {"succeeded": len(job["items"])}
            assert front_end.refused < 0.2 * front_end.served
            assert now() - began < front_end.served / (0.9 * RATE) + 15.0

    simulate(main)


@pytest.mark.parametrize("status", [503, 403])
def test_a_front_end_that_does_not_say_429_is_found_as_well(folder: Path, status: int) -> None:
    """nginx answers 503 if it is not told otherwise. No item fails, and a run takes little longer than it must."""
    front_end = FrontEnd(answer(status))
    job = {**READS, "items": [{"owner": OWNER, "repo": f"repo-{n:05d}"} for n in range(800)]}

    async def main() -> None:
        async with world(folder, fate_of=front_end.fate_of, latency_ms=50.0, has_journal=False) as made:
            began = now()
            manifest = made.write("run", {"job": job})
            await made.run(manifest)
            assert Counter(line["outcome"] for line in made.lines(manifest)) == {"succeeded": len(job["items"])}
            assert now() - began < front_end.served / (0.9 * RATE) + 4.0

    simulate(main)


def test_a_repository_that_is_always_told_to_wait_holds_up_nothing_else(folder: Path) -> None:
    """It is given up after six waits with all that is still to be done there, and the others go on after the first."""
    no, done_at = answer(429, retry_after="60"), 0.0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal done_at
        if "repo-00000/" in exchange.path:
            return no
        done_at = done_at if "rate_limit" in exchange.path else now()
        return FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of, latency_ms=50.0) as made:
            began = now()
            items = [put(f"repo-{repo:05d}", f"file-{n}", "text") for n in range(10) for repo in range(4)]
            manifest = made.write("run", {"job": {"operation": "contents.put", "items": items}})
            await made.run(manifest)
            assert Counter(line["outcome"] for line in made.lines(manifest)) == {"succeeded": 30, "failed": 10}
            assert done_at - began < 70.0
            assert now() - began < 6 * 60.0 + 5.0

    simulate(main, tick_s=60.0)


def test_a_page_for_all_that_is_missing_holds_up_a_run_for_seconds(folder: Path) -> None:
    """A front end puts its page in the place of every 404: a run knows that after three probes, a second apart, and
    then nobody waits any more."""
    missing = {"operation": "readme.get", "items": [{"owner": OWNER, "repo": f"none-{n}"} for n in range(100)]}

    def fate_of(exchange: Exchange) -> Fate:
        is_missing = "/none-" in exchange.path or exchange.path.endswith("/readme")
        return answer(404) if is_missing else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            began = now()
            manifest = made.write("run", {"missing": missing, "there": READS})
            await made.run(manifest)
            ended = Counter((line["job"], line["outcome"]) for line in made.lines(manifest))
            assert ended == {("missing", "failed"): 100, ("there", "succeeded"): 600}
            assert now() - began < 6.0

    simulate(main)
