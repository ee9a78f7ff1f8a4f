"""What the requests of one item, or of items that share theirs, have in common, and what came of each of them."""

from dataclasses import dataclass
from typing import Any, Final

from bulk.govern.permits.accounts import Permit, PermitQueue
from bulk.govern.pools import Pool
from bulk.model import UNSEEN, ErrorCode, Failure, Outcome, Reply, failed
from bulk.platform.classification import Verdict, VerdictKind

_ACCEPTED = VerdictKind.ACCEPTED


class ItemTally:
    """Counts what the requests of one item come to, and remembers what its outcome needs.

    Attributes:
        requests: all requests of the item (count). paid: how many of them counted against a bucket.
        sends: how often the request that is under way or decided was sent (count).
        retries: requests that repeated one that failed. settled: lost writes that were settled by reading.
        started_at: first send (UTC epoch seconds, this machine's time); 0.0 before. started: the same, monotonic.
        http_status, request_id: of the newest answer. body_bytes: size of answers, as far as known.
        may_arrive_late: a write of this item was sent again and its first send may still arrive.
        is_saved: the content that the item ends with is going to be a file of the user's.
        holds_body: an answer takes memory, or is a file, until the item has ended.
        has_read: a read of this item was answered since the last start of its steps.
        has_found: a read of this item has shown something.
        result_of: the name of the item's operation, if its result may be the answer as it came; else empty.
        kept_as: the key under which the newest answer was kept; None: it was not.
        is_anew: no answer that was kept is used; those that come are kept in its place.
        is_by_date: only the date of the last change shows that nothing has changed.
        new_names: names of what the item has created.
        before: what was there before the write that decided (`Request.before`). befores: the same for
            items that share their requests, by their places.
        is_alone: the item is a write, and no other item of the run reads or changes the same thing.
    """

    requests: int = 0
    paid: int = 0
    sends: int = 0
    retries: int = 0
    settled: int = 0
    started_at: float = 0.0
    started: float = 0.0
    http_status: int | None = None
    request_id: str | None = None
    body_bytes: int = 0
    has_read: bool = False
    has_found: bool = False
    may_arrive_late: bool = False
    is_saved: bool = False
    holds_body: bool = False
    is_alone: bool = False
    is_by_date: bool = False
    is_anew: bool = False
    result_of: str = ""
    kept_as: bytes | None = None
    new_names: tuple[str, ...] = ()
    before: Any = UNSEEN
    befores: dict[int, Any] | None = None

    def __init__(self, is_saved: bool = False, is_alone: bool = False, result_of: str = "") -> None:
        if is_saved:
            self.is_saved = True
        if is_alone:
            self.is_alone = True
        if result_of:
            self.result_of = result_of

    def begin_anew(self) -> None:
        """Forget what was read: the item begins anew, with another token."""
        self.has_read = self.has_found = self.is_by_date = False
        self.kept_as = None

    def begin_without_kept(self) -> bool:
        """Return whether the item, which ended as a bad response, has to begin anew without the answers that were kept.

        One of them may have misled it, as by a link that leads nowhere, and would do so until what it shows changes.
        """
        if self.is_anew or self.requests == self.paid:  # no answer was a 304
            return False
        self.is_anew = True
        return True


class RequestContext:
    """Holds what the requests of one item, or of items that share theirs, have in common.

    Attributes:
        queue: the permit queue that all of the requests stand in.
        permit: the permit that the worker brought along, until the first request takes it.
        tally: what is counted about the item.
        is_settling: the requests read what became of a lost write; a pause does not hold them back.
        pool: the pool among whose members the item may begin anew; None: the item stays with its queue.
        is_bound: the item stays with its queue all the same: a write of it may have been carried out.
        is_in_hand: what may have been carried out is known, so that another member can settle it.
    """

    __slots__ = ("is_bound", "is_in_hand", "is_settling", "permit", "pool", "queue", "tally")

    def __init__(self, queue: PermitQueue, permit: Permit | None, tally: ItemTally, pool: Pool | None = None) -> None:
        self.queue: Final = queue
        self.permit = permit
        self.pool: Final = pool
        self.is_settling = self.is_bound = self.is_in_hand = False
        self.tally: Final = tally

    def take_permit(self) -> Permit | None:
        """Return the permit on the first call, and None afterwards."""
        permit, self.permit = self.permit, None
        return permit

    def leave_member(self) -> None:
        """Raise MemberStuck if the item should begin anew with another member of its pool, which settles first what may
        have been carried out."""
        if self.pool is not None and (self.is_in_hand or not self.is_bound):
            self.pool.leave(self.queue, self.tally.requests, is_settling=self.is_bound)


@dataclass(init=False, slots=True, unsafe_hash=True)
class Tried:
    """What came of one send: an answer and how to treat it, or a failure."""

    reply: Final[Reply | None]
    verdict: Final[Verdict | None]
    failure: Final[Failure | None]

    def __init__(
        self,
        reply: Reply | None = None,
        verdict: Verdict | None = None,
        failure: Failure | None = None,
    ) -> None:
        self.reply, self.verdict, self.failure = reply, verdict, failure

    @property
    def kind(self) -> VerdictKind | None:
        """The verdict's kind; None where there was no answer."""
        return self.verdict.kind if self.verdict is not None else None

    @property
    def is_bare(self) -> bool:
        """Whether a read was answered with a 404 without the platform's message."""
        return self.kind is VerdictKind.ASTRAY and self.reply is not None and self.reply.status == 404

    @property
    def error(self) -> str:
        """What went wrong, for people; empty where nothing did."""
        return self.failure.message if self.failure is not None else self.verdict.message if self.verdict else ""


def is_decided(tried: Tried) -> bool:
    """Return whether a read is not tried again."""
    if tried.reply is None or tried.verdict is None:
        return False
    if tried.kind is _ACCEPTED:
        return not tried.reply.is_truncated
    return tried.kind is VerdictKind.REFUSED


def result_of(tried: Tried) -> Reply | Outcome:
    """Return the reply to a read that is not tried again, or the outcome of its item."""
    if tried.reply is not None and tried.kind is _ACCEPTED and not tried.reply.is_truncated:
        return tried.reply
    return outcome_of(tried)


def outcome_of(tried: Tried) -> Outcome:
    """Return the outcome of an item whose request got this answer and no better one."""
    if tried.failure is not None:
        return failed(tried.failure.code, tried.failure.message)
    assert tried.reply is not None, "an answer or a failure"
    assert tried.verdict is not None, "every answer is judged"
    status = tried.reply.status
    match tried.verdict.kind:
        case VerdictKind.ACCEPTED:
            return failed(ErrorCode.CONNECTION, "the answer broke off", http_status=status)
        case VerdictKind.LIMITED_PRIMARY | VerdictKind.LIMITED_SECONDARY | VerdictKind.THROTTLED:
            return failed(ErrorCode.RATE_LIMITED, tried.verdict.message, http_status=status)
        case VerdictKind.LOCKED_OUT:
            message = tried.verdict.message or "refused without a reason"
            return failed(ErrorCode.FORBIDDEN, message, http_status=status)
        case _:
            code = tried.verdict.code or ErrorCode.BAD_RESPONSE
            return failed(code, tried.verdict.message, http_status=status)
