"""The loop of a worker: wait for work, then for a permit, then take an item and bring it to its outcome.

Fixed workers for each bucket, so that a drained bucket occupies only its own. The permit comes before the item: what is
taken is taken in the order of priorities at the moment it can be sent. Source: design.md §5.
"""

from collections.abc import Callable, Mapping
from typing import Any

import anyio.lowlevel
import msgspec

from bulk.clock import Clock
from bulk.errors import BulkError, CredentialRefused, RunDirectoryError, RunStopped
from bulk.execute.combined_run import CombinedRun
from bulk.execute.item_runner import ItemRunner
from bulk.execute.item_tally import Tally
from bulk.execute.recorder import Recorder
from bulk.govern.accounts import Permit, PermitQueue
from bulk.govern.governor import Governor
from bulk.govern.policy import Draining
from bulk.ledger.records import Record
from bulk.manifest.manifest import Entry, Job
from bulk.manifest.save_template import saved_path
from bulk.model import SUCCESSFUL, BodyFile, ErrorCode, Finished, ItemError, Outcome, OutcomeKind
from bulk.operation import AnyOperation, Item
from bulk.platform.auth.credentials import redact
from bulk.platform.bodies.body_reader import BodyReader
from bulk.schedule.scheduler import Queue, Scheduler, Work

RESULT_BYTES = 1_500
"""What a finished item takes in memory beside its payload, about (bytes)."""


