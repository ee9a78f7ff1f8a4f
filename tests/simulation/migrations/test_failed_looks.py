"""A look that fails says nothing about what is there: the plan calls it so, and its run leaves the item alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from bulk.engine.agreement import plan_file, planned_run
from bulk.engine.migrations.live_plan import Look, look_at
from bulk.engine.surroundings import Surroundings
from bulk.execute.preview import VERDICTS
from bulk.manifest.reading import Overrides
from bulk.report.render import live_plan_text
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World, simulate, world

JSON = "application/json"
REFUSED = answer(403, json.dumps({"message": "Resource not accessible by integration"}).encode(), JSON)


async def looked(made: World, manifest: Path) -> Look:
    """A live plan of that manifest."""
    connector = made.network.connector()
    around = Surroundings(clock=made.clock, disk=made.disk, connector=connector)
    try:
        return await look_at(
            manifest, overrides=Overrides(), environ=made.environ, display=made.display(), most_shown=9,
            surroundings=around,
        )  # fmt: skip
    finally:
        await connector.close()


@pytest.mark.parametrize("fate", [REFUSED, answer(500), answer(200, b"{}", JSON)], ids=["403", "500", "wrong"])
def test_a_look_that_fails_is_no_conflict(folder: Path, fate: Fate) -> None:
    """Refused, broken or wrong: nothing was seen. The item is counted as failed, the reason is shown, and the run of
    the plan does not write it, even if it could."""
    is_open = False

    def fate_of(exchange: Exchange) -> Fate:
        return fate if not is_open and "repo-00001" in exchange.path else FINE

    async def main() -> None:
        nonlocal is_open
        async with world(folder, fate_of=fate_of) as made:
            item: dict[str, Any] = {
                "owner": "fleet",
                "branch": "main",
                "message": "m",
                "content": "eA==",
                "path": "N.md",
            }
            items = [{**item, "repo": f"repo-{number:05d}"} for number in range(3)]
            manifest = made.write("move", {"files": {"operation": "contents.put", "items": items}})
            look = await looked(made, manifest)
            assert look.plan.jobs[0].counts == {"create": 2, "failed": 1}
            (told,) = (each for each in look.shown if "repo-00001" in each)
            assert told.startswith("! ")
            assert "the look failed: " in told
            is_open = True
            plan_file.write_plan(look.plan, folder / "F.plan")
            agreed = plan_file.approve(folder / "F.plan", "somebody", look.plan.made_at)
            approve = planned_run.approval_of(agreed, folder / "F.plan", made.run_dir(manifest), made.clock)
            assert (await made.run(manifest, approve=approve)).exit_code == 1
            ended = {line["index"]: (line["error"] or {}).get("code") for line in made.lines(manifest)}
            assert ended == {0: None, 1: "stale", 2: None}

    simulate(main)


def test_every_verdict_is_told() -> None:
    """The text has a column for each verdict, and no other."""
    assert live_plan_text.VERDICTS == VERDICTS
