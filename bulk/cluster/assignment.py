"""The contents of a shard: its items, where they lie in the bundle, and what an earlier worker has left unfinished."""

import contextlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bulk.bundle.checked import Checked
from bulk.bundle.index import INDEX, SUPERSEDED
from bulk.execute.job_streams import JobStreams
from bulk.execute.resume_state import TAIL_BYTES, Joined, ResumeState, earlier_writes, remember_lines
from bulk.execute.writes.late_writes import LateWrite
from bulk.ledger.records import Intent
from bulk.schedule.queues import Part
from bulk.schedule.waves import Waves
from bulk.store import sql
from bulk.store.connections import StoreConnection
from bulk.store.holding import Key, Span
from bulk.store.leases import Kind, Shard
from bulk.store.ledger import StoreLedger
from bulk.store.shards import NO_LANE, JobToCut
from bulk.store.view import StoreView

_SQL = sql.load("work")

UNKNOWN_LEFT = 1 << 60
"""The number of items that are counted as left in a shard whose items are still to be made (count)."""

_ONE_LANE = 1 << 40
"""A modulus above every rank, so that each rank is its own remainder."""


def jobs_to_cut(checked: Checked, workspace: Path) -> list[JobToCut]:
    """Return the facts about each job that the cut into shards needs."""
    numbers = {job.name: job.number for job in checked.manifest.jobs}
    laned, ends = _laned(checked, workspace), ends_of_waves(checked)
    lanes = _lanes(workspace, ends) if laned else {}
    return [
        JobToCut(
            number=job.number,
            resource=job.operation.resource,
            needs=tuple(numbers[name] for name in job.needs),
            items=found.items,
            lanes=sum(lanes[job.number], Counter[int]()) if job.number in laned else None,
            is_made=job.derivation is not None,
            ends=ends.get(job.number, ()),
            lanes_of=lanes[job.number] if job.number in laned else (),
        )
        for job, found in zip(checked.manifest.jobs, checked.jobs, strict=True)
    ]


def ends_of_waves(checked: Checked) -> dict[int, list[int]]:
    """Return the index behind the last item of each wave, for the jobs that go in waves, by their numbers."""
    waves = Waves(checked.manifest.limits.waves)
    return {
        job.number: waves.ends(found.items)
        for job, found in zip(checked.manifest.jobs, checked.jobs, strict=True)
        if waves.sizes and not job.operation.is_read and job.derivation is None and found.items
    }


def _laned(checked: Checked, workspace: Path) -> set[int]:
    """Return the numbers of the jobs whose items are offered by their lanes."""
    streams = JobStreams(checked, workspace)
    try:
        return {
            job.number
            for job in checked.manifest.jobs
            if (not job.operation.is_read if job.derivation is not None else streams.offered(job.number) is None)
        }
    finally:
        streams.close()


def _lanes(workspace: Path, ends: Mapping[int, Sequence[int]]) -> dict[int, list[Counter[int]]]:
    """Return how many items of each wave of each job are in the lane of each rank."""
    found: dict[int, list[Counter[int]]] = defaultdict(lambda: [Counter()])
    found |= {job: [Counter() for _ in its] for job, its in ends.items()}
    waves = "".join(
        f" WHEN {job} THEN 0" + "".join(f" + (entries.item >= {end})" for end in its[:-1]) for job, its in ends.items()
    )
    query = f"""
        SELECT entries.job, {f"CASE entries.job{waves} ELSE 0 END" if waves else "0"}, coalesce(lanes.rank, ?), count(*)
        FROM entries LEFT JOIN lanes USING (lane) GROUP BY 1, 2, 3"""
    with _opened(workspace) as database:
        for job, wave, rank, items in database.execute(query, (NO_LANE,)):
            found[job][wave][rank] += items
    return found


def _opened(workspace: Path) -> contextlib.closing[sqlite3.Connection]:
    uri = (workspace / INDEX).absolute().as_uri() + "?mode=ro&immutable=1"
    return contextlib.closing(sqlite3.connect(uri, uri=True))


@dataclass(frozen=True, slots=True)
class Taken:
    """A shard that was claimed, with its items and its records in the store.

    Attributes:
        spans, items: the items in it, for `Holding.hold`.
        joined: the shard in the form that the engine takes. left: items without an outcome (count).
        late_writes: writes that were sent again, and whose first send may still arrive. lines: its newest results.
        names: names of the things that the run has created lately.
    """

    shard: Shard
    spans: Sequence[Span]
    items: Sequence[Key]
    joined: Joined
    left: int
    late_writes: Sequence[LateWrite]
    lines: Sequence[bytes]
    names: frozenset[str]


