"""Settles a write whose answer was lost: the truth is read back, and only then is anything repeated.

A trace that two readings found is the outcome. That there is no trace is believed at once where a second application
can't happen (compare-and-swap, unique keys, set semantics), otherwise only after the settle time and two readings. If
a repeat was refused and there is no trace, the refusal stands, but only after the settle time: reads may be stale.
Source: operations.md.
"""

import logging
from dataclasses import replace
from typing import Any

from bulk.clock import Clock
from bulk.execute.generator_steps import OperationFlaw, advance
from bulk.execute.requests.context import RequestContext
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.writes.lost_write import REPLACES, LostWrite
from bulk.execute.writes.recent_writes import CREATES
from bulk.execute.writes.refused_writes import SECOND_LOOK_S, RefusedWrites
from bulk.govern.user_limits import Draining
from bulk.model import (
    Effect,
    ErrorCode,
    Lost,
    NotApplied,
    Outcome,
    OutcomeKind,
    Request,
    Undecided,
    failed,
    succeeded,
    unknown,
)
from bulk.operation import AnyOperation, Item

log = logging.getLogger("bulk.execute")

PAUSE_FIRST_S, PAUSE_MOST_S = 0.1, 3.0
NAME_TAKEN = "inferred: the name was free before the request whose answer was lost, and now it is taken"
MAY_BE_DONE = "the answer was lost, and the repeat was refused; perhaps because it had been done by then"
DONE_ALL_THE_SAME = "the platform refused it (status {status}), and yet what was read is as asked for"
NOT_SHOWN = "the answer (status {status}) did not show it, and yet what was read is as asked for"
IN_PART = "a part of it was done all the same, see the result"
CONTRADICTED = "the platform refused it (status {status}); then one look showed it as asked for, and others did not"
OVERWRITE = "nothing was overwritten; `bulk retry --overwrite` writes it all the same"
_OF_WHAT_IS_THERE = (ErrorCode.NOT_FOUND, ErrorCode.VALIDATION_FAILED)
"""Refusals that may be about what a lost write has left: what it deleted or renamed is gone, what it created exists."""
_OF_ANOTHER_STATE = (ErrorCode.CONFLICT, ErrorCode.VALIDATION_FAILED)
"""Refusals that may mean that a thing is not as the write expects it, unless their codes say otherwise."""
_REFUSED = frozenset((401, 403, 422, 429))
"""Statuses of a refused send that was repeated: that it was done all the same is only just possible."""
_MAY_TAKE_TIME = frozenset((Effect.MOVE, Effect.ORDERED, Effect.SET))
"""Effects that the platform may bring about in the background."""
REFUSED_FROM = 300
"""Statuses below are not a refusal, but may show less than was asked for."""
SHOWS_ANYTHING = "everything that is asked for is answered as if it were there, also what nobody has"
READINGS = 2
"""Readings before their result is believed (count): a single answer may be another's, or a gateway's."""


