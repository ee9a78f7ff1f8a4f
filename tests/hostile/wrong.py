"""The ways in which an answer can be wrong, one at a time.

A `Way` says which requests it befalls and what happens to them; `Guest.hear` makes of a request the `Course` that it
takes: what is done, when, and what comes back.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.hostile.foreign import foreign_answer
from tests.hostile.http.limits import Answers, Headers
from tests.hostile.http.messages import JSON, Answer, Ask
from tests.hostile.http.twists import Twist
from tests.hostile.platform import Platform
from tests.hostile.store.alias import Alias
from tests.hostile.store.normal import Normal

End = Literal["", "close", "reset", "mute", "half"]
"""How a connection ends: not at all; closed or reset without an answer; never answered; closed within the answer."""

Kind = Literal[
    "plain", "stale", "foreign", "body", "late", "lost", "status", "truncated", "meddled", "twisted", "scripted", "pair"
]
SHORTLY_S = 0.001
NONE = Answer(0)
"""Stands for an answer that never came."""
EMPTY_BODIES = {
    "{}": b"{}",
    "[]": b"[]",
    '""': b'""',
    "null": b"null",
    "message": b'{"message":"x"}',
    "ok": b'{"status":"ok"}',
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to be wrong.

    Attributes:
        times: this many requests, from the first on; None: all.
        on: which requests it befalls: those that write, those that read, or both.
        has_effect: whether a request that it befalls is done.
        seconds: how much later something happens, or how stale it is.
        status, body, headers: of the answer that comes instead; None: those of the right one.
        end: how the connection ends.
        habits: how the platform keeps what it is given, in the whole run.
        lag_s: how stale reads are besides, in the whole run (seconds).
        meddles: somebody else changes the same thing: before the request is done, or after it.
        has_equal_ids: whether things of different kinds have the same ids.
        limits: what headers, and what `/rate_limit`, say of a budget of three requests in ten seconds.
        twist: what becomes of the right answer on its way. lasts_s: for how long after the first request (seconds).
        is_harmless: every item has to succeed all the same.
        is_denied: a request that was done is answered with a definite refusal.
        is_lasting: and everything else is for a while, too.
        shows_none: for long, every list is empty.
        is_for_writes: what a mere read is shown of a list that changes meanwhile is of no one moment.
        repeats_at: on each connection all answers from this one on are those before (count).
        script: decides of each request that it befalls, and how many it has befallen with this one.
        parts: the two ways of a pair: a request is befallen by the first of them that befalls it and is not over.
    """

    name: str
    kind: Kind = "plain"
    times: int | None = 1
    on: Literal["write", "read", "both"] = "write"
    has_effect: bool = True
    seconds: float = 0.0
    status: int | None = None
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    end: End = ""
    habits: frozenset[str] = frozenset()
    lag_s: float = 0.0
    meddles: Literal["", "before", "after"] = ""
    has_equal_ids: bool = False
    limits: tuple[Headers, Answers] | None = None
    twist: Twist | None = None
    lasts_s: float = math.inf
    is_harmless: bool = False
    is_denied: bool = False
    is_lasting: bool = False
    shows_none: bool = False
    script: "Script | None" = None
    is_for_writes: bool = False
    repeats_at: int = 0
    parts: "tuple[Way, ...]" = ()

    def befalls(self, ask: Ask) -> bool:
        """Whether a request is of those."""
        return (self.on == "both" or ask.is_read == (self.on == "read")) and self.kind != "plain"


@dataclass(slots=True)
class Course:
    """What becomes of one request.

    Attributes:
        answer: what comes back; None: nothing.
        later: what is done afterwards, and how much later (seconds).
        twist: what becomes of the answer at last.
        wire: what is sent in place of an answer in good form.
    """

    answer: Answer | None
    end: End = ""
    later: list[tuple[float, Callable[[float], None]]] = field(default_factory=list)
    twist: Twist | None = None
    wire: bytes = b""


@dataclass(slots=True)
class Guest:
    """One credential's platform and the way in which it is wrong.

    Attributes:
        meddle: what somebody else does to the same thing, at a moment.
        heard: every request and when it came (seconds since 1970); `/rate_limit` too.
        asks_limits: whether `/rate_limit` itself is what the run reads.
        alias: the names that it has outside.
        answered: what went out before, in order. notes: what a script has to remember.
    """

    platform: Platform
    way: Way
    meddle: Callable[[Platform, float], None] = lambda platform, now: None
    heard: list[tuple[float, Ask]] = field(default_factory=list)
    asks_limits: bool = False
    alias: Alias = field(default_factory=lambda: Alias(0))
    answered: list[Answer] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    befallen: int = 0

    def __post_init__(self) -> None:
        self.platform.normal, self.platform.lag_s = Normal(self.way.habits), self.way.lag_s

    def recover(self) -> None:
        """Be right from now on."""
        self.begin(Way("plain", habits=self.way.habits))

    def begin(self, way: Way) -> None:
        """Be wrong in another way from now on; the habits of the platform stay."""
        self.way, self.platform.lag_s, self.befallen = way, way.lag_s, 0
        self.heard, self.notes = [], {}

    def hear(self, ask: Ask, now: float) -> Course:
        """Take a request in, at `now` (seconds since 1970)."""
        ask = self.alias.arriving(ask)
        self.heard.append((now, ask))
        course = self._course(ask, now)
        self.answered.append(course.answer or NONE)
        if course.answer is not None:
            course.answer = self.alias.leaving(course.answer)
            if course.twist is not None:
                twisted = course.twist(ask, course.answer)
                if isinstance(twisted, bytes):
                    course.wire = twisted
                else:
                    course.answer = twisted
        return course

    def _course(self, ask: Ask, now: float) -> Course:
        way = self.way
        if not way.befalls(ask) or (ask.path == "/rate_limit" and not self.asks_limits):
            return Course(self.platform.answer(ask, now))
        self.befallen += 1
        is_over = way.times is not None and self.befallen > way.times
        if is_over or now > self.heard[0][0] + way.lasts_s:
            return Course(self.platform.answer(ask, now))
        return COURSES[way.kind](self, ask, now)

    def right(self, ask: Ask, now: float) -> Answer:
        """The right answer; what is done only if the way has an effect."""
        doer = self.platform if self.way.has_effect else self.platform.scratch()
        return doer.answer(ask, now)


