"""Jobs of one item each, one behind the other, on a platform whose copies lag: reads show what was there before."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.simulation.schedules import SETTLE_S, TIMEOUT_S
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate
from tests.simulation.wire.memory import Memory
from tests.simulation.world import simulate, world

LIMITS = {"request_timeout": TIMEOUT_S, "settle": SETTLE_S}
STALE = Fate(kind="stale", stale_s=SETTLE_S)

Job = tuple[str, dict[str, Any]]


def stale_reads(exchange: Exchange) -> Fate:
    """Every read shows what the one before it showed, for the settle time."""
    return FINE if exchange.is_write else STALE


def ended_in_turn(folder: Path, jobs: Sequence[Job], fate_of: Callable[[Exchange], Fate]) -> list[str]:
    """How the items ended; each that succeeded has its one effect, but for the reads."""
    ended: list[str] = []

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            made.network.memory = Memory()
            named: dict[str, Any] = {}
            for number, (operation, item) in enumerate(jobs):
                needs = {"needs": [f"job-{number - 1}"]} if number else {}
                named[f"job-{number}"] = {"operation": operation, "items": [item], **needs}
            manifest = made.write("run", named, LIMITS)
            await made.run(manifest)
            ended.extend(line["outcome"] for line in made.lines(manifest))
            reads = sum(operation.endswith((".get", ".list")) for operation, _ in jobs)
            assert len(made.effects()) == ended.count("succeeded") - reads, made.effects()

    simulate(main)
    return ended
