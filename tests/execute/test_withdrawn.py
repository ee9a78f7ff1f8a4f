"""Writes that were about to leave when a run was stopped: what did not leave gives the next process no doubt."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from bulk.errors import Interrupted
from bulk.ledger.digests.verification import verify
from bulk.ledger.records import Intent
from bulk.ledger.view import LedgerView
from tests.execute.test_combined_run import job, seed
from tests.ledger.samples import opened
from tests.simulation.schedules import put, readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_BEFORE, FINE, Fate, answer
from tests.simulation.world import FLEET, World, simulate, world

JSON = "application/json"
GONE = answer(404, b'{"message": "Not Found"}', JSON)
PAUSE = replace(
    answer(429, b'{"message": "You have exceeded a secondary rate limit"}', JSON, Retry_After="60"), answer_s=0.5
)
LATE = Fate(answer_s=1.0)


def paused_before_the_write(exchange: Exchange) -> Fate:
    """What is looked at is answered late; meanwhile the platform asks for a pause."""
    if exchange.path.endswith("/readme"):
        return PAUSE if "repo-00001" in exchange.path else FINE
    return FINE if exchange.is_write else LATE


def open_intents(made: World, manifest: Path) -> Mapping[tuple[int, int], Intent]:
    """Those that the next process would settle."""
    with opened(made.run_dir(manifest), identity=LedgerView(made.run_dir(manifest)).identity()) as ledger:
        return ledger.open_intents()


async def stopped_in_the_pause(made: World, manifest: Path) -> None:
    """Run it, and send a SIGTERM in the middle of the pause."""

    async def stop() -> None:
        await anyio.sleep(10.0)
        made.runs[-1].stop(Interrupted("SIGTERM", 143))

    async with anyio.create_task_group() as group:
        group.start_soon(stop)
        assert (await made.run(manifest)).exit_code == 143


def jobs(writes: dict[str, Any]) -> dict[str, Any]:
    """A read that shows the token to be good, one that meets the pause, and these writes."""
    return {"reads": {"operation": "readme.get", "items": readmes(2)}, "writes": writes}


def test_what_never_left_is_taken_back_when_the_run_is_stopped(folder: Path) -> None:
    """The next process sends it as if for the first time: where it is refused then, it failed, and is not `unknown`."""

    async def main() -> None:
        async with world(folder, fate_of=paused_before_the_write) as made:
            manifest = made.write("run", jobs({"operation": "contents.put", "items": [put("repo-00001", "a", "x")]}))
            await stopped_in_the_pause(made, manifest)
            assert not [each for each in made.network.exchanges if each.is_write]
            assert open_intents(made, manifest) == {}
            assert verify(made.run_dir(manifest)).flaws == ()
            made.network.fate_of = lambda each: GONE if each.is_write else FINE
            assert (await made.run(manifest)).exit_code == 1
            line = made.lines(manifest)[-1]
            assert (line["outcome"], line["error"]["code"]) == ("failed", "not_found")
            assert verify(made.run_dir(manifest)).flaws == ()

    simulate(main)


def test_what_items_share_is_taken_back_for_all_of_them(folder: Path) -> None:
    """A call that several items share did not leave: none of them is in doubt."""

    async def main() -> None:
        data = f"{seed(6)}{FLEET}"
        async with world(folder, fate_of=paused_before_the_write, seed_data=data) as made:
            manifest = made.write("run", jobs(job("assign", [f"org-{number:03d}" for number in range(6)])))
            await stopped_in_the_pause(made, manifest)
            assert not [each for each in made.network.exchanges if each.is_write]
            assert open_intents(made, manifest) == {}
            made.network.fate_of = lambda _: FINE
            assert (await made.run(manifest)).exit_code == 0
            assert len(made.effects()) == 1

    simulate(main)


def test_what_may_have_left_stays_a_doubt(folder: Path) -> None:
    """Of a write whose answer was lost the intent stays, also where its repeat never left."""

    async def main() -> None:
        def fate_of(exchange: Exchange) -> Fate:
            return DROP_BEFORE if exchange.is_write else paused_before_the_write(exchange)

        async with world(folder, fate_of=fate_of) as made:
            item = put("repo-00001", "a", "x", mode="create")
            manifest = made.write("run", jobs({"operation": "contents.put", "items": [item]}))
            await stopped_in_the_pause(made, manifest)
            assert len([each for each in made.network.exchanges if each.is_write]) == 1
            assert open_intents(made, manifest).keys() == {(1, 0)}
            made.network.fate_of = lambda _: FINE
            assert (await made.run(manifest)).exit_code == 0
            assert len(made.effects()) == 1

    simulate(main)
