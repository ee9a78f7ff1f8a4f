"""A world for the engine: the real sandbox, a network in memory, one clock, and runs of the real engine in it.

Nothing but time, chance, threads and the wire is replaced: `bulk.engine.commands` reads a manifest, opens a ledger on
disk, talks HTTP to the sandbox's own server. Work that ordinarily goes to a thread is done in place, so that the same
seed gives the same trace. What holds of every run is checked by `invariants.py`, some of it at every request.
"""

import asyncio
import contextlib
import gc
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio._backends._asyncio import CancelScope

from bulk.engine import commands, perform, run
from bulk.engine.again import Again
from bulk.engine.run import Run
from bulk.engine.surroundings import Ended, Surroundings
from bulk.ledger.records import Finished
from bulk.manifest.reading import Overrides
from bulk.report.fold import Report
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.http.context import inline
from bulk.sandbox.http.routes import Area
from bulk.sandbox.server import Sandbox, opened
from bulk.sandbox.settings import ExtraToken, RateLimit, Settings
from bulk.status import Display, Silence
from bulk.storage.disk_threads import Disk
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import Fate
from tests.simulation.wire.network import Network
from tests.virtual_time import START, VirtualClock, VirtualLoop

T = TypeVar("T")

BASE_URL = "http://127.0.0.1:8080/api/v3"
PREFIX = "/api/v3"
TOKEN = "sbx-site-admin"
HOURS = 3_600.0

FLEET = """\
repositories:
  - {organization: fleet, count: 6000, readme_bytes: 120}
"""


class SteppedLoop(VirtualLoop):
    """A virtual loop that counts its turns, so that something can be done at the N-th."""

    def __init__(self) -> None:
        super().__init__(is_alone=True)
        self.turns = 0
        self.at_turn: Callable[[int], None] | None = None

    def _run_once(self) -> None:
        self.turns += 1
        if self.at_turn is not None:
            self.at_turn(self.turns)
        super()._run_once()


class _InOrder(dict[Any, None]):
    """A set that keeps the order in which things were added."""

    def add(self, thing: Any) -> None:
        """Add it, if it is not there."""
        self[thing] = None

    def remove(self, thing: Any) -> None:
        """Take it out."""
        del self[thing]

    def discard(self, thing: Any) -> None:
        """Take it out, if it is there."""
        self.pop(thing, None)


