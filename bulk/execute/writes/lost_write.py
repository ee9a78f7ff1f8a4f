"""A write that was sent, and that may have happened: no answer came, or none that shows its effect. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from bulk.clock import Clock
from bulk.ledger.records import Intent
from bulk.model import UNSEEN, Effect, Lost, Outcome, Request

REPLACES = frozenset((Effect.COMPARE_AND_SWAP, Effect.SET))
"""Effects that may take the place of what somebody else has written."""


@dataclass(frozen=True, slots=True)
class LostWrite:
    """A write that may have happened.

    Attributes:
        lost: the write, as the ledger remembers it.
        effect: the effect of the write, which decides when it may be repeated.
        since: when it was lost, or when the run was resumed (monotonic): the settle time counts from here.
        followed_by: how a read failed that came after the platform had accepted the write; None: it never accepted it.
        is_disputed: a reading has shown the state from before the write, and the next look another one.
    """

    lost: Lost
    effect: Effect
    since: float
    followed_by: Outcome | None = None
    is_disputed: bool = False

    @property
    def is_wrong(self) -> bool:
        """Whether an answer of success came that proves nothing."""
        return self.followed_by is None and self.lost.status is not None and 200 <= self.lost.status < 300

    def is_contradicted_by(self, request: Request) -> bool:
        """Return whether a repeat has seen something else than what was there before: a reading said that nothing has
        changed, perhaps because a copy lags. What stands there then may be somebody else's."""
        if self.is_disputed or self.effect not in REPLACES:
            return False
        before, now = self.lost.before, request.own_before
        if before is UNSEEN or now is UNSEEN or (self.lost.method, self.lost.path) != (request.method, request.path):
            return False
        return bool(before != msgspec.json.decode(msgspec.json.encode(now)))  # a ledger has kept the other as JSON


def lost_write_of(request: Request, clock: Clock, status: int | None, made: frozenset[str] = frozenset()) -> LostWrite:
    """Return the lost write for a request whose answer was lost just now; `status`: of the answer, if one came;
    `made`: see Lost."""
    lost = Lost(
        method=request.method,
        path=request.path,
        before=request.own_before,
        sent_at=clock.now(),
        status=status,
        made=made,
    )
    return LostWrite(lost, request.effect, clock.monotonic())


def lost_write_from(sent: Intent, since: float, made: frozenset[str] = frozenset()) -> LostWrite:
    """Return the lost write of an intent that an earlier process has left; `since`: see LostWrite, `made`: see Lost."""
    lost = Lost(method=sent.method, path=sent.path, before=sent.before, sent_at=sent.sent_at, made=made)
    return LostWrite(lost, sent.effect, since)


def lost_again(lost_write: LostWrite | None, newest: LostWrite) -> LostWrite:
    """Return the lost write to remember: the first of the same request, because its before-image is from before all
    of them."""
    if lost_write is None or (lost_write.lost.method, lost_write.lost.path) != (newest.lost.method, newest.lost.path):
        return newest
    return LostWrite(lost_write.lost, lost_write.effect, newest.since, newest.followed_by, newest.is_disputed)


def what_came(lost: LostWrite | None) -> str:
    """Return what came of a try that decided nothing, for people; None: it was refused as a conflict."""
    if lost is None:
        return "the platform refused it as a conflict, 409"
    if lost.lost.status is None:
        return "no answer came"
    if lost.followed_by is not None:
        return "it was accepted, and a read that had to follow failed"
    return f"the answer {lost.lost.status} did not show it" if lost.is_wrong else f"the answer was {lost.lost.status}"


def never_shown(came: Mapping[str, int]) -> str:
    """Return the message of an item that was tried as often as is allowed; `came`: how often `what_came` of it
    (count)."""
    told = ", ".join(f"{what} ({'once' if count == 1 else f'{count} times'})" for what, count in came.items())
    return f"tried {sum(came.values())} times, and reading back never showed it: {told}"
