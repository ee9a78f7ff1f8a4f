"""The engine as a library: `async with bulk.Engine(...) as engine`, then `map` or `run` (interface.md §6)."""

import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec
from anyio.abc import TaskGroup

from bulk.clock import Clock
from bulk.engine.commands import execute, new_run_dir, remove_if_empty, run_manifest
from bulk.engine.origin import Origin
from bulk.engine.run import Surroundings
from bulk.errors import BulkError, CredentialRefused, RunStopped, UsageError
from bulk.finished import Finished
from bulk.manifest.reading import Overrides, read_manifest
from bulk.report.fold import Report
from bulk.status import Silence
from bulk.storage.private_files import open_private

FEED_MOST = 1_000
"""Outcomes that are held for a slow reader before the run waits for it (count)."""


class Engine:
    """The engine as a library: one platform, one credential, any number of runs. An async context manager.

    Args:
        base_url: `https://HOST/api/v3`.
        credential: where the token is (`env:NAME`, `file:PATH`, `command:PROGRAM ARG…`), never the token itself.
        concurrency: most requests in flight (count).
        cache: folder of stored validators and bodies; None: none are kept.
        environ: for `env:`; None: the process's own.
    """

    def __init__(
        self,
        *,
        base_url: str,
        credential: str = "env:BULK_TOKEN",
        vendor: str = "service",
        concurrency: int = 64,
        cache: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._overrides = Overrides(
            base_url=base_url, vendor=vendor, credentials={"default": credential}, concurrency=str(concurrency)
        )
        self._cache, self._environ = cache, os.environ if environ is None else environ
        self._tasks: TaskGroup | None = None
        self._feeds: set[_Feed] = set()

    async def __aenter__(self) -> Self:
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
            kind = error = trace = None  # it leaves the block as it is, not inside of an exception group
        return await tasks.__aexit__(kind, error, trace)

    async def run(self, manifest: str | Path, *, run_dir: str | Path | None = None) -> Report:
        """Run a manifest; what it says about the platform gives way to this engine's.

        Args:
            run_dir: where the run lives, so that it can be resumed; None: `runs/NAME-TIMESTAMP`.

        Raises:
            BulkError: nothing could be run.
        """
        path, made = Path(manifest), None
        if run_dir is None:
            name = read_manifest(path, self._overrides, self._environ).name
            run_dir = made = new_run_dir(name, Clock())
        try:
            return await run_manifest(
                path,
                overrides=self._overrides,
                run_dir=Path(run_dir),
                cache=self._cache,
                display=Silence(),
                environ=self._environ,
                surroundings=Surroundings(),
            )
        finally:
            if made is not None:
                remove_if_empty(made)

    async def map(
        self, operation: str, items: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]]
    ) -> AsyncGenerator[Finished, None]:
        """Do `operation` with each item; gives each one that has ended, in the order in which they end.

        Reads that ask for the same are sent once; the later ones end last.

        All items are taken and checked before the first request leaves. They are kept in a temporary folder meanwhile,
        not in memory; a slow reader slows the run.

        Raises:
            ManifestError: an item can't be used; nothing was sent.
            CredentialRefused, RunStopped: the rest could not be done.
            UsageError: the engine's block is over.
        """
        self._inside()
        with tempfile.TemporaryDirectory(prefix="bulk-map-") as folder:
            path = Path(folder) / "map.json"
            await _write_items(path.with_name("items.jsonl"), items)
            job = {"operation": operation, "items": "items.jsonl"}
            path.write_bytes(msgspec.json.encode({"version": 1, "name": "map", "jobs": {"map": job}}))
            tasks, feed = self._inside(), _Feed()
            tasks.start_soon(self._run_into, feed, path)
            self._feeds.add(feed)
            try:
                async for finished in feed.ends:
                    yield finished
            except anyio.ClosedResourceError:
                raise UsageError("the block of the engine has ended, with outcomes that nobody had taken") from None
            finally:
                feed.leave()
                self._feeds.discard(feed)
                feed.scope.cancel()
                with anyio.CancelScope(shield=True):
                    await feed.over.wait()
            if feed.failure is not None:
                raise feed.failure

    def _inside(self) -> TaskGroup:
        if self._tasks is None:
            raise UsageError("Engine is an async context manager: async with Engine(...) as engine")
        return self._tasks

    async def _run_into(self, feed: "_Feed", path: Path) -> None:
        try:
            with feed.scope, feed.into:
                around = Surroundings(cache=self._cache, listener=feed)
                manifest = read_manifest(path, self._overrides, self._environ)
                origin = Origin.of(manifest)
                run_dir = path.with_name("run")
                report = await execute(manifest, origin, run_dir, Silence(), self._environ, around)
                told, ended = feed.count, sum(report.outcomes.values())
                assert feed.has_left or told == ended, f"{told} of {report.outcomes} were told"
                if report.exit_code == CredentialRefused.exit_code:
                    feed.failure = CredentialRefused("default", report.why)
                elif report.exit_code == RunStopped.exit_code:
                    feed.failure = RunStopped(report.why)
        except BulkError as failure:
            feed.failure = failure
        finally:
            feed.over.set()


class _Feed:
    """Hands what is durable to the reader of `Engine.map`; waits while he has not taken the earlier ones.

    Attributes:
        ends: where the reader takes. scope: of the run; over: it has ended, with that failure or none.
        count: outcomes that were handed over.
    """

    def __init__(self) -> None:
        self.into, self.ends = anyio.create_memory_object_stream[Finished](FEED_MOST)
        self.scope, self.over = anyio.CancelScope(), anyio.Event()
        self.failure: BulkError | None = None
        self.has_left, self.count = False, 0

    def leave(self) -> None:
        """Nobody takes any more. Whoever waits for room goes on: a run is cancelled only after its last record."""
        self.has_left = True
        self.ends.close()

    async def durable(self, finished: Sequence[Finished]) -> None:
        with suppress(anyio.BrokenResourceError):  # the reader has left
            for one in finished:
                await self.into.send(one)
                self.count += 1


async def _write_items(path: Path, items: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]]) -> None:
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(fd, "wb") as file:
        if isinstance(items, AsyncIterable):
            async for item in items:
                file.write(msgspec.json.encode(item) + b"\n")
        else:
            for item in items:
                file.write(msgspec.json.encode(item) + b"\n")
