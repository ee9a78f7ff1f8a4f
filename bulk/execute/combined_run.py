"""Items of a lane that share requests run their operation's `steps_combined` together; what that leaves runs alone.

    steps_combined ──write─▶ intents of those that share it (durable) ──▶ send ──▶ an outcome for each
                                                                             └──▶ refused, lost: none

There is no second way through trouble: if a shared request does not go well, its items get no outcome, and the
scheduler offers each of them by itself. So one bad name does not fail the others, and an item whose answer was lost is
settled by its own read-back, in this process as in the next one. A refusal is passed on to each of them, because the
write may have been done for some. Only writes that may be repeated are combined. Source: operations.md (policy I).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bulk.capabilities import Combinable, FileError
from bulk.errors import CredentialRefused
from bulk.execute.generator_steps import OperationFlaw, advance
from bulk.execute.item_runner import ItemRunner
from bulk.execute.requests.context import RequestContext
from bulk.execute.write_loop import WriteLoop
from bulk.execute.writes.lost_write import LostWrite, lost_write_of
from bulk.govern.pools import MemberStuck
from bulk.manifest.manifest import Entry
from bulk.model import UNSEEN, Effect, Outcome, Reply, Request
from bulk.operation import AnyOperation
from bulk.platform.classification import VerdictKind

log = logging.getLogger("bulk.execute")


class CombinedRun:
    """Brings items that share their requests to their outcomes, for all workers."""

    def __init__(self, item_runner: ItemRunner) -> None:
        self._item_runner, self._shared = item_runner, item_runner.shared

    async def run(
        self, operation: AnyOperation, entries: Sequence[Entry], context: RequestContext
    ) -> list[Outcome | None]:
        """Return an outcome for each item, or None where it has to be tried by itself.

        Raises:
            CredentialRefused, Draining, RunStopped: there is no outcome; open intents are settled by the next run.
        """
        try:
            if self._shared.is_preview or any(self._item_runner.is_in_doubt(entry) for entry in entries):
                return [None] * len(entries)
            return await self._steps(operation, entries, context)
        finally:
            self._shared.sender.return_unused(context)

    async def _steps(
        self, operation: AnyOperation, entries: Sequence[Entry], context: RequestContext
    ) -> list[Outcome | None]:
        nothing: list[Outcome | None] = [None] * len(entries)
        shared, first = self._shared, entries[0]
        writes = WriteLoop(shared, context)
        written: Request | None = None
        status = 0
        assert isinstance(operation, Combinable), "only such items are taken together"
        try:
            items = [await self._item_runner.complete(operation, entry) for entry in entries]
            steps = shared.recent_writes.steps_combined(operation, items, shared.clock.monotonic())
            request = advance(steps, None, list)
            while isinstance(request, Request):
                answer: Reply | Outcome | None
                if request.effect is Effect.READ:
                    answer = await shared.sender.read(request, context)
                else:
                    if self._is_stale(request, entries):
                        steps.close()
                        return nothing  # each is tried alone: only items that are still as planned are written
                    await writes.let_late_writes_pass(operation, first, first.item, request)
                    answer = await self._write(request, entries, writes, context)
                    written, status = request, context.tally.http_status or 0
                if not isinstance(answer, Reply):
                    steps.close()
                    return nothing
                request = advance(steps, answer, list)
            if len(request) != len(entries):
                raise OperationFlaw(f"it ended with {len(request)} outcomes for {len(entries)} items")
            if written is not None:
                now = shared.clock.monotonic()
                for place in written.shared_by:
                    if (outcome := request[place]) is not None:
                        shared.recent_writes.add(operation, items[place], written.effect, outcome, now)
                unshown = [place for place in written.shared_by if request[place] is None]
                self._doubt(written, entries, unshown, status, self._item_runner.refused_write)
            return request
        except FileError:
            return nothing
        except (OperationFlaw, ValueError, TypeError) as flaw:  # the latter two: the request can't be sent
            about = {"job_number": first.job, "item": first.index}
            log.warning("%s can't combine %d items", operation.name, len(entries), exc_info=flaw, extra=about)
            if written is not None:
                self._doubt(written, entries, written.shared_by, status, self._item_runner.lost_write)
            return nothing

    def _is_stale(self, request: Request, entries: Sequence[Entry]) -> bool:
        """Return whether one of the items that share a write is not as the approved plan has seen it."""
        planned = self._shared.planned
        return planned is not None and any(
            planned.is_stale(entries[place].job, entries[place].index, before, request.effect)
            for place, before in zip(request.shared_by, _befores(request), strict=True)
        )

    async def _write(
        self, request: Request, entries: Sequence[Entry], writes: WriteLoop, context: RequestContext
    ) -> Reply | None:
        """Send a write until it is decided; return None where it was refused or its answer was lost."""
        sharing = [entries[place] for place in request.shared_by]
        if request.effect is not Effect.SET or not sharing:
            raise OperationFlaw(f"a combined request can't be sent: {request.method} {request.path}")
        befores = _befores(request)
        await writes.intend(request, sharing, befores)
        try:
            tried = await writes.send(request, lambda *_: False)
        except (CredentialRefused, MemberStuck):
            if context.tally.sends:  # each item is tried alone with another member of the pool
                self._doubt(
                    request, entries, request.shared_by, context.tally.http_status, self._item_runner.lost_write
                )
            raise
        reply = tried.reply
        if reply is not None and tried.kind is VerdictKind.ACCEPTED and not reply.is_truncated:
            tally = context.tally
            tally.befores = dict(zip(request.shared_by, befores, strict=True)) | (tally.befores or {})
            return reply
        runner, is_refused = self._item_runner, tried.kind is VerdictKind.REFUSED
        note = runner.refused_write if is_refused else runner.lost_write
        self._doubt(request, entries, request.shared_by, reply.status if reply is not None else None, note)
        return None

    def _doubt(
        self,
        request: Request,
        entries: Sequence[Entry],
        places: Sequence[int],
        status: int | None,
        note: Callable[[Entry, LostWrite], None],
    ) -> None:
        """Note for the items at these places that a write that they share may have been done."""
        lost_write = lost_write_of(request, self._shared.clock, status)
        befores = dict(zip(request.shared_by, _befores(request), strict=True))
        for place in places:
            note(entries[place], replace(lost_write, lost=replace(lost_write.lost, before=befores[place])))


def _befores(request: Request) -> Sequence[Any]:
    """Return what was there before a combined write, for each of the items that share it."""
    if request.before is UNSEEN:
        return [UNSEEN] * len(request.shared_by)
    befores: Sequence[Any] = request.before
    if len(befores) != len(request.shared_by):
        raise OperationFlaw(f"a combined request has {len(befores)} before-images for {len(request.shared_by)} items")
    return befores
