"""Items that never reach a worker: those of skipped jobs, superseded ones, and copies of others; and derived items.
The module also looks for items that lie far on in their source, behind others that are done.

One task (`run`) beside the workers asks the scheduler what is to be done and does it, one thing after the other. It
ends with the scheduler.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import msgspec

from bulk.bundle.checked import index_name
from bulk.bundle.duplicate_reads import Copies, copies_name
from bulk.bundle.streams import LaneIndex
from bulk.check import derived_items
from bulk.errors import BulkError, RunDirectoryError, RunStopped
from bulk.execute.hand_over import HandOver
from bulk.execute.job_streams import JobStreams
from bulk.execute.requests.context import ItemTally
from bulk.ledger.protocol import RunLedger, RunView, SharedLedger
from bulk.manifest.manifest import Job
from bulk.model import SUCCESSFUL, ErrorCode, failed, skipped
from bulk.schedule.job_progress import JobProgress, dependency_failed
from bulk.schedule.keyed_needs import why_doomed
from bulk.schedule.keyed_scheduler import KeyedScheduler
from bulk.schedule.queues import Feed, Work
from bulk.schedule.scheduler import Scheduler
from bulk.schedule.tasks import Copy, Make, PassBy, Skip, SkipSome
from bulk.storage.disk_threads import Disk, beside

OnMade: TypeAlias = Callable[[Job, JobProgress], BulkError | None]

SKIP_BATCH = 500
COPY_BATCH = 256
COPY_BYTES = 4 * 1024 * 1024
"""Copies that are read at once (count), and most bytes of the lines that they are copied from."""
SUPERSEDED_BATCH = 16
"""Superseded items that are read at once (count): they may be large."""


class UnsentItems:
    """Gives outcomes to items that are never sent: skipped and superseded ones, and copies; makes derived items.

    Args:
        streams: the items of each job; told of derived items when they are made.
        on_made: called with derived items before any is offered; returns why the run has to stop, or None.
        stop: called when something can't be read or kept.
    """

    def __init__(
        self,
        ledger: RunLedger,
        scheduler: Scheduler,
        streams: JobStreams,
        hand_over: HandOver,
        disk: Disk,
        stop: Callable[[BulkError], None],
        on_made: OnMade | None,
    ) -> None:
        self._checked, self._manifest, self._workspace = streams.checked, streams.checked.manifest, ledger.run_dir
        self._ledger, self._scheduler, self._streams = ledger, scheduler, streams
        self._hand_over, self._disk, self._stop, self._on_made = hand_over, disk, stop, on_made
        self._progress = scheduler.progress

    async def run(self) -> None:
        """Do what is wanted until nothing more will be offered."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._find)
            await self._run()
            group.cancel_scope.cancel()

    async def _find(self) -> None:
        try:
            while True:
                if (find := self._scheduler.finds.next()) is None:
                    await self._scheduler.finds.changed()
                    continue
                while find.feed.is_far and not self._scheduler.is_stopped:
                    await self._disk(find.feed.look_far)
                self._scheduler.arrived(find)
        except RunDirectoryError as refusal:
            self._stop(refusal)

    async def _run(self) -> None:
        scheduler = self._scheduler
        try:
            if not scheduler.board.is_shared and await self._pass_by_superseded(self._streams.index):
                scheduler.is_passing_by = False
                scheduler.passed_by(scheduler.jobs)
            while (task := await scheduler.wait_task()) is not None:
                match task:
                    case Skip(job):
                        await self._skip_items(job)
                    case SkipSome():
                        await self._skip_some()
                    case Make(job):
                        await self._make_items(job)
                    case Copy(job):
                        await self._copy_items(job)
                    case PassBy(job) if await self._pass_by_superseded(self._streams.index):
                        scheduler.passed_by((job,))
                    case PassBy():
                        pass
        except (RunStopped, RunDirectoryError) as refusal:
            self._stop(refusal)

    async def _pass_by_superseded(self, index: LaneIndex) -> bool:
        """Skip the superseded items; return whether all of them have their outcomes now."""
        outcome = skipped(ErrorCode.SUPERSEDED, "not sent: a later item of this run takes the place of this one")
        after = 0
        while found := index.superseded(after=after, count=SUPERSEDED_BATCH):
            after = found[-1][0]
            for _, entry in found:
                if not self._progress[entry.job].is_done(entry.index):
                    self._hand_over.end_skipped(self._manifest.jobs[entry.job], Work(entry), outcome, ItemTally())
            if not await self._goes_on():
                return False
        return True

    async def _skip_items(self, job: Job) -> None:
        scheduler = self._scheduler
        why = dependency_failed(job, scheduler.board.unsuccessful, scheduler.numbers)
        outcome = skipped(ErrorCode.DEPENDENCY_FAILED, why)
        stream, progress = self._streams.stream(job.number), self._progress[job.number]
        feed = Feed(job.number, stream, progress.next_left)
        while not feed.is_at_end:
            for _ in range(SKIP_BATCH):
                entry = feed.next()
                if entry is None:
                    break
                self._hand_over.end_skipped(job, Work(entry), outcome, ItemTally())
            while feed.is_far and not self._scheduler.is_stopped:
                await self._disk(feed.look_far)
            if not await self._goes_on():
                return
        self._scheduler.passed_by((job,))

    async def _skip_some(self) -> None:
        """Skip items because an item that they need did not succeed; the items that need those in turn come after
        them.
        """
        scheduler, jobs = self._scheduler, self._manifest.jobs
        assert isinstance(scheduler, KeyedScheduler), "only that one asks for it"
        seen = dict[int, None]()
        while (doomed := scheduler.next_doomed()) is not None:
            number = doomed.edge.waiting
            job, progress, items = jobs[number], self._progress[number], doomed.items
            seen[number] = None
            for first in range(0, len(items), SKIP_BATCH):
                left = [index for index in items[first : first + SKIP_BATCH] if not progress.is_done(index)]
                for entry in self._streams.index.found(number, left):
                    outcome = skipped(ErrorCode.DEPENDENCY_FAILED, why_doomed(doomed, jobs, entry.item))
                    self._hand_over.end_skipped(job, Work(entry), outcome, ItemTally())
                scheduler.skipped_some(number, left)
                if not await self._goes_on():
                    return
        scheduler.passed_by([jobs[number] for number in seen])

    async def _copy_items(self, job: Job) -> None:
        """End the items that are left in the stream: only copies are. The lines they are copied from are durable."""
        await self._hand_over.recorder.caught_up()
        view = self._ledger.view()
        feed = Feed(job.number, self._streams.stream(job.number), self._progress[job.number].next_left)
        while not feed.is_at_end:
            entries = list(islice(iter(feed.next, None), COPY_BATCH))
            while feed.is_far and not self._scheduler.is_stopped:
                await self._disk(feed.look_far)
            firsts = self._streams.copies[job.number].firsts(job.number, [entry.index for entry in entries])
            while entries:
                wanted = [firsts[entry.index] for entry in entries]
                raw: dict[int, bytes] = {}
                await self._disk(partial(_read, view, job.number, wanted, raw))
                lines = {index: msgspec.json.decode(line, type=dict) for index, line in raw.items()}
                known = next((n for n, first in enumerate(wanted) if first not in raw), len(wanted))
                assert known, "an item that ended has a line"
                for entry, first in zip(entries[:known], wanted, strict=False):
                    self._hand_over.end_copy(job, entry, lines[first], len(raw[first]))
                    await self._hand_over.recorder.wait_room()
                entries = entries[known:]
                if not await self._goes_on():
                    return
        self._scheduler.passed_by((job,))

    async def _make_items(self, job: Job) -> None:
        """Make the items of a job from results that are durable, and record those that can't be used."""
        await self._hand_over.recorder.caught_up()
        made: list[int] = []
        await self._disk(lambda: made.append(self._made(job)))
        number, progress = job.number, self._progress[job.number]
        index = LaneIndex(self._checked, self._workspace, index_name(job))
        progress.begin(made[0], self._ledger.done_bits(number, made[0]))
        copies = Copies(self._workspace, copies_name(job))
        self._streams.made(number, index, copies)
        progress.set_copies(copies.bits(number, made[0]))
        if (on_made := self._on_made) is not None:
            reason = await beside(self._disk, lambda: on_made(job, progress))
            if reason is not None:
                self._stop(reason)
                return
        after = -1
        while found := index.flaws(after=after, count=SKIP_BATCH):
            after = found[-1][0]
            for item, message, given in found:
                if not progress.is_done(item):
                    outcome = failed(ErrorCode.INVALID_ITEM, message)
                    self._hand_over.end_invalid(job, item, msgspec.json.decode(given, type=dict), outcome)
            if not await self._goes_on():
                return
        if await self._pass_by_superseded(index):
            self._scheduler.made(job, index)

    def _made(self, job: Job) -> int:
        assert job.derivation is not None, "only such jobs are made"
        shared = self._ledger if isinstance(self._ledger, SharedLedger) else None
        view = self._ledger.view() if shared is None else shared.sources(job.number)
        lines = view.finished(kinds=SUCCESSFUL, job=job.derivation.job)
        try:
            beside = {name: self._only(view, name) for name in job.derivation.also}
            known = {name: line for name, line in beside.items() if line is not None}
            made = derived_items.make(job, self._manifest, self._workspace, lines, known)
        except (OSError, sqlite3.Error) as error:
            raise RunStopped(f"{self._workspace}: the items of {job.name} can't be kept: {error}") from error
        if shared is not None:
            shared.made(job.number, made)
        return made

    def _only(self, view: RunView, name: str) -> Mapping[str, Any] | None:
        """Return the result of a job that has one; None where none of its items succeeded, or several did."""
        first = list(islice(view.finished(kinds=SUCCESSFUL, job=name), 2))
        return first[0] if len(first) == 1 else None

    async def _goes_on(self) -> bool:
        await anyio.lowlevel.checkpoint()
        await self._hand_over.recorder.wait_room()
        return not self._scheduler.is_stopped


def _read(view: RunView, job: int, wanted: Sequence[int], raw: dict[int, bytes]) -> None:
    """Read the lines of these items, as many as fit; blocks."""
    raw.update(view.lines_of(job, wanted, COPY_BYTES))
