"""Shards come and go while the engine runs: they are claimed when little is left to do, renewed, and finished.

The store decides which worker holds a shard. When a shard is lost to another worker, the engine ends at once and writes
nothing about the items that were under way: the worker that holds them now settles them.
"""

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from bulk.bundle.checked import Checked
from bulk.clock import Clock
from bulk.cluster.assignment import UNKNOWN_LEFT, Assigning, remember
from bulk.cluster.board import StoreBoard
from bulk.cluster.budgets import StorePeers
from bulk.cluster.left_alone import Outage
from bulk.cluster.stored_limits import applied, settable
from bulk.engine.run import Run
from bulk.errors import BulkError, RunDirectoryError, RunStopped
from bulk.execute.resume_state import ResumeState
from bulk.ledger.records import Entry, Record
from bulk.redaction import redact
from bulk.store import sql
from bulk.store.connections import StoreConnection
from bulk.store.leases import Ended, Lease, Leases, Shard
from bulk.store.ledger import StoreLedger

_SQL = sql.load("work")

log = logging.getLogger("bulk.cluster")

TICK_S = 0.5
"""How often the keeper looks for more to do, at least (seconds); it looks at once after a notice of the store."""

AHEAD = 4
"""Another shard is claimed when fewer than this many items are left for each request in flight (count)."""

SOON_S = 0.05
"""How soon the keeper looks again after a claim (seconds): the claimed shard may be a single lane."""

MARGIN_S = 2.0
"""How long before the end of a lease the last request may be sent (seconds)."""

T = TypeVar("T")


class ShardLedger(StoreLedger):
    """The ledger of a worker, which counts how many outcomes of each shard are still to be written.

    Attributes:
        left: shard -> items without a durable outcome (count).
        watched: error codes that have a budget: an item that ends with one of them is reported by `on_over`, too.
    """

    def __init__(self, *given: Any, on_over: Callable[[], None]) -> None:
        """Open the ledger.

        Args:
            on_over: called in the thread that writes, when a shard has no items left, or an item has ended with one of
                the `watched` errors.
        """
        super().__init__(*given)
        self._on_over, self._counting = on_over, threading.Lock()
        self.left: dict[int, int] = {}
        self.watched: AbstractSet[str] = frozenset()

    def commit(self, batch: Sequence[Entry], *more: Any, **named: Any) -> None:
        """See `StoreLedger`."""
        super().commit(batch, *more, **named)
        is_over = False
        with self._counting:
            for entry in batch:
                if type(entry) is Record:
                    shard = self.holding.shard_of(entry.job, entry.finished.index)
                    self.left[shard] -= 1
                    error = entry.finished.error
                    is_over = is_over or self.left[shard] == 0 or (error is not None and error.code in self.watched)
        if is_over:
            self._on_over()

    def made(self, job: int, items: int) -> None:
        """See `StoreLedger`; the number of items that are left in the shard is known from now on."""
        super().made(job, items)
        left = items - int.from_bytes(self.done_bits(job, items), "little").bit_count()
        with self._counting:
            self.left[self.holding.shard_of(job, 0)] += left - UNKNOWN_LEFT
        if not left:
            self._on_over()

    def over(self) -> list[int]:
        """Return the numbers of the shards that have no items left."""
        with self._counting:
            return [shard for shard, left in self.left.items() if left == 0]


@dataclass(frozen=True, slots=True)
class SharedState:
    """Where a run stands in the store.

    Attributes:
        state, why, limits: see `runs.StoredRun`.
        age_s: the time since the run was submitted, or since somebody last let it go on (seconds).
        workers: how many workers hold shards of it (count). open: shards that are not done (count).
        free: items of open shards that no worker holds (count). finished, failed: items (counts).
    """

    state: str
    why: str
    limits: Mapping[str, Any]
    age_s: float
    workers: int
    open: int
    free: int
    finished: int
    failed: int


def stop_run(store: StoreConnection, run: int, why: str) -> None:
    """Stop a run, for all workers."""
    with store.using() as connection:
        connection.execute(_SQL["stop"], (redact(why), run))
        connection.execute("SELECT pg_notify('bulk_state', %s)", (str(run),))


