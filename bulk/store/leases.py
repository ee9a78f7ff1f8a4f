"""Whose turn a shard is. The database alone decides, by its own clock; a worker knows what it has, and for how long.

A shard that is claimed gets a new epoch, and whatever an earlier holder still sends is refused from then on. A lease
that is not renewed ends by itself; GRACE later, when nothing that the old holder sent can be on its way any more,
somebody else may claim the shard. A worker's own deadline counts from the moment before it asked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec
import psycopg

from bulk.store import statements
from bulk.store.connections import StoreConnection

_SQL = statements.load("leases")

TTL_S = 30.0
"""How long a lease is good for that is not renewed (seconds)."""

GRACE_S = 5.0
"""How much longer than a request may take a lapsed shard is left alone (seconds)."""

_JANITOR_KEY = 0x42554C4C


class Kind(StrEnum):
    """What a shard is a part of."""

    LANES = "lanes"  # lanes by their rank
    LANE = "lane"  # one long lane
    RANGE = "range"  # neighbouring items without lanes
    COPIES = "copies"  # what equal reads get
    MAKE = "make"  # all of a job whose items are made from results


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a run that one worker works on at a time.

    Attributes:
        run, no: which one.
        job_group: its jobs have this group.
        modulus, remainder: of LANES: ranks that leave this remainder; but none of `apart`, which are shards of their
            own.
        first, behind: of a RANGE: its items, from `first` on and before `behind`; of a LANE `first` is its rank.
        items: in it (count); -1: they are still to be made.
        needs: jobs that must be over before. after: shards that must be done.
        epoch: of this claim; 0: never claimed.
        wave: of its job that it is in, from 1.
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
    """That a worker holds a shard, with this epoch."""

    run: int
    shard: int
    epoch: int


class Renewed(NamedTuple):
    """What a renewal brought.

    Attributes:
        asked_at: the moment before it was asked, by the caller's clock; leases are good for TTL from then on.
        lost: leases that are over: nothing more may be sent for them.
        states: of the runs: run -> state and why.
    """

    asked_at: float
    lost: tuple[Lease, ...]
    states: Mapping[int, tuple[str, str]]


class Ended(StrEnum):
    """What became of a shard that a worker wanted to finish."""

    DONE = "done"
    WORK_LEFT = "work_left"  # by what is written, items of it have no outcome
    LOST = "lost"  # it is somebody else's


class Leases:
    """One worker's leases. Blocking; all calls from one thread, on a connection of its own.

    Args:
        now: monotonic seconds that go on while the machine sleeps: `Clock.elapsed`.
        ttl_s: how long a lease is good for (seconds).

    Attributes:
        worker: its number in the store.
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
        """Return runs of this engine and how many of their shards could be claimed now (count); 0: none, but a wave is
        to be opened.
        """
        with self._store.using() as connection:
            return dict(connection.execute(_SQL["claimable"], {"engine": self._engine}).fetchall())

    def claim(self, run: int, most: int = 1, *, only: int | None = None) -> tuple[float, list[Shard]]:
        """Take shards that nobody holds and whose turn it is; returns the moment before it was asked, and them.

        Args:
            only: this shard, if it can be had.
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
        """Prolong leases that are not over, all at once."""
        asked_at = self.now()
        with self._store.using() as connection:
            columns = _columns(leases)
            kept = set(connection.execute(_SQL["renew"], (self.worker, self.ttl_s, *columns)).fetchall())
            found = connection.execute(_SQL["states"], (list({lease.run for lease in leases}),)).fetchall()
        lost = tuple(lease for lease in leases if (lease.run, lease.shard) not in kept)
        return Renewed(asked_at, lost, {run: (state, why) for run, state, why in found})

    def release(self, leases: Sequence[Lease]) -> None:
        """Give shards back on a clean stop, when nothing of them is in flight: whoever wants can have them at once."""
        with self._store.using() as connection:
            connection.execute(_SQL["release"], (*_columns(leases), self.worker))

    def finish(self, lease: Lease) -> Ended:
        """End a shard whose items all have an outcome, by what is written."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["finish"], lease).fetchone()
        assert found is not None
        return Ended(found[0])

    def leave(self) -> None:
        """Take the worker off the list when it ends, unless it worked on a run."""
        with self._store.using() as connection:
            connection.execute(_SQL["leave"], (self.worker,))

    def close(self) -> None:
        """Close its connection; may be called twice. What it holds ends by itself."""
        self._store.close()

    def tidy(self) -> list[tuple[int, int]]:
        """Do what nobody else does, if no other worker is doing it: runs that are to pause and have nobody at work are
        paused, what was uploaded and never submitted goes; returns lapsed shards, which somebody should claim, by run
        and number.
        """
        with self._store.transaction() as connection:
            mine = connection.execute(_SQL["janitor"], (_JANITOR_KEY,)).fetchone()
            if mine is None or not mine[0]:
                return []
            for run, _ in connection.execute(_SQL["settle_pauses"]).fetchall():
                connection.execute("SELECT pg_notify('bulk_state', %s)", (str(run),))
            connection.execute(_SQL["drop_workers"])
            return connection.execute(_SQL["lapsed"]).fetchall()


def _columns(leases: Collection[Lease]) -> tuple[list[int], list[int], list[int]]:
    runs, shards, epochs = [list(column) for column in zip(*leases, strict=True)] or ([], [], [])
    return runs, shards, epochs


def show_alive(connection: psycopg.Connection, worker: int) -> None:
    """Tell the store that the worker of that number is there, whether it holds something or not."""
    connection.execute(_SQL["show_alive"], (worker,))


def release_dead(store: StoreConnection, name: str | None) -> None:
    """Give back what a worker holds whose process is known to have ended, so that nobody waits for its leases.

    Args:
        name: of the worker; None: none of them lives.

    Raises:
        RunStopped: the store can't be reached.
    """
    with store.using() as connection:
        given_back = connection.execute(_SQL["release_dead"], (name, name)).fetchall()
        for run in sorted({run for run, _ in given_back}):
            connection.execute("SELECT pg_notify('bulk_shard', %s)", (str(run),))
