"""One run in a store as the page reads it: `RunData`, from the tables of the store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec

from bulk.ledger.records import Action, Minute, RunIdentity
from bulk.ledger.view import CUT_BYTES, Cut
from bulk.report.timeline import read_minutes
from bulk.serve.run_data import Place
from bulk.serve.stored.together import together
from bulk.store import statements
from bulk.store.connections import StoreConnection
from bulk.store.runs import StoredRun
from bulk.store.view import StoreView

_SQL = statements.load("overview")

MOST_BYTES = 64 * 1024 * 1024
"""The most bytes of lines of one page that are in memory."""
MOST_NUMBER = 2**31 - 1
"""No job has a higher number, and no item a higher index."""


class StoredView:
    """The `RunData` of a run in a store, on a connection that others use too."""

    def __init__(self, store: StoreConnection, run: StoredRun) -> None:
        self._store, self._run = store, run
        self._lines = StoreView(store, run.id)

    @property
    def run_dir(self) -> Path:
        """A path that stands for the run directory: the name of the run, and its number, which tells it from earlier
        runs of the same name."""
        return Path("store:", self._run.name, str(self._run.id))

    def began_at(self) -> float:
        """Return when the run was submitted (UTC epoch seconds)."""
        return self._run.began_at

    def identity(self) -> RunIdentity:
        """Return the identity of the run."""
        return self._run.identity

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Return job, code and items of each kind of failure (count)."""
        return self._lines.error_counts()

    def sums(self) -> Sequence[tuple[int, str, str, int]]:
        """Return job number, outcome, code and items (count)."""
        with self._store.using() as connection:
            return connection.execute(_SQL["sums"], (self._run.id,)).fetchall()

    def timeline(self, *, newest: bool = False, since: int = 0) -> list[Minute]:
        """Return the figures by time, of all workers together; see `RunData`."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["timeline"], (self._run.id, since)).fetchall()
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
            found = connection.execute(_SQL["actions"], (self._run.id,)).fetchall()
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
        names = [each[0] for each in self._run.identity.jobs]
        if job and job not in names:
            return []
        values = {
            "run": self._run.id,
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
            found = connection.execute(_SQL["last_index"], {"run": self._run.id, "job": job}).fetchone()
        return -1 if found is None or found[0] is None else int(found[0])

    def _cut(self, found: Sequence[tuple[int, int]]) -> Iterator[Cut]:
        for job, rows in groupby(found, itemgetter(0)):
            indexes = [index for _, index in rows]
            lines = self.lines_of(job, indexes, MOST_BYTES)
            for index in indexes:
                if index in lines:
                    yield Cut(job, index, lines[index][:CUT_BYTES], len(lines[index]))

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """Return the whole lines of these items of a job, by index."""
        return self._lines.lines_of(job, indexes, most_bytes)