class Keeper:
    """Claims, renews and finishes the shards of one run for one worker; `run` is its task.

    Args:
        leases: the leases of the worker. ledger: the ledger of the run.
        store: a connection that this object alone uses.
    """

    def __init__(
        self,
        checked: Checked,
        resume_state: ResumeState,
        leases: Leases,
        ledger: ShardLedger,
        store: StoreConnection,
        peers: StorePeers,
        board: StoreBoard,
    ) -> None:
        ledger.watched = board.waves.codes
        self._checked, self._resume_state, self._leases, self._ledger = checked, resume_state, leases, ledger
        self._store, self._peers, self._board = store, peers, board
        self._outage = Outage(leases.now)
        self._assigning = Assigning(checked, ledger.run_dir, store, board.groups)
        self._limits = checked.manifest.limits
        self._held: dict[int, Lease] = {}
        self._clock = Clock()
        self._noticed = anyio.Event()
        self._limiter = anyio.CapacityLimiter(1)
        self.shared: SharedState | None = None
        self._row: Mapping[str, Any] = {}
        self._is_wanted_elsewhere = self._has_claimed = False

    def notice(self) -> None:
        """Look again at what there is to do, because something has changed."""
        self._noticed.set()

    async def _blocking(self, call: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(call, limiter=self._limiter)

    async def run(self, run: Run) -> None:
        """Claim, renew and finish shards until this worker has nothing left to do, or the run stops.

        The engine ends then.
        """
        await run.begun.wait()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._renew, run)
                await self._work(run)
                group.cancel_scope.cancel()
        except* BulkError as errors:
            why = errors.exceptions[0]
            run.stop_now(why if isinstance(why, BulkError) else RunStopped(str(why)))

    async def _work(self, run: Run) -> None:
        while True:
            self._noticed = anyio.Event()
            try:
                await self._look(run)
                self._outage.is_over()
            except RunStopped as away:
                self._outage.goes_on(away)
            if self._is_at_end(run):
                run.expect_no_more()
                return
            with anyio.move_on_after(SOON_S if self._has_claimed else TICK_S):
                await self._noticed.wait()

    async def _look(self, run: Run) -> None:
        await self._finish(run)
        if self._board.waves.is_wanted:
            await self._blocking(lambda: self._board.waves.judge(self._store))
        self.shared = shared = await self._blocking(self._read_shared_state)
        await self._peers.hear(run.governor)
        self._follow(run, shared.limits)
        await self._stop_where_due(run, shared)
        self._share(run, shared)
        self._has_claimed = False
        while shared.state == "running" and self._wants_more(run) and await self._claim(run):
            self._has_claimed = True
        if not self._held and not run.left:
            elsewhere = await self._blocking(self._leases.claimable)
            self._is_wanted_elsewhere = any(other != self._ledger.run for other in elsewhere)

    def _wants_more(self, run: Run) -> bool:
        """Return whether little is left, or what is left can't keep this worker busy, because it is in few lanes."""
        if run.left < AHEAD * self._limits.concurrency:
            return True
        scheduler = run.scheduler
        is_short = not any(map(scheduler.has_work, scheduler.queues.values()))
        return is_short and scheduler.in_flight < run.limits.concurrency

    def _is_at_end(self, run: Run) -> bool:
        return self.is_told_to_end and not run.left and not self._held

    def _read_shared_state(self) -> SharedState:
        with self._store.using() as connection:
            row = connection.execute(_SQL["shared_state"], (self._ledger.run,)).fetchone()
        if row is None:
            raise RunDirectoryError("the run was forgotten")
        return SharedState(*row)

    def _follow(self, run: Run, row: Mapping[str, Any]) -> None:
        """Apply limits that a person has changed in the store."""
        if row == self._row or not settable(row):
            return
        self._row, self._limits = row, applied(self._limits, row)
        limits = replace(run.limits, failures=self._limits.failures, max_duration_s=self._limits.max_duration_s)
        run.change_limits(limits)

    def _share(self, run: Run, shared: SharedState) -> None:
        """Set this worker's share of `limits.concurrency`, which holds for the whole run."""
        most = max(1, math.ceil(self._limits.concurrency / max(1, shared.workers)))
        self._board.free = shared.free // max(1, shared.workers)
        if most != run.limits.concurrency:
            run.change_limits(replace(run.limits, concurrency=most))

    @property
    def is_told_to_end(self) -> bool:
        """Whether this worker is to end its work on the run: all shards are done, the run does not go on, or other runs
        need the worker."""
        if self._is_wanted_elsewhere:
            return True
        return self.shared is not None and (self.shared.open == 0 or self.shared.state != "running")

    async def stop(self, why: str) -> None:
        """Stop the run, for all workers."""

        await self._blocking(lambda: stop_run(self._store, self._ledger.run, why))

    async def _stop_where_due(self, run: Run, shared: SharedState) -> None:
        if shared.state != "running":
            run.stop(RunStopped(shared.why or f"the run is {shared.state}"))
            return
        if why := self._why_to_stop(shared):
            await self.stop(why)
            run.stop(RunStopped(why))

    def _why_to_stop(self, shared: SharedState) -> str:
        limits, share = self._limits, self._limits.failures
        if limits.max_duration_s is not None and shared.age_s > limits.max_duration_s:
            return "limits.max_duration is over"
        if share is None or (share.fraction is not None and shared.finished < 100):
            return ""
        if shared.failed <= share.of(shared.finished):
            return ""
        return f"{shared.failed:,} of {shared.finished:,} items failed, more than limits.failures allows"

    async def _claim(self, run: Run) -> bool:
        """Claim one more shard and give it to the engine; returns False where there is none to claim."""
        asked_at, shards = await self._blocking(lambda: self._leases.claim(self._ledger.run, 1))
        if not shards:
            return False
        shard = shards[0]
        if not self._held:
            self._prolong(run, asked_at)
        self._held[shard.no] = Lease(shard.run, shard.no, shard.epoch)
        try:
            await self._take_on(run, shard)
        except RunStopped:  # the contents of the shard can't be read: its lease ends by itself
            del self._held[shard.no]
            self._ledger.holding.let_go(shard.no)
            raise
        return True

    async def _take_on(self, run: Run, shard: Shard) -> None:
        rows = await self._blocking(lambda: self._board.read(self._store))
        taken = await self._blocking(lambda: self._assigning.take(shard, self._ledger, self._clock.monotonic()))
        self._board.take(rows)
        self._ledger.left[shard.no] = taken.left
        remember(taken, self._checked, self._resume_state, self._clock.monotonic())
        log.info(
            "shard %d, epoch %d: %d items, %d open", shard.no, shard.epoch, shard.items, len(taken.joined.open_intents)
        )
        run.join(taken.joined)
        if not taken.left:
            self.notice()

    def _prolong(self, run: Run, asked_at: float) -> None:
        """Count the leases from that moment on (`Clock.elapsed`), and move the deadline for sending."""
        was_over = self._peers.deadline.has_passed(self._clock)
        self._peers.deadline.at = asked_at + self._leases.ttl_s - min(MARGIN_S, self._leases.ttl_s / 4)
        if was_over:
            run.governor.wake()

    async def _finish(self, run: Run) -> None:
        """Mark shards that have no items left as done, which the store checks by its records."""
        for shard in self._ledger.over():
            lease = self._held.get(shard)
            if lease is None:
                continue
            ended = await self._blocking(lambda lease=lease: self._leases.finish(lease))  # type: ignore[misc]
            if ended is not Ended.DONE:
                raise RunDirectoryError(f"shard {shard} is {ended.value}, though this worker has done all of it")
            del self._held[shard], self._ledger.left[shard]
            self._ledger.holding.let_go(shard)

    async def _renew(self, run: Run) -> None:
        limiter = anyio.CapacityLimiter(1)
        while True:
            await self._clock.sleep(self._leases.ttl_s / 4)
            leases = list(self._held.values())
            if not leases:
                continue
            try:
                renewed = await anyio.to_thread.run_sync(self._leases.renew, leases, limiter=limiter)
            except RunStopped as away:
                self._outage.goes_on(f"the leases could not be renewed: {away}")
                continue
            lost = [lease.shard for lease in renewed.lost if lease.shard in self._held]
            if lost:
                raise RunDirectoryError(f"another worker has taken over shards {lost}, or their leases are over")
            self._prolong(run, renewed.asked_at)

    async def release(self) -> None:
        """Give back the held shards, when none of their requests is in flight any more."""
        leases, self._held = list(self._held.values()), {}
        if leases:
            await self._blocking(lambda: self._leases.release(leases))
