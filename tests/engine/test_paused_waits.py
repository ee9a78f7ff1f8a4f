"""What a paused run says that its items wait for."""

from pathlib import Path

import anyio
import pytest

from bulk.sandbox.settings import RateLimit
from bulk.status import WaitKind
from tests.simulation.world import simulate, world


@pytest.mark.parametrize("budget_s", [0.0, 60.0], ids=["no budget", "a small budget"])
def test_a_paused_run_names_the_pause(tmp_path: Path, budget_s: float) -> None:
    """All items that are left wait for it, also where none of them has begun to wait for leave: nothing was named."""

    async def main() -> None:
        async with world(tmp_path, limits={"core": RateLimit(21, 60)} if budget_s else None, latency_ms=500.0) as made:
            items = [{"owner": "acme", "repo": f"gone-{number}"} for number in range(60)]
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": items}}, {"concurrency": 4})
            async with anyio.create_task_group() as group:
                group.start_soon(made.run, manifest)
                await anyio.sleep(3.0)
                run = made.runs[-1]
                run.pause()
                await anyio.sleep(10.0)
                status = run.last_status
                run.go_on()
            (paused,) = [wait for wait in status.waits if wait.kind is WaitKind.PAUSED]
            assert status.state == "paused"
            assert paused.count > 0

    simulate(main)