@contextlib.contextmanager
def _cancelled_in_order() -> Iterator[None]:
    """anyio keeps the tasks of a scope in sets: they would be cancelled in the order of their addresses in memory."""
    real = CancelScope.__init__

    def init(self: Any, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        self._tasks, self._child_scopes = _InOrder(), _InOrder()

    with mock.patch.object(CancelScope, "__init__", init):
        yield


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """Garbage is looked for less often: a sixth of the time of a simulation otherwise."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def _in_place(function: Callable[..., T], *args: Any, **_: Any) -> T:
    """Instead of a worker thread: at once, on the loop."""
    await anyio.lowlevel.checkpoint()
    return function(*args)


def simulate(
    main: Callable[[], Awaitable[T]],
    *,
    at_most_s: float = 2 * HOURS,
    tick_s: float = run.STATUS_S,
) -> T:
    """Run `main` in virtual time, threads in place; longer than `at_most_s` (virtual seconds) is a stall.

    Args:
        tick_s: how often the display is told. It costs most where hours pass.
    """

    async def limited() -> T:
        with anyio.fail_after(at_most_s):
            return await main()

    with replaced(tick_s):
        return anyio.run(limited, backend_options={"loop_factory": SteppedLoop})


@contextlib.contextmanager
def replaced(tick_s: float = run.STATUS_S) -> Iterator[None]:
    """What a simulation has instead of threads and of chance in the order of things; see `simulate`."""
    with (
        _seldom_collected(),
        _cancelled_in_order(),
        mock.patch.object(anyio.to_thread, "run_sync", _in_place),
        mock.patch.object(run, "STATUS_S", tick_s),
    ):
        yield


async def disk_in_place(call: Callable[[], None]) -> None:
    """The recorder's disk, without a thread."""
    await anyio.lowlevel.checkpoint()
    call()


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the sandbox's journal; `at` on the loop's scale (seconds)."""

    at: float
    elapsed_s: float
    user: str | None
    method: str
    path: str
    status: int | None
    applied: bool
    effect: str | None
    category: str | None
    remaining: int | None

    @classmethod
    def read(cls, line: str) -> "Entry":
        found = json.loads(line)
        at = datetime.fromisoformat(found["at"]).timestamp() - START
        names = ("user", "method", "path", "status", "applied", "effect", "category", "remaining")
        return cls(at, found["elapsed_ms"] / 1_000, *(found[name] for name in names))


@dataclass(slots=True)
class World:
    """One sandbox and whatever runs against it.

    Attributes:
        path: folder of manifests, runs and the journal.
        clock: the engine's; the platform's is `platform_clock`, and both may be wrong (`skew_s`).
        seed: of the engine's own dice.
        runs: every `Run` that was made, newest last. current: run directory of the newest.
        told: items that a listener was told of, in order; `told_items`: which. on_told: called then.
        notes: what the display was told to say.
        violations: what was found wrong while a run went on, where raising would be taken for the engine's own error.
    """

    path: Path
    network: Network
    sandbox: Sandbox
    clock: VirtualClock
    platform_clock: VirtualClock
    journal_path: Path
    seed: int = 0
    environ: dict[str, str] = field(default_factory=lambda: {"BULK_TOKEN": TOKEN})
    disk: Disk = disk_in_place
    cache: Path | None = None
    runs: list[Run] = field(default_factory=list)
    told: list[Finished] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    current: Path | None = None
    on_told: Callable[[], None] = lambda: None
    told_items: set[tuple[str, int]] = field(default_factory=set)
    _look: sqlite3.Connection | None = None

    def write(
        self, name: str, jobs: Mapping[str, Mapping[str, Any]], limits: Mapping[str, Any] | None = None, **platform: Any
    ) -> Path:
        """Write a manifest (JSON is YAML), and its items as JSON lines."""
        written: dict[str, Any] = {}
        for job, about in jobs.items():
            items = self.path / f"{name}-{job}.items.jsonl"
            items.write_text("".join(f"{json.dumps(item)}\n" for item in about["items"]))
            written[job] = {**about, "items": items.name}
        manifest = {"version": 1, "name": name, "platform": {"base_url": BASE_URL, **platform}, "jobs": written}
        if limits:
            manifest["limits"] = dict(limits)
        path = self.path / f"{name}.yaml"
        path.write_text(json.dumps(manifest))
        return path

    async def run(self, manifest: Path, **more: Any) -> Report:
        """Run a manifest, or go on with it, as `bulk run` does.

        Args:
            more: `overrides`, `display`, and who is asked before it begins (`approve`).
        """
        approve = more.pop("approve", None)
        return await self._watched(
            self.run_dir(manifest),
            lambda around: commands.run_manifest(
                manifest,
                overrides=more.pop("overrides", Overrides()),
                run_dir=self.run_dir(manifest),
                display=more.pop("display", self.display()),
                environ=self.environ,
                surroundings=replace(around, approve=approve),
            ),
        )

    async def run_until_told(self, manifest: Path) -> None:
        """As `run`, cut off when the first items are told: `told_items` has them."""
        with anyio.CancelScope() as scope:
            self.on_told = lambda: scope.cancel() if self.told_items else None
            await self.run(manifest)
        self.on_told = lambda: None

    async def retry(self, manifest: Path, *, overwrites: bool = False) -> Report:
        """Run what did not succeed again, as `bulk retry` does, or with `--overwrite`."""
        return await self._watched(
            self.run_dir(manifest),
            lambda around: commands.resume_run(
                self.run_dir(manifest),
                overrides=Overrides(),
                display=self.display(),
                environ=self.environ,
                surroundings=around,
                again=Again(is_retry=True, overwrites=overwrites),
            ),
        )

    async def _watched(self, run_dir: Path, call: Callable[[Surroundings], Awaitable[Report]]) -> Report:
        if run_dir != self.current:
            self.current, self.told, self.told_items = run_dir, [], set()
        connector = self.network.connector()
        around = Surroundings(self.clock, random.Random(self.seed), self.disk, connector, cache=self.cache)

        class Watched(Run):
            def __init__(made, *args: Any) -> None:  # noqa: N805 - `self` is the world
                super().__init__(*args)
                made._listener = self
                self.runs.append(made)

            async def execute(made) -> Ended:  # noqa: N805
                try:
                    return await super().execute()
                finally:
                    self._look_away()

        with mock.patch.object(perform, "Run", Watched):
            try:
                return await call(around)
            finally:
                if not connector.closed:
                    await connector.close()

    def ledger(self) -> sqlite3.Connection:
        """What the newest run's ledger has on disk, seen by another connection than the engine's.

        It is kept while the run goes on, and closed before the engine closes its own.
        """
        if self._look is None:
            self._look = sqlite3.connect(f"file:{self.current}/ledger.db?mode=ro", uri=True, isolation_level=None)
        return self._look

    def _look_away(self) -> None:
        if self._look is not None:
            self._look.close()
            self._look = None

    def display(self) -> Display:
        """Shows nothing, remembers what it was told to say."""
        return _Remembering(self.notes)

    async def durable(self, finished: Sequence[Finished]) -> None:
        """The engine's listener."""
        self.told.extend(finished)
        self.told_items.update((each.job, each.index) for each in finished)
        self.on_told()

    def run_dir(self, manifest: Path) -> Path:
        """Where runs of that manifest live."""
        return self.path / "runs" / manifest.stem

    def lines(self, manifest: Path) -> list[dict[str, Any]]:
        """`results.jsonl`, in the order of jobs and items."""
        text = (self.run_dir(manifest) / "results.jsonl").read_text()
        return sorted((json.loads(line) for line in text.splitlines()), key=lambda line: (line["job"], line["index"]))

    def journal(self) -> list[Entry]:
        """What the sandbox wrote down."""
        return [Entry.read(line) for line in self.journal_path.read_text().splitlines()]

    def effects(self) -> list[str]:
        """What was changed on the platform, in order."""
        return [entry.effect for entry in self.journal() if entry.effect is not None]


class _Remembering(Silence):
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, text: str) -> None:
        """Keep it."""
        self._notes.append(text)


