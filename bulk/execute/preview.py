"""Finds out what an item would do without doing it: drives its operation's own steps up to their first write.

There is no flag that an operation could forget: nothing but reads is sent here, whatever the operation asks for. An
operation whose writes may begin without a read names reads that show the same (`LooksFirst`). What was read is asked
for again when the plan is run.
"""

import hashlib
import logging
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from bulk.capabilities import LooksFirst, LooksTwice
from bulk.execute.generator_steps import OperationFlaw, advance
from bulk.execute.requests.context import RequestContext
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.writes.recent_writes import CREATES
from bulk.model import UNSEEN, Effect, ErrorCode, Outcome, OutcomeKind, Request, failed, succeeded
from bulk.operation import AnyOperation, Item

log = logging.getLogger("bulk.execute")

CREATE, CHANGE, EQUAL, CONFLICT, PENDING, BLIND = "create", "change", "equal", "conflict", "pending", "unseen"
FAILED = "failed"
VERDICTS: Final = (CREATE, CHANGE, EQUAL, CONFLICT, PENDING, BLIND, FAILED)
"""What a look finds. `pending`: what the item needs is not there yet. `unseen`: the operation has nothing to look at.
`failed`: the look failed, so that nothing is known, and the plan does not write the item."""

_AGAIN: Final = (CONFLICT, PENDING)
_AGAIN_IF_TWICE: Final = (*_AGAIN, CREATE, CHANGE)
_READS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Planned:
    """What an approved plan has seen, by job number: for each item a verdict (its place in VERDICTS) and a digest.

    Attributes:
        records: 17 bytes for each item of a job.
    """

    records: dict[int, bytes]

    def is_stale(self, job: int, index: int, before: Any, effect: Effect) -> bool:
        """Return whether an item that is about to be written is not what the plan has seen."""
        record = self._record(job, index)
        if record is None:
            return False
        is_seen = VERDICTS[record[0]] in (CREATE, CHANGE) if record else False
        return not is_seen or record[1:] != digest_of(_compared(before, effect))

    def is_gone(self, job: int, index: int, outcome: Outcome) -> bool:
        """Return whether an item failed, before it sent anything, because of a state that the plan did not find."""
        if outcome.error is None or outcome.error.code not in (ErrorCode.NOT_FOUND, ErrorCode.CONFLICT):
            return False
        record = self._record(job, index)
        return VERDICTS[record[0]] in (CREATE, CHANGE, EQUAL) if record else False

    def _record(self, job: int, index: int) -> bytes | None:
        """Return what was seen of an item; empty: the plan has no such item; None: it could not be looked at."""
        records = self.records.get(job)
        if records is None:
            return None  # the items of this job are made from results
        record = records[index * RECORD_BYTES : (index + 1) * RECORD_BYTES]
        if len(record) != RECORD_BYTES:
            return b""
        return None if VERDICTS[record[0]] in (PENDING, BLIND) else record


RECORD_BYTES: Final = 17


def _compared(before: Any, effect: Effect) -> Any:
    """Return what a plan keeps of a before-image. For a creation that is None: the operation has looked, and nothing
    like it is there. The ids of what is there would change with each creation beside it."""
    return None if effect in CREATES and before is not UNSEEN else before


def digest_of(before: Any) -> bytes:
    """Return 16 bytes that tell a before-image from others."""
    if before is UNSEEN:
        return bytes(16)
    return hashlib.sha256(msgspec.json.encode(before, order="deterministic")).digest()[:16]


async def look(sender: RequestSender, operation: AnyOperation, item: Item, context: RequestContext) -> Outcome:
    """Return what an item would do, as the result of an outcome that succeeded: `verdict`, `before`,
    `why`, and `is_seen`: whether the platform has shown it.

    What stands in the way of an item is believed when two looks show it: one answer, such as a 404, may be untrue, and
    a plan compares nothing where what an item needs is not there yet.
    """
    first = await _look_once(sender, operation, item, context)
    if _told(first) == FAILED and context.tally.begin_without_kept():
        first = await _look_once(sender, operation, item, context)
    told = _told(first)
    if told not in (_AGAIN_IF_TWICE if isinstance(operation, LooksTwice) else _AGAIN):
        return first
    second = await _look_once(sender, operation, item, context)
    if told == _told(second):
        return second
    return failed(ErrorCode.BAD_RESPONSE, f"two looks at it, one behind the other, differ: {told}, {_told(second)}")


def _told(found: Outcome) -> str:
    if found.error is not None:
        return FAILED
    return str(found.result["verdict"]) if found.result["is_seen"] else FAILED


async def _look_once(sender: RequestSender, operation: AnyOperation, item: Item, context: RequestContext) -> Outcome:
    steps = operation.steps_to_look(item) if isinstance(operation, LooksFirst) else operation.steps(item)
    has_looked = False
    try:
        request = advance(steps, None, Outcome)
        while isinstance(request, Request) and request.effect is Effect.READ:
            if request.method not in _READS:
                raise OperationFlaw(f"a look asks for {request.method} {request.path}, which may change something")
            # the platform confirms a kept answer, which is then as fresh as a new one and costs nothing
            reply = await sender.read(replace(request, is_fresh=False), context)
            if isinstance(reply, Outcome):
                steps.close()
                return _ended(reply)
            has_looked = True
            request = advance(steps, reply, Outcome)
    except (OperationFlaw, ValueError, TypeError) as flaw:
        log.warning("%s can't be looked at", operation.name, exc_info=flaw)
        return failed(ErrorCode.BAD_RESPONSE, f"it can't be looked at ({flaw})")
    if isinstance(request, Outcome):
        return _ended(request)
    steps.close()
    before = request.own_before
    if before is UNSEEN or not has_looked:
        return _found(BLIND if not has_looked else CHANGE, before)
    compared = _compared(before, request.effect)
    return _found(CREATE if compared is None else CHANGE, compared)


def _verdict_of(outcome: Outcome) -> str:
    if outcome.kind in (OutcomeKind.UNCHANGED, OutcomeKind.SUCCEEDED, OutcomeKind.SKIPPED):
        return EQUAL
    code = None if outcome.error is None else outcome.error.code
    return PENDING if code is ErrorCode.NOT_FOUND else verdict_of_error(code)


def verdict_of_error(code: str | None) -> str:
    """Return whether an item that ended with an error met something else than it expects, or was not seen at all."""
    return FAILED if code in NOT_SEEN else CONFLICT


NOT_SEEN: Final = frozenset(
    (
        ErrorCode.INVALID_ITEM,
        ErrorCode.UNAUTHORIZED,
        ErrorCode.FORBIDDEN,
        ErrorCode.RATE_LIMITED,
        ErrorCode.TOO_LARGE,
        ErrorCode.SERVER_ERROR,
        ErrorCode.TIMEOUT,
        ErrorCode.CONNECTION,
        ErrorCode.BAD_RESPONSE,
    )
)
"""Errors of a look that say nothing about what is there."""


def _ended(outcome: Outcome) -> Outcome:
    """Return what was found of an item that ended before its first write."""
    error = outcome.error
    return _found(
        _verdict_of(outcome),
        why="" if error is None else error.message,
        is_seen=error is None or error.code not in NOT_SEEN,
    )


def _found(verdict: str, before: Any = UNSEEN, why: str = "", *, is_seen: bool = True) -> Outcome:
    return succeeded({"verdict": verdict, "before": digest_of(before).hex(), "why": why, "is_seen": is_seen})
