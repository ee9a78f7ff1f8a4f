"""Settles one lost write by hand: the readings are given, and pauses move a clock."""

import random
from collections.abc import Sequence
from typing import Any

from bulk.clock import Clock
from bulk.execute.requests.absences import Absences
from bulk.execute.requests.context import ItemTally, RequestContext, Tried
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.requests.wait_reasons import WaitReason
from bulk.execute.writes.lost_write import LostWrite
from bulk.execute.writes.settle import Settler
from bulk.govern.permits.accounts import PermitQueue
from bulk.model import UNSEEN, Effect, Lost, NotApplied, Outcome, Reply, Request, Undecided, succeeded
from bulk.operation import Item, Operation, Settling, Steps

SETTLE_S = 5.0
READ = Request(method="GET", path="/thing")
NOT_THERE = Tried(Reply(status=404, headers={}, body={"message": "Not Found"}))


class HandClock(Clock):
    """Moved by pauses alone."""

    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


class Read(RequestSender):
    """Gives one answer, and notes the pauses between readings. `absent`: the answer to what nobody has."""

    def __init__(self, clock: HandClock, answer: Reply | Outcome, absent: Tried) -> None:
        self.settled, self.waited, self.clock, self.answer = 0, list[float](), clock, answer
        self.absences, self.absent, self.probes = Absences(random.Random(1)), absent, 0

    async def read(self, *_: Any) -> Reply | Outcome:
        return self.answer

    async def ask(self, *_: Any) -> Tried:
        self.probes += 1
        return self.absent

    async def pause(self, seconds: float, why: WaitReason | None = None, error: str = "") -> None:
        self.waited.append(seconds)
        self.clock.at += seconds


class ThingItem(Item, frozen=True):
    """Nothing is asked for."""


class Thing(Operation[ThingItem]):
    """Each reading ends as `found` says, the last one again and again."""

    name = "thing.put"
    Item = ThingItem
    is_read = False

    def __init__(self, found: Sequence[Any], asks: Request = READ) -> None:
        self.found, self.asks, self.readings, self.closed = list(found), asks, 0, 0

    def steps(self, item: ThingItem) -> Steps:
        yield READ
        return succeeded(None)

    def settle(self, item: ThingItem, lost: Lost) -> Settling:
        self.readings += 1
        try:
            yield self.asks
        except GeneratorExit:
            self.closed += 1
            raise
        found = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        if isinstance(found, Exception):
            raise found
        answer: Outcome | NotApplied | Undecided = found
        return answer


def lost_write(effect: Effect, since: float = 100.0, before: Any = UNSEEN) -> LostWrite:
    """About a PUT of that moment."""
    return LostWrite(Lost(method="PUT", path="/thing", before=before, sent_at=0.0), effect, since)


class Settled:
    """What settling came to."""

    def __init__(
        self,
        operation: Thing,
        about: LostWrite,
        refusal: Outcome | None = None,
        answer: Reply | Outcome | None = None,
        stale_until: float = 0.0,
        absent: Tried = NOT_THERE,
    ) -> None:
        clock, self.tally = HandClock(), ItemTally()
        self.sender = Read(clock, answer or Reply(status=200, headers={}, body={}), absent)
        settler = Settler(self.sender, clock, SETTLE_S)
        queue: PermitQueue = PermitQueue(account=None, category="core")  # type: ignore[arg-type]  # nobody asks it for a permit
        steps = settler.settle(
            operation, ThingItem(), about, RequestContext(queue, None, self.tally), refusal, stale_until
        )
        try:
            steps.send(None)
        except StopIteration as end:
            self.outcome: Outcome | None = end.value
        self.took_s, self.pauses = clock.at - 100.0, self.sender.waited
