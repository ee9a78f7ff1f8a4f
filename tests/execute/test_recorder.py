"""The way to disk: groups in order, intents awaited, a disk that refuses for a while or for good, and back pressure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

import anyio
import anyio.lowlevel
import pytest

from bulk.errors import RunDirectoryError, RunStopped
from bulk.execute import recorder as module
from bulk.execute.recorder import GATHER_S, GRACE_S, JOIN_S
from bulk.ledger.records import Intent, Record, StoredTally
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from tests.execute.recording import FULL, Bench, simulate
from tests.ledger import samples


def test_outcomes_gather_and_keep_their_order(folder: Path) -> None:
    """Outcomes of reads wait a moment for each other and are written in one group, in the order in which they came."""

    async def main(bench: Bench) -> None:
        for index in range(50):
            bench.recorder.record(samples.record(index), 100)
            await bench.clock.sleep(0.0001)

    bench = simulate(folder, main)
    written = [entry.finished.index for _, group in bench.groups for entry in group if isinstance(entry, Record)]
    assert written == list(range(50))
    assert len(bench.groups) <= 2
    assert [index for _, index in bench.told] == list(range(50))


def test_an_intent_is_durable_when_the_wait_is_over(folder: Path) -> None:
    """`intend` returns when the ledger on disk has the intent, with every outcome that came before it, and does not
    wait for the gathering of outcomes."""

    async def main(bench: Bench) -> None:
        bench.recorder.record(samples.record(0), 100)
        began = bench.clock.monotonic()
        await bench.recorder.intend(samples.intent(1))
        assert bench.clock.monotonic() - began < GATHER_S
        assert samples.keys(bench.folder) == [("readmes", 0)]
        assert list(bench.ledger.open_intents()) == [(1, 1)]

    simulate(folder, main)


def test_what_comes_meanwhile_goes_into_the_next_group(folder: Path) -> None:
    """While one group is written, later entries wait for the next one: no group overtakes another."""

    async def main(bench: Bench) -> None:
        bench.slow_s = 0.5
        async with anyio.create_task_group() as group:
            for index in range(6):
                group.start_soon(bench.recorder.intend, samples.intent(index))
                await bench.clock.sleep(0.2)

    bench = simulate(folder, main)
    order = [entry.index for _, group in bench.groups for entry in group if isinstance(entry, Intent)]
    assert order == list(range(6))
    assert len(bench.groups) < 6


def test_a_group_has_a_largest_size(folder: Path) -> None:
    """A full group does not wait for more: memory is bounded by the group, not by the gathering."""

    async def main(bench: Bench) -> None:
        with mock.patch.object(module, "GROUP_MOST", 10):
            for index in range(10):
                bench.recorder.record(samples.record(index), 100)
            await bench.clock.sleep(GATHER_S / 2)
            assert len(bench.groups) == 1

    simulate(folder, main)


def test_a_disk_that_refuses_for_a_while_loses_nothing(folder: Path) -> None:
    """failures.md row 47: the run is told to stop at once, what is in memory is written when the disk takes it."""

    async def main(bench: Bench) -> None:
        bench.refusals = [FULL] * 20
        bench.recorder.record(samples.record(0), 100)
        async with anyio.create_task_group() as group:
            group.start_soon(bench.recorder.intend, samples.intent(1))
            await bench.clock.sleep(1.0)
            assert bench.stops
            assert not bench.groups
            bench.recorder.record(samples.record(2), 100)
        assert bench.recorder.failure is None

    bench = simulate(folder, main)
    assert samples.keys(bench.folder) == [("readmes", 0), ("readmes", 2)]
    assert bench.clock is not None


def test_a_disk_that_refuses_for_good_ends_the_wait(folder: Path) -> None:
    """failures.md row 47: after the grace an intent is refused, so that its write does not leave; what was durable
    before stays."""

    async def main(bench: Bench) -> None:
        bench.recorder.record(samples.record(0), 100)
        await bench.clock.sleep(1.0)
        bench.refusals = [FULL] * 10_000
        bench.recorder.record(samples.record(1), 100)
        began = bench.clock.monotonic()
        with pytest.raises(RunStopped):
            await bench.recorder.intend(samples.intent(2))
        assert GRACE_S < bench.clock.monotonic() - began < GRACE_S + 1.0
        with pytest.raises(RunStopped):
            await bench.recorder.intend(samples.intent(3))
        await bench.recorder.wait_room()

    bench = simulate(folder, main)
    assert samples.keys(bench.folder) == [("readmes", 0)]
    assert bench.recorder.failure is FULL


def test_a_run_that_was_taken_over_is_not_tried_again(folder: Path) -> None:
    """failures.md row 45: another process has the run: nothing is repeated, and nothing more is written."""

    async def main(bench: Bench) -> None:
        bench.refusals = [RunDirectoryError("taken over")]
        with pytest.raises(RunStopped):
            await bench.recorder.intend(samples.intent(0))
        bench.recorder.record(samples.record(1), 100)

    bench = simulate(folder, main)
    assert isinstance(bench.recorder.failure, RunDirectoryError)
    assert not bench.groups
    assert len(bench.stops) == 1


@pytest.mark.parametrize("workers", [1, 5])
def test_workers_wait_while_too_much_is_on_its_way(folder: Path, workers: int) -> None:
    """Back pressure: however many wait for room, all of them go on once the disk has caught up, and never much more
    than the limit is in memory."""

    async def main(bench: Bench) -> None:
        bench.slow_s = 0.1
        numbers = iter(range(200))
        most = 0

        async def work() -> None:
            nonlocal most
            for index in numbers:
                if bench.recorder.is_full:
                    await bench.recorder.wait_room()
                bench.recorder.record(samples.record(index), 1_000)
                most = max(most, bench.recorder._waiting_bytes)
                await bench.clock.sleep(0.001)

        with mock.patch.object(module, "ROOM_BYTES", 10_000):
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(work)
        assert most <= 10_000 + workers * 1_000

    bench = simulate(folder, main)
    assert len(samples.keys(bench.folder)) == 200


def test_the_last_outcome_finds_its_reader(folder: Path) -> None:
    """What was recorded before `close` is durable when `run` ends, however slow the disk is."""

    async def main(bench: Bench) -> None:
        bench.slow_s = 2.0
        for index in range(3):
            bench.recorder.record(samples.record(index), 100)
            await bench.clock.sleep(0.5)
        bench.recorder.record(samples.record(3, OutcomeKind.FAILED), 100)

    bench = simulate(folder, main)
    assert len(samples.keys(bench.folder)) == 4


def test_a_status_goes_with_the_next_group(folder: Path) -> None:
    """`note_status` is stored soon, also when nothing else is to be written; the stores are flushed with each group."""
    flushed: list[None] = []

    async def main(bench: Bench) -> None:
        bench.recorder.note_status(samples.STATUS)
        await bench.clock.sleep(1.0)
        assert LedgerView(bench.folder).status() == samples.STATUS

    simulate(folder, main, flush=lambda: flushed.append(None))
    assert flushed


def test_a_slow_disk_is_paid_for_once_by_many(folder: Path) -> None:
    """With 50 ms for every commit, 64 writers one after the other share them: 640 writes, each with an intent that is
    awaited, take about as long as ten of them (failures.md row 50)."""

    async def writer(bench: Bench, first: int) -> None:
        for index in range(first, first + 10):
            await bench.recorder.intend(samples.intent(index))
            bench.recorder.record(samples.record(index, job=1), 100)

    async def main(bench: Bench) -> None:
        bench.slow_s, began = 0.05, bench.clock.monotonic()
        async with anyio.create_task_group() as group:
            for number in range(64):
                group.start_soon(writer, bench, number * 10)
        assert bench.clock.monotonic() - began < 12 * bench.slow_s

    bench = simulate(folder, main)
    assert len(bench.told) == 640
    assert len(bench.groups) <= 13


def test_a_group_is_tallied_once(folder: Path) -> None:
    """However often the ledger refuses a group, its items are tallied once, and that is stored with their outcomes."""
    seen: list[int] = []

    def tally(records: Sequence[Record]) -> Mapping[int, StoredTally]:
        seen.extend(record.finished.index for record in records)
        return {0: StoredTally(len(seen), b"{}"), -1: StoredTally(len(seen), b"{}")}

    async def main(bench: Bench) -> None:
        bench.full = 2
        for index in range(3):
            bench.recorder.record(samples.record(index), 100)
        await bench.recorder.caught_up()

    bench = simulate(folder, main, tally=tally)
    assert sorted(seen) == [0, 1, 2]
    assert LedgerView(bench.folder).tallies() == {0: StoredTally(3, b"{}"), -1: StoredTally(3, b"{}")}


def test_who_is_ready_joins_the_group(folder: Path) -> None:
    """Writes that are ready in the same moment share one group, also where each comes a turn of the loop later."""

    async def write(bench: Bench, index: int) -> None:
        for _ in range(index):
            await anyio.lowlevel.checkpoint()
        await bench.recorder.intend(samples.intent(index))

    async def main(bench: Bench) -> None:
        async with anyio.create_task_group() as group:
            for index in range(3):
                group.start_soon(write, bench, index)

    assert [entry.index for entry in simulate(folder, main).groups[0][1] if isinstance(entry, Intent)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("in_flight", "slow_s", "groups"),
    [(3, 0.01, [[0], [1, 2]]), (1, 0.01, [[0], [1], [2]]), (3, 0.001, [[0], [1], [2]])],
    ids=["others may come", "nobody else", "a fast disk"],
)
def test_a_group_waits_a_moment_for_others(
    folder: Path, in_flight: int, slow_s: float, groups: list[list[int]]
) -> None:
    """An intent that comes 0.8 ms later goes with the one before it: where others are in flight, on a disk on which a
    group takes long enough."""

    async def main(bench: Bench) -> None:
        bench.slow_s, bench.in_flight = slow_s, in_flight
        await bench.recorder.intend(samples.intent(0))
        async with anyio.create_task_group() as group:
            group.start_soon(bench.recorder.intend, samples.intent(1))
            await bench.clock.sleep(0.8 * JOIN_S)
            group.start_soon(bench.recorder.intend, samples.intent(2))

    written = simulate(folder, main).groups
    assert [[entry.index for entry in group if isinstance(entry, Intent)] for _, group in written if group] == groups
