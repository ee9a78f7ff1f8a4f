"""`bulk.run` and `bulk.map`: the library without async, in scripts and in notebooks, whose event loop runs already.

The engine runs in an event loop of its own, in a thread of its own. The caller's thread waits for it, so that Ctrl-C
raises KeyboardInterrupt there as everywhere: the run is cancelled, and what was recorded is kept. The caller's thread
also takes the items and calls the progress callback.
"""

import asyncio
import functools
import importlib.util
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar, Unpack, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from bulk.capabilities import ResultT, Returns
from bulk.engine.library.engine import Engine
from bulk.engine.library.finished_item import FinishedItem
from bulk.engine.library.progress import Progress
from bulk.engine.library.settings import EngineSettings
from bulk.engine.library.staged_items import AnyItem, operation_of, stage
from bulk.operation import AnyOperation
from bulk.report.fold import Report
from bulk.status import RunStatus
from bulk.storage.scratch import scratch_folder

T = TypeVar("T")


def run(
    manifest: str | Path,
    *,
    run_dir: str | Path | None = None,
    progress: Progress | None = None,
    **settings: Unpack[EngineSettings],
) -> Report:
    """Run a manifest as `Engine.run` does, without async; `settings` are those of `Engine`.

    Raises:
        BulkError: nothing could be run.
        KeyboardInterrupt: Ctrl-C; the run can be resumed where `run_dir` was given, or with `bulk retry`.
    """
    with _Thread(progress).engine(settings) as (thread, engine):
        return thread.call(lambda: engine.run(manifest, run_dir=run_dir, progress=thread.tell))


@overload
def map(  # noqa: A001 - `bulk.map` is named after the built-in function
    operation: type[Returns[ResultT]],
    items: Iterable[AnyItem],
    *,
    run_dir: str | Path | None = None,
    progress: Progress | None = None,
    **settings: Unpack[EngineSettings],
) -> Iterator[FinishedItem[ResultT | None]]: ...


@overload
def map(  # noqa: A001
    operation: str | type[AnyOperation],
    items: Iterable[AnyItem],
    *,
    run_dir: str | Path | None = None,
    progress: Progress | None = None,
    **settings: Unpack[EngineSettings],
) -> Iterator[FinishedItem[Any]]: ...


def map(  # noqa: A001
    operation: Any,
    items: Iterable[AnyItem],
    *,
    run_dir: str | Path | None = None,
    progress: Progress | None = None,
    **settings: Unpack[EngineSettings],
) -> Iterator[FinishedItem[Any]]:
    """Map as `Engine.map` does, without async; `settings` are those of `Engine`.

    No request is sent before the caller asks for the first item that has ended. Leaving the loop early stops the run.

    Raises:
        BulkError: as for `Engine.map`.
        KeyboardInterrupt: Ctrl-C; with `run_dir`, the same call again goes on with the run.
    """
    with scratch_folder("map") as folder:
        staged = stage(folder, operation_of(operation), items)
        with _Thread(progress).engine(settings) as (thread, engine):
            outcomes = engine.map(staged.operation.name, staged, run_dir=run_dir, progress=thread.tell)
            with closing(thread.each(outcomes)) as each:
                yield from each


class _Thread:
    """The event loop in its thread, as the caller's thread sees it. Statuses are kept here until the caller waits."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._told: SimpleQueue[RunStatus | None] = SimpleQueue()
        self._portal: BlockingPortal | None = None

    @contextmanager
    def engine(self, settings: EngineSettings) -> "Iterator[tuple[_Thread, Engine]]":
        """Enter the block of an engine, and yield this thread and the engine."""
        engine = Engine(**settings)
        use_uvloop = importlib.util.find_spec("uvloop") is not None
        with (
            start_blocking_portal("asyncio", {"use_uvloop": use_uvloop}) as self._portal,
            self._portal.wrap_async_context_manager(engine),
        ):
            yield self, engine

    def tell(self, status: RunStatus) -> None:
        """Keep a status for the progress callback; called in the event loop."""
        if self._progress is not None:
            self._told.put(status)

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `function`, and call the progress callback meanwhile. If the wait is interrupted, cancel
        the function and wait until it has ended."""
        assert self._portal is not None, "inside of its block"
        has_ended = threading.Event()

        async def work() -> T:
            try:
                return await function()
            finally:
                has_ended.set()

        future = self._portal.start_task_soon(work)
        future.add_done_callback(lambda _: self._told.put(None))
        try:
            with _interruptible():
                while (status := self._told.get()) is not None:
                    if self._progress is not None:
                        self._progress(status)
        except BaseException:
            future.cancel()
            has_ended.wait()
            raise
        return future.result()

    def each(self, outcomes: AsyncGenerator[FinishedItem[Any], None]) -> Generator[FinishedItem[Any], None, None]:
        """Yield the items of an asynchronous generator, which is closed together with this generator."""
        try:
            while (one := self.call(lambda: anext(outcomes, None))) is not None:
                yield one
        finally:
            assert self._portal is not None, "inside of its block"
            self._portal.call(outcomes.aclose)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt even if the caller runs inside `asyncio.run`.

    The handler of `asyncio.run` only cancels the caller's task, and that task can't notice while it is blocked here.
    """
    current = signal.getsignal(signal.SIGINT)
    owner = getattr(current.func, "__self__", None) if isinstance(current, functools.partial) else None
    if not isinstance(owner, asyncio.Runner) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, current)
