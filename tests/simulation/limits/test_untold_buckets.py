"""Buckets of which the platform has not told anything yet, while those of other categories are known."""

from pathlib import Path

import anyio

from bulk.sandbox.settings import RateLimit
from tests.simulation.schedules import readmes, snapshot
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate
from tests.simulation.world import simulate, world

LIMIT = 20
ITEMS = 50


def test_each_is_tried_with_one_request(folder: Path) -> None:
    """A run that used up two budgets was killed, and its next start hears nothing of them: each refuses one request,
    and not as many as may be in flight."""

    async def main() -> None:
        is_resumed = False

        def fate_of(exchange: Exchange) -> Fate:
            nonlocal is_resumed
            is_asked, is_resumed = is_resumed and exchange.path.endswith("/rate_limit"), False
            return DROP_AFTER if is_asked else FINE

        limits = {name: RateLimit(LIMIT, 60) for name in ("core", "dependency_snapshots")}
        async with world(folder, limits=limits, fate_of=fate_of) as made:
            jobs = {
                "reads": {"operation": "readme.get", "items": readmes(ITEMS)},
                "snapshots": {
                    "operation": "snapshot.create",
                    "items": [snapshot(f"repo-{number:05d}", f"build-{number}") for number in range(ITEMS)],
                },
            }
            manifest = made.write("run", jobs)

            async def kill_when_used_up() -> None:
                while sum(entry.category in limits for entry in made.journal()) < 2 * LIMIT:
                    await anyio.sleep(0.001)
                await anyio.sleep(0.1)
                group.cancel_scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(kill_when_used_up)
                await made.run(manifest)
            is_resumed = True
            assert (await made.run(manifest)).exit_code == 0
            refused = [str(entry.category) for entry in made.journal() if entry.status == 403]
            assert sorted(refused) == sorted(limits)

    simulate(main)