class Settler:
    """Settles lost writes for all workers. `settle_s`: seconds until "not there" is believed; see `settled_at`."""

    def __init__(self, sender: RequestSender, clock: Clock, settle_s: float) -> None:
        self._sender, self._clock, self.settle_s = sender, clock, settle_s
        self.under_way: dict[tuple[str, int], float] = {}
        self.refused_writes = RefusedWrites()

    def settled_at(self, lost_write: LostWrite) -> float:
        """Return from when on it is believed that a write was not applied (monotonic seconds): twice as long where the
        platform would do the same a second time, because a list may show late what is in it.
        """
        return lost_write.since + self.settle_s * (2.0 if lost_write.effect is Effect.CREATE else 1.0)

    async def settle(
        self,
        operation: AnyOperation,
        item: Item,
        lost_write: LostWrite,
        context: RequestContext,
        refusal: Outcome | None = None,
        stale_until: float = 0.0,
        owner: tuple[int, int] = (-1, -1),
    ) -> Outcome | None:
        """Return the outcome of a lost write, or None: it was not applied, and the item starts over.

        Args:
            refusal: how a repeat of the write was refused; it is the outcome if no trace is found.
            stale_until: until then (monotonic seconds) a read may show what was there before an earlier write of this
                run, which can look as if this one was applied.
            owner: number of the item's job, and its index, for the log.
        """
        context.is_settling = True
        try:
            return await self._found(operation, item, lost_write, context, refusal, stale_until, owner)
        finally:
            context.is_settling = False

    async def done_all_the_same(
        self,
        operation: AnyOperation,
        item: Item,
        refused: LostWrite,
        refusal: Outcome,
        context: RequestContext,
        owner: tuple[int, int],
    ) -> Outcome | None:
        """Look for the effect of a write that was refused: return how the item ended if the effect is there, or a part
        of it.

        Args:
            refused: the write; its status is the refusal's.
            owner: see `settle`.
        """
        kind = operation.name, refused.lost.status or 0
        looks = self.refused_writes.looks(kind)
        is_about_it = self.refused_writes.is_waited_for(kind) and _may_be_about_its_effect(refused, refusal)
        until, pauses_s = self.settled_at(refused) if is_about_it else 0.0, PAUSE_FIRST_S
        begun: Undecided | None = None
        context.is_settling = True
        try:
            while looks > 0:
                began = self._clock.monotonic()
                found = await self._read_back(operation, item, refused.lost, context, owner)
                if _is_trace(found):
                    found = await self._read_back(operation, item, refused.lost, context, owner)
                if isinstance(found, Outcome) and _is_trace(found):
                    context.tally.settled += 1
                    self._sender.settled += 1
                    return self.refused_or_ours(operation, refused, found)
                if isinstance(found, NotApplied) and found.part is not None:
                    self.refused_writes.was_done(kind)
                    return _in_part(refusal, found.part)
                if refused.effect in CREATES and isinstance(found, Undecided) and found.is_begun:
                    begun = found  # a later look that shows nothing only contradicts it
                if began < self._looked_at_until(refused, found, until):
                    await self._sender.pause(pauses_s)
                    pauses_s = min(PAUSE_MOST_S, pauses_s * 2.0)
                    continue
                explained = _unless_it_explains(refused, refusal, begun or found, is_about_it=is_about_it)
                if explained is not None:
                    return explained
                looks -= 1
                if looks and not is_about_it:
                    await self._sender.pause(SECOND_LOOK_S if refused.effect in _MAY_TAKE_TIME else PAUSE_FIRST_S)
        except Draining:  # the run is ending, and the refusal is known
            pass
        finally:
            context.is_settling = False
        return None

    def _looked_at_until(self, refused: LostWrite, found: Outcome | NotApplied | Undecided, until: float) -> float:
        """Return until when (monotonic seconds) the look at a refused write is repeated that has shown this: until the
        settle time is over where the platform seems to have begun with it, or hides it; until `until` where it may show
        late."""
        match found:
            case Undecided(is_begun=True) | Undecided(is_unseen=True):
                return self.settled_at(refused)
            case Undecided() if refused.effect in CREATES or found.found is None:
                return until
            case NotApplied():
                return until
        return 0.0

    def refused_or_ours(self, operation: AnyOperation, refused: LostWrite, settled: Outcome) -> Outcome:
        """Return how an item ends whose write was refused, and of which reading back says this."""
        status = refused.lost.status or 0
        if settled.kind is OutcomeKind.SUCCEEDED:
            self.refused_writes.was_done((operation.name, status))
            shown = {name: value for name, value in (settled.result or {}).items() if name != "note"}
            note = NOT_SHOWN if status < REFUSED_FROM else DONE_ALL_THE_SAME
            return succeeded(shown, note=note.format(status=status))
        if settled.kind is OutcomeKind.UNCHANGED and refused.effect not in CREATES:
            return unknown(CONTRADICTED.format(status=status), http_status=status)
        return settled  # of a creation: what is there was there before

    async def _found(
        self,
        operation: AnyOperation,
        item: Item,
        lost_write: LostWrite,
        context: RequestContext,
        refusal: Outcome | None,
        stale_until: float,
        owner: tuple[int, int],
    ) -> Outcome | None:
        pause_s, readings, traces = PAUSE_FIRST_S, 0, 0
        # what was accepted has most probably been done, or is being done: repeating it at once would gain nothing
        may_repeat = lost_write.effect.may_repeat_at_once and lost_write.followed_by is None
        is_disputed = lost_write.is_disputed
        while True:
            began = self._clock.monotonic()
            found = await self._read_back(operation, item, lost_write.lost, context, owner)
            readings += 1
            # the start of a reading counts: a bucket may have held up its later requests
            is_believed = readings >= READINGS and began >= self.settled_at(lost_write)
            is_creation = lost_write.effect in CREATES and (may_repeat or is_believed)
            found = await self._doubted(found, context) if is_creation else found
            match found:
                case Outcome():
                    is_trace = found.kind is not OutcomeKind.FAILED and began >= stale_until
                    traces += is_trace
                    if is_believed or (is_trace and traces >= READINGS):
                        context.tally.settled += 1
                        self._sender.settled += 1
                        return found
                    if is_trace:
                        continue
                case NotApplied():
                    if refusal is None and ((may_repeat and not traces and not is_disputed) or is_believed):
                        return None
                    if is_believed:
                        if refusal is not None and found.part is not None:
                            return _in_part(refusal, found.part)
                        return refusal and inferred(lost_write, refusal)
                case _:  # Undecided
                    # what another writer has left there is not overwritten
                    is_repeated = lost_write.effect in (Effect.SET, Effect.ORDERED) and found.found is None
                    if refusal is None and may_repeat and is_repeated and not traces:
                        return None
                    if refusal is not None and found.found is None and _is_the_same_for_all(refusal):
                        return refusal
                    if is_believed:
                        return _unknown(lost_write, found, refusal or lost_write.followed_by)
            await self._sender.pause(pause_s)
            pause_s = min(PAUSE_MOST_S, pause_s * 2.0)

    async def _doubted(
        self, found: Outcome | NotApplied | Undecided, context: RequestContext
    ) -> Outcome | NotApplied | Undecided:
        """Return what a reading of a creation is worth: that nothing is new proves nothing where the platform shows
        what certainly is not there. (A web page in its place is no such answer: no list is read from one.)"""
        if not isinstance(found, NotApplied):
            return found
        reply = (await self._sender.ask(context, self._sender.absences.probe())).reply
        shows = reply is not None and reply.status < REFUSED_FROM and isinstance(reply.body, list | dict)
        return Undecided(SHOWS_ANYTHING) if shows else found

    async def _read_back(
        self, operation: AnyOperation, item: Item, lost: Lost, context: RequestContext, owner: tuple[int, int]
    ) -> Outcome | NotApplied | Undecided:
        reading, tally = operation.settle(item, lost), context.tally
        try:
            request = advance(reading, None, (Outcome, NotApplied, Undecided))
            while isinstance(request, Request):
                if request.effect is not Effect.READ:
                    reading.close()
                    return Undecided(f"{operation.name} tried to write while reading back")
                reply = await self._sender.read(request, context)
                if isinstance(reply, Outcome):
                    reading.close()
                    message = reply.error.message if reply.error else "no answer"
                    return Undecided(f"reading back failed: {message}", is_unseen=tally.has_read or tally.has_found)
                request = advance(reading, reply, (Outcome, NotApplied, Undecided))
            if isinstance(request, Undecided) and request.is_unseen and not tally.has_found:
                return replace(request, is_unseen=False)
            return request
        except (OperationFlaw, ValueError, TypeError) as flaw:  # the latter two: the request can't be sent
            about = {"job_number": owner[0], "item": owner[1]}
            log.warning("%s #%d can't read back", operation.name, owner[1], exc_info=flaw, extra=about)
            return Undecided(f"reading back failed ({flaw})", is_unseen=tally.has_found)


