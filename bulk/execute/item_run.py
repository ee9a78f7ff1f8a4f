"""One item while it is worked on: its operation's steps, the intent before each write, and the way back from doubt.

    steps ──read──▶ Reply            ──refused──▶ failed
          ──write─▶ intent (durable) ──▶ send ──▶ Reply │ refused │ in doubt ──▶ settle ──▶ outcome │ start over

A write is in doubt when no answer came, when the answer proves nothing (a gateway's, or one without what was asked
for), or when the server that answered may have given up on a write that was carried out. An item always starts over
from the first step: the operation looks again and decides again. The end of a repeat is read in the light of the doubt:
"already so" means that the earlier write was applied, and a failure is settled before it is believed. If a write was
refused and never in doubt, its effect may be looked for (`refused_writes.py`). "Already so" after it is settled.
Source: operations.md; failures.md rows 4-7, 22, 24, 42, 78.
"""

import logging
from collections import Counter
from dataclasses import replace
from typing import Any

from bulk.capabilities import ProvesAbsence
from bulk.execute.generator_steps import OperationFlaw, advance
from bulk.execute.preview import Planned
from bulk.execute.requests.context import RequestContext, Tried, outcome_of
from bulk.execute.requests.retry_budget import RetryBudget, pause_s
from bulk.execute.requests.wait_reasons import WaitReason
from bulk.execute.shared import Shared
from bulk.execute.write_loop import Again, WriteLoop, is_in_progress
from bulk.execute.writes.late_writes import LateWrite, folded
from bulk.execute.writes.lost_write import LostWrite, lost_again, lost_write_of, never_shown, what_came
from bulk.manifest.manifest import Entry
from bulk.model import (
    UNSEEN,
    Effect,
    Encoded,
    ErrorCode,
    Outcome,
    OutcomeKind,
    Reply,
    Request,
    failed,
    skipped,
    succeeded,
    unchanged,
    unknown,
)
from bulk.operation import AnyOperation, Item
from bulk.platform.bodies.body_values import A_PAGE
from bulk.platform.classification import REDIRECT_STATUSES, VerdictKind

log = logging.getLogger("bulk.execute")

STALE = "it is not as the approved plan has seen it: nothing was written; look again with `bulk plan --live`"
ELSEWHERE = "it was sent before; the repeat met a conflict (status 409), and no look could be understood"
APPLIED_BEFORE = "an earlier send, whose answer was lost, had already done it"

_READ, _ACCEPTED = Effect.READ, VerdictKind.ACCEPTED
_REFUSED = failed(ErrorCode.UNAUTHORIZED, "the platform does not take the credential any more")
_FAILED, _UNCHANGED = OutcomeKind.FAILED, OutcomeKind.UNCHANGED
_IN_DOUBT = (VerdictKind.SERVER_ERROR, VerdictKind.BUSY, VerdictKind.BAD_RESPONSE)
_LIMITED = (VerdictKind.LIMITED_PRIMARY, VerdictKind.LIMITED_SECONDARY, VerdictKind.THROTTLED)


