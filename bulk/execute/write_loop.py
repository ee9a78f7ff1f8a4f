"""Sends a write until it is decided or its answer is lost: the writes of one item, and those that items share.

The ledger knows of a write before it leaves, and forgets the write again if it can't leave any more.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bulk.execute.requests.context import RequestContext, Tried
from bulk.execute.requests.patience import LIMITED_TRIES, UNEXPLAINED_TRIES, WAITED_FOR, WITHOUT_REASON
from bulk.execute.requests.retry_budget import pause_s, unexplained_pause_s
from bulk.execute.requests.wait_reasons import WaitReason
from bulk.execute.shared import Shared
from bulk.execute.writes.late_writes import folded
from bulk.ledger.records import Intent, Withdrawn
from bulk.manifest.manifest import Entry
from bulk.model import FailureKind, Outcome, Request
from bulk.operation import AnyOperation, Item
from bulk.platform.classification import VerdictKind

BUSY_MOST_S = 600.0
"""How long the answer "in progress" is waited out before it is final (seconds)."""
NOT_SENT_PAUSE_S = 0.1

_ACCEPTED = VerdictKind.ACCEPTED


class Again(msgspec.Struct, frozen=True):
    """The steps have to start over, because the write conflicts with one of another writer."""

    refusal: Outcome


class WriteLoop:
    """Sends the writes of one item, or of items that share theirs, again and again until each is decided.

    Args:
        is_in_doubt: whether an earlier process has sent something for the item.

    Attributes:
        is_to_be_settled: the last write was refused, would be sent again, and its effect is to be looked for first.
    """

    __slots__ = (
        "_busy_since",
        "_context",
        "_has_left",
        "_intended",
        "_limited",
        "_shared",
        "_unexplained",
        "_unsent",
        "is_to_be_settled",
    )

    def __init__(self, shared: Shared, context: RequestContext, *, is_in_doubt: bool = False) -> None:
        self._shared, self._context, self._has_left = shared, context, is_in_doubt
        self._intended: Sequence[Entry] = ()
        self._limited = self._unexplained = self._unsent = 0
        self._busy_since = -1.0
        self.is_to_be_settled = False

    async def let_late_writes_pass(self, operation: AnyOperation, entry: Entry, item: Item, request: Request) -> None:
        """Wait until no earlier send of another item can apply because of this write."""
        shared = self._shared
        if not shared.late_writes.all:
            return
        lanes = folded(operation.resource, operation.lanes(item))
        owner = entry.job, entry.index
        seconds = shared.late_writes.wait_s(owner, lanes, request.path.casefold(), shared.clock.monotonic())
        if seconds > 0.0:
            shared.sender.return_unused(self._context)
            await shared.sender.pause(seconds, WaitReason.MAY_ARRIVE)

    async def intend(self, request: Request, entries: Sequence[Entry], befores: Sequence[Any]) -> None:
        """Make it durable that a write is about to leave for these items; `befores`: what was there before, for each.

        Raises:
            RunStopped: the disk refuses; the write must not leave.
        """
        now = self._shared.clock.now()
        pairs = zip(entries, befores, strict=True)
        await self._shared.recorder.intend(*(intent_of(entry, request, before, now) for entry, before in pairs))
        self._intended = entries

    async def send(self, request: Request, settles: Callable[[Request, Tried], bool]) -> Tried:
        """Send a write, and return the answer that decides it, or what is known without one; see `is_to_be_settled`.

        Where nothing more may be sent, and nothing of these items has ever left, their intents are withdrawn.

        Args:
            settles: called with a refusal after which the write would be sent again: whether to settle it first.

        Raises:
            CredentialRefused, Draining, RunStopped: nothing more may be sent.
        """
        try:
            tried = await self._until_decided(request, settles)
        except BaseException:
            if not self._has_left and self._context.tally.sends == self._unsent:
                self._shared.recorder.withdraw(*(Withdrawn(entry.job, entry.index) for entry in self._intended))
            raise
        self._has_left = True
        return tried

    async def _until_decided(self, request: Request, settles: Callable[[Request, Tried], bool]) -> Tried:
        tally, sender, dice = self._context.tally, self._shared.sender, self._shared.dice
        tally.sends = self._unsent = 0
        self.is_to_be_settled = False
        while True:
            tried = await sender.once(request, self._context)
            reply, kind = tried.reply, tried.kind
            if reply is None:
                if tried.failure is not None and tried.failure.kind is FailureKind.LOST:
                    return tried
                self._unsent += 1
                await sender.pause(NOT_SENT_PAUSE_S)
                continue
            self._context.is_bound = True
            if kind is _ACCEPTED:
                self._limited = self._unexplained = 0
                self._busy_since = -1.0
                return tried
            if kind in WAITED_FOR and self._limited < LIMITED_TRIES:  # the governor holds the next permit back
                self._limited += 1
                self._context.is_bound = self._has_left or not request.effect.may_repeat_at_once
                self.is_to_be_settled = settles(request, tried)
            elif kind is VerdictKind.THROTTLED and self._limited < LIMITED_TRIES:
                self._limited += 1
                self.is_to_be_settled = settles(request, tried)
                await sender.pause(pause_s(min(8, self._limited), dice.random()), WaitReason.BUSY, tried.error)
            elif kind in WITHOUT_REASON and self._unexplained + 1 < UNEXPLAINED_TRIES:
                seconds = unexplained_pause_s(self._unexplained, dice.random())
                self._unexplained += 1
                self.is_to_be_settled = settles(request, tried)
                await sender.pause(seconds, WaitReason.UNEXPLAINED, tried.error)
            elif is_in_progress(tried) and self._is_worth_waiting():
                self.is_to_be_settled = settles(request, tried)
                await sender.pause(pause_s(min(6, tally.sends), dice.random()), WaitReason.BUSY, tried.error)
            else:
                return tried
            if self.is_to_be_settled:
                return tried
            sender.retries += 1
            tally.retries += 1

    def _is_worth_waiting(self) -> bool:
        """Return whether to wait longer for what the platform says is in progress."""
        now = self._shared.clock.monotonic()
        if self._busy_since < 0.0:
            self._busy_since = now
        return now - self._busy_since < BUSY_MOST_S


def is_in_progress(tried: Tried) -> bool:
    """Return whether the platform says that something of the kind is in progress: this write was not done, and a later
    one may be."""
    return tried.kind is VerdictKind.BUSY and tried.reply is not None and tried.reply.status == 422


def intent_of(entry: Entry, request: Request, before: Any, now: float) -> Intent:
    """Return the intent, which the ledger has to know before a write leaves (now: UTC epoch seconds).

    Args:
        before: what was there before; of a combined write, for this item.
    """
    return Intent(
        job=entry.job,
        index=entry.index,
        method=request.method,
        path=request.path,
        before=before,
        effect=request.effect,
        sent_at=now,
    )