def _is_trace(found: Outcome | NotApplied | Undecided) -> bool:
    return isinstance(found, Outcome) and found.kind is OutcomeKind.SUCCEEDED


def _unknown(lost_write: LostWrite, found: Undecided, last: Outcome | None) -> Outcome:
    """Return the outcome `unknown` with its reason; where something else is there now, the user has to decide what to
    do about it.
    """
    why, status = found.why, None
    if last is not None and last.error is not None:
        why, status = f"{why}; what came last: {last.error.message}", last.http_status
    if found.found is not None and lost_write.effect in REPLACES:
        why = f"{why}; {OVERWRITE}"
    return unknown(why, http_status=status, result=found.found)


def _may_be_about_its_effect(refused: LostWrite, refusal: Outcome) -> bool:
    """Return whether the platform may have got the write twice, and refused it because the first one was done.

    Then the created thing exists, the deleted or renamed one is gone, the replaced one is another. Where a look does
    not show that, a copy may lag.
    """
    code = None if refusal.error is None else refusal.error.code
    if refused.effect in CREATES and code is ErrorCode.CONFLICT:
        return True
    if refused.effect in CREATES or (refused.effect is Effect.COMPARE_AND_SWAP and code is not ErrorCode.NOT_FOUND):
        return code in _OF_ANOTHER_STATE and not refusal.gives_codes
    return code is ErrorCode.NOT_FOUND and (refused.effect is Effect.MOVE or refused.lost.method == "DELETE")


