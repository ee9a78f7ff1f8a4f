"""What came of one send, and how an item ends with it."""

from dataclasses import dataclass
from typing import Final

from bulk.model import ErrorCode, Failure, Outcome, Reply, failed
from bulk.platform.classification import Verdict, VerdictKind

_ACCEPTED = VerdictKind.ACCEPTED


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
    """Return what the item gets of a read that is not tried again."""
    if tried.reply is not None and tried.kind is _ACCEPTED and not tried.reply.is_truncated:
        return tried.reply
    return outcome_of(tried)


def outcome_of(tried: Tried) -> Outcome:
    """Return how an item ends whose request got this answer and no better one."""
    if tried.failure is not None:
        return failed(tried.failure.code, tried.failure.message)
    assert tried.reply is not None, "an answer or a failure"
    assert tried.verdict is not None, "every answer is judged"
    status = tried.reply.status
    match tried.verdict.kind:
        case VerdictKind.ACCEPTED:
            return failed(ErrorCode.CONNECTION, "the answer broke off", http_status=status)
        case VerdictKind.LIMITED_PRIMARY | VerdictKind.LIMITED_SECONDARY:
            return failed(ErrorCode.RATE_LIMITED, tried.verdict.message, http_status=status)
        case VerdictKind.UNEXPLAINED | VerdictKind.LOCKED_OUT:
            message = tried.verdict.message or "refused without a reason"
            return failed(ErrorCode.FORBIDDEN, message, http_status=status)
        case _:
            code = tried.verdict.code or ErrorCode.BAD_RESPONSE
            return failed(code, tried.verdict.message, http_status=status)
