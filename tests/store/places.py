"""Runs in a store, as workers see them: claimed, worked on, given up."""

import threading
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from bulk.clock import Clock
from bulk.cluster.stored_limits import as_submitted
from bulk.ledger.records import RunIdentity
from bulk.manifest.manifest import Limits
from bulk.report.timeline import merged
from bulk.store import address, runs, submissions
from bulk.store.connections import StoreConnection
from bulk.store.export import export
from bulk.store.holding import Holding, Span
from bulk.store.leases import Kind, Lease, Leases, Shard
from bulk.store.ledger import StoreLedger
from tests.ledger.samples import identity

NAMES = (f"run-{number}" for number in count(1))
EVERYTHING = 2**31 - 1
ENGINE = "1.0 tests"


def connection_to(text: str) -> StoreConnection:
    """A connection of its own to the store of that address."""
    return StoreConnection(address.read(text), "tests")


def ranges(each: Sequence[tuple[int, int, int]]) -> list[Shard]:
    """Shards of ranges: job, first and behind of each."""
    return [
        Shard(no=no, kind=Kind.RANGE, job_group=job, first=first, behind=behind, items=behind - first)
        for no, (job, first, behind) in enumerate(each)
    ]


WHOLE_JOBS = ranges(((0, 0, EVERYTHING), (1, 0, EVERYTHING)))


class StorePlace:
    """A run in a store, and who opens it: each `opened` is another worker, which takes everything over.

    Attributes:
        text: the address of the store. name: of the run.
    """

    def __init__(
        self,
        text: str,
        folder: Path,
        *,
        shards: Sequence[Shard] = WHOLE_JOBS,
        whose: RunIdentity | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.text, self.folder, self.name = text, folder, next(NAMES)
        self.shards = list(shards)
        whose = whose or identity()
        # the digests differ, so that no other test's run is the same
        self.identity = RunIdentity(
            self.name, whose.base_url, whose.vendor, f"{self.name:a<64}", whose.items_digest, whose.jobs
        )
        submission = submissions.Submission(
            name=self.name,
            identity=self.identity,
            bundle=b"",
            engine=ENGINE,
            limits={} if limits is None else as_submitted(limits),
            grace_s=1.0,
            groups=list(range(len(whose.jobs))),
            shards=self.shards,
        )
        self.in_use: list[Leases | StoreLedger] = []
        with connection_to(text) as store:
            submissions.submit(store, submission)
            self.run = runs.find(store, self.name).id

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database says, to its superuser."""
        with psycopg.connect(self.text, autocommit=True, options="-c search_path=bulk") as connection:
            cursor = connection.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def leases(self, **more: Any) -> Leases:
        """Another worker."""
        made = Leases(connection_to(self.text), "worker", ENGINE, Clock().elapsed, **more)
        self.in_use.append(made)
        return made

    def let_lapse(self, *shards: int) -> None:
        """The leases of these shards, or of all, are over since long."""
        chosen = shards or tuple(shard.no for shard in self.shards)
        past = "UPDATE shard SET lease_until = clock_timestamp() - interval '1 day'"
        self.sql(f"{past} WHERE run = %s AND no = ANY (%s) AND lease_until IS NOT NULL", self.run, list(chosen))

    def opened(self, *only: int, leases: Leases | None = None) -> StoreLedger:
        """The ledger of another worker that has claimed everything, or these shards: whoever had them is dead."""
        self.let_lapse(*only)
        self.sql("UPDATE shard SET done = false WHERE run = %s", self.run)
        self.sql("UPDATE run SET state = 'running' WHERE id = %s", self.run)
        leases = leases or self.leases()
        holding = Holding()
        for no in only or [shard.no for shard in self.shards]:
            _, (shard,) = leases.claim(self.run, only=no)
            hold(holding, shard)
        run_dir = self.folder / f"worker-{leases.worker}"
        run_dir.mkdir(parents=True, exist_ok=True)
        ledger = StoreLedger(connection_to(self.text), self.run, leases.worker, run_dir, holding)
        self.in_use.append(ledger)
        return ledger

    def taken_over(self) -> StoreLedger:
        """The ledger of another worker, whatever the one before does now."""
        return self.opened()

    def run_directory(self) -> Path:
        """Where the run is, exported."""
        with connection_to(self.text) as store:
            export(store, runs.find(store, self.name), self.folder / "exported", merged)
        return self.folder / "exported"

    def close(self) -> None:
        """Close what was opened."""
        for ledger in self.in_use:
            ledger.close()


def hold(holding: Holding, shard: Shard) -> Lease:
    """Tell that a shard of a range was claimed."""
    holding.hold(shard.no, shard.epoch, [Span(shard.job_group, shard.first, shard.behind)])
    return Lease(shard.run, shard.no, shard.epoch)


def comes_true(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether the condition is met within that time."""
    tick, clock = threading.Event(), Clock()
    until = clock.monotonic() + seconds
    while not condition():
        if clock.monotonic() > until:
            return False
        tick.wait(0.02)
    return True
