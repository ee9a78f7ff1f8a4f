"""Leases of shards. The database alone decides, by its own clock; a worker knows its leases and their ends.

A shard that is claimed gets a new epoch, and whatever an earlier holder still sends is refused from then on. A lease
that is not renewed ends by itself. Another worker may claim the shard only after the run's grace time, when no request
of the old holder can be on its way any more. A worker's own deadline counts from the moment before it asked the store.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec
import psycopg

from bulk.store import sql
from bulk.store.connections import StoreConnection

_SQL = sql.load("leases")

TTL_S = 30.0
"""How long a lease lasts without a renewal (seconds)."""

GRACE_S = 5.0
"""How long a lapsed shard is left alone, in addition to the time limit of a request (seconds)."""

_JANITOR_KEY = 0x42554C4C


class Kind(StrEnum):
    """What a shard consists of."""

    LANES = "lanes"  # lanes by their rank
    LANE = "lane"  # one long lane
    RANGE = "range"  # neighbouring items without lanes
    COPIES = "copies"  # duplicate reads of a job, which get the outcome of an earlier read
    MAKE = "make"  # all items of a job that are made from results


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a run that one worker works on at a time.

    Attributes:
        run, no: the number of its run in the store, and its own number in that run.
        job_group: the number of the group that its jobs are in.
        modulus, remainder: for LANES: the shard has the ranks that leave this remainder, except those in `apart`,
            which are shards of their own.
        first, behind: for a RANGE: it has the items from `first` on and before `behind`; for a LANE `first` is its
            rank.
        items: how many items it has (count); -1: they are still to be made.
        needs: jobs that must be over before it can be claimed. after: shards that must be done before.
        epoch: the number of this claim; 0: never claimed.
        wave: the wave of its job that it is in, from 1.
    """

    run: int = 0
    no: int
    kind: Kind
    job_group: int
    modulus: int = 1
    remainder: int = 0
    apart: tuple[int, ...] = ()
    first: int = 0
    behind: int = 0
    items: int
    needs: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    epoch: int = 0
    wave: int = 1


class Lease(NamedTuple):
    """The right of a worker to work on a shard, with the epoch of its claim."""

    run: int
    shard: int
    epoch: int


class Renewed(NamedTuple):
    """The result of a renewal.

    Attributes:
        asked_at: the moment before the store was asked, by the caller's clock; leases are good for TTL from then on.
        lost: leases that are over: nothing more may be sent for them.
        states: run number -> the run's state, and why it has that state.
    """

    asked_at: float
    lost: tuple[Lease, ...]
    states: Mapping[int, tuple[str, str]]


class Ended(StrEnum):
    """What became of a shard that a worker wanted to finish."""

    DONE = "done"
    WORK_LEFT = "work_left"  # by the records in the store, some of its items have no outcome
    LOST = "lost"  # the worker does not hold it any more