def _unless_it_explains(
    refused: LostWrite, refusal: Outcome, found: Outcome | NotApplied | Undecided, *, is_about_it: bool
) -> Outcome | None:
    """Return `unknown` where the refused write may have left a state that is not as asked for; else None: it stands.

    - The write has begun, or can't be seen any more.
    - Something new is in the way of a creation: it may be ours, shown otherwise.
    - The write was refused because of a state that is new: ours may have been done before.
    - Settings are neither as before nor as asked for, and no code says why: ours may have been done in part.
    """
    if isinstance(found, Undecided) and (found.is_begun or found.is_unseen):
        return _unknown(refused, found, refusal)
    if refused.effect in CREATES:
        may_be_ours = is_about_it
    else:
        code = None if refusal.error is None else refusal.error.code
        is_of_state = refused.effect is Effect.COMPARE_AND_SWAP and code is ErrorCode.VALIDATION_FAILED
        may_be_ours = is_of_state or (refused.effect is Effect.SET and not refusal.gives_codes)
    if may_be_ours and isinstance(found, Undecided) and found.found is not None:
        return _unknown(refused, found, refusal)
    return None


def _in_part(refusal: Outcome, part: Any) -> Outcome:
    """Return the outcome of an item that was refused, and of which a part was done: `part` says which."""
    if refusal.error is None:
        return refusal
    message = refusal.error.message if refusal.result is not None else f"{refusal.error.message}; {IN_PART}"
    return failed(refusal.error.code, message, http_status=refusal.http_status, result=part)


def inferred(lost_write: LostWrite, refusal: Outcome) -> Outcome:
    """Return what a final refusal means: a unique name that was free before the lost request, and is taken now, is
    ours.

    The credential need not be allowed to see what was made (operations.md: `applied_inferred`). A refusal that does
    not say what it is about may be caused by the effect of the lost write, although no read shows that: then the
    outcome is unknown.
    """
    if refusal.error is None:
        return refusal
    was_free = lost_write.effect is Effect.CREATE_UNIQUE and lost_write.lost.before is None
    is_conflict = was_free and refusal.error.code is ErrorCode.CONFLICT
    if is_conflict and refusal.gives_codes:
        return succeeded(None, note=NAME_TAKEN)
    # a conflict that no code explains need not be about the name
    is_about_it = is_conflict or (refusal.error.code in _OF_WHAT_IS_THERE and not _is_the_same_for_all(refusal))
    if is_about_it and lost_write.lost.status not in _REFUSED:
        return unknown(f"{MAY_BE_DONE}: {refusal.error.message}", http_status=refusal.http_status)
    return refusal


def _is_the_same_for_all(refusal: Outcome) -> bool:
    """Return whether a repeat was refused for its content: then the send before it was not taken either."""
    return refusal.gives_codes and refusal.error is not None and refusal.error.code is not ErrorCode.CONFLICT
