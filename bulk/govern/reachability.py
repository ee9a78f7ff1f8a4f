"""Judges whether the platform is in reach, by the requests that were answered. Pure; monotonic times come in.

After a few requests in a row without any answer, one request at a time asks again after growing pauses, until an answer
comes or the user's limit is over. If no request was ever answered, and the failure is no time-out, waiting does not
help: the address is wrong, or nothing runs there.
Source: interface.md §2 (`limits.unreachable`); failures.md rows 1, 2.
"""

from dataclasses import dataclass

from bulk.model import ErrorCode, Failure, FailureKind

SILENT_AFTER = 3
"""After this many requests in a row without an answer, the platform is out of reach (count)."""
RETRY_FIRST_S, RETRY_MOST_S = 0.1, 5.0
FIRST_CONTACT_S = 5.0
"""How long a platform is tried that never answered and refuses, is not found or speaks something else (seconds)."""
PAGE = Failure(
    kind=FailureKind.LOST,
    code=ErrorCode.BAD_RESPONSE,
    message="items are answered with web pages, as of a page to log in",
)
"""What a web page in the place of an answer counts as, once the platform has answered."""


@dataclass(slots=True)
class Reachability:
    """Knows whether the platform can be reached, and since when it can't.

    Attributes:
        limit_s: how long a silent platform is asked (seconds).
        unanswered: requests in a row without an answer (count), the first of them at `since`.
        retry_at: when the next request may ask (monotonic).
        error: what the newest of the unanswered requests met, for people.
    """

    limit_s: float
    unanswered: int = 0
    since: float = 0.0
    retry_at: float = 0.0
    error: str = ""

    @property
    def is_silent(self) -> bool:
        """Whether the platform is out of reach, so that one request at a time finds out whether it is back."""
        return self.unanswered >= SILENT_AFTER

    def failed(self, now: float, failure: Failure, *, is_first_contact: bool = False) -> str:
        """Note that a request got no answer that can be used; return why the run can't go on, empty if it can.
        Args:
            now: monotonic.
            is_first_contact: this process has had no answer yet.
        """
        if failure.is_certificate:
            return failure.message
        if failure.is_answer:
            self.unanswered = 0
            return ""
        if self.unanswered == 0:
            self.since = now
        self.unanswered += 1
        self.error = failure.message
        doublings = min(10, max(0, self.unanswered - SILENT_AFTER))
        self.retry_at = now + min(RETRY_MOST_S, RETRY_FIRST_S * 2.0**doublings)
        silent_s = now - self.since
        if not self.is_silent:
            return ""
        if is_first_contact and failure.code is not ErrorCode.TIMEOUT and silent_s > min(FIRST_CONTACT_S, self.limit_s):
            return f"the platform can't be reached: {failure.message}{_way_out(failure)}"
        if silent_s > self.limit_s:
            return f"the platform has been out of reach for {self.limit_s:g} s: {failure.message}"
        return ""

    def answered(self) -> bool:
        """Note that an answer came; return whether the platform had been silent before it."""
        was_silent, self.unanswered = self.unanswered > 0, 0
        return was_silent


def _way_out(failure: Failure) -> str:
    """Return what to look at, where the message does not say that itself."""
    if failure.message.endswith("?"):
        return ""
    if failure.kind is FailureKind.LOST:
        return ": does platform.base_url have the right scheme (https or http) and port?"
    if failure.message.startswith("no connection to"):
        return ": does the platform run, and are scheme, name and port in platform.base_url right?"
    if "can't be resolved" in failure.message:
        return ": is the name in platform.base_url right?"
    return ": does the platform run, and is the port in platform.base_url right?"
