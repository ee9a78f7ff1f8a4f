"""Waits that concern one request, and not the platform. Pure; times are monotonic.

`Retry-After` is first obeyed by all. But a gateway names such a time for one repository that is under maintenance, too.
Where a request is told to wait again, although enough others were served since, it waits alone: otherwise each of its
tries would hold up everything.
"""

from dataclasses import dataclass

from bulk.model import ErrorCode, Request
from bulk.platform.classification import Verdict, VerdictKind

SERVED = 3
"""The least number of others that are served after the first wait, beside those that were under way (count)."""
BEHIND_SHARE, BEHIND_S = 0.1, 0.5
"""When the time is over that all have waited, others go first for this share of it, and for this long at most
(seconds): they show whether it was about them."""
TRIES = 6
"""A read that was told to wait this many times, although others were served, has failed (count)."""
MOST_KEPT = 10_000
"""Requests that are remembered (count)."""


@dataclass(slots=True)
class _Told:
    """A request that was told to wait, when `good` others had been served (count).

    Attributes:
        behind_s: how long others go first (seconds).
        times: how often it was told so alone (count). until: until when it waits alone (monotonic).
    """

    good: int
    behind_s: float
    times: int = 0
    until: float = 0.0


class OwnLimits:
    """The requests that were told to wait and have not been answered otherwise since: `told`, by method and path."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, str], _Told] = {}

    def until(self, request: Request, paused_until: float) -> float:
        """Return when a request may be sent again at the soonest; `paused_until`: until when all wait (monotonic)."""
        told = self.told.get((request.method, request.path))
        if told is None:
            return 0.0
        return told.until if told.times else paused_until + told.behind_s

    def judged(self, request: Request, verdict: Verdict, good: int, in_flight: int, now: float) -> Verdict:
        """Return how to treat an answer: as an error of the server where only this request has to wait.

        Args:
            good: good answers to any request so far. in_flight: requests under way (counts).
        """
        key, wait_s = (request.method, request.path), verdict.retry_after_s
        if wait_s is None:
            if verdict.kind is not VerdictKind.UNAUTHORIZED:
                self.told.pop(key, None)
            return verdict
        if verdict.kind is VerdictKind.LIMITED_PRIMARY:
            return verdict  # a budget is used up, whichever request is told so
        told = self.told.get(key)
        if told is None and len(self.told) < MOST_KEPT:
            told = self.told[key] = _Told(good + in_flight, min(BEHIND_S, BEHIND_SHARE * wait_s))
        if told is None:
            return verdict
        if not (told.times or good >= told.good + SERVED):
            return verdict
        told.times += 1
        told.until = now + wait_s
        if told.times >= TRIES and request.method == "GET":
            self.told.pop(key)
            return Verdict(VerdictKind.REFUSED, verdict.code or ErrorCode.RATE_LIMITED, verdict.message)
        return Verdict(VerdictKind.SERVER_ERROR, verdict.code, verdict.message)
