"""One worker: a process with one engine, which works on one run after the other, until it is told to stop.

A manifest can't give the worker more access than its own command line does: tokens come from that command line, and go
only to the platforms that are named there. Source: interface.md §4 (worker).
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg

from bulk.bundle.secret_fields import SecretPlaces
from bulk.clock import Clock
from bulk.cluster import folder
from bulk.cluster.board import StoreBoard
from bulk.cluster.budgets import StorePeers
from bulk.cluster.engine_tag import engine_tag
from bulk.cluster.keeping import Keeper, ShardLedger, stop_run
from bulk.cluster.left_alone import AGAIN_S, SOON_S, LeftAlone, Outage
from bulk.cluster.packing import refuse_what_stays_here, unpacked
from bulk.cluster.stored_waves import StoredWaves
from bulk.engine.execution import Prepared, prepare
from bulk.engine.perform import perform
from bulk.engine.run import Run
from bulk.engine.surroundings import Surroundings
from bulk.errors import BulkError, Interrupted, RunDirectoryError, RunStopped, UsageError
from bulk.execute.resume_state import ResumeState
from bulk.execute.writes.late_writes import LateWrites
from bulk.execute.writes.recent_writes import RecentCreations, RecentWrites
from bulk.exit_codes import ExitCode
from bulk.platform.auth.manifest_credentials import AnyCredential, credentials_of
from bulk.schedule.job_progress import JobProgress
from bulk.status import Silence
from bulk.storage.private_files import DIRECTORY_MODE, stopped
from bulk.store import bundles, runs, submissions
from bulk.store.address import StoreAddress
from bulk.store.connections import Ending, StoreConnection, connect
from bulk.store.holding import Holding
from bulk.store.leases import GRACE_S, TTL_S, Leases, show_alive
from bulk.store.ledger import StoreWentBack
from bulk.store.schema import refuse_other

log = logging.getLogger("bulk.cluster")

IDLE_S = 1.0
"""How often a worker without work asks for some (seconds); a notice of the store makes it ask at once."""

ALIVE_S = 3.0
"""How often a worker tells the store that it is alive, whatever it does (seconds)."""

CHANNELS = ("bulk_state", "bulk_shard", "bulk_budget", "bulk_account")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker.

    Attributes:
        base_urls: platforms that its tokens may be sent to, normalized.
        credentials: name -> source.
        folder: where it keeps its files.
        ttl_s: how long a lease lasts without a renewal (seconds).
        secrets: where it finds the secrets that items name; None: it has none.
    """

    store: StoreAddress
    base_urls: Sequence[str]
    credentials: Mapping[str, str]
    folder: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    ttl_s: float = TTL_S
    secrets: SecretPlaces | None = None