class Leases:
    """The leases of one worker. All calls block; make them from one thread, on a connection of its own.

    Args:
        now: returns monotonic seconds that go on while the machine sleeps: `Clock.elapsed`.
        ttl_s: how long a lease lasts without a renewal (seconds).

    Attributes:
        worker: the worker's number in the store.
    """

    def __init__(
        self, store: StoreConnection, name: str, engine: str, now: Callable[[], float], *, ttl_s: float = TTL_S
    ) -> None:
        """Register the worker.

        Raises:
            RunStopped: the store can't be reached. So do all methods.
        """
        self._store, self._engine, self.now, self.ttl_s = store, engine, now, ttl_s
        with store.using() as connection:
            found = connection.execute(_SQL["register"], (name, engine)).fetchone()
        assert found is not None
        self.worker = int(found[0])

    def claimable(self) -> dict[int, int]:
        """Return the numbers of runs for this engine, with how many of their shards could be claimed now (count).

        A count of 0 says that no shard can be claimed yet, but the waves of the run are to be judged.
        """
        with self._store.using() as connection:
            return dict(connection.execute(_SQL["claimable"], {"engine": self._engine}).fetchall())

    def claim(self, run: int, most: int = 1, *, only: int | None = None) -> tuple[float, list[Shard]]:
        """Claim shards that nobody holds and that may begin; returns the moment before the store was asked, and the
        shards.

        Args:
            most: claim at most this many shards (count).
            only: claim this shard alone, if that is possible.
        """
        asked_at = self.now()
        with self._store.using() as connection:
            values = (run, self.worker, self._engine, self.ttl_s, most, only)
            rows = connection.execute(_SQL["claim"], values).fetchall()
        names = ("run", "no", "kind", "job_group", "modulus", "remainder", "apart", "first", "behind", "items",
                 "needs", "after", "epoch", "wave")  # fmt: skip
        shards = [msgspec.convert(dict(zip(names, row, strict=True)), Shard) for row in rows]
        return asked_at, sorted(shards, key=lambda shard: shard.no)

    def renew(self, leases: Sequence[Lease]) -> Renewed:
        """Prolong all of these leases that are not over, in one round trip."""
        asked_at = self.now()
        with self._store.using() as connection:
            columns = _columns(leases)
            kept = set(connection.execute(_SQL["renew"], (self.worker, self.ttl_s, *columns)).fetchall())
            found = connection.execute(_SQL["states"], (list({lease.run for lease in leases}),)).fetchall()
        lost = tuple(lease for lease in leases if (lease.run, lease.shard) not in kept)
        return Renewed(asked_at, lost, {run: (state, why) for run, state, why in found})

    def release(self, leases: Sequence[Lease]) -> None:
        """Give shards back on a clean stop, when no request of them is in flight: others can claim them at once."""
        with self._store.using() as connection:
            connection.execute(_SQL["release"], (*_columns(leases), self.worker))

    def finish(self, lease: Lease) -> Ended:
        """Mark a shard as done, if all of its items have an outcome by the records in the store."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["finish"], lease).fetchone()
        assert found is not None
        return Ended(found[0])

    def leave(self) -> None:
        """Delete the worker from the store's list when it ends, unless it has worked on a run."""
        with self._store.using() as connection:
            connection.execute(_SQL["leave"], (self.worker,))

    def close(self) -> None:
        """Close the connection; may be called twice. Leases that are still held end by themselves."""
        self._store.close()

    def tidy(self) -> list[tuple[int, int]]:
        """Clean up in the store, unless another worker is doing so at this moment.

        Runs that are to pause or stop and have no worker any more become paused or stopped. Old workers that have
        worked on no run are deleted. Returns the lapsed shards, which should be claimed again, by run and number.
        """
        with self._store.transaction() as connection:
            mine = connection.execute(_SQL["janitor"], (_JANITOR_KEY,)).fetchone()
            if mine is None or not mine[0]:
                return []
            connection.execute(_SQL["shorten_leases"])
            for run, _ in connection.execute(_SQL["settle_pauses"]).fetchall():
                connection.execute("SELECT pg_notify('bulk_state', %s)", (str(run),))
            connection.execute(_SQL["drop_workers"])
            return connection.execute(_SQL["lapsed"]).fetchall()


def _columns(leases: Collection[Lease]) -> tuple[list[int], list[int], list[int]]:
    runs, shards, epochs = [list(column) for column in zip(*leases, strict=True)] or ([], [], [])
    return runs, shards, epochs


def show_alive(connection: psycopg.Connection, worker: int) -> None:
    """Tell the store that the worker of that number is alive, whether it holds a shard or not."""
    connection.execute(_SQL["show_alive"], (worker,))


def release_dead(store: StoreConnection, name: str | None) -> None:
    """Give back the shards of a worker whose process is known to have ended, so that nobody waits for its leases.

    Args:
        name: the name of the worker; None: all workers, as none of them lives.

    Raises:
        RunStopped: the store can't be reached.
    """
    with store.using() as connection:
        given_back = connection.execute(_SQL["release_dead"], (name, name)).fetchall()
        for run in sorted({run for run, _ in given_back}):
            connection.execute("SELECT pg_notify('bulk_shard', %s)", (str(run),))
