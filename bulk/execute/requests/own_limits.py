"""Waits that concern one request or one place (a repository, an organization), and not the platform. Pure; times are
monotonic.

`Retry-After` is first obeyed by all. But a gateway names such a time for one repository that is under maintenance, too.
Where a request is told to wait again, or another one in its place, although enough others were served since, it waits
alone: otherwise each of its tries would hold up everything. What else is to be sent to that place waits as well,
whatever others do, until something there is served. Where nothing is for many such waits, the place is given up: what
is then still to be read there ends as what came before, and one request goes to see whenever the time that was named
is over.
"""

from dataclasses import dataclass

from bulk.model import Effect, ErrorCode, Reply, Request
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


@dataclass(slots=True)
class _Place:
    """A place where a request was told to wait when `good` others had been served (count), and none was served since.

    Attributes:
        last: what was answered last. reply: the answer itself.
        times: how often all of the place was to wait alone (count). until: until when (monotonic).
    """

    good: int
    last: Verdict
    reply: Reply
    times: int = 0
    until: float = 0.0


def place_of(request: Request) -> tuple[bool, str]:
    """Return the repository, organization or other thing that a request is about, apart for reads and writes."""
    parts = request.path.casefold().split("/", 4)
    return request.effect is Effect.READ, "/".join(parts[: 4 if parts[1:2] == ["repos"] else 3])


class OwnLimits:
    """The requests that were told to wait and have not been answered otherwise since: `told`, by method and path.
    `is_any`: one was, or a place."""

    def __init__(self) -> None:
        self.is_any = False
        self.told: dict[tuple[str, str], _Told] = {}
        self._places: dict[tuple[bool, str], _Place] = {}

    def given_up(self, request: Request, now: float) -> tuple[Reply, Verdict] | None:
        """Return what a read gets without being sent, as its place was given up; None: it may be sent."""
        place = self._places.get(place_of(request))
        if place is None or place.times < TRIES or now >= place.until or request.effect is not Effect.READ:
            return None
        return place.reply, refusal(place.last)

    def until(self, request: Request, paused_until: float) -> float:
        """Return when a request may be sent again at the soonest; `paused_until`: until when all wait (monotonic)."""
        told, place = self.told.get((request.method, request.path)), self._places.get(place_of(request))
        if told is None:
            return place.until if place is not None and place.times else 0.0
        return told.until if told.times else paused_until + told.behind_s

    def judged(
        self, request: Request, verdict: Verdict, reply: Reply, good: int, in_flight: int, now: float
    ) -> Verdict:
        """Return how to treat an answer: as an error of the server where only this request has to wait.

        Args:
            good: good answers to any request so far. in_flight: requests under way (counts).
        """
        key, where, wait_s = (request.method, request.path), place_of(request), verdict.retry_after_s
        if wait_s is None:
            if verdict.kind is not VerdictKind.UNAUTHORIZED:
                self.told.pop(key, None)
                self._places.pop(where, None)
                self.is_any = bool(self.told or self._places)
            return verdict
        if verdict.kind is VerdictKind.LIMITED_PRIMARY:
            return verdict  # a budget is used up, whichever request is told so
        told, place = self.told.get(key), self._places.get(where)
        if told is None and len(self.told) < MOST_KEPT:
            told = self.told[key] = _Told(good + in_flight, min(BEHIND_S, BEHIND_SHARE * wait_s))
            self.is_any = True
        if told is None:
            return verdict
        if place is None:
            place = self._places[where] = _Place(good + in_flight, verdict, reply)
        if not (told.times or place.times or good >= min(told.good, place.good) + SERVED):
            return verdict
        if now >= place.until:
            place.times += 1
        told.times += 1
        told.until = place.until = now + wait_s
        place.last, place.reply = verdict, reply
        if request.effect is Effect.READ and max(told.times, place.times) >= TRIES:
            self.told.pop(key)
            return refusal(verdict)
        return Verdict(VerdictKind.SERVER_ERROR, verdict.code, verdict.message)


def refusal(verdict: Verdict) -> Verdict:
    """Return the last word for a request that was told to wait too often."""
    return Verdict(VerdictKind.REFUSED, verdict.code or ErrorCode.RATE_LIMITED, verdict.message)
