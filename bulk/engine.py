"""The engine's face: run a manifest, retry a run, plan, ask for the limits; and the same as a library.

Reading order of the whole: README → `bulk/__init__.py` → this file → `run.py`, which puts the stages together.
"""

import os
import re
import sys
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from bulk.clock import Clock, iso_utc
from bulk.errors import BulkError, CredentialRefused, RunStopped, UsageError
from bulk.ledger.directory import Claim
from bulk.ledger.ledger import Ledger
from bulk.ledger.private import open_private
from bulk.ledger.records import RunIdentity
from bulk.ledger.view import LedgerView
from bulk.manifest.checking import Checked, check, load_checked
from bulk.manifest.manifest import Manifest, Platform
from bulk.manifest.plan import Plan, plan
from bulk.manifest.reading import Overrides, read_manifest, read_platform
from bulk.model import Failure, Finished, OutcomeKind
from bulk.origin import Origin, write_private
from bulk.platform.credentials import Credential
from bulk.platform.transport import Transport
from bulk.platform.wire import VerdictKind, judge, limits_from_body
from bulk.report.files import write_reports
from bulk.report.progress import Display, Silence
from bulk.report.report import Report, fold
from bulk.run import ASK_LIMITS, Ended, Listener, Run, Surroundings
from bulk.status import BucketStatus, JobStatus, RunStatus

RUNS = Path("runs")
"""Where runs live that were given no directory."""

RETRIED = frozenset((OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN))
FEED_MOST = 1_000
"""Outcomes that the library holds for a slow reader before the run waits for it (count)."""


async def run_manifest(
    path: Path,
    *,
    overrides: Overrides,
    run_dir: Path,
    cache: Path | None,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings | None = None,
    stdin: BinaryIO | None = None,
) -> Report:
    """Check a manifest, then run it, or go on with it where `run_dir` holds a run of it.

    Args:
        cache: folder of stored validators and bodies; None: none are kept.
        stdin: for items from standard input; None: the process's own.

    Returns:
        The report; its exit code also says when the run was stopped with work left.

    Raises:
        BulkError: nothing could be run: see its exit code.
    """
    around = surroundings or Surroundings(handles_signals=True)
    around.cache = cache
    manifest = read_manifest(path, overrides, environ)
    return await _run(manifest, Origin.of(manifest), run_dir, display, environ, around, stdin=stdin)


async def retry_run(
    run_dir: Path,
    *,
    overrides: Overrides,
    cache: Path | None,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings | None = None,
) -> Report:
    """Run the failed, skipped and unknown items of a run again, in the same run directory.

    Raises:
        BulkError: there is no such run, its manifest is gone or was edited, or it is in use.
    """
    around = surroundings or Surroundings(handles_signals=True)
    around.cache = cache
    origin = Origin.load(run_dir)
    manifest = read_manifest(Path(origin.manifest), origin.overrides(overrides), environ)
    return await _run(manifest, origin, run_dir, display, environ, around, is_retry=True)


async def plan_manifest(
    path: Path, *, overrides: Overrides, environ: Mapping[str, str], stdin: BinaryIO | None = None
) -> Plan:
    """Check a manifest and say what it costs and when it would end; sends nothing but `GET /rate_limit`.

    Raises:
        BulkError: the manifest can't be used, or the platform can't be asked.
    """
    clock = Clock()
    manifest = read_manifest(path, overrides, environ)
    with tempfile.TemporaryDirectory(prefix="bulk-plan-") as workspace:
        checked = await _check(manifest, Path(workspace), Silence(), clock, stdin)
        used = sorted({job.credential for job in manifest.jobs})
        buckets = await _ask_limits(manifest.platform, _credentials(manifest, environ, clock), used, clock)
        categories = {(job.credential, job.operation.category) for job in manifest.jobs}
        needed = [bucket for bucket in buckets if (bucket.credential, bucket.category) in categories]
        return plan(checked, needed, clock.now())


async def rate_limits(*, overrides: Overrides, environ: Mapping[str, str]) -> list[BucketStatus]:
    """Every bucket of every credential named in `overrides` (default: `env:BULK_TOKEN`).

    Raises:
        BulkError: no platform is named, it can't be reached, or it refuses a credential.
    """
    clock = Clock()
    platform = read_platform(overrides, environ)
    sources = {
        name: Credential(name, source, environ, Path.cwd(), clock=clock)
        for name, source in platform.credentials.items()
    }
    return await _ask_limits(platform, sources, sorted(sources), clock)


