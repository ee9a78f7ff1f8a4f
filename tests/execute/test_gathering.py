"""Outcomes of items that share no lane gather beside the intents of their job, and not where that would matter."""

from pathlib import Path

import anyio
import pytest

from bulk.execute import recorder as module
from bulk.execute.recorder import GATHER_S, JOIN_S
from bulk.ledger.records import Record
from tests.execute.recording import Bench, simulate
from tests.ledger import samples


def test_outcomes_without_a_lane_gather_beside_intents(folder: Path) -> None:
    """They wait for each other while intents of their job go to disk, and no longer than `GATHER_S` by much."""
    came: dict[int, float] = {}

    async def main(bench: Bench) -> None:
        for index in range(30):
            await bench.recorder.intend(samples.intent(index))
            bench.recorder.record(samples.record(index, job=1), 100, is_alone=True)
            came[index] = bench.clock.monotonic()
            await bench.clock.sleep(0.002)

    bench = simulate(folder, main)
    waited = [at - came[index] for at, index in bench.told]
    assert [index for _, index in bench.told] == list(range(30))
    assert (
        sum(any(isinstance(entry, Record) for entry in group) for _, group in bench.groups) <= 30 * 0.003 / GATHER_S + 1
    )
    assert max(waited) < GATHER_S + 2 * (bench.slow_s + JOIN_S + 0.002)


@pytest.mark.parametrize("what", ["intent", "outcome", "holder", "many", "large"])
def test_gathered_outcomes_go_at_once_where_that_matters(folder: Path, what: str) -> None:
    """Before an intent of another job, which may change what a resume would read back; with an outcome of another job,
    with a holder of bodies that is told when they are durable; and when they are many or large."""

    async def main(bench: Bench) -> None:
        recorder, began = bench.recorder, bench.clock.monotonic()
        await recorder.intend(samples.intent(9))
        recorder.record(samples.record(0, job=1), 100, is_alone=True)
        match what:
            case "intent":
                await recorder.intend(samples.intent(1, job=0))
                assert samples.keys(bench.folder) == [("codeowners", 0)]
            case "outcome":
                recorder.record(samples.record(0), 100, is_alone=True)
                await recorder.intend(samples.intent(2))
                assert len(samples.keys(bench.folder)) == 2
            case "holder":
                recorder.hold("a body")
                await recorder.intend(samples.intent(2))
                assert samples.keys(bench.folder) == [("codeowners", 0)]
            case "many":
                for index in range(1, module.GROUP_MOST):
                    recorder.record(samples.record(index, job=1), 1, is_alone=True)
                await recorder.intend(samples.intent(module.GROUP_MOST))
                assert len(samples.keys(bench.folder)) == module.GROUP_MOST
            case "large":
                recorder.record(samples.record(1, job=1), module.GROUP_BYTES, is_alone=True)
                await recorder.intend(samples.intent(2))
                assert len(samples.keys(bench.folder)) == 2
        assert bench.clock.monotonic() - began < GATHER_S / 2

    simulate(folder, main)


def test_catching_up_ends_while_others_go_on(folder: Path) -> None:
    """It waits for what was handed over so far, gathered outcomes as well, and not for what comes later."""

    async def main(bench: Bench) -> None:
        numbers = iter(range(1, 200))

        async def go_on() -> None:
            for index in numbers:
                bench.recorder.record(samples.record(index, job=1), 100)
                await bench.recorder.intend(samples.intent(index + 200))

        bench.slow_s = 0.01
        async with anyio.create_task_group() as group:
            group.start_soon(go_on)
            group.start_soon(go_on)
            await bench.clock.sleep(0.052)
            bench.recorder.record(samples.record(0, job=1), 100, is_alone=True)
            await bench.recorder.caught_up()
            assert 0 in [index for _, index in bench.told]
            assert len(bench.told) < 30
            group.cancel_scope.cancel()

    simulate(folder, main)


@pytest.mark.parametrize("waits", [True, False], ids=["the run goes on", "the run ends"])
def test_what_gathered_before_the_last_intent_is_written(folder: Path, waits: bool) -> None:
    """Nothing else has to come after it."""

    async def main(bench: Bench) -> None:
        bench.recorder.record(samples.record(0, job=1), 100, is_alone=True)
        await bench.recorder.intend(samples.intent(1))
        assert not samples.keys(bench.folder)
        if waits:
            await bench.clock.sleep(2 * GATHER_S)
            assert samples.keys(bench.folder) == [("codeowners", 0)]

    bench = simulate(folder, main)
    assert samples.keys(bench.folder) == [("codeowners", 0)]