@contextlib.asynccontextmanager
async def world(
    path: Path,
    *,
    fate_of: Callable[[Exchange], Fate] | None = None,
    limits: Mapping[str, RateLimit] | None = None,
    latency_ms: float = 5.0,
    tokens: Sequence[ExtraToken] = (),
    seed: int = 0,
    seed_data: str = FLEET,
    areas: Sequence[Area] = AREAS,
    has_journal: bool = True,
    platform_skew_s: float = 0.0,
) -> AsyncIterator[World]:
    """A sandbox with its standard data and a small fleet, and the network to it.

    Args:
        limits: None: limits are off, and `/rate_limit` is 404.
        seed_data: added to the standard data.
        areas: what the platform serves; making git repositories is most of a start.
        has_journal: whether the platform writes down what it does.
        platform_skew_s: how wrong the platform's clock is (seconds).
    """
    path.mkdir(parents=True, exist_ok=True)
    data, journal = path / "seed.yaml", path / "journal.jsonl"
    data.write_text(seed_data)
    settings = Settings(
        state=path / "platform",
        seed_data=data,
        rate_limits=limits or {},
        rate_limit_off=limits is None,
        latency_ms=latency_ms,
        tokens=tuple(tokens),
        journal=journal if has_journal else None,
    )
    clock, platform_clock = VirtualClock(), VirtualClock()
    platform_clock.skew_s = platform_skew_s
    async with opened(settings, clock=platform_clock, blocking=inline, areas=areas) as sandbox:
        network = Network(server=sandbox.server)
        if fate_of is not None:
            network.fate_of = fate_of
        made = World(path, network, sandbox, clock, platform_clock, journal, seed)
        try:
            yield made
        finally:
            await sandbox.server.shutdown(1.0)


def now() -> float:
    """The loop's time (seconds)."""
    return asyncio.get_running_loop().time()