def _stale(guest: Guest, ask: Ask, now: float) -> Course:
    platform = guest.platform
    platform.lag_s = guest.way.seconds
    try:
        return Course(platform.answer(ask, now))
    finally:
        platform.lag_s = 0.0


def _foreign(guest: Guest, ask: Ask, now: float) -> Course:
    right = guest.right(ask, now)
    return Course(foreign_answer(guest.platform, ask, now) if right.status < 300 else right)


def _body(guest: Guest, ask: Ask, now: float) -> Course:
    right, way = guest.right(ask, now), guest.way
    if right.status >= 300:
        return Course(right)
    return Course(Answer(right.status, way.body or b"", (JSON, *_kept(right))))


def _kept(right: Answer) -> tuple[tuple[str, str], ...]:
    return tuple(header for header in right.headers if header[0] not in ("content-type", "link"))


def _late(guest: Guest, ask: Ask, now: float) -> Course:
    way = guest.way
    right = guest.platform.scratch().answer(ask, now)
    later: list[tuple[float, Callable[[float], None]]] = [(way.seconds, lambda then: _act(guest.platform, ask, then))]
    if way.end:
        return Course(None, way.end, later)
    if way.status is None:
        return Course(right, later=later)
    return Course(_instead(way, right), later=later)


def _act(platform: Platform, ask: Ask, now: float) -> None:
    platform.act(ask, now)


def _lost(guest: Guest, ask: Ask, now: float) -> Course:
    return Course(guest.right(ask, now), guest.way.end)


def _instead(way: Way, right: Answer) -> Answer:
    body = b'{"message":"the gateway has trouble"}' if way.body is None else way.body
    kind = ("content-type", "text/html") if body.startswith(b"<") else JSON
    return Answer(way.status or right.status, body, (kind, *way.headers, *_kept(right)))


def _status(guest: Guest, ask: Ask, now: float) -> Course:
    right = guest.right(ask, now)
    return Course(_instead(guest.way, right))


def _truncated(guest: Guest, ask: Ask, now: float) -> Course:
    right = guest.right(ask, now)
    if guest.way.end:
        return Course(right, guest.way.end)
    return Course(Answer(right.status, right.body[: len(right.body) // 2], right.headers))


def _meddled(guest: Guest, ask: Ask, now: float) -> Course:
    way, platform = guest.way, guest.platform
    if way.meddles == "before":
        guest.meddle(platform, now - SHORTLY_S)
    right = guest.right(ask, now)
    if way.meddles == "after":
        guest.meddle(platform, now + SHORTLY_S)
    return Course(right if way.status is None else _instead(way, right), way.end)


def _twisted(guest: Guest, ask: Ask, now: float) -> Course:
    return Course(guest.right(ask, now), guest.way.end, twist=guest.way.twist)


def _scripted(guest: Guest, ask: Ask, now: float) -> Course:
    assert guest.way.script is not None, "it is scripted"
    return guest.way.script(guest, ask, now, guest.befallen)


def _pair(guest: Guest, ask: Ask, now: float) -> Course:
    whole, befallen = guest.way, guest.befallen
    met = guest.notes.setdefault("met", [0 for _ in whole.parts])
    for place, way in enumerate(whole.parts):
        is_over = (way.times is not None and met[place] >= way.times) or now > guest.heard[0][0] + way.lasts_s
        if way.befalls(ask) and not is_over:
            met[place] += 1
            guest.way, guest.befallen = way, met[place]
            try:
                return COURSES[way.kind](guest, ask, now)
            finally:
                guest.way, guest.befallen = whole, befallen
    return Course(guest.platform.answer(ask, now))


Script = Callable[[Guest, Ask, float, int], Course]
COURSES: dict[Kind, Callable[[Guest, Ask, float], Course]] = {
    "stale": _stale,
    "foreign": _foreign,
    "body": _body,
    "late": _late,
    "lost": _lost,
    "status": _status,
    "truncated": _truncated,
    "meddled": _meddled,
    "twisted": _twisted,
    "scripted": _scripted,
    "pair": _pair,
}
