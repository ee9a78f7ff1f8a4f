"""One item's life: its operation's steps, the intent before each write, and the way back when an answer is lost.

    steps ──read──▶ Reply            ──refused──▶ failed
          ──write─▶ intent (durable) ──▶ send ──▶ Reply │ refused │ lost ──▶ settle ──▶ outcome │ start over

Starting over is always from the first step: the operation looks again and decides again. What a repeat finds is read in
the light of the doubt: "already so" means that the lost write was applied, a refusal is settled before it is believed.
Source: operations.md; failures.md rows 4-7, 22, 24, 42, 78.
"""

import functools
import logging
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from bulk.clock import Clock
from bulk.dispatch.beginning import Beginning
from bulk.dispatch.echoes import Echo, folded
from bulk.dispatch.exchange import LIMITED_TRIES, UNEXPLAINED_TRIES, WAITED_FOR, Exchange, Tried, outcome_of
from bulk.dispatch.hold import Hold
from bulk.dispatch.newborn import may_create, names_made
from bulk.dispatch.pauses import Why
from bulk.dispatch.recorder import Recorder
from bulk.dispatch.rounds import Rounds, pause_s
from bulk.dispatch.settle import Doubt, Settler, doubt_about, lost_again, memo_of
from bulk.dispatch.stepping import OperationFlaw, advance
from bulk.dispatch.tally import Tally
from bulk.govern.accounts import Gate, Permit
from bulk.ledger.records import Intent
from bulk.manifest.files import load_files
from bulk.manifest.manifest import Entry
from bulk.manifest.secret_fields import load_secrets
from bulk.model import (
    Effect,
    Encoded,
    ErrorCode,
    FailureKind,
    Lost,
    Outcome,
    OutcomeKind,
    Reply,
    Request,
    failed,
    succeeded,
    unchanged,
    unknown,
)
from bulk.operation import AnyOperation, FileError, Item, Operation
from bulk.platform.secrets import remember
from bulk.platform.wire import VerdictKind

log = logging.getLogger("bulk.dispatch")

BUSY_MOST_S = 600.0
"""How long "in progress" is waited for before it is the answer."""
APPLIED_BEFORE = "an earlier send, whose answer was lost, had already done it"
NOT_SENT_PAUSE_S = 0.1

_READ, _ACCEPTED, _FAILED = Effect.READ, VerdictKind.ACCEPTED, OutcomeKind.FAILED
_REFUSALS = (ErrorCode.CONFLICT, ErrorCode.VALIDATION_FAILED, ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN)


class _Again(msgspec.Struct, frozen=True):
    """The steps have to start over because of a conflict with somebody else's write."""

    refusal: Outcome


