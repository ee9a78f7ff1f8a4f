"""Whole runs of the real engine against the second platform, in virtual time: hours pass in a fraction of a second.

Threads are put in place, because virtual time does not wait for them; everything else of the engine is as it is.
"""

import asyncio
import contextlib
import gc
import json
import random
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import anyio
import anyio.lowlevel
import anyio.to_thread

from bulk.engine import commands, run
from bulk.engine.again import Again
from bulk.engine.migrations import undo_items
from bulk.engine.surroundings import Surroundings
from bulk.errors import RunStopped
from bulk.ledger.view import LedgerView
from bulk.manifest.reading import Overrides, read_manifest
from bulk.platform.response_heads import AnswerProtocol
from bulk.report.fold import Report
from bulk.status import Silence
from tests.hostile.http.turn import BASE_URL
from tests.hostile.http.wire import MemoryConnector, Service
from tests.hostile.wrong import Guest
from tests.virtual_time import START, VirtualClock, run_alone

T = TypeVar("T")
AT_MOST_S = 7_200.0
"""A run that takes longer does not end (virtual seconds)."""
CONCURRENCY = 8
"""Workers of each platform: there are dozens of platforms, each with one job of few items."""
TICK_S = 20.0
"""How often the display, which shows nothing, is told (virtual seconds)."""
AFTERWARDS_S = 120.0
"""What was to happen later has happened then (virtual seconds)."""


def wall() -> float:
    """The platform's time, seconds since 1970."""
    return START + asyncio.get_running_loop().time()


async def _in_place(function: Callable[..., T], *args: Any, **_: Any) -> T:
    await anyio.lowlevel.checkpoint()
    return function(*args)


async def _disk(call: Callable[[], None]) -> None:
    await anyio.lowlevel.checkpoint()
    call()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        with mock.patch.object(anyio.to_thread, "run_sync", _in_place), mock.patch.object(run, "STATUS_S", TICK_S):
            yield
    finally:
        gc.set_threshold(*before)


