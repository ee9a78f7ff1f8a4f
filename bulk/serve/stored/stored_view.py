"""One run in a store as the page reads it: `RunData`, from the tables of the store."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec
import zstandard

from bulk.ledger.records import Action, Minute, RunIdentity
from bulk.ledger.view import CUT_BYTES, Cut
from bulk.report.timeline import MINUTE_S, Sample, read_minutes
from bulk.serve.run_data import Place
from bulk.store import sql
from bulk.store.connections import StoreConnection, sound
from bulk.store.runs import StoredRun
from bulk.store.view import StoreView

_SQL = sql.load("overview")

MOST_BYTES = 64 * 1024 * 1024
"""The most bytes of lines of one page that are in memory."""
HEARD_S = 2.5
"""The age after which a worker's sample does not count as its present state (seconds): a worker makes one each second.
"""
MOST_NUMBER = 2**31 - 1
"""No job has a higher number, and no item a higher index."""


class StoredView(StoreView):
    """The `RunData` of a run in a store, on a connection that others use too."""

    def __init__(self, store: StoreConnection, run: StoredRun) -> None:
        super().__init__(store, run.id)
        self._found = run

    @property
    def run_dir(self) -> Path:
        """A path that stands for the run directory: the name of the run, and its number, which tells it from earlier
        runs of the same name."""
        return Path("store:", self._found.name, str(self._run))

    def began_at(self) -> float:
        """Return when the run was submitted (UTC epoch seconds)."""
        return self._found.began_at

    def identity(self) -> RunIdentity:
        """Return the identity of the run."""
        return self._found.identity

    def sums(self) -> Sequence[tuple[int, str, str, int]]:
        """Return job number, outcome, code and items (count)."""
        with self._store.using() as connection:
            return connection.execute(_SQL["sums"], (self._run,)).fetchall()

    def timeline(self, *, newest: bool = False, since: int = 0) -> list[Minute]:
        """Return the figures by time, of all workers together; see `RunData`."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["timeline"], (self._run, since)).fetchall()
        workers: dict[int, list[Minute]] = {}
        for worker, minute, data in found:
            workers.setdefault(worker, []).append(Minute(minute, data))
        minutes = together([read_minutes(each) for each in workers.values()]) if len(workers) > 1 else None
        only = next(iter(workers.values()), [])
        told = only if minutes is None else minutes
        return told[-1:] if newest else told

    def actions(self) -> list[Action]:
        """Return the actions of people on the run, in order."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["actions"], (self._run,)).fetchall()
        with sound():
            return [
                Action(at=at, who=who, verb=verb, args=msgspec.json.decode(args), result=result)
                for at, who, verb, args, result in found
            ]

    def tallies(self) -> Mapping[int, object] | None:
        """Return None, because a store keeps no tallies."""
        return None

    def page(
        self,
        after: Place,
        most: int,
        *,
        job: str = "",
        outcome: str = "",
        code: str = "",
        until: Place | None = None,
    ) -> list[Cut]:
        """Return the lines of ended items, in the order of job numbers and indexes; see `RunData`."""
        names = [each[0] for each in self._found.identity.jobs]
        if job and job not in names:
            return []
        values = {
            "run": self._run,
            "after_job": after[0],
            "after": after[1],
            "job": names.index(job) if job else None,
            "outcome": outcome,
            "code": code,
            "most": most,
            "until_job": MOST_NUMBER if until is None else until[0],
            "until": MOST_NUMBER if until is None else until[1],
        }
        with self._store.using() as connection:
            found = connection.execute(_SQL["page"], values).fetchall()
        return list(self._cut(found))

    def last_index(self, job: int) -> int:
        """Return the highest index of an item of a job (by its number) that has ended; -1 where none has."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["last_index"], {"run": self._run, "job": job}).fetchone()
        return -1 if found is None or found[0] is None else int(found[0])

    def _cut(self, found: Sequence[tuple[int, int]]) -> Iterator[Cut]:
        for job, rows in groupby(found, itemgetter(0)):
            indexes = [index for _, index in rows]
            lines = self.lines_of(job, indexes, MOST_BYTES)
            for index in indexes:
                if index in lines:
                    yield Cut(job, index, lines[index][:CUT_BYTES], len(lines[index]))


def together(workers: Sequence[Sequence[Sample]]) -> list[Minute]:
    """Return the minutes of all workers together; `workers`: the samples of each worker, in order.

    Items that ended are counted once; requests in flight, allowed concurrency and waits are sums of each worker's last
    sample.
    """
    by_second: dict[int, list[tuple[int, Sample]]] = {}
    for worker, samples in enumerate(workers):
        for sample in samples:
            by_second.setdefault(int(sample.at), []).append((worker, sample))
    last: dict[int, Sample] = {}
    minutes: dict[int, list[Sample]] = {}
    for second in sorted(by_second):
        told = by_second[second]
        last.update(told)
        now = [sample for sample in last.values() if sample.at > second + 1 - HEARD_S]
        minutes.setdefault(second // MINUTE_S, []).append(_one([sample for _, sample in told], now))
    return [Minute(minute, zstandard.compress(msgspec.json.encode(samples))) for minute, samples in minutes.items()]


def _one(told: Sequence[Sample], now: Sequence[Sample]) -> Sample:
    outcomes: dict[int, list[int]] = {}
    waits: dict[str, int] = {}
    latencies: list[int] = []
    for sample in told:
        for job, counts in sample.outcomes.items():
            outcomes[job] = [a + b for a, b in zip(outcomes.get(job, [0] * len(counts)), counts, strict=True)]
        if sample.latencies:
            latencies = [a + b for a, b in zip(latencies or [0] * 12, sample.latencies, strict=False)]
    for sample in now:
        for kind, items in sample.waits.items():
            waits[kind] = waits.get(kind, 0) + items
    newest = max(told, key=lambda sample: sample.at)
    return msgspec.structs.replace(
        newest,
        outcomes=outcomes,
        concurrency=sum(sample.concurrency for sample in now),
        in_flight=sum(sample.in_flight for sample in now),
        waits=waits,
        latencies=latencies,
    )