async def _ask_limits(
    platform: Platform, sources: Mapping[str, Credential], names: Sequence[str], clock: Clock
) -> list[BucketStatus]:
    buckets: list[BucketStatus] = []
    tokens = {name: sources[name].read() for name in names}
    async with Transport(
        base_url=platform.base_url,
        vendor=platform.vendor,
        api_version=platform.api_version,
        concurrency=1,
        request_timeout_s=30.0,
        ca_bundle=platform.ca_bundle,
        trust_env=platform.trust_env,
        clock=clock,
    ) as transport:
        for name, token in tokens.items():
            answer = await transport.send(ASK_LIMITS, token, None)
            if isinstance(answer, Failure):
                raise RunStopped(f"{platform.base_url} can't be reached: {answer.message}")
            verdict = judge(ASK_LIMITS, answer, platform.vendor)
            if verdict.kind is VerdictKind.UNAUTHORIZED:
                raise CredentialRefused(name, f"the platform refused the credential {name!r} (401): {verdict.message}")
            if verdict.kind is not VerdictKind.ACCEPTED:
                raise RunStopped(f"GET /rate_limit: {verdict.message}")
            if answer.status == 404:
                buckets.append(BucketStatus(credential=name, category="core", limit=None, remaining=None))
            buckets.extend(
                BucketStatus(
                    credential=name,
                    category=category,
                    limit=limits.limit,
                    remaining=limits.remaining,
                    reset_at=float(limits.reset),
                )
                for category, limits in limits_from_body(answer.body).items()
            )
    return buckets


async def _run(
    manifest: Manifest,
    origin: Origin,
    run_dir: Path,
    display: Display,
    environ: Mapping[str, str],
    around: Surroundings,
    *,
    stdin: BinaryIO | None = None,
    is_retry: bool = False,
    listener: Listener | None = None,
) -> Report:
    credentials = _credentials(manifest, environ, around.clock)
    with Claim.take(run_dir) as claim:
        checked = await _check(manifest, run_dir, display, around.clock, stdin)
        ledger = Ledger.open(run_dir, _identity(checked), now=around.clock.now(), claim=claim)
        with ledger:
            origin.save(run_dir)
            write_private(run_dir / "manifest.yaml", manifest.text.encode())
            if is_retry:
                ledger.reopen(RETRIED)
            run = Run(checked, run_dir, ledger, credentials, display, around, listener)
            ended, failure = await _execute(run)
            ledger.finish(ended.exit_code, ended.why, run.last_status)
            if failure is not None:
                raise failure
            report = fold(LedgerView(run_dir))
            write_reports(report, run_dir)
            return report


async def _execute(run: Run) -> tuple[Ended, BulkError | None]:
    """Run it; a failure before anything was sent still ends the epoch cleanly."""
    failure: BulkError | None = None
    try:
        return await run.execute(), None
    except* BulkError as group:
        failure = _first(group)
    assert failure is not None, "execute returns or raises"
    return Ended(failure.exit_code, str(failure)), failure