def in_virtual_time(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` on a loop whose time jumps."""
    with _quiet():
        return run_alone(main)


@dataclass(frozen=True, slots=True)
class Told:
    """What a run said.

    Attributes:
        report: None where it did not end. lines: of `results.jsonl`, by job.
        undone: the items of each job that `bulk undo` takes back or lists.
        took_s: virtual seconds. trouble: why there is no report.
    """

    report: Report | None
    lines: Mapping[str, list[dict[str, Any]]]
    took_s: float
    trouble: str = ""
    undone: Mapping[str, set[int]] = field(default_factory=dict)


def run_jobs(
    path: Path,
    jobs: Mapping[str, Mapping[str, Any]],
    guests: Mapping[str, Guest],
    *,
    at_most_s: float = AT_MOST_S,
    is_retried: bool = False,
    kills: Sequence[float] = (),
) -> Told:
    """Run a manifest in which each job has a credential, and with it a platform, of its own; then wait a while.

    Args:
        path: folder for the manifest and the run directory. guests: by the name of their job.
        at_most_s: a run that takes longer does not end (virtual seconds).
        is_retried: then nothing is wrong any more, and what did not end well is run again.
        kills: how long after it began the run is killed, for as many times, and begun again (virtual seconds).
    """

    async def main() -> Told:
        service = service_of(guests)
        manifest, environ = write_manifest(path, jobs)
        run_dir, began = path / "run", wall()
        run = partial(commands.run_manifest, manifest, run_dir=run_dir)
        for after_s in kills:
            await killed(run, service, environ, run_dir, after_s)
        report, trouble = await ended(run, service, environ, at_most_s)
        if kills and report is not None and report.exit_code == RunStopped.exit_code:
            # who begins while everything is wrong may take it for no platform at all
            await anyio.sleep(AFTERWARDS_S)
            report, trouble = await ended(run, service, environ, at_most_s)
        took_s = wall() - began
        await anyio.sleep(AFTERWARDS_S)
        if is_retried:
            for guest in guests.values():
                guest.recover()
            retry = partial(commands.resume_run, run_dir, again=Again(is_retry=True))
            report, trouble = await ended(retry, service, environ, at_most_s)
            await anyio.sleep(AFTERWARDS_S)
        undone = {} if report is None else _undone(run_dir, manifest, environ)
        return Told(report, lines_of(run_dir / "results.jsonl"), took_s, trouble, undone)

    return in_virtual_time(main)


async def killed(
    run: Callable[..., Awaitable[Report]],
    service: Service,
    environ: Mapping[str, str],
    run_dir: Path,
    after_s: float,
    cache: Path | None = None,
) -> None:
    """Run, and end it as SIGKILL does: its directory stays as it was then; what it had sent still arrives."""
    kept = run_dir.with_name("kept")
    connector = MemoryConnector(service, AnswerProtocol)

    async def kill() -> None:
        await anyio.sleep(after_s)
        if run_dir.exists():
            shutil.copytree(run_dir, kept, symlinks=True, ignore=shutil.ignore_patterns("*-shm"))
        connector.die()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(kill)
        await _ended_on(connector, run, environ, AT_MOST_S, cache)
        group.cancel_scope.cancel()
    if kept.exists():
        shutil.rmtree(run_dir)
        kept.rename(run_dir)


def service_of(guests: Mapping[str, Guest]) -> Service:
    """All platforms behind one address; each credential, which bears the name of its job, finds its own."""
    return Service(
        {f"token-of-{name}-0123456789": guest for name, guest in guests.items()},
        wall,
        max((guest.way.repeats_at for guest in guests.values()), default=0),
    )


async def ended(
    run: Callable[..., Awaitable[T]],
    service: Service,
    environ: Mapping[str, str],
    at_most_s: float,
    cache: Path | None = None,
) -> tuple[T | None, str]:
    """Return what a command gives, such as the report of a run, or why it did not end; answers are kept in `cache`."""
    return await _ended_on(MemoryConnector(service, AnswerProtocol), run, environ, at_most_s, cache)


async def _ended_on(
    connector: MemoryConnector,
    run: Callable[..., Awaitable[T]],
    environ: Mapping[str, str],
    at_most_s: float,
    cache: Path | None = None,
) -> tuple[T | None, str]:
    around = Surroundings(clock=VirtualClock(), dice=random.Random(1), disk=_disk, connector=connector, cache=cache)
    try:
        with anyio.fail_after(at_most_s):
            return await run(overrides=Overrides(), display=Silence(), environ=environ, surroundings=around), ""
    except TimeoutError:
        return None, f"no end after {at_most_s:.0f} s"
    finally:
        if not connector.closed:
            await connector.close()


def write_manifest(path: Path, jobs: Mapping[str, Mapping[str, Any]]) -> tuple[Path, dict[str, str]]:
    """Write a manifest in which each job has a credential of its own; return its path, and the environment of runs."""
    path.mkdir(parents=True, exist_ok=True)
    environ = {f"T{number}": f"token-of-{name}-0123456789" for number, name in enumerate(jobs)}
    written = {}
    for name, job in jobs.items():
        items = path / f"{name}.jsonl"
        items.write_text("".join(f"{json.dumps(item)}\n" for item in job["items"]))
        written[name] = {**job, "credential": name, "items": items.name}
    whole = {
        "version": 1,
        "name": "hostile",
        "platform": {
            "base_url": BASE_URL,
            "credentials": {name: f"env:T{number}" for number, name in enumerate(jobs)},
        },
        "limits": {"concurrency": CONCURRENCY},
        "jobs": written,
    }
    manifest = path / "manifest.yaml"
    manifest.write_text(json.dumps(whole))
    return manifest, environ


def _undone(run_dir: Path, manifest: Path, environ: Mapping[str, str]) -> dict[str, set[int]]:
    view = LedgerView(run_dir)
    jobs = read_manifest(manifest, Overrides(), environ).jobs
    return {job.name: {taken.index for taken in undo_items.of_job(view, job)} for job in jobs}


def lines_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The lines of a file of results, by job, in the order of the items."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        read = json.loads(line)
        found.setdefault(read["job"], []).append(read)
    for lines in found.values():
        lines.sort(key=lambda line: line["index"])
    return found