class ItemRun:
    """The state of one item while it is worked on."""

    effect: Effect | None = None
    _asked: str = ""
    _writes: WriteLoop | None = None
    _lost_write: LostWrite | None = None
    _refused_write: LostWrite | None = None
    _has_seen: bool = False
    _doubted: tuple[VerdictKind, LostWrite] | None = None
    _done: tuple[Request, int] | None = None  # the last accepted write; a refusal that steps handle is none

    def __init__(
        self,
        shared: Shared,
        operation: AnyOperation,
        entry: Entry,
        item: Item,
        context: RequestContext,
        lost_write: LostWrite | None,
        refused_write: LostWrite | None,
    ) -> None:
        self._shared, self._operation, self._entry, self._item = shared, operation, entry, item
        self._context, self._tally = context, context.tally
        if lost_write is not None:
            self._lost_write, self.effect, context.is_bound = lost_write, lost_write.effect, True
        if refused_write is not None:  # the items that share it have seen what was there
            self._refused_write = refused_write
            self._has_seen = self._tally.has_found = context.is_bound = True

    @property
    def doubt(self) -> LostWrite | None:
        """The write that was sent and may have taken effect, also one that was refused for now; None: there is none."""
        return self._lost_write or (self._doubted and self._doubted[1])

    @property
    def unsettled(self) -> LostWrite | None:
        """The write that another member of the pool has to settle if this one can't go on; None: nothing was sent."""
        done = None if self._done is None else replace(self._lost(*self._done), followed_by=_REFUSED)
        return self.doubt or done or self._refused_write

    async def settled_first(self) -> Outcome | None:
        """Settle what an earlier process has sent: return the outcome that reading back shows; None: go on."""
        # reading back takes permits of its own; keeping this one meanwhile could block them
        self._shared.sender.return_unused(self._context)
        return await self._settle()

    async def go_on(self, ended: "Outcome | LostWrite | Again", retry_budget: RetryBudget) -> Outcome:
        """Return the outcome, over as many rounds as it takes. `ended`: how the steps ended the first time."""
        ended = await self._when_it_is_there(ended)
        refusal: Outcome | None = None
        came: Counter[str] = Counter()
        while True:
            is_limited = False
            if isinstance(ended, LostWrite | Again):
                came[what_came(ended if isinstance(ended, LostWrite) else None)] += 1
            if isinstance(ended, LostWrite):
                if self._lost_write is not None:
                    self._may_still_arrive(ended)
                self._lost_write = lost_again(self._lost_write, ended)
                outcome = await self._settle()
                if outcome is not None:
                    return outcome
                is_limited = self._writes is not None and self._writes.is_to_be_settled
            elif isinstance(ended, Again):
                refusal = ended.refusal
                self._shared.recent_writes.forget(self._operation, self._item)
                outcome = refusal if self._lost_write is None else await self._settle(refusal)
                if outcome is not None and outcome is not refusal:
                    return outcome
            elif self._is_gone(ended):
                why = ended.error.message if ended.error is not None else ""
                return skipped(ErrorCode.STALE, f"{STALE} ({why})")
            else:
                return await self._in_the_light_of_doubt(ended)
            now, is_wrong = self._shared.clock.monotonic(), isinstance(ended, LostWrite) and ended.is_wrong
            if not is_limited and not retry_budget.is_another(self._shared.sender.served, now, is_wrong=is_wrong):
                break
            seconds = pause_s(retry_budget.number, self._shared.dice.random())
            await self._shared.sender.pause(seconds, WaitReason.ROUND)
            ended = await self._when_it_is_there(await self.steps())
        if refusal is not None and self._lost_write is None:
            return await self._unless_it_was_done(refusal)
        return unknown(never_shown(came))

    def _is_gone(self, ended: Outcome) -> bool:
        """Return whether nothing was sent, because what the approved plan has seen is not there any more."""
        planned, is_unsent = self._shared.planned, self.effect is None and self._lost_write is None
        return planned is not None and is_unsent and planned.is_gone(*self._owner, ended)

    async def _when_it_is_there(self, ended: "Outcome | LostWrite | Again") -> "Outcome | LostWrite | Again":
        """Return how the steps end once they no longer come too early to what this run has just created or changed."""
        shared, tries = self._shared, 0
        while isinstance(ended, Outcome):
            now, asked = shared.clock.monotonic(), self._asked
            if ended.is_missing and isinstance(self._operation, ProvesAbsence):
                asked = self._operation.place(self._item)
            pause_s = shared.recent_creations.pause_s(ended, asked, tries, now)
            if not pause_s and self.effect is None:
                pause_s = shared.recent_writes.doubt_s(self._operation, self._item, ended, now)
            if pause_s <= 0.0:
                break
            tries += 1
            await shared.sender.pause(pause_s, WaitReason.NOT_VISIBLE)
            ended = await self.steps()
        return ended

    async def _in_the_light_of_doubt(self, outcome: Outcome) -> Outcome:
        if self._lost_write is None:
            return await self._unless_it_was_done(outcome)
        if outcome.kind is _UNCHANGED:
            self._tally.before = self._lost_write.lost.before
            return succeeded(outcome.result, note=APPLIED_BEFORE, payload=outcome.payload)
        if outcome.kind is not _FAILED:
            return outcome
        # a repeat failed, or the look before it: the effect of an earlier send, or of this one, may still be there
        ended = await self._unless_it_was_done(await self._settle(outcome) or outcome)
        refused, is_unread = self._refused_write, ended.error is not None and ended.error.code is ErrorCode.BAD_RESPONSE
        if is_unread and refused is not None and refused.lost.status == 409:
            return unknown(ELSEWHERE, http_status=409)
        return ended

    async def _unless_it_was_done(self, outcome: Outcome) -> Outcome:
        """Return how an item ends whose write was refused: as its steps ended, unless the write's effect is there."""
        shared, refused, tally = self._shared, self._refused_write, self._tally
        if outcome.kind is _UNCHANGED:
            tally.before = UNSEEN
            return outcome if refused is None else await self._unless_it_was_ours(outcome, refused)
        if refused is None or outcome.kind is not _FAILED:
            return outcome
        if shared.clock.monotonic() < shared.recent_writes.until(self._operation, self._item):
            return outcome  # a read may show what was there before an earlier write of this run
        told, about = (tally.sends, tally.http_status, tally.request_id), (self._operation, self._item)
        found = await shared.settler.done_all_the_same(*about, refused, outcome, self._context, self._owner)
        if found is None:
            tally.sends, tally.http_status, tally.request_id = told
            return outcome
        tally.before = refused.lost.before
        return found

    async def _unless_it_was_ours(self, outcome: Outcome, refused: LostWrite) -> Outcome:
        """Return how an item ends whose write was refused, and that turned out to be as asked for."""
        if not self._has_seen:  # it may have been so before
            self._tally.before = refused.lost.before
            return outcome
        self._lost_write = refused
        settled = await self._settle(outcome)
        assert settled is not None, "the item does not start over"
        ended = self._shared.settler.refused_or_ours(self._operation, refused, settled)
        if ended.kind is _UNCHANGED:
            self._tally.before = UNSEEN
        return ended

    async def _settle(self, refusal: Outcome | None = None) -> Outcome | None:
        assert self._lost_write is not None, "settling needs a doubt"
        shared, settler = self._shared, self._shared.settler
        stale_until = shared.recent_writes.until(self._operation, self._item)
        key = (self._operation.name, self._entry.index)
        settler.under_way[key] = settler.settled_at(self._lost_write)
        self._context.is_in_hand = True
        try:
            about = self._operation, self._item, self._lost_write, self._context
            outcome = await settler.settle(*about, refusal, stale_until, self._owner)
        finally:
            settler.under_way.pop(key, None)
            self._context.is_in_hand = False
        if outcome is None:
            self._may_still_arrive(self._lost_write)
        elif outcome.kind is not _FAILED or outcome.result is not None:  # else nothing was done
            self._tally.before = self._lost_write.lost.before
        return outcome

    async def settled_after(self, lost_write: LostWrite, refusal: Outcome) -> Outcome:
        """Return how an item ends that was refused, and of which this write was sent before."""
        self._lost_write = lost_write
        return await self._settle(refusal) or refusal

    def _may_still_arrive(self, lost_write: LostWrite) -> None:
        shared, lost = self._shared, lost_write.lost
        lanes = folded(self._operation.resource, self._operation.lanes(self._item))
        until = shared.settler.settled_at(lost_write)
        late = LateWrite(self._owner, self._operation.resource, lanes, lost.path.casefold(), lost_write.effect, until)
        shared.late_writes.add(late, shared.clock.monotonic())
        self._tally.may_arrive_late = True

    @property
    def _owner(self) -> tuple[int, int]:
        return self._entry.job, self._entry.index

    async def steps(self) -> Outcome | LostWrite | Again:
        """Run the operation's steps once: return an outcome, a lost write, or a conflict to start over from."""
        shared, operation, tally = self._shared, self._operation, self._tally
        if operation.is_read or tally.is_alone:
            steps = operation.steps(self._item)
        else:
            steps = shared.recent_writes.steps(operation, self._item, shared.clock.monotonic())
        tally.has_read, self._done = False, None
        written: Request | None = None
        try:
            request = advance(steps, None, Outcome)
            while isinstance(request, Request):
                self._asked = request.path
                if request.effect is _READ:
                    reply = await shared.sender.read(request, self._context)
                    if isinstance(reply, Outcome):
                        steps.close()
                        return self._ended(reply)
                    if type(reply.body) is Encoded:  # the kept result of an earlier item; nothing has changed
                        return unchanged(reply.body)
                    tally.has_read, tally.has_found = True, tally.has_found or reply.status < 300
                else:
                    self.effect = request.effect
                    answer = await self._write(request)
                    if not isinstance(answer, Reply):
                        steps.close()
                        return self._ended(answer)
                    reply, written = answer, request
                    self._note(request, reply.status)
                request = advance(steps, reply, Outcome)
                if tally.kept_as is not None and tally.result_of and isinstance(request, Outcome):
                    return shared.sender.note_result(request, reply, self._context)
            return self._ended(request)
        except (OperationFlaw, ValueError, TypeError) as flaw:  # the latter two: the request can't be sent
            about = {"job_number": self._entry.job, "item": self._entry.index}
            log.warning("%s #%d can't use an answer", operation.name, self._entry.index, exc_info=flaw, extra=about)
            if written is not None:
                return self._lost(written, tally.http_status)
            return failed(ErrorCode.BAD_RESPONSE, f"the answer can't be used ({flaw})", http_status=tally.http_status)

    def _ended(self, ended: Outcome | LostWrite | Again) -> Outcome | LostWrite | Again:
        """Return how the steps end: as a lost write where something was done, and a failure does not say what."""
        if self._done is None or not isinstance(ended, Outcome) or ended.kind is not _FAILED:
            return ended
        return ended if ended.result is not None else replace(self._lost(*self._done), followed_by=ended)

    def _note(self, request: Request, status: int) -> None:
        """Note the answer to a write, which the steps look into."""
        if status >= 300:
            self._note_refusal(request, status)
        if status < 400:
            if self._done is None:  # only the first of several writes saw the state before all of them
                self._tally.before = self._before(request)
            self._done = request, status

    def _is_stale(self, planned: Planned, request: Request) -> bool:
        """Return whether the item is not as the approved plan has seen it, before anything of it was written."""
        return self._tally.before is UNSEEN and planned.is_stale(*self._owner, request.own_before, request.effect)

    async def _write(self, request: Request) -> Reply | Outcome | LostWrite | Again:
        """Send a write until it is decided or its answer is lost."""
        shared, lost_write = self._shared, self._lost_write
        if shared.planned is not None and lost_write is None and self._is_stale(shared.planned, request):
            return skipped(ErrorCode.STALE, STALE)
        refused = self._refused_write if request.effect is Effect.COMPARE_AND_SWAP else None
        for doubt in (lost_write, refused):
            if doubt is not None and doubt.is_contradicted_by(request):
                return replace(doubt, is_disputed=True)
        shared.sender.step_aside(self._tally)
        if self._writes is None:
            self._writes = WriteLoop(shared, self._context, is_in_doubt=lost_write is not None)
        await self._writes.let_late_writes_pass(self._operation, self._entry, self._item, request)
        if lost_write is None or (lost_write.lost.method, lost_write.lost.path) != (request.method, request.path):
            sent, before = shared.overwritten.get(self._owner), request.own_before
            before = before if sent is None else sent.before_both(self._operation, self._item, before)
            await self._writes.intend(request, [self._entry], [before])
        tried = await self._writes.send(request, self._is_to_be_settled)
        reply = tried.reply
        self._doubt_what_was_refused_otherwise(tried)
        if reply is None:
            return self._lost(request, None)
        if tried.kind is _ACCEPTED:
            mark = None if request.proof is None or reply.status >= 300 else request.proof.mark
            is_lost = reply.is_truncated or (mark is not None and shared.shown_once.is_again(mark(reply)))
            return self._lost(request, reply.status) if is_lost else reply
        if self._writes.is_to_be_settled:
            return self._lost(request, reply.status)
        return self._decided(request, tried, reply)

    def _decided(self, request: Request, tried: Tried, reply: Reply) -> Outcome | LostWrite | Again:
        """Return what an answer means that is neither a success nor a reason to wait."""
        if tried.kind in _IN_DOUBT and not is_in_progress(tried):
            if reply.status not in REDIRECT_STATUSES or reply.body is A_PAGE:
                return self._lost(request, reply.status)
            # no write follows a redirect; the server that redirects may have carried the write out before
            self._lost_write = lost_again(self._lost_write, self._lost(request, reply.status))
        return self._refused(request, tried)

    def _is_to_be_settled(self, request: Request, tried: Tried) -> bool:
        """Return whether the effect of a refused write is looked for before it is sent again: a refusal, such as a
        limit's, may come after the write was carried out. Where it can't be applied twice, only note the doubt."""
        if not request.effect.may_repeat_at_once:
            return True
        assert tried.reply is not None, "it was refused"
        assert tried.kind is not None, "every answer is judged"
        lost_write = self._lost(request, tried.reply.status)
        self._doubt_what_was_refused_otherwise(tried)
        if tried.kind in _LIMITED:
            self._lost_write = lost_again(self._lost_write, lost_write)
        elif self._doubted is None:
            self._doubted = tried.kind, lost_write
        return False

    def _doubt_what_was_refused_otherwise(self, tried: Tried) -> None:
        """Note that an earlier send may have been carried out, if the write was refused before and now gets another
        answer. A write that is refused in the same way to the end was not carried out."""
        if self._doubted is not None and tried.kind is not self._doubted[0]:
            self._lost_write, self._doubted = lost_again(self._lost_write, self._doubted[1]), None

    def _refused(self, request: Request, tried: Tried) -> Outcome | Again:
        """Return the refusal; or `Again` for a conflict with another writer, where the steps look first."""
        outcome, status = outcome_of(tried), None if tried.reply is None else tried.reply.status
        if status is not None:
            self._note_refusal(request, status)
        return Again(outcome) if status == 409 and request.effect is Effect.COMPARE_AND_SWAP else outcome

    def _note_refusal(self, request: Request, status: int) -> None:
        """Note a refused write, if it is known what was there before: else that may have looked like its effect."""
        shared = self._shared
        is_left = shared.clock.monotonic() < shared.recent_writes.until(self._operation, self._item)
        self._has_seen = self._tally.has_read or is_left
        if self._has_seen or request.before not in (UNSEEN, None):
            self._refused_write = self._lost(request, status)

    def _before(self, request: Request) -> Any:
        """Return what was there before a write that was accepted: what the platform compared, or else what was seen
        before the first send, because a repeat may have seen what the first send left."""
        earlier = self._lost_write or self._refused_write
        if earlier is None or request.effect is Effect.COMPARE_AND_SWAP:
            return request.own_before
        return earlier.lost.before

    def _lost(self, request: Request, status: int | None) -> LostWrite:
        return lost_write_of(request, self._shared.clock, status, self._shared.recent_creations.names())