class Assigning:
    """Finds the items in shards of one run; calls block, and come from one thread at a time.

    Args:
        groups: the group of each job, by the job's number.
    """

    def __init__(self, checked: Checked, workspace: Path, store: StoreConnection, groups: Sequence[int]) -> None:
        self._checked, self._workspace, self._store = checked, workspace, store
        self._ends = ends_of_waves(checked)
        self._jobs_of: dict[int, list[int]] = defaultdict(list)
        for number, group in enumerate(groups):
            self._jobs_of[group].append(number)

    def take(self, shard: Shard, ledger: StoreLedger, now: float) -> Taken:
        """Enter a claimed shard into the holding and the ledger, and find what is left to do in it (now: monotonic)."""
        jobs = self._jobs_of[shard.job_group]
        if shard.kind is Kind.MAKE:
            parts, spans, items = [Part(jobs[0], is_to_make=True)], [Span(jobs[0], 0, UNKNOWN_LEFT)], list[Key]()
        elif shard.kind is Kind.RANGE:
            parts, spans, items = (
                [Part(jobs[0], shard.first, shard.behind)],
                [Span(jobs[0], shard.first, shard.behind)],
                [],
            )
        else:
            parts, spans, items = self._lanes(shard, jobs)
        ledger.holding.hold(shard.no, shard.epoch, spans, items)
        settle_s = self._checked.manifest.limits.settle_s
        names = frozenset(ledger.recent_creations(settle_s))
        everything: Iterable[Key] = items
        if shard.kind is Kind.RANGE:
            everything = [(span.job, each) for span in spans for each in range(span.first, span.behind)]
        if shard.epoch == 1:  # no worker has held it before
            return _taken(shard, spans, items, parts, everything, {}, (), (), names)
        ledger.took([shard.no])
        with self._store.using() as connection:
            ended = set(connection.execute(_SQL["ended_of_shard"], (shard.run, shard.no)).fetchall())
        view = StoreView(self._store, shard.run, [shard.no])
        late_writes = earlier_writes(self._checked.manifest.jobs, ledger.late_writes([shard.no]), view, now + settle_s)
        left = [key for key in everything if key not in ended]
        lines = view.newest_lines(TAIL_BYTES)
        intents = ledger.open_intents([shard.no])
        return _taken(shard, spans, items, parts, left, intents, tuple(late_writes), lines, names)

    def _lanes(self, shard: Shard, jobs: Sequence[int]) -> tuple[list[Part], list[Span], list[Key]]:
        manifest = self._checked.manifest
        resource = manifest.jobs[jobs[0]].operation.resource
        known = [job for job in manifest.jobs[: max(jobs) + 1] if job.derivation is None]
        before = [job.number for job in known if job.operation.resource == resource]
        if shard.kind is Kind.LANE:
            lanes = (_ONE_LANE, shard.first)
        else:
            lanes = (shard.modulus, shard.remainder)
        chosen = f"entries.job IN ({','.join(map(str, jobs))}){self._in_wave(jobs[0], shard.wave)}"
        apart = ",".join(map(str, shard.apart)) or "-1"
        query = f"""
            SELECT entries.job, entries.item FROM lanes JOIN entries USING (lane)
            WHERE lanes.rank % ? = ? AND lanes.rank NOT IN ({apart}) AND {chosen}"""
        if shard.kind is Kind.LANE:
            query = f"""
                SELECT entries.job, entries.item FROM lanes JOIN entries USING (lane)
                WHERE lanes.rank % ? = ? AND {chosen}"""
        superseded: list[Key] = []
        with _opened(self._workspace) as database:
            items = database.execute(query, lanes).fetchall()
            if shard.kind is Kind.LANES and shard.remainder == 0:
                also = f"SELECT job, item FROM entries WHERE lane = ? AND {chosen}"
                superseded = database.execute(also, (SUPERSEDED,)).fetchall()
        part = Part(jobs[0], lanes_of=tuple(before), lanes=lanes, has_superseded=bool(superseded))
        return [part], [], items + superseded

    def _in_wave(self, job: int, wave: int) -> str:
        """Return the SQL condition that an item is in that wave of the job; empty for a job that has no waves."""
        ends = self._ends.get(job)
        if ends is None:
            return ""
        return f" AND entries.item >= {ends[wave - 2] if wave > 1 else 0} AND entries.item < {ends[wave - 1]}"


def _taken(
    shard: Shard,
    spans: Sequence[Span],
    items: Sequence[Key],
    parts: Sequence[Part],
    left: Iterable[Key],
    intents: Mapping[Key, Intent],
    late_writes: Sequence[LateWrite],
    lines: Sequence[bytes],
    names: frozenset[str],
) -> Taken:
    by_job: dict[int, list[int]] = defaultdict(list)
    for job, index in left:
        by_job[job].append(index)
    count = UNKNOWN_LEFT if shard.kind is Kind.MAKE else sum(map(len, by_job.values()))
    return Taken(shard, spans, items, Joined(parts, by_job, intents), count, late_writes, lines, names)


def remember(taken: Taken, checked: Checked, resume_state: ResumeState, now: float) -> None:
    """Tell the engine of earlier writes and results in this shard, and of recent creations (now: monotonic)."""
    for late_write in taken.late_writes:
        resume_state.late_writes.add(late_write, now)
    resume_state.recent_creations.add(taken.names, now)
    remember_lines(resume_state, checked.manifest.jobs, taken.lines, now)