class Workers:
    """Everything that a worker needs; `work` is one worker's task.

    Args:
        on_ended: called with (job, outcome) for each item, before it is durable.
        on_refused: called when a credential was refused.
        stop: called when the items can't be read any more.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        governor: Governor,
        item_runner: ItemRunner,
        together: CombinedRun,
        recorder: Recorder,
        body_reader: BodyReader,
        clock: Clock,
        on_ended: Callable[[Job, Outcome], None],
        on_refused: Callable[[CredentialRefused], None],
        stop: Callable[[BulkError], None],
    ) -> None:
        self._scheduler, self._governor, self._item_runner, self._recorder = scheduler, governor, item_runner, recorder
        self._combined_run, self._body_reader = together, body_reader
        self._clock, self._on_ended, self._on_refused, self._stop = clock, on_ended, on_refused, stop

    async def work(self, queue: Queue, permit_queue: PermitQueue) -> None:
        """Work until nothing is left, the run ends, or the credential is refused."""
        scheduler, governor, recorder = self._scheduler, self._governor, self._recorder
        try:
            while scheduler.has_work(queue) or await scheduler.wait_work(queue):
                if recorder.is_full:
                    await recorder.wait_room()
                permit = governor.permit_nowait(permit_queue) or await governor.permit(permit_queue, is_new=True)
                work = scheduler.take(queue)
                if work is None:
                    governor.return_unused(permit)
                    await anyio.lowlevel.checkpoint()
                    continue
                job = scheduler.jobs[work.entry.job]
                is_alone = work.lane is None and not job.operation.is_read
                result_of = job.operation.name if job.operation.result_is_reply and job.save is None else ""
                tally = Tally(is_saved=job.save is not None, is_alone=is_alone, result_of=result_of)
                if work.behind:
                    await self._work_together(job, work, permit_queue, permit, tally)
                    continue
                try:
                    outcome = await self._item_runner.run(job.operation, work.entry, permit_queue, permit, tally)
                except BaseException:
                    scheduler.abandoned(work)
                    self._body_reader.abandon(tally)
                    raise
                self.end(job, work, outcome, tally)
                del outcome  # nobody who waits for work keeps what the last one brought
        except CredentialRefused as refusal:
            scheduler.close(queue)
            self._on_refused(refusal)
        except Draining:
            return
        except (RunStopped, RunDirectoryError) as flaw:
            self._stop(flaw)

    async def _work_together(
        self, job: Job, work: Work, permit_queue: PermitQueue, permit: Permit, tally: Tally
    ) -> None:
        """Bring items that share their requests to their outcomes; the scheduler keeps those that have none."""
        try:
            outcomes = await self._combined_run.run(job.operation, work.entries, permit_queue, permit, tally)
        except BaseException:
            self._scheduler.abandoned(work)
            self._body_reader.abandon(tally)
            raise
        tally.body_bytes //= work.items  # what was answered is in memory once
        for entry, outcome in zip(work.entries, outcomes, strict=True):
            if outcome is not None:
                self._hand_over(job, entry, outcome, tally)
        if self._body_reader.holds(tally):
            self._recorder.hold(tally)
        self._scheduler.ended_together(work, outcomes, tally.paid)

    def end(self, job: Job, work: Work, outcome: Outcome, tally: Tally) -> None:
        """Hand an outcome to the recorder, free its lane."""
        self._hand_over(job, work.entry, outcome, tally)
        if self._body_reader.holds(tally):
            self._recorder.hold(tally)
        self._scheduler.ended(work, outcome, tally.paid)

    def _hand_over(self, job: Job, entry: Entry, outcome: Outcome, tally: Tally) -> None:
        record = self.record_of(job, entry, outcome, tally)
        size = RESULT_BYTES + tally.body_bytes
        if record.save is not None and not isinstance(record.save[1], BodyFile):
            size += len(record.save[1])
        self._recorder.record(record, size, is_alone=tally.is_alone)
        self._on_ended(job, outcome)

    def end_skipped(self, job: Job, work: Work, outcome: Outcome, tally: Tally) -> None:
        """Record an item that was never offered."""
        self._recorder.record(self.record_of(job, work.entry, outcome, tally), RESULT_BYTES)
        self._scheduler.mark_ended(job.number, work.entry.index, outcome)

    def end_invalid(self, job: Job, index: int, fields: dict[str, Any], outcome: Outcome) -> None:
        """Record an item that was made while the run goes on and can't be used; `fields` is what was made."""
        error = outcome.error
        finished = Finished(
            job=job.name,
            index=index,
            id=fields.pop("id", None) if isinstance(fields.get("id"), str) else None,
            item=fields,
            outcome=outcome.kind,
            http_status=None,
            attempts=0,
            started_at=self._clock.now(),
            elapsed_ms=0.0,
            request_id=None,
            result=None,
            error=None if error is None else ItemError(error.code, redact(error.message), None, 0),
        )
        self._recorder.record(Record(job=job.number, finished=finished, save=None), RESULT_BYTES)
        self._scheduler.mark_ended(job.number, index, outcome)

    def end_copy(self, job: Job, entry: Entry, line: Mapping[str, Any], size_bytes: int) -> None:
        """Record an item as the earlier one ended that asks for the same, and whose line of results is `line`."""
        error = line["error"]
        outcome = Outcome(
            kind=OutcomeKind(line["outcome"]),
            result=line["result"],
            error=error and ItemError(ErrorCode(error["code"]), error["message"], error["http_status"], 0),
            http_status=line["http_status"],
        )
        tally = Tally()
        tally.request_id = line["request_id"]
        record = self.record_of(job, entry, outcome, tally)
        self._recorder.record(record, RESULT_BYTES + size_bytes)
        self._on_ended(job, outcome)
        self._scheduler.mark_ended(job.number, entry.index, outcome)

    async def caught_up(self) -> None:
        """Wait until every outcome so far is durable."""
        await self._recorder.caught_up()

    async def wait_room(self) -> None:
        """Wait until the recorder has caught up."""
        await self._recorder.wait_room()

    def record_of(self, job: Job, entry: Entry, outcome: Outcome, tally: Tally) -> Record:
        """The ledger's record of an item that has ended."""
        now = self._clock.now()
        error = outcome.error
        status = outcome.http_status if outcome.http_status is not None else tally.http_status
        if error is not None:
            error = ItemError(error.code, redact(error.message), error.http_status or status, tally.sends)
        finished = Finished(
            job=job.name,
            index=entry.index,
            id=entry.item.id,
            item=item_fields(job.operation, entry.item),
            outcome=outcome.kind,
            http_status=status,
            attempts=tally.sends,
            started_at=tally.started_at or now,
            elapsed_ms=(self._clock.monotonic() - tally.started) * 1_000.0 if tally.started else 0.0,
            request_id=tally.request_id,
            result=outcome.result,
            error=error,
        )
        save: tuple[str, bytes | BodyFile] | None = None
        if job.save is not None and outcome.kind in SUCCESSFUL:
            payload = outcome.payload
            content = payload if isinstance(payload, BodyFile) else job.operation.saved_bytes(outcome)
            save = (saved_path(job, entry.item), content)
        return Record(job=job.number, finished=finished, save=save, may_arrive_late=tally.may_arrive_late)


def item_fields(operation: AnyOperation, item: Item) -> dict[str, Any]:
    """The item as the user gave it, without its id, without large fields that were sent, without secrets."""
    fields: dict[str, Any] = msgspec.to_builtins(item)
    fields.pop("id", None)
    for name in operation.unreported:
        fields.pop(name, None)
    for name in operation.secret_fields:
        _drop(fields, name)
    return fields


def _drop(fields: dict[str, Any], dotted: str) -> None:
    name, _, rest = dotted.partition(".")
    if not rest:
        fields.pop(name, None)
    elif isinstance(fields.get(name), dict):
        _drop(fields[name], rest)
