"""The second platform for several credentials: each has a budget, or shares one, and is wrong in its own way.

What is done is done on one platform, whose list of effects is the judge. What each member may do, of which budget it is
told, and by which clock, is its own. Written from the specification; imports nothing of the engine.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate

from tests.hostile.http.limits import Limits
from tests.hostile.http.messages import Answer, Ask, refused, shown
from tests.hostile.http.wire import Service
from tests.hostile.platform import Platform
from tests.hostile.store.seeds import BEGAN, seeded
from tests.hostile.wrong import Course

LIMITED = "API rate limit exceeded for user ID 1."
FIRST_REPOSITORY = 10_000
NOTHING = Answer(0)
"""Stands for an answer that never comes."""
Instead = Callable[[Ask, float], Answer | None]
"""What is answered in place of the platform, at a moment (seconds since the run began); None: nothing else."""


@dataclass(slots=True)
class Member:
    """One credential.

    Attributes:
        pays: the budget that pays. shown, asked: of which budget headers, and `/rate_limit`, speak.
        user: its number; None: `GET /user` is not for it, as for an installation.
        instead: before anything is charged. refuses: what was charged is refused so. hides: what was done is answered
            so.
        spent_before: what others have taken when the run begins (count). date_s: how far its `Date` is ahead (seconds).
        is_free: whether a client could know that it may be used, at a moment (seconds since the run began).
        heard: each request with the moment at which it came (seconds since the run began), `/rate_limit` too.
    """

    name: str
    pays: Limits
    user: int | None
    shown: Limits | None = None
    asked: Limits | None = None
    instead: Instead = lambda ask, now: None
    refuses: Instead = lambda ask, now: None
    hides: Instead = lambda ask, now: None
    spent_before: int = 0
    date_s: float = 0.0
    is_free: Callable[[float], bool] = lambda now: True
    heard: list[tuple[float, Ask]] = field(default_factory=list)

    @property
    def token(self) -> str:
        """What it logs in with."""
        return f"token-of-{self.name}-0123456789"

    @property
    def questions(self) -> int:
        """How often `/rate_limit` was asked (count)."""
        return sum(ask.path == "/rate_limit" for _, ask in self.heard)


class Unlimited:
    """Members pay, and not the platform that they share."""

    def charge(self, now: float, category: str, token: str) -> bool:
        """It is paid for."""
        return True

    def headers(self, now: float, category: str) -> dict[str, str]:
        """Nothing is said."""
        return {}

    def body(self, now: float) -> int:
        """Nor here."""
        return 404


class Members(Service):
    """All of them at one address, before one platform with some repositories."""

    def __init__(self, members: Sequence[Member], wall: Callable[[], float], repositories: int) -> None:
        super().__init__({}, wall)
        self.members = {member.token: member for member in members}
        self.began = wall()
        for member in members:
            for _ in range(member.spent_before):
                member.pays.charge(self.began)
        state = seeded()
        for number in range(repositories):
            name, own = f"r{number}", FIRST_REPOSITORY + number
            repo = {"id": own, "name": name, "full_name": f"acme/{name}", "default_branch": "trunk"}
            state.set(("repository", "acme", name), {**repo, "organization": 501, "private": False}, BEGAN)
            state.set(("file", own, "trunk", "README.md"), readme_of(name), BEGAN)
        self.platform = Platform(state, Unlimited())
        self._numbers = itertools.count(1)

    def hear(self, ask: Ask) -> Course:
        """What becomes of a request."""
        member, wall = self.members.get(ask.token), self.wall()
        if member is None:
            return Course(refused(401, "who are you?"))
        member.heard.append((wall - self.began, ask))
        told_of = member.asked or member.pays
        if ask.path == "/rate_limit" and told_of.is_lost():
            return Course(None, "mute" if told_of.hangs else "reset")
        answer = self._answer(member, ask, wall)
        if answer is NOTHING:
            return Course(None, "mute")
        kept = tuple(header for header in answer.headers if header[0] not in ("date", "x-service-request-id"))
        date = formatdate(int(wall + member.date_s), usegmt=True)
        number = f"m{next(self._numbers)}"
        return Course(Answer(answer.status, answer.body, (*kept, ("date", date), ("x-service-request-id", number))))

    def _answer(self, member: Member, ask: Ask, wall: float) -> Answer:
        now = wall - self.began
        if (said := member.instead(ask, now)) is not None:
            return said
        if ask.path == "/rate_limit":
            body = (member.asked or member.pays).body(wall)
            return refused(body, "not here") if isinstance(body, int) else shown(200, body)
        if not member.pays.charge(wall):
            answer = refused(403, LIMITED)
        elif ask.path == "/user":
            answer = _user(member)
        else:
            answer = member.refuses(ask, now) or self.platform.answer(ask, wall)
            answer = member.hides(ask, now) or answer
        return answer.with_headers(*(member.shown or member.pays).headers(wall).items())


def _user(member: Member) -> Answer:
    if member.user is None:
        return refused(403, "Resource not accessible by integration")
    return shown(200, {"id": member.user, "login": f"user-{member.user}"})


def readme_of(repository: str) -> bytes:
    """What its README holds."""
    return f"# This is {repository}\n".encode()