class Drive:
    """Brings items to their outcome, for all workers.

    Args:
        base_dir: folder of the manifest; content files and secrets are read from there.
        environ: where `env:` secrets are.
        began_at: when the run was first begun (UTC epoch seconds, platform time); asked when the first item is sent.
        beginning: what earlier processes of the run have left under way.
    """

    def __init__(
        self,
        exchange: Exchange,
        settler: Settler,
        recorder: Recorder,
        base_dir: Path,
        beginning: Beginning,
        clock: Clock,
        dice: random.Random,
        environ: Mapping[str, str],
        began_at: Callable[[], float],
    ) -> None:
        self._exchange, self._settler, self._recorder = exchange, settler, recorder
        self._base_dir, self._clock, self._dice = base_dir, clock, dice
        self._environ, self._began_at = environ, functools.cache(began_at)
        self.echoes, self._last_writes = beginning.echoes, beginning.last_writes
        self._newborn = beginning.newborn
        since = clock.monotonic()
        self._doubts = {
            key: Doubt(
                Lost(method=sent.method, path=sent.path, memo=memo_of(sent.memo), sent_at=sent.sent_at),
                sent.effect,
                since,
            )
            for key, sent in beginning.open_intents.items()
        }

    async def run(self, operation: AnyOperation, entry: Entry, gate: Gate, permit: Permit, tally: Tally) -> Outcome:
        """The outcome of one item. `permit` is for its first request, and is used or returned here.

        Raises:
            CredentialRefused, Draining, RunStopped: there is no outcome; an open intent is settled by the next run.
        """
        hold = Hold(permit)
        try:
            item = self.complete(operation, entry)
            doubt = self._doubt_of(entry, tally) if self._doubts else None
            life = _Life(self, operation, entry, item, gate, tally, hold, doubt)
            outcome = None if doubt is None else await life.settled_first()
            if outcome is None:
                served = self._exchange.served
                ended = await life.steps()
                if doubt is None and isinstance(ended, Outcome) and ended.kind is not _FAILED:  # as nearly always
                    outcome = ended
                else:
                    outcome = await life.go_on(ended, Rounds(served))
            if not operation.is_read:
                self._remember(operation, item, life.effect, outcome, tally)
            return outcome
        except FileError as flaw:
            if self.is_in_doubt(entry):
                return unknown(f"it was sent before and the answer was lost, and now it can't be repeated: {flaw}")
            return failed(ErrorCode.INVALID_ITEM, str(flaw))
        finally:
            if hold.permit is not None:
                self.return_unused(hold)

    def _remember(
        self, operation: AnyOperation, item: Item, effect: Effect | None, outcome: Outcome, tally: Tally
    ) -> None:
        """What a write has changed, for those who come to it after this item."""
        if may_create(operation, effect):
            self._newborn.add(names_made(operation.new_names(item), effect, outcome), self._clock.monotonic())
        if not tally.is_alone:
            self._last_writes.add(operation, item, effect, outcome, self._clock.monotonic())

    def complete(self, operation: AnyOperation, entry: Entry) -> Item:
        """The item as it is sent: files and secrets inline, and what the plan fixes.

        Raises:
            FileError: a file or a secret can't be used.
        """
        item = load_files(self._base_dir, operation, entry) if operation.file_fields else entry.item
        if operation.secret_fields:
            item = load_secrets(self._base_dir, operation, item, self._environ, remember)
        if type(operation).planned is not Operation.planned:
            item = operation.planned(item, self._began_at())
        return item

    def return_unused(self, hold: Hold) -> None:
        """Give the item's first permit back, if no request has taken it."""
        permit = hold.take()
        if permit is not None:
            self._exchange.return_unused(permit)

    def is_in_doubt(self, entry: Entry) -> bool:
        """Whether a write of this item was sent and its answer lost."""
        return (entry.job, entry.index) in self._doubts

    def doubt(self, entry: Entry, doubt: Doubt) -> None:
        """A write that this item shares was lost: it is settled when the item is next worked on."""
        self._doubts[entry.job, entry.index] = doubt

    def _doubt_of(self, entry: Entry, tally: Tally) -> Doubt | None:
        doubt = self._doubts.pop((entry.job, entry.index), None)
        if doubt is not None:
            tally.started_at, tally.started = doubt.lost.sent_at, self._clock.monotonic()
        return doubt