def _first(group: BaseExceptionGroup[BulkError]) -> BulkError:
    """The one error to tell: groups are unwrapped here and nowhere else."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, BulkError), "except* selects them"
    return error


def _credentials(manifest: Manifest, environ: Mapping[str, str], clock: Clock) -> dict[str, Credential]:
    folder = manifest.path.resolve().parent
    return {
        name: Credential(name, source, environ, folder, clock=clock)
        for name, source in manifest.platform.credentials.items()
    }


def _identity(checked: Checked) -> RunIdentity:
    manifest = checked.manifest
    return RunIdentity(
        name=manifest.name,
        base_url=manifest.platform.base_url,
        vendor=manifest.platform.vendor,
        manifest_digest=manifest.digest,
        items_digest=checked.digest,
        jobs=tuple(
            (job.name, job.operation.name, found.items)
            for job, found in zip(manifest.jobs, checked.jobs, strict=True)
        ),
    )


async def _check(
    manifest: Manifest, workspace: Path, display: Display, clock: Clock, stdin: BinaryIO | None
) -> Checked:
    """The check of an earlier process where nothing has changed since; otherwise every item is read now, in a thread."""
    started_at = clock.now()

    def tell(items: int) -> None:
        job = JobStatus(name="items", operation="check", items=None, outcomes={"checked": items})
        display.update(
            RunStatus(name=manifest.name, state="checking", at=clock.now(), started_at=started_at, jobs=(job,))
        )

    def work() -> Checked:
        found = load_checked(manifest, workspace)
        if found is None:
            found = check(manifest, workspace, stdin=stdin or sys.stdin.buffer, progress=tell)
        return found

    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


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

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None, "entered before"
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    async def run(self, manifest: str | Path, *, run_dir: str | Path | None = None) -> Report:
        """Run a manifest; what it says about the platform gives way to this engine's.

        Args:
            run_dir: where the run lives, so that it can be resumed; None: `runs/NAME-TIMESTAMP`.

        Raises:
            BulkError: nothing could be run.
        """
        path = Path(manifest)
        if run_dir is None:
            name = read_manifest(path, self._overrides, self._environ).name
            run_dir = new_run_dir(name, Clock())
        return await run_manifest(
            path,
            overrides=self._overrides,
            run_dir=Path(run_dir),
            cache=self._cache,
            display=Silence(),
            environ=self._environ,
            surroundings=Surroundings(),
        )

    async def map(
        self, operation: str, items: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]]
    ) -> AsyncIterator[Finished]:
        """Do `operation` with each item; gives each one that has ended, in the order in which they end.

        All items are taken and checked before the first request leaves. They are kept in a temporary folder meanwhile, not
        in memory; a slow reader slows the run.

        Raises:
            ManifestError: an item can't be used; nothing was sent.
            CredentialRefused, RunStopped: the rest could not be done.
        """
        if self._tasks is None:
            raise UsageError("Engine is an async context manager: async with Engine(...) as engine")
        feed, ends = anyio.create_memory_object_stream[Finished](FEED_MOST)
        with tempfile.TemporaryDirectory(prefix="bulk-map-") as folder, ends:
            path = Path(folder) / "map.json"
            await _write_items(path.with_name("items.jsonl"), items)
            job = {"operation": operation, "items": "items.jsonl"}
            path.write_bytes(msgspec.json.encode({"version": 1, "name": "map", "jobs": {"map": job}}))
            failures: list[BulkError] = []
            scope = anyio.CancelScope()
            over = anyio.Event()
            self._tasks.start_soon(self._feed, path, feed, scope, failures, over)
            try:
                async for finished in ends:
                    yield finished
            finally:
                scope.cancel()
                with anyio.CancelScope(shield=True):
                    await over.wait()
            if failures:
                raise failures[0]

    async def _feed(
        self,
        path: Path,
        feed: MemoryObjectSendStream[Finished],
        scope: anyio.CancelScope,
        failures: list[BulkError],
        over: anyio.Event,
    ) -> None:
        try:
            with scope, feed:
                around = Surroundings(cache=self._cache)
                manifest = read_manifest(path, self._overrides, self._environ)
                origin = Origin.of(manifest)
                run_dir = path.with_name("run")
                report = await _run(
                    manifest, origin, run_dir, Silence(), self._environ, around, listener=_Feed(feed)
                )
                if report.exit_code == CredentialRefused.exit_code:
                    failures.append(CredentialRefused("default", report.why))
                elif report.exit_code == RunStopped.exit_code:
                    failures.append(RunStopped(report.why))
        except BulkError as failure:
            failures.append(failure)
        finally:
            over.set()


class _Feed:
    """Hands what is durable to the reader of `Engine.map`; waits while he has not taken the earlier ones."""

    def __init__(self, feed: MemoryObjectSendStream[Finished]) -> None:
        self._feed = feed

    async def durable(self, finished: Sequence[Finished]) -> None:
        for one in finished:
            await self._feed.send(one)


async def _write_items(path: Path, items: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]]) -> None:
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(fd, "wb") as file:
        if isinstance(items, AsyncIterable):
            async for item in items:
                file.write(msgspec.json.encode(item) + b"\n")
        else:
            for item in items:
                file.write(msgspec.json.encode(item) + b"\n")


def new_run_dir(name: str, clock: Clock) -> Path:
    """`runs/NAME-TIMESTAMP` that is not there yet; the time is UTC, so that runs sort by it."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    stamp = iso_utc(clock.now())[:19].replace("-", "").replace(":", "")
    path, number = RUNS / f"{safe}-{stamp}", 1
    while path.exists():
        number += 1
        path = RUNS / f"{safe}-{stamp}-{number}"
    return path
