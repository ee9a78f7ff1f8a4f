"""Items that never reach a worker: of skipped jobs, superseded, copies of others; and items that are made on the way.
Also looks for items that lie far on in their source, behind others that are done.

One task (`run`) beside the workers does these one after the other; the scheduler says when. It ends with the scheduler.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from bulk.bundle.checked import index_name, is_spooled
from bulk.bundle.duplicate_reads import Copies, copies_name
from bulk.bundle.streams import EntryStream, LaneIndex
from bulk.check import derived_items
from bulk.check.checking import Checked
from bulk.clock import Clock
from bulk.errors import BulkError, RunDirectoryError, RunStopped
from bulk.execute.item_tally import Tally
from bulk.execute.workers import Workers
from bulk.ledger.ledger import Ledger
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Job
from bulk.model import SUCCESSFUL, ErrorCode, failed, skipped
from bulk.schedule.job_progress import JobProgress, dependency_failed
from bulk.schedule.queues import Feed, Tier
from bulk.schedule.scheduler import Scheduler, Stream, Work
from bulk.storage.disk_threads import Disk

SKIP_BATCH = 500
COPY_BATCH = 256
COPY_BYTES = 4 * 1024 * 1024
"""Copies that are read at once (count), and most bytes of the lines that they are copied from."""
SUPERSEDED_BATCH = 16
"""Superseded items that are read at once (count): they may be large."""
LOOK_S = 0.25
"""How often it looks whether the run is over, though it is told (seconds)."""


class UnsentItems:
    """`scheduler` and `index` are set by the run that it is part of."""

    scheduler: Scheduler

    def __init__(
        self,
        checked: Checked,
        workspace: Path,
        ledger: Ledger,
        progress: Sequence[JobProgress],
        index: LaneIndex,
        clock: Clock,
        disk: Disk,
        stop: Callable[[BulkError], None],
    ) -> None:
        self._checked, self._manifest, self._workspace = checked, checked.manifest, workspace
        self._ledger, self._progress, self._index, self._clock, self._disk = ledger, progress, index, clock, disk
        self._stop = stop
        all_copies = Copies(workspace)
        self.copies = [all_copies for _ in self._manifest.jobs]
        self._indexes: dict[int, LaneIndex] = {}
        self._to_skip: list[Job] = []
        self._to_make: list[Job] = []
        self._to_copy: list[Job] = []
        self._far: deque[tuple[Tier, Feed]] = deque()
        self._far_wanted = anyio.Event()
        self._wanted = anyio.Event()

    def stream(self, number: int) -> Stream:
        """The items of a job, in order."""
        if number in self._indexes:
            return derived_items.DerivedStream(self._indexes[number])
        return EntryStream(self._checked, number, self._workspace)

    def offered(self, number: int) -> Stream | None:
        """The same; None where the index says what is next: some may have to wait for others, or lie in a copy."""
        job = self._manifest.jobs[number]
        is_laned = self.scheduler.has_several or self._checked.jobs[number].is_laned or is_spooled(job)
        return None if is_laned and not job.operation.is_read else self.stream(number)

    def skip(self, job: Job) -> None:
        """Record soon that the items of this job are not tried."""
        self._to_skip.append(job)
        self._wanted.set()

    def make(self, job: Job) -> None:
        """Make the items of this job soon."""
        self._to_make.append(job)
        self._wanted.set()

    def copy(self, job: Job) -> None:
        """Record soon what is left of this job: each item as the earlier one ended that asks for the same."""
        self._to_copy.append(job)
        self._wanted.set()

    def wake(self) -> None:
        """Look now whether the run is over."""
        self._wanted.set()

    def close(self) -> None:
        """Let go of the indexes of items that were made, and of what is known of copies."""
        for copies in self.copies:
            copies.close()
        for index in self._indexes.values():
            index.close()

    def look_far(self, tier: Tier, feed: Feed) -> None:
        """Find the next item of this feed soon."""
        self._far.append((tier, feed))
        self._far_wanted.set()

    async def run(self, workers: Workers) -> None:
        """Do what is wanted until nothing more will be offered."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._look_far)
            await self._run(workers)
            group.cancel_scope.cancel()

    async def _look_far(self) -> None:
        try:
            while True:
                self._far_wanted = anyio.Event()
                while self._far:
                    tier, feed = self._far.popleft()
                    while feed.is_far and not self.scheduler.is_stopped:
                        await self._disk(feed.look_far)
                    self.scheduler.arrived(tier, feed)
                await self._far_wanted.wait()
        except RunDirectoryError as refusal:
            self._stop(refusal)

    async def _run(self, workers: Workers) -> None:
        scheduler = self.scheduler
        try:
            if await self._pass_by_superseded(self._index, workers):
                scheduler.is_passing_by = False
                scheduler.passed_by(scheduler.jobs)
            while not scheduler.is_stopped:
                if self._to_skip:
                    await self._skip_items(self._to_skip.pop(0), workers)
                    continue
                if self._to_make:
                    await self._make_items(self._to_make.pop(0), workers)
                    continue
                if self._to_copy:
                    await self._copy_items(self._to_copy.pop(0), workers)
                    continue
                if all(scheduler.is_over(queue) for queue in scheduler.queues.values()):
                    return
                self._wanted = anyio.Event()
                with anyio.move_on_after(LOOK_S):
                    await self._wanted.wait()
        except (RunStopped, RunDirectoryError) as refusal:
            self._stop(refusal)

    async def _pass_by_superseded(self, index: LaneIndex, workers: Workers) -> bool:
        """Whether all of them have their outcomes now."""
        outcome = skipped(ErrorCode.SUPERSEDED, "not sent: a later item of this run takes the place of this one")
        after = 0
        while found := index.superseded(after=after, count=SUPERSEDED_BATCH):
            after = found[-1][0]
            for _, entry in found:
                if not self._progress[entry.job].is_done(entry.index):
                    workers.end_skipped(self._manifest.jobs[entry.job], Work(entry), outcome, Tally())
            if not await self._goes_on(workers):
                return False
        return True

    async def _skip_items(self, job: Job, workers: Workers) -> None:
        outcome = skipped(ErrorCode.DEPENDENCY_FAILED, dependency_failed(job, self._progress, self.scheduler.numbers))
        stream, progress = self.stream(job.number), self._progress[job.number]
        feed = Feed(stream, progress.next_left)
        while not feed.is_at_end:
            for _ in range(SKIP_BATCH):
                entry = feed.next()
                if entry is None:
                    break
                workers.end_skipped(job, Work(entry), outcome, Tally())
            while feed.is_far and not self.scheduler.is_stopped:
                await self._disk(feed.look_far)
            if not await self._goes_on(workers):
                return
        self.scheduler.passed_by((job,))

    async def _copy_items(self, job: Job, workers: Workers) -> None:
        """Only copies are left: what the stream still has to give. The lines they are copied from are durable."""
        await workers.caught_up()
        view = LedgerView(self._workspace)
        feed = Feed(self.stream(job.number), self._progress[job.number].next_left)
        while not feed.is_at_end:
            entries = list(islice(iter(feed.next, None), COPY_BATCH))
            while feed.is_far and not self.scheduler.is_stopped:
                await self._disk(feed.look_far)
            firsts = self.copies[job.number].firsts(job.number, [entry.index for entry in entries])
            while entries:
                wanted = [firsts[entry.index] for entry in entries]
                raw: dict[int, bytes] = {}
                await self._disk(partial(_read, view, job.number, wanted, raw))
                lines = {index: msgspec.json.decode(line, type=dict) for index, line in raw.items()}
                known = next((n for n, first in enumerate(wanted) if first not in raw), len(wanted))
                assert known, "an item that ended has a line"
                for entry, first in zip(entries[:known], wanted, strict=False):
                    workers.end_copy(job, entry, lines[first], len(raw[first]))
                    await workers.wait_room()
                entries = entries[known:]
                if not await self._goes_on(workers):
                    return
        self.scheduler.passed_by((job,))

    async def _make_items(self, job: Job, workers: Workers) -> None:
        """Make the items of a job from results that are durable, and record those that can't be used."""
        await workers.caught_up()
        made: list[int] = []
        await self._disk(lambda: made.append(self._made(job)))
        number, progress = job.number, self._progress[job.number]
        index = self._indexes[number] = LaneIndex(self._checked, self._workspace, index_name(job))
        progress.begin(made[0], self._ledger.done_bits(number, made[0]))
        copies = self.copies[number] = Copies(self._workspace, copies_name(job))
        progress.set_copies(copies.bits(number, made[0]))
        after = -1
        while found := index.flaws(after=after, count=SKIP_BATCH):
            after = found[-1][0]
            for item, message, given in found:
                if not progress.is_done(item):
                    outcome = failed(ErrorCode.INVALID_ITEM, message)
                    workers.end_invalid(job, item, msgspec.json.decode(given, type=dict), outcome)
            if not await self._goes_on(workers):
                return
        if await self._pass_by_superseded(index, workers):
            self.scheduler.made(job, index)

    def _made(self, job: Job) -> int:
        assert job.derivation is not None, "only such jobs are made"
        view = LedgerView(self._workspace)
        lines = view.finished(kinds=SUCCESSFUL, job=job.derivation.job)
        try:
            beside = {name: self._only(view, name) for name in job.derivation.also}
            known = {name: line for name, line in beside.items() if line is not None}
            return derived_items.make(job, self._manifest, self._workspace, lines, known)
        except (OSError, sqlite3.Error) as error:
            raise RunStopped(f"{self._workspace}: the items of {job.name} can't be kept: {error}") from error

    def _only(self, view: LedgerView, name: str) -> Mapping[str, Any] | None:
        """The result of a job that has one; None where none of its items succeeded, or several did."""
        first = list(islice(view.finished(kinds=SUCCESSFUL, job=name), 2))
        return first[0] if len(first) == 1 else None

    async def _goes_on(self, workers: Workers) -> bool:
        await anyio.lowlevel.checkpoint()
        await workers.wait_room()
        return not self.scheduler.is_stopped


def _read(view: LedgerView, job: int, wanted: Sequence[int], raw: dict[int, bytes]) -> None:
    """Blocking: the lines of these items, as many as fit."""
    raw.update(view.lines_of(job, wanted, COPY_BYTES))
