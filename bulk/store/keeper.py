"""Keeps what a worker holds: a thread with a connection of its own renews its leases and hears of changes.

A lease is certain until TTL after the moment before its last good renewal was asked for. Whoever sends must be through
by then: what is sent later may meet somebody else's. So a worker that can't reach the store, or stood still, sends
nothing once that moment is over, without being told.
"""

import threading
from collections.abc import Sequence
from typing import Protocol

from bulk.errors import BulkError
from bulk.store.database.connections import StoreConnection
from bulk.store.leases import Lease, Leases, Renewed

STATE, SHARD = "bulk_state", "bulk_shard"
"""Channels: a run is to pause, to go on or to end; shards of a run can be claimed. Told is the run's number."""

_SLICE_S = 0.25
"""So long at most until a new lease is renewed, or the end is noticed (seconds)."""


class Worker(Protocol):
    """Who is told; called in the keeper's thread, and should return soon."""

    def renewed(self, renewed: Renewed) -> None:
        """Leases were renewed: some may be lost, and their runs may stand otherwise."""

    def offered(self, run: int) -> None:
        """Shards of that run may be there to claim, or it goes on."""


class Keeper:
    """Renews leases until it is closed; a context manager. All methods may be called from any thread.

    Args:
        store: a connection of its own.
        leases: what to renew by, and how long a lease is good for.
        renew_s: how often; None: four times while a lease is good (seconds).

    Attributes:
        failure: why the last renewal failed; None where it did not.
    """

    def __init__(self, store: StoreConnection, leases: Leases, worker: Worker, *, renew_s: float | None = None) -> None:
        self._store, self._leases, self._worker = store, leases, worker
        self._renew_s = leases.ttl_s / 4 if renew_s is None else renew_s
        self._certain_until: dict[Lease, float] = {}
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._listening = -1
        self.failure: BulkError | None = None
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def __enter__(self) -> "Keeper":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing.set()
        self._thread.join()
        self._store.close()

    def hold(self, leases: Sequence[Lease], asked_at: float) -> None:
        """Keep these from now on; `asked_at`: the moment before they were claimed."""
        with self._lock:
            self._certain_until.update(dict.fromkeys(leases, asked_at + self._leases.ttl_s))

    def let_go(self, leases: Sequence[Lease]) -> None:
        """These were finished, released or lost."""
        with self._lock:
            for lease in leases:
                self._certain_until.pop(lease, None)

    def certain_until(self, lease: Lease) -> float:
        """Return the moment (of the leases' clock) until which nobody else can have the shard; minus infinity: now."""
        return self._certain_until.get(lease, float("-inf"))

    def may_send(self, lease: Lease, takes_s: float) -> bool:
        """Return whether what is sent now, and takes that long at most, is through while the lease is certain."""
        return self._leases.now() + takes_s < self.certain_until(lease)

    def _run(self) -> None:
        while not self._is_closing.is_set():
            due = self._leases.now() + self._renew_s
            try:
                self._renew()
                self.failure = None
                while (left := due - self._leases.now()) > 0 and not self._is_closing.is_set():
                    if self._hear(min(left, _SLICE_S)):
                        break
            except BulkError as failure:
                self.failure = failure
                self._is_closing.wait(min(self._renew_s, 1.0))

    def _renew(self) -> None:
        with self._lock:
            leases = list(self._certain_until)
        renewed = self._leases.renew_by(self._store, leases)
        with self._lock:
            for lease in leases:
                if lease in renewed.lost:
                    self._certain_until.pop(lease, None)
                elif lease in self._certain_until:
                    self._certain_until[lease] = renewed.asked_at + self._leases.ttl_s
        self._worker.renewed(renewed)

    def _hear(self, for_s: float) -> bool:
        """Listen for so long; returns whether something has changed about a run."""
        with self._store.using() as connection:
            if self._listening != self._store.made:
                for channel in (STATE, SHARD):
                    connection.execute(f"LISTEN {channel}".encode())
                self._listening = self._store.made
                return True  # what was told before is not heard
            told = {(each.channel, int(each.payload)) for each in connection.notifies(timeout=for_s, stop_after=1)}
        for run in {run for _, run in told}:
            self._worker.offered(run)
        return any(channel == STATE for channel, _ in told)
