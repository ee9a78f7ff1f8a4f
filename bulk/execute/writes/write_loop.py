"""Sends a write until it is decided or its answer is lost: the writes of one item, and those that items share."""

import random
from collections.abc import Callable
from typing import Any

from bulk.clock import Clock
from bulk.execute.requests.context import RequestContext
from bulk.execute.requests.patience import LIMITED_TRIES, UNEXPLAINED_TRIES, WAITED_FOR
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.requests.retry_budget import pause_s, unexplained_pause_s
from bulk.execute.requests.tried import Tried
from bulk.execute.requests.wait_reasons import WaitReason
from bulk.ledger.records import Intent
from bulk.manifest.manifest import Entry
from bulk.model import FailureKind, Reply, Request
from bulk.platform.classification import VerdictKind

BUSY_MOST_S = 600.0
"""How long "in progress" is waited for before it is the answer."""
NOT_SENT_PAUSE_S = 0.1
LIMITED = (VerdictKind.LIMITED_PRIMARY, VerdictKind.LIMITED_SECONDARY)

_ACCEPTED = VerdictKind.ACCEPTED


class WriteLoop:
    """Sends the writes of one item, or of items that share theirs, again and again until each is decided.

    Attributes:
        is_to_be_settled: the last write ran into a limit, and is to be looked for before it is sent again.
    """

    __slots__ = ("_clock", "_context", "_dice", "_limited", "_sender", "is_to_be_settled")

    def __init__(self, sender: RequestSender, clock: Clock, dice: random.Random, context: RequestContext) -> None:
        self._sender, self._clock, self._dice, self._context = sender, clock, dice, context
        self._limited = 0
        self.is_to_be_settled = False

    async def send(self, request: Request, settles: Callable[[Request, Reply], bool]) -> Tried:
        """Return the answer that decides, or what is known where there is none; see `is_to_be_settled`.

        Args:
            settles: called with an answer that names a limit: whether the write is looked for before it is sent again.

        Raises:
            CredentialRefused, Draining, RunStopped: nothing more may be sent.
        """
        tally, sender = self._context.tally, self._sender
        tally.sends = unexplained = 0
        self.is_to_be_settled = False
        since = self._clock.monotonic()
        while True:
            tried = await sender.once(request, self._context)
            reply, kind = tried.reply, tried.kind
            if reply is None:
                if tried.failure is not None and tried.failure.kind is FailureKind.LOST:
                    return tried
                await sender.pause(NOT_SENT_PAUSE_S)
                continue
            if kind is _ACCEPTED:
                return tried
            if kind in WAITED_FOR and self._limited < LIMITED_TRIES:  # the governor holds the next permit back
                self._limited += 1
                self.is_to_be_settled = kind in LIMITED and settles(request, reply)
                if self.is_to_be_settled:
                    return tried
            elif kind is VerdictKind.UNEXPLAINED and unexplained + 1 < UNEXPLAINED_TRIES:
                seconds = unexplained_pause_s(unexplained, self._dice.random())
                await sender.pause(seconds, WaitReason.UNEXPLAINED, tried.error)
                unexplained += 1
            elif is_in_progress(tried) and self._clock.monotonic() - since < BUSY_MOST_S:
                await sender.pause(pause_s(min(6, tally.sends), self._dice.random()), WaitReason.BUSY, tried.error)
            else:
                return tried
            sender.retries += 1
            tally.retries += 1


def is_in_progress(tried: Tried) -> bool:
    """Return whether the platform says that it does something of the kind already: nothing was done, and it will be
    over."""
    return tried.kind is VerdictKind.BUSY and tried.reply is not None and tried.reply.status == 422


def intent_of(entry: Entry, request: Request, before: Any, now: float) -> Intent:
    """Return what the ledger has to know of a write before it leaves (now: UTC epoch seconds).

    Args:
        before: that of this item, of a combined write.
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
