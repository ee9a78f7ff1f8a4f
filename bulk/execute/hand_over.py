"""Hands outcomes over: to the recorder as records of the ledger, to the scheduler so that lanes and jobs go on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bulk.capabilities import HoldsSecrets, SavesContent
from bulk.clock import Clock
from bulk.execute.recorder import Recorder
from bulk.execute.requests.context import ItemTally
from bulk.ledger.records import Finished, Record
from bulk.manifest.manifest import Entry, Job
from bulk.manifest.save_template import saved_path
from bulk.model import SUCCESSFUL, UNSEEN, BodyFile, ErrorCode, ItemError, Outcome, OutcomeKind
from bulk.operation import AnyOperation, Item
from bulk.platform.bodies.body_reader import BodyReader
from bulk.redaction import redact
from bulk.schedule.queues import Work
from bulk.schedule.scheduler import Scheduler
from bulk.undo import Undoable

_KEPT = (OutcomeKind.SUCCEEDED, OutcomeKind.FAILED, OutcomeKind.UNCHANGED)
"""Outcomes of items that have changed something, for certain, in part or perhaps: their before-images are kept."""

RESULT_BYTES = 1_500
"""About the memory that a finished item takes beside its payload (bytes)."""


class HandOver:
    """Hands outcomes to the recorder and to the scheduler.

    Args:
        on_failed: called with (job, outcome, is_after_success) for each item that has an error, before it is durable;
            is_after_success: an item of the job has ended well since the last such call.

    Attributes:
        recorder: has to have room before more is handed over.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        recorder: Recorder,
        body_reader: BodyReader,
        clock: Clock,
        on_failed: Callable[[Job, Outcome, bool], None],
    ) -> None:
        self._scheduler, self.recorder, self._body_reader = scheduler, recorder, body_reader
        self._clock, self._on_failed = clock, on_failed
        self._went_well: set[int] = set()

    def end(self, job: Job, work: Work, outcome: Outcome, tally: ItemTally) -> None:
        """Hand an outcome to the recorder, and free the lane of its item."""
        self._record(job, work.entry, outcome, tally)
        if tally.holds_body:
            self.recorder.hold(tally)
        self._scheduler.ended(work, outcome, tally.paid)

    def end_combined(self, job: Job, work: Work, outcomes: Sequence[Outcome | None], tally: ItemTally) -> None:
        """End items that shared their requests; the scheduler keeps those that have no outcome."""
        tally.body_bytes //= work.items  # the answers that they share are in memory once
        befores = tally.befores or {}
        for place, (entry, outcome) in enumerate(zip(work.entries, outcomes, strict=True)):
            if outcome is not None:
                tally.before = befores.get(place, UNSEEN)
                self._record(job, entry, outcome, tally)
        if tally.holds_body:
            self.recorder.hold(tally)
        self._scheduler.ended_together(work, outcomes, tally.paid)

    def end_skipped(self, job: Job, work: Work, outcome: Outcome, tally: ItemTally) -> None:
        """Record an item that was never offered."""
        self.recorder.record(self.record_of(job, work.entry, outcome, tally), RESULT_BYTES)
        self._scheduler.mark_ended(job.number, work.entry.index, outcome)

    def end_invalid(self, job: Job, index: int, fields: dict[str, Any], outcome: Outcome) -> None:
        """Record a derived item that can't be used; `fields` are those that were made for it."""
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
        self.recorder.record(Record(job=job.number, finished=finished, save=None), RESULT_BYTES)
        self._scheduler.mark_ended(job.number, index, outcome)

    def end_copy(self, job: Job, entry: Entry, line: Mapping[str, Any], size_bytes: int) -> None:
        """Record a duplicate read with the outcome of the earlier read; `line` is that read's line of the results."""
        error = line["error"]
        outcome = Outcome(
            kind=OutcomeKind(line["outcome"]),
            result=line["result"],
            error=error and ItemError(ErrorCode(error["code"]), error["message"], error["http_status"], 0),
            http_status=line["http_status"],
            is_missing=line.get("missing", False),
        )
        tally = ItemTally()
        tally.request_id = line["request_id"]
        record = self.record_of(job, entry, outcome, tally)
        self.recorder.record(record, RESULT_BYTES + size_bytes)
        self._tell(job, outcome)
        self._scheduler.mark_ended(job.number, entry.index, outcome)

    def _record(self, job: Job, entry: Entry, outcome: Outcome, tally: ItemTally) -> None:
        record = self.record_of(job, entry, outcome, tally)
        size = RESULT_BYTES + tally.body_bytes
        if record.save is not None and not isinstance(record.save[1], BodyFile):
            size += len(record.save[1])
        self.recorder.record(record, size, is_alone=tally.is_alone)
        if outcome.error is None:
            self._went_well.add(job.number)
        else:
            self._tell(job, outcome)

    def _tell(self, job: Job, outcome: Outcome) -> None:
        if outcome.error is None:
            self._went_well.add(job.number)
        else:
            is_after_success = job.number in self._went_well
            self._went_well.discard(job.number)
            self._on_failed(job, outcome, is_after_success)

    def record_of(self, job: Job, entry: Entry, outcome: Outcome, tally: ItemTally) -> Record:
        """Return the ledger's record of an item that has ended."""
        operation, error = job.operation, outcome.error
        status = outcome.http_status if outcome.http_status is not None else tally.http_status
        if error is not None:
            error = ItemError(error.code, redact(error.message), error.http_status or status, tally.sends)
        is_by_date = tally.is_by_date and outcome.kind is OutcomeKind.UNCHANGED
        finished = Finished(
            job.name,
            entry.index,
            entry.item.id,
            item_fields(operation, entry.item),
            outcome.kind,
            status,
            tally.sends,
            tally.started_at or self._clock.now(),
            (self._clock.monotonic() - tally.started) * 1_000.0 if tally.started else 0.0,
            tally.request_id,
            outcome.result,
            error,
            outcome.is_missing,
            "date" if is_by_date else None,
        )
        save: tuple[str, bytes | BodyFile] | None = None
        if job.save is not None and outcome.kind in SUCCESSFUL:
            payload = outcome.payload
            content = payload if isinstance(payload, BodyFile) else _saved_bytes(operation, outcome)
            save = (saved_path(job, entry.item), content)
        is_kept = tally.before is not UNSEEN and outcome.kind in _KEPT and isinstance(operation, Undoable)
        before = tally.before if is_kept else UNSEEN
        # done in part: its intent stays open, so that a retry knows what was there before
        is_in_part = before is not UNSEEN and outcome.kind is OutcomeKind.FAILED and outcome.result is not None
        return Record(job.number, finished, save, tally.may_arrive_late or is_in_part, tally.new_names, before)

    def abandoned(self, work: Work, tally: ItemTally) -> None:
        """Note that there is no outcome: the run is stopping, or the credential was refused."""
        self._scheduler.abandoned(work)
        self._body_reader.abandon(tally)


def _saved_bytes(operation: AnyOperation, outcome: Outcome) -> bytes:
    """Return what `save` writes: the content, or else the result as JSON."""
    content = operation.saved_bytes(outcome) if isinstance(operation, SavesContent) else outcome.payload
    if isinstance(content, bytes):
        return content
    return msgspec.json.format(msgspec.json.encode(outcome.result), indent=2) + b"\n"


def item_fields(operation: AnyOperation, item: Item) -> dict[str, Any]:
    """Return the item as the user gave it, without its id, without large fields that were sent, without secrets."""
    fields: dict[str, Any] = msgspec.to_builtins(item)
    fields.pop("id", None)
    for name in operation.unreported:
        fields.pop(name, None)
    if isinstance(operation, HoldsSecrets):
        for name in operation.secret_fields:
            _drop(fields, name)
    return fields


def _drop(fields: dict[str, Any], dotted: str) -> None:
    name, _, rest = dotted.partition(".")
    if not rest:
        fields.pop(name, None)
    elif isinstance(fields.get(name), dict):
        _drop(fields[name], rest)