class Worker:
    """A worker, which works until it is told to stop."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings, self._clock = settings, Clock()
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self._engine = engine_tag()
        self._run: Run | None = None
        self._keeper: Keeper | None = None
        self._is_ending, self._ending = False, Ending()
        self._noticed = anyio.Event()
        self._left_alone = LeftAlone()
        self._written: dict[int, int] = {}
        self._outage = Outage(self._clock.elapsed)

    def connection(self, purpose: str) -> StoreConnection:
        """Return a new connection to the store, for the caller alone."""
        return StoreConnection(self._settings.store, purpose, self._ending)

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Work until a signal comes; `on_ready` is called when the worker can begin.

        Raises:
            RunStopped: the store can't be reached at the start.
            RunDirectoryError: the store is of another version, this user may not work on its runs, or another worker
                has the folder of this one.
        """
        with ExitStack() as stack:
            stack.enter_context(folder.held(self._settings.folder))
            store = stack.enter_context(self.connection("worker"))
            await anyio.to_thread.run_sync(refuse_other, store)
            leases = Leases(store, self.name, self._engine, self._clock.elapsed, ttl_s=self._settings.ttl_s)
            async with anyio.create_task_group() as group:
                await group.start(self._watch_signals)
                group.start_soon(self._listen, leases.worker)
                on_ready()
                await self._work(leases)
                group.cancel_scope.cancel()
            with contextlib.suppress(BulkError):  # without it the worker is listed a little longer
                await anyio.to_thread.run_sync(leases.leave)

    async def _watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
            task_status.started()
            async for number in received:
                reason = Interrupted(signal.Signals(number).name, 128 + number)
                if self._run is not None:
                    (self._run.stop_now if self._is_ending else self._run.stop)(reason)
                (self._ending.give_up if self._is_ending else self._ending.begin)()
                self._is_ending = True
                self._notice()

    def _notice(self) -> None:
        self._noticed.set()
        if self._keeper is not None:
            self._keeper.notice()

    async def _listen(self, worker: int) -> None:
        """Listen to the notices of the store, and tell it that this worker is alive.

        A missed notice does no harm, because the worker asks by itself a moment later.
        """
        connection: psycopg.Connection | None = None
        told_at = -ALIVE_S
        try:
            while True:
                try:
                    if connection is None:
                        connection = await anyio.to_thread.run_sync(self._ear)
                    if self._clock.monotonic() >= told_at + ALIVE_S:
                        told_at = self._clock.monotonic()
                        await anyio.to_thread.run_sync(show_alive, connection, worker, abandon_on_cancel=True)
                    heard = await anyio.to_thread.run_sync(partial(_heard, connection), abandon_on_cancel=True)
                except (psycopg.Error, BulkError):
                    if connection is not None:
                        connection.close()
                    connection = None
                    await self._clock.sleep(IDLE_S)
                    continue
                if "bulk_budget" in heard and self._run is not None:
                    for account in self._run.governor.accounts.values():
                        for queue in account.queues.values():
                            if queue.tokens is not None:
                                queue.tokens.look()
                if heard - {"bulk_budget"}:
                    self._notice()
        finally:
            if connection is not None:
                connection.close()

    def _ear(self) -> psycopg.Connection:
        connection = connect(self._settings.store, "worker listens", self._ending)
        for channel in CHANNELS:
            connection.execute(f"LISTEN {channel}".encode())
        return connection

    async def _work(self, leases: Leases) -> None:
        while not self._is_ending:
            self._noticed = anyio.Event()
            worked, pause_s = False, IDLE_S
            try:
                await anyio.to_thread.run_sync(leases.tidy)
                self._outage.is_over()
                for run in await anyio.to_thread.run_sync(leases.claimable):
                    if not self._left_alone.has(run, self._clock.monotonic()) and not self._is_ending:
                        await self._try(run, leases)
                        worked = True
            except BulkError as away:  # whatever it is, somebody may put it right
                self._outage.goes_on(away)
                pause_s = IDLE_S if isinstance(away, RunStopped) else AGAIN_S
            if not worked and not self._is_ending:
                with anyio.move_on_after(pause_s):
                    await self._noticed.wait()

    async def _try(self, run: int, leases: Leases) -> None:
        try:
            await self._work_on(run, leases)
        except BulkError as flaw:
            log.warning("run %d: %s", run, flaw)
            if isinstance(flaw, StoreWentBack):
                await self._stop(run, flaw)
            has_begun, is_soon = self._run is not None, isinstance(flaw, RunStopped | RunDirectoryError)
            if not (has_begun and isinstance(flaw, RunDirectoryError)):  # those shards are another worker's now
                self._leave_alone(run, SOON_S if is_soon else AGAIN_S)
        finally:
            self._run = self._keeper = None

    def _leave_alone(self, run: int, first_s: float) -> None:
        self._left_alone.leave(run, first_s, self._clock.monotonic())

    async def _work_on(self, number: int, leases: Leases) -> None:
        """Work on a run until there is nothing left to do in it."""
        with ExitStack() as stack:
            store = stack.enter_context(self.connection("worker looks"))
            run = await anyio.to_thread.run_sync(partial(_numbered, store, number))
            workspace = self._settings.folder / f"run-{number}"  # a name could lead out of the folder
            stack.callback(shutil.rmtree, workspace, ignore_errors=True)
            prepared, credentials = await self._prepared(store, run, workspace)
            manifest = prepared.checked.manifest
            limits = manifest.limits
            peers = StorePeers(
                stack.enter_context(self.connection("worker budgets")),
                manifest.platform.base_url,
                leases.worker,
                lambda limit: limits.reserve_at(self._clock.now()).of(limit),
                limits.request_timeout_s + GRACE_S,
                self._clock.monotonic,
            )
            board = StoreBoard(number, StoredWaves(prepared.checked, number))
            board.take(await anyio.to_thread.run_sync(board.read, store))
            await self._perform(prepared, credentials, leases, peers, board, store, number, workspace, stack)

    async def _perform(
        self,
        prepared: Prepared,
        credentials: Mapping[str, AnyCredential],
        leases: Leases,
        peers: StorePeers,
        board: StoreBoard,
        store: StoreConnection,
        number: int,
        workspace: Path,
        stack: ExitStack,
    ) -> None:
        records, loop = self.connection("worker records"), asyncio.get_running_loop()

        def on_over() -> None:
            loop.call_soon_threadsafe(self._notice)

        written = self._written.get(number, 0)
        ledger = ShardLedger(records, number, leases.worker, workspace, Holding(), written, on_over=on_over)
        stack.enter_context(ledger)
        stack.callback(lambda: self._written.update({number: ledger.written}))
        resume_state = _nothing_held(prepared)
        keeper = self._keeper = Keeper(prepared.checked, resume_state, leases, ledger, store, peers, board)
        around = Surroundings(
            environ={}, secrets=self._settings.secrets, peers=peers, board=board, before=ledger.before
        )
        async with anyio.create_task_group() as group:

            def attach(run: Run) -> None:
                self._run = run
                group.start_soon(keeper.run, run)

            group.start_soon(peers.tell)
            failure: BulkError | None = None
            try:
                ended = await perform(
                    prepared.checked, ledger, resume_state, credentials, Silence(), around, attach=attach
                )
            except BulkError as error:  # raised below, not in a group
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        log.info("run %d: %s", number, ended.why or "nothing is left")
        if self._run is not None and self._run.is_cut:
            return  # requests that were in flight may still arrive: the leases end by themselves, later than those
        await keeper.release()
        if ended.exit_code == ExitCode.CREDENTIAL_REFUSED:
            await keeper.stop(f"worker {self.name}: {ended.why}")  # others may have a better token
        elif not keeper.is_told_to_end and not self._is_ending:  # the platform is out of reach, say
            self._leave_alone(number, SOON_S)
            return
        self._left_alone.went(number)

    async def _stop(self, number: int, went_back: StoreWentBack) -> None:
        """Stop a run for all workers: a person has to decide, because whoever goes on may write things again."""
        with self.connection("worker stops") as store:
            while not self._is_ending:
                try:
                    await anyio.to_thread.run_sync(stop_run, store, number, f"worker {self.name}: {went_back}")
                except RunStopped as away:
                    self._outage.goes_on(away)
                    await self._clock.sleep(IDLE_S)
                else:
                    break
        self._written.pop(number, None)

    async def _prepared(
        self, store: StoreConnection, run: runs.StoredRun, workspace: Path
    ) -> tuple[Prepared, Mapping[str, AnyCredential]]:
        """Download the bundle of a run, and return it prepared, with this worker's credentials.

        Raises:
            UsageError: the run goes to a platform, or needs a credential or secrets, that this worker does not have;
                or the bundle can't be used, or gives another manifest or other items than those of the run.
        """
        if run.identity.base_url not in self._settings.base_urls:
            raise UsageError(f"it goes to {run.identity.base_url}, which no --base-url of this worker names")
        if run.names_secrets and self._settings.secrets is None:
            raise UsageError("its items name secrets, and this worker has none: --secrets DIR")
        await anyio.to_thread.run_sync(_download, store, run.bundle, workspace)
        manifest, _ = unpacked(workspace, self._settings.credentials)
        refuse_what_stays_here(manifest)
        try:
            prepared = await prepare(manifest, workspace, Silence(), self._clock)
        except RunDirectoryError as flaw:
            raise UsageError(f"what was submitted can't be used: {flaw}") from flaw
        if submissions.identity_digest(prepared.identity) != submissions.identity_digest(run.identity):
            raise UsageError("what was downloaded is not what was submitted: this worker reads it otherwise")
        own = replace(manifest.platform, credentials=self._settings.credentials)
        credentials = credentials_of(replace(manifest, platform=own), self._settings.environ, self._clock)
        return prepared, credentials


def _heard(connection: psycopg.Connection) -> set[str]:
    return {notice.channel for notice in connection.notifies(timeout=1.0, stop_after=1)}


def _download(store: StoreConnection, bundle: bytes, workspace: Path) -> None:
    try:
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.mkdir(mode=DIRECTORY_MODE, parents=True)
        bundles.download(store, bundle, workspace)
    except OSError as error:
        raise stopped(error, workspace) from error


def _numbered(store: StoreConnection, number: int) -> runs.StoredRun:
    found = runs.numbered(store, number)
    if found is None:
        raise UsageError("it was forgotten")
    return found


def _nothing_held(prepared: Prepared) -> ResumeState:
    """Return the resume state of a worker that holds no shard yet."""
    checked = prepared.checked
    settle_s = checked.manifest.limits.settle_s
    progress = [JobProgress(found.items, bytearray((found.items + 7) // 8)) for found in checked.jobs]
    for each in progress:
        each.leave_all()
    return ResumeState(progress, {}, LateWrites(), RecentWrites(settle_s), RecentCreations(settle_s))