class _Life:
    """The state of one item while it is worked on."""

    __slots__ = ("_asked", "_doubt", "_drive", "_entry", "_gate", "_hold", "_item", "_operation", "_tally", "effect")

    def __init__(
        self,
        drive: Drive,
        operation: AnyOperation,
        entry: Entry,
        item: Item,
        gate: Gate,
        tally: Tally,
        hold: Hold,
        doubt: Doubt | None,
    ) -> None:
        self._drive, self._operation, self._entry, self._item = drive, operation, entry, item
        self._gate, self._tally, self._hold, self._doubt = gate, tally, hold, doubt
        self._asked = ""
        self.effect: Effect | None = None if doubt is None else doubt.effect

    async def settled_first(self) -> Outcome | None:
        """The outcome, where reading back shows that of what an earlier process has sent; else the steps come next."""
        # reading back takes permits of its own; keeping this one meanwhile could block them
        self._drive.return_unused(self._hold)
        return await self._settle()

    async def go_on(self, ended: "Outcome | Doubt | _Again", rounds: Rounds) -> Outcome:
        """The outcome, over as many rounds as it takes. `ended`: how the steps ended the first time."""
        ended = await self._when_it_is_there(ended)
        refusal: Outcome | None = None
        while True:
            if isinstance(ended, Doubt):
                if self._doubt is not None:
                    self._may_still_arrive(ended)
                self._doubt = lost_again(self._doubt, ended)
                outcome = await self._settle()
                if outcome is not None:
                    return outcome
            elif isinstance(ended, _Again):
                refusal = ended.refusal
                self._drive._last_writes.forget(self._operation, self._item)
                if self._doubt is not None:
                    outcome = await self._settle(refusal)
                    if outcome is not None and outcome is not refusal:
                        return outcome
            else:
                return await self._in_the_light_of_doubt(ended)
            if not rounds.is_another(self._drive._exchange.served):
                break
            await self._pause(rounds.number, Why.ROUND)
            ended = await self._when_it_is_there(await self.steps())
        if refusal is not None and self._doubt is None:
            return refusal
        return unknown(f"sent {rounds.number + 1} times, each answer was lost, and reading back did not show it")

    async def _when_it_is_there(self, ended: "Outcome | Doubt | _Again") -> "Outcome | Doubt | _Again":
        """How the steps end once they no longer come too early to what this run has just created."""
        drive, tries = self._drive, 0
        while self._doubt is None and isinstance(ended, Outcome):
            pause_s = drive._newborn.pause_s(ended, self._asked, tries, drive._clock.monotonic())
            if not pause_s:
                break
            tries += 1
            await drive._exchange.pause(pause_s, Why.NOT_VISIBLE)
            ended = await self.steps()
        return ended

    async def _in_the_light_of_doubt(self, outcome: Outcome) -> Outcome:
        if self._doubt is None:
            return outcome
        if outcome.kind is OutcomeKind.UNCHANGED:
            return succeeded(outcome.result, note=APPLIED_BEFORE, payload=outcome.payload)
        if outcome.kind is OutcomeKind.FAILED and outcome.error is not None and outcome.error.code in _REFUSALS:
            return await self._settle(outcome) or outcome
        return outcome

    async def _settle(self, refusal: Outcome | None = None) -> Outcome | None:
        assert self._doubt is not None, "settling needs a doubt"
        drive, settler = self._drive, self._drive._settler
        stale_until = drive._last_writes.until(self._operation, self._item)
        key = (self._operation.name, self._entry.index)
        settler.under_way[key] = self._doubt.since + settler.settle_s
        try:
            outcome = await settler.settle(
                self._operation, self._item, self._doubt, self._gate, self._tally, refusal, stale_until
            )
        finally:
            settler.under_way.pop(key, None)
        if outcome is None:
            self._may_still_arrive(self._doubt)
        return outcome

    def _may_still_arrive(self, doubt: Doubt) -> None:
        drive, lost = self._drive, doubt.lost
        lanes = folded(self._operation.resource, self._operation.lanes(self._item))
        until = doubt.since + drive._settler.settle_s
        echo = Echo(self._owner, self._operation.resource, lanes, lost.path.casefold(), doubt.effect, until)
        drive.echoes.add(echo, drive._clock.monotonic())
        self._tally.may_echo = True

    @property
    def _owner(self) -> tuple[int, int]:
        return self._entry.job, self._entry.index

    async def _let_echoes_pass(self, request: Request) -> None:
        """Wait until no earlier send of another item can apply because of this write."""
        drive = self._drive
        lanes = folded(self._operation.resource, self._operation.lanes(self._item))
        seconds = drive.echoes.wait_s(self._owner, lanes, request.path.casefold(), drive._clock.monotonic())
        if seconds > 0.0:
            drive.return_unused(self._hold)
            await drive._exchange.pause(seconds, Why.MAY_ARRIVE)

    async def steps(self) -> Outcome | Doubt | _Again:
        """Run the operation's steps once: an outcome, a lost answer, or a conflict to start over from."""
        drive, operation = self._drive, self._operation
        if operation.is_read or self._tally.is_alone:
            steps = operation.steps(self._item)
        else:
            steps = drive._last_writes.steps(operation, self._item, drive._clock.monotonic())
        self._tally.has_read = False
        written: Request | None = None
        try:
            request = advance(steps, None, Outcome)
            while isinstance(request, Request):
                self._asked = request.path
                if request.effect is _READ:
                    reply = await drive._exchange.read(request, self._gate, self._tally, self._hold.take())
                    if isinstance(reply, Outcome):
                        steps.close()
                        return reply
                    if type(reply.body) is Encoded:  # an item of this operation ended so before, and nothing changed
                        return unchanged(reply.body)
                    self._tally.has_read = True
                else:
                    self.effect = request.effect
                    answer = await self._write(request)
                    if not isinstance(answer, Reply):
                        steps.close()
                        return answer
                    reply, written = answer, request
                request = advance(steps, reply, Outcome)
                if self._tally.kept_as is not None and self._tally.result_of and isinstance(request, Outcome):
                    return drive._exchange.note_result(request, reply, self._gate, self._tally)
            return request
        except (OperationFlaw, ValueError, TypeError) as flaw:  # the latter two: what it asks for can't be sent
            log.warning("%s #%d can't use an answer", self._operation.name, self._entry.index, exc_info=flaw)
            if written is not None:
                return self._lost(written, self._tally.http_status)
            message = f"the answer can't be used ({flaw})"
            return failed(ErrorCode.BAD_RESPONSE, message, http_status=self._tally.http_status)

    async def _write(self, request: Request) -> Reply | Outcome | Doubt | _Again:
        """Send a write until it is decided or its answer is lost."""
        drive, tally = self._drive, self._tally
        drive._exchange.step_aside(tally)
        if drive.echoes:
            await self._let_echoes_pass(request)
        doubt = self._doubt
        if doubt is None or (doubt.lost.method, doubt.lost.path) != (request.method, request.path):
            intent = Intent(
                job=self._entry.job,
                index=self._entry.index,
                method=request.method,
                path=request.path,
                memo=request.memo,
                effect=request.effect,
                sent_at=drive._clock.now(),
            )
            await drive._recorder.intend(intent)
        tally.sends = limited = unexplained = 0
        started = drive._clock.monotonic()
        while True:
            tried = await drive._exchange.once(request, self._gate, tally, self._hold.take())
            failure, kind = tried.failure, tried.kind
            if failure is not None:
                if failure.kind is FailureKind.LOST:
                    return self._lost(request, None)
                await drive._exchange.pause(NOT_SENT_PAUSE_S)
                continue
            assert tried.reply is not None, "an answer or a failure"
            status = tried.reply.status
            if kind is _ACCEPTED:
                return self._lost(request, status) if tried.reply.is_truncated else tried.reply
            if kind in WAITED_FOR and limited < LIMITED_TRIES:
                limited += 1
            elif kind is VerdictKind.UNEXPLAINED and unexplained + 1 < UNEXPLAINED_TRIES:
                unexplained += 1
            elif status == 422 and kind is VerdictKind.BUSY and drive._clock.monotonic() - started < BUSY_MOST_S:
                await self._pause(min(6, tally.sends), Why.BUSY)
            elif status >= 500 or (kind is VerdictKind.BAD_RESPONSE and status < 300):
                return self._lost(request, status)
            else:
                return self._refused(request, tried)
            drive._exchange.retries += 1
            tally.retries += 1

    def _refused(self, request: Request, tried: Tried) -> Outcome | _Again:
        """A refusal; a conflict with somebody else's write is worth another look where the steps look first."""
        outcome = outcome_of(tried)
        is_conflict = tried.reply is not None and tried.reply.status == 409
        if is_conflict and request.effect is Effect.COMPARE_AND_SWAP:
            message = outcome.error.message if outcome.error else ""
            if self._tally.has_read or "does not match" not in message:
                return _Again(outcome)
        return outcome

    def _lost(self, request: Request, status: int | None) -> Doubt:
        return doubt_about(request, self._drive._clock, status)

    async def _pause(self, round_number: int, why: Why) -> None:
        await self._drive._exchange.pause(pause_s(round_number, self._drive._dice.random()), why)
