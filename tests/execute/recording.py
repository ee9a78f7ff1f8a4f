"""A recorder with a real ledger, on a disk that does as it is told, in virtual time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from bulk.errors import BulkError, RunStopped
from bulk.execute.recorder import CommitHooks, Recorder
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Entry, Record, StoredTally
from tests.ledger import samples
from tests.virtual_time import VirtualClock, run_virtual

FULL = RunStopped("no space left on device")


class Bench:
    """A recorder with its task, a real ledger, and a disk that does as it is told.

    Attributes:
        refusals: what the disk raises next, one for each call; then it works.
        full: how often the ledger refuses a group after that (count).
        in_flight: items that the recorder is told of.
        groups: what was committed, group by group, with the moment.
    """

    def __init__(
        self,
        folder: Path,
        flush: Callable[[], None] = lambda: None,
        tally: Callable[[Sequence[Record]], Mapping[int, StoredTally]] = lambda _: {},
    ) -> None:
        self.folder, self.clock = folder / "run", VirtualClock()
        self.ledger = samples.opened(self.folder)
        self.refusals: list[BulkError] = []
        self.slow_s, self.full = 0.001, 0
        self.told: list[tuple[float, int]] = []
        self.stops: list[RunStopped] = []
        self.groups: list[tuple[float, list[Entry]]] = []
        self.in_flight = 0
        self.recorder = Recorder(
            self._noting(self.ledger),
            self.clock,
            self.disk,
            CommitHooks(tally, flush, self.durable),
            self.stops.append,
            lambda: self.in_flight,
        )

    def _noting(self, ledger: Ledger) -> Ledger:
        real = ledger.commit

        def commit(batch: Sequence[Entry], *others: Any) -> None:
            if self.full:
                self.full -= 1
                raise FULL
            real(batch, *others)
            self.groups.append((self.clock.monotonic(), list(batch)))

        ledger.commit = commit  # type: ignore[method-assign, assignment]  # it still writes: the real one is called
        return ledger

    async def disk(self, call: Callable[[], None]) -> None:
        """Takes its time, and may refuse."""
        await self.clock.sleep(self.slow_s)
        if self.refusals:
            raise self.refusals.pop(0)
        call()

    async def durable(self, records: Sequence[Record]) -> None:
        """What is told is on disk."""
        on_disk = set(samples.keys(self.folder))
        assert {(record.finished.job, record.finished.index) for record in records} <= on_disk
        self.told += [(self.clock.monotonic(), record.finished.index) for record in records]

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run the recorder around `work`."""
        with self.ledger:
            async with anyio.create_task_group() as group:
                group.start_soon(self.recorder.run)
                await work()
                self.recorder.close()


def simulate(folder: Path, main: Callable[[Bench], Awaitable[None]], **more: Any) -> Bench:
    """Play `main` in virtual time."""
    made: list[Bench] = []

    async def play() -> None:
        made.append(Bench(folder, **more))
        with anyio.fail_after(600.0):
            await made[0].run(lambda: main(made[0]))

    run_virtual(play)
    return made[0]
