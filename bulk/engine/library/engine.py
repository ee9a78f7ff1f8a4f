"""`async with bulk.Engine(...) as engine`, then `map` or `run` (interface.md §6)."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack, overload

import anyio
from anyio.abc import TaskGroup

from bulk.capabilities import ResultT, Returns
from bulk.clock import Clock
from bulk.engine.commands import new_run_dir, run_manifest
from bulk.engine.execution import execute
from bulk.engine.library.finished_item import FinishedItem
from bulk.engine.library.map_directory import MapDirectory
from bulk.engine.library.progress import CallbackDisplay, Progress
from bulk.engine.library.settings import EngineSettings, overrides_from
from bulk.engine.library.staged_items import Items, StagedItems, operation_of, stage_async
from bulk.engine.status.unfinished import refuse_unfinished
from bulk.engine.surroundings import Surroundings
from bulk.errors import BulkError, ManifestError, UsageError
from bulk.ledger.records import Finished
from bulk.manifest.reading import read_manifest
from bulk.operation import AnyOperation
from bulk.report.fold import Report
from bulk.storage.scratch import scratch_folder

FEED_MOST = 1_000
"""At most this many outcomes are held for a slow reader before the run waits for the reader (count)."""
EARLIER_AT_ONCE = 500
"""At most this many outcomes of earlier calls are read from the ledger at once (count)."""


class Engine:
    """The engine as a library: one platform, any number of runs. An async context manager.

    The keywords are those of `EngineSettings`. A keyword takes precedence over the environment, and the environment
    over a manifest.

    Raises:
        UsageError: a setting can't be used, or no platform is named.
    """

    def __init__(self, **settings: Unpack[EngineSettings]) -> None:
        environ = settings.get("environ")
        self._environ: Mapping[str, str] = os.environ if environ is None else environ
        self._overrides = overrides_from(settings, self._environ)
        cache = settings.get("cache")
        self._cache = None if cache is None else Path(cache)
        self._tasks: TaskGroup | None = None
        self._feeds: set[_Feed] = set()

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            raise UsageError("this Engine is in use: make another one, or run several calls of it at once")
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        assert tasks is not None, "entered before"
        tasks.cancel_scope.cancel()
        for feed in self._feeds:
            feed.leave()
        if error is not None and not isinstance(error, anyio.get_cancelled_exc_class()):
            await tasks.__aexit__(None, None, None)  # the error leaves the block bare, not in an exception group
            return None  # whatever the group returns: it only handled the cancelling of its own tasks
        return await tasks.__aexit__(kind, error, trace)

    async def run(
        self, manifest: str | Path, *, run_dir: str | Path | None = None, progress: Progress | None = None
    ) -> Report:
        """Run a manifest. The settings of this engine replace what the manifest says about the platform and its limits.

        Args:
            run_dir: where the run lives, so that it can be resumed; None: `runs/NAME-TIMESTAMP`.
            progress: called with the status of the run several times a second; an exception that it raises ends the
                run.

        Raises:
            BulkError: nothing could be run.
        """
        path, read = Path(manifest), None
        if run_dir is None:
            read = read_manifest(path, self._overrides, self._environ)
            run_dir = new_run_dir(read.name, Clock())
        display = CallbackDisplay(progress, anyio.CancelScope())
        with display.scope:
            return await run_manifest(
                path,
                overrides=self._overrides,
                run_dir=Path(run_dir),
                display=display,
                environ=self._environ,
                surroundings=Surroundings(cache=self._cache),
                read=read,
            )
        assert display.failure is not None, "nothing else cancels the scope"
        raise display.failure

    @overload
    def map(
        self,
        operation: type[Returns[ResultT]],
        items: Items | StagedItems,
        *,
        run_dir: str | Path | None = None,
        progress: Progress | None = None,
    ) -> AsyncGenerator[FinishedItem[ResultT | None], None]: ...

    @overload
    def map(
        self,
        operation: str | type[AnyOperation],
        items: Items | StagedItems,
        *,
        run_dir: str | Path | None = None,
        progress: Progress | None = None,
    ) -> AsyncGenerator[FinishedItem[Any], None]: ...

    async def map(
        self,
        operation: Any,
        items: Items | StagedItems,
        *,
        run_dir: str | Path | None = None,
        progress: Progress | None = None,
    ) -> AsyncGenerator[FinishedItem[Any], None]:
        """Do `operation` with each item, and yield each item that has ended, in the order in which the items end.

        Reads that ask for the same are sent once; their later copies end last. All items are taken and checked before
        the first request is sent. Items are kept on disk meanwhile, not in memory; a slow reader slows the run.

        Args:
            operation: the name of the operation, or its class. With a class, the results have the type that the class
                declares (`Returns`).
            run_dir: where the run lives. The same call again, even after a crash, yields the items that had ended and
                goes on with the others; no item is done twice. None: a temporary folder, and nothing can be resumed.
            progress: as of `run`.

        Raises:
            ManifestError: an item can't be used; the flaws name it as `items[N]`, and nothing was sent.
            CredentialRefused, BudgetTooSmall, RunStopped: the other items could not be done.
            RunDirectoryError: `run_dir` is in use, or belongs to another run or other items.
            UsageError: the block of the engine has ended.
        """
        self._inside()
        with ExitStack() as stack:
            if isinstance(items, StagedItems):
                staged = items
            else:
                folder = stack.enter_context(scratch_folder("map"))
                staged = await stage_async(folder, operation_of(operation), items)
            place = MapDirectory(staged, None if run_dir is None else Path(run_dir))
            await anyio.to_thread.run_sync(place.prepare)
            earlier = place.finished_before()
            while ended := await anyio.to_thread.run_sync(lambda: list(islice(earlier, EARLIER_AT_ONCE))):
                for one in ended:
                    yield one
            feed = _Feed(progress)
            self._inside().start_soon(self._run_into, feed, place)
            self._feeds.add(feed)
            try:
                async for finished in feed.ends:
                    yield finished
            except anyio.ClosedResourceError:
                raise UsageError("the block of the engine has ended, with outcomes that nobody had taken") from None
            finally:
                feed.leave()
                self._feeds.discard(feed)
                feed.display.scope.cancel()
                with anyio.CancelScope(shield=True):
                    await feed.over.wait()
            failure = feed.display.failure or feed.failure
            if failure is not None:
                raise place.told(failure) if isinstance(failure, ManifestError) else failure

    def _inside(self) -> TaskGroup:
        if self._tasks is None:
            raise UsageError("Engine is an async context manager: async with Engine(...) as engine")
        return self._tasks

    async def _run_into(self, feed: "_Feed", place: MapDirectory) -> None:
        try:
            with feed.display.scope, feed.into, ExitStack() as stack:
                around = Surroundings(cache=self._cache, listener=feed)
                manifest, origin = place.read(self._overrides, self._environ)
                stdin = place.items()
                if stdin is not None:
                    stack.enter_context(stdin)
                report = await execute(
                    manifest, origin, place.run_dir, feed.display, self._environ, around, stdin=stdin
                )
                told, ended = feed.count + place.earlier, sum(report.outcomes.values())
                assert feed.has_left or told == ended, f"{told} of {report.outcomes} were told"
                refuse_unfinished(report)
        except BulkError as failure:
            feed.failure = failure
        finally:
            feed.over.set()


class _Feed:
    """Hands durable outcomes to the reader of `Engine.map`, and waits until the reader has taken the earlier ones.

    Attributes:
        into, ends: the two ends of the stream: the run puts outcomes into it, and the reader takes them.
        display: the progress display, with the cancel scope of the run.
        over: is set when the run has ended. failure: the error that it ended with; None: none.
        has_left: whether the reader takes no more. count: outcomes that were handed over (count).
    """

    def __init__(self, progress: Progress | None) -> None:
        self.into, self.ends = anyio.create_memory_object_stream[Finished](FEED_MOST)
        self.display, self.over = CallbackDisplay(progress, anyio.CancelScope()), anyio.Event()
        self.failure: BulkError | None = None
        self.has_left, self.count = False, 0

    def leave(self) -> None:
        """Note that the reader takes no more outcomes. A sender that waits for room goes on, because a run may be
        cancelled only after its last record.
        """
        self.has_left = True
        self.ends.close()

    async def durable(self, finished: Sequence[Finished]) -> None:
        with suppress(anyio.BrokenResourceError):  # the reader has left
            for one in finished:
                await self.into.send(one)
                self.count += 1
