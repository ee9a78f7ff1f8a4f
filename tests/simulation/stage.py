"""A world whose time stands still between two calls, so that a state machine can look at it after each step.

The sandbox, the network and a run of the engine live in tasks of one virtual loop, which turns only while one of the
methods here is being called. A run can be killed between any two of its turns: what the disk held then is kept, what
the process held in memory is gone, and so are its connections.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import anyio
import anyio.abc

from bulk.engine import perform
from bulk.engine.run import Run
from bulk.errors import BulkError, Interrupted
from bulk.ledger.records import Finished
from bulk.report.fold import Report
from tests.simulation.wire.memory import Memory
from tests.simulation.world import SteppedLoop, World, replaced, world

T = TypeVar("T")
MOST_S = 7_200.0
"""A run that has not ended after that time (virtual seconds) hangs."""


class Stage:
    """One world, and at most one run in it that goes on.

    Attributes:
        world: the world.
        report: of the run that ended last; None: it was killed or cancelled. error: what it raised instead.
    """

    world: World

    def __init__(self, folder: Path, **about: Any) -> None:
        """Args: about: of `world`."""
        self.report: Report | None = None
        self.error: BulkError | None = None
        self._put_back = contextlib.ExitStack()
        self._put_back.enter_context(replaced(2.0))
        # Two commands at once replace it, and the one that began first may end first.
        self._put_back.enter_context(mock.patch.object(perform, "Run", Run))
        self._runner = self._put_back.enter_context(asyncio.Runner(loop_factory=SteppedLoop))
        self._scope: anyio.CancelScope | None = None
        self._ended, self._over = asyncio.Event(), asyncio.Event()
        self._runs_before = 0
        self._group: anyio.abc.TaskGroup
        self._holder = self._loop.create_task(self._hold(folder, about))
        self._runner.run(self._opened())

    @property
    def _loop(self) -> SteppedLoop:
        loop = self._runner.get_loop()
        assert isinstance(loop, SteppedLoop)
        return loop

    async def _opened(self) -> None:
        while not hasattr(self, "_group"):
            assert not self._holder.done(), self._holder.exception()
            await asyncio.sleep(0)

    async def _hold(self, folder: Path, about: dict[str, Any]) -> None:
        async with world(folder, **about) as self.world, anyio.create_task_group() as self._group:
            await self._over.wait()

    def close(self) -> None:
        """End the world, with whatever goes on in it."""

        async def end() -> None:
            self._over.set()
            if self._scope is not None:
                self._scope.cancel()
            await self._holder

        try:
            self._runner.run(end())
        finally:
            self._put_back.close()

    def do(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Let time pass until `call` is done."""
        return self._runner.run(call())

    def call(self, function: Callable[[], T]) -> T:
        """What `function` returns, at this moment of the loop."""

        async def call() -> T:
            return function()

        return self.do(call)

    @property
    def is_running(self) -> bool:
        """Whether a run goes on."""
        return self._scope is not None

    def start(self, call: Callable[[], Awaitable[Report]]) -> None:
        """Begin a run; it goes on whenever time passes."""
        assert self._scope is None, "one run at a time"
        self.report, self.error = None, None
        self._ended = asyncio.Event()
        self._runs_before = len(self.world.runs)
        self.world.network.memory = Memory()

        async def go() -> None:
            self._scope = anyio.CancelScope()
            self._group.start_soon(self._play, call)
            await asyncio.sleep(0)

        self.do(go)

    async def _play(self, call: Callable[[], Awaitable[Report]]) -> None:
        assert self._scope is not None
        try:
            with self._scope:
                self.report = await call()
        except BulkError as error:
            self.error = error
        finally:
            self._scope = None
            self._ended.set()

    def pass_time(self, seconds: float) -> None:
        """Let `seconds` of virtual time pass."""
        self.do(lambda: asyncio.sleep(seconds))

    def pass_turns(self, turns: int) -> None:
        """Let the loop turn `turns` times, or until the run ends: the next thing happens between two turns."""

        async def turn() -> None:
            loop, reached = self._loop, asyncio.Event()
            last = loop.turns + turns

            def look(turn: int) -> None:
                if turn >= last:
                    loop.at_turn = None
                    reached.set()

            loop.at_turn = look
            async with anyio.create_task_group() as group:
                for event in (reached, self._ended):
                    group.start_soon(self._until, event, group.cancel_scope)
            loop.at_turn = None

        self.do(turn)

    @staticmethod
    async def _until(event: asyncio.Event, scope: anyio.CancelScope) -> None:
        await event.wait()
        scope.cancel()

    def wait_end(self) -> None:
        """Until the run has ended."""

        async def end() -> None:
            with anyio.fail_after(MOST_S):
                await self._ended.wait()

        if self.is_running:
            self.do(end)

    def signal(self) -> None:
        """What SIGINT does: nothing new is begun, what is under way ends; a run that only checks is cancelled."""
        if len(self.world.runs) > self._runs_before:
            self._end_by(lambda: self.world.runs[-1].stop(Interrupted("SIGINT", 130)))
        else:
            self.cancel()

    def cancel(self) -> None:
        """Cancel the run between two turns."""
        assert self._scope is not None
        self._end_by(self._scope.cancel)

    def _end_by(self, call: Callable[[], None]) -> None:
        self.call(call)
        self.wait_end()

    def kill(self, run_dir: Path, arrives_s: float) -> None:
        """End the run as SIGKILL does: its directory stays as it is now, its connections break, nobody is told more.

        Args:
            arrives_s: within what time what it had sent still arrives (seconds).
        """
        made, kept = self.world, run_dir.with_name(run_dir.name + ".kept")
        told: list[Finished] = []

        def die() -> None:
            if self._scope is None:  # it ended in this very turn
                return
            if run_dir.exists():
                shutil.copytree(run_dir, kept, symlinks=True, ignore=shutil.ignore_patterns("*-shm"))
            told.extend(made.told)
            for wire in made.network.client_wires:
                wire.close()
            self._scope.cancel()

        before = made.network.given_up_s, made.network.connect
        made.network.given_up_s, made.network.connect = arrives_s, _refused
        self._end_by(die)
        made.network.given_up_s, made.network.connect = before
        if kept.exists():
            shutil.rmtree(run_dir)
            kept.rename(run_dir)
            made.told, made.told_items = told, {(each.job, each.index) for each in told}
            self.report = None


def _refused() -> float:
    raise ConnectionRefusedError(111, "a killed process sends nothing")
