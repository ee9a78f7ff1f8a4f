"""The second platform for an App: its installations, their tokens and budgets, each of which may be wrong.

What is done is done on one platform, whose list of effects is the judge. JSON web tokens are looked at as the open
points say. It imports nothing of the engine.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from tests.hostile.http.limits import Limits
from tests.hostile.http.messages import Answer, Ask, refused, shown
from tests.hostile.http.turn import stamp
from tests.hostile.http.wire import Service
from tests.hostile.platform import Platform
from tests.hostile.pools.members import Unlimited, readme_of
from tests.hostile.store.seeds import BEGAN, ORGANIZATIONS, seeded
from tests.hostile.wrong import Course

CLIENT_ID = "Iv1.fleet"
LASTS_S = 3_600
"""How long a token of an installation lasts (seconds)."""
REPOSITORIES = 48
OWNERS = ("acme", "orbit", "nova")
LIMITED = "API rate limit exceeded for installation ID 7."
MUTE = Answer(0)
"""Stands for an answer that never comes."""
HALF = Answer(1)
"""Stands for one that is cut off in its middle."""


@dataclass(slots=True)
class Place:
    """One installation.

    Attributes:
        pays: its budget. repositories: those that it is selected for; None: all. mints: tokens that were asked for.
    """

    id: int
    login: str
    pays: Limits
    permissions: dict[str, str] = field(default_factory=lambda: {"metadata": "read", "contents": "write"})
    repositories: set[str] | None = None
    is_suspended: bool = False
    is_removed: bool = False
    mints: int = 0


@dataclass(slots=True)
class Grant:
    """What a token lets do. is_taken: the platform takes it."""

    place: Place
    ends_at: float
    permissions: dict[str, str]
    is_taken: bool = True


Twist = Callable[["Fleet", Place, Answer, int], Answer]
"""What comes in the place of the right answer to the request for a token; the number counts those of that place."""
Instead = Callable[["Fleet", Ask, float], Answer | None]
"""What is answered in place of the platform, at a moment (seconds since the run began); None: nothing else."""


class Fleet(Service):
    """One App in several organizations.

    Attributes:
        skew_s, date_s: how far the platform's clock is ahead, and how far its `Date` is besides (seconds).
        on_mint: see `Twist`. instead: for all requests. before: what happens when a moment has come.
        jwts: every JSON web token that came. tokens: every token that was given, with what it lets do.
    """

    def __init__(self, key: RSAPrivateKey, wall: Callable[[], float], limit: int, window_s: int) -> None:
        super().__init__({}, wall)
        self.began, self._key = wall(), key.public_key()
        self.places = [Place(11 + at, login, Limits(limit, window_s)) for at, login in enumerate(OWNERS)]
        self.skew_s = self.date_s = 0.0
        self.on_mint: Twist = lambda fleet, place, answer, number: answer
        self.instead: Instead = lambda fleet, ask, now: None
        self.before: list[tuple[float, Callable[[Fleet], None]]] = []
        self.jwts: set[str] = set()
        self.tokens: dict[str, Grant] = {}
        self.heard: list[tuple[float, Ask]] = []
        state = seeded()
        for at, login in enumerate(OWNERS):
            for number in range(REPOSITORIES):
                name, own = f"r{number}", repository_id(at, number)
                repo = {"id": own, "name": name, "full_name": f"{login}/{name}", "default_branch": "trunk"}
                repo |= {"organization": ORGANIZATIONS[login], "private": True}
                state.set(("repository", login, name), repo, BEGAN)
                state.set(("file", own, "trunk", "README.md"), readme_of(f"{login}/{name}"), BEGAN)
        self.platform = Platform(state, Unlimited())
        self._numbers = itertools.count(1)

    def recover(self) -> None:
        """Nothing is wrong any more."""
        self.on_mint, self.instead = lambda fleet, place, answer, number: answer, lambda fleet, ask, now: None
        self.skew_s = self.date_s = 0.0
        self.before = []
        for place in self.places:
            place.is_suspended = place.is_removed = False
            place.repositories = None
            place.permissions = {"metadata": "read", "contents": "write"}

    def revoke(self, *logins: str) -> None:
        """Every token of these is refused from now on."""
        for grant in self.tokens.values():
            grant.is_taken = grant.is_taken and grant.place.login not in logins

    def hear(self, ask: Ask) -> Course:
        """What becomes of a request."""
        now = self.wall() - self.began
        while self.before and self.before[0][0] <= now:
            self.before.pop(0)[1](self)
        self.heard.append((now, ask))
        said = self.instead(self, ask, now)
        answer = self._answer(ask) if said is None else said
        if answer is MUTE:
            return Course(None, "mute")
        end: Any = "half" if answer.status == HALF.status else ""
        number = f"f{next(self._numbers)}"
        date = formatdate(int(self.wall() + self.skew_s + self.date_s), usegmt=True)
        answer = Answer(
            201 if end else answer.status,
            answer.body,
            tuple(header for header in answer.headers if header[0] not in ("date", "x-service-request-id")),
        )
        return Course(answer.with_headers(("date", date), ("x-service-request-id", number)), end)

    def _answer(self, ask: Ask) -> Answer:
        if ask.path.startswith("/app") or ask.path.endswith("/installation"):
            return self._of_app(ask)
        now, grant = self.wall(), self.tokens.get(ask.token)
        if grant is None or not grant.is_taken or grant.ends_at <= now + self.skew_s or grant.place.is_removed:
            return refused(401, "Bad credentials")
        if grant.place.is_suspended:
            return refused(403, "This installation has been suspended")
        pays = grant.place.pays
        if ask.path == "/rate_limit":
            return shown(200, pays.body(now + self.skew_s))
        if not pays.charge(now + self.skew_s):
            answer = refused(403, LIMITED)
        else:
            answer = self._granted(ask, grant) or self.platform.answer(ask, now)
        return answer.with_headers(*pays.headers(now + self.skew_s).items())

    def _granted(self, ask: Ask, grant: Grant) -> Answer | None:
        """Refuse what a token may not do."""
        _, kind, *names = ask.path.split("/")
        if kind != "repos" or len(names) < 2:
            return refused(403, "Resource not accessible by integration")
        owner, repo = names[0].lower(), names[1].lower()
        chosen = grant.place.repositories
        if owner != grant.place.login or (chosen is not None and repo not in chosen):
            return refused(404, "Not Found")
        level = grant.permissions.get("contents", "")
        if level != "write" and (level != "read" or not ask.is_read):
            return refused(403, "Resource not accessible by integration")
        return None

    def _of_app(self, ask: Ask) -> Answer:
        self.jwts.add(ask.token)
        flaw = self._flaw_of(ask.token)
        if flaw:
            return refused(401, flaw)
        parts = ask.path.strip("/").split("/")
        here = [place for place in self.places if not place.is_removed]
        if parts[-1] == "access_tokens":
            return self._mint(ask, next((place for place in here if str(place.id) == parts[2]), None))
        if ask.path == "/app/installations":
            return shown(200, [_about(place) for place in here])
        if parts[0] == "app":
            found = [place for place in here if str(place.id) == parts[2]]
        else:
            found = [
                place for place in here
                if place.login == parts[1].lower()
                and (parts[0] == "orgs" or place.repositories is None or parts[2].lower() in place.repositories)
            ]  # fmt: skip
        return shown(200, _about(found[0])) if found else refused(404, "Not Found")

    def _flaw_of(self, token: str) -> str:
        now = self.wall() + self.skew_s
        try:
            claims = jwt.decode(
                token, self._key, algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False}
            )
        except jwt.exceptions.PyJWTError:
            return "A JSON web token could not be decoded"
        if claims["iat"] > now:
            return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued."
        if claims["exp"] > now + 600:
            return "'Expiration time' claim ('exp') is too far in the future"
        return "'Expiration time' claim ('exp') must be in the future" if claims["exp"] <= now else ""

    def _mint(self, ask: Ask, place: Place | None) -> Answer:
        if place is None:
            return refused(404, "Not Found")
        place.mints += 1
        return self.on_mint(self, place, self.minted(place, ask.json().get("permissions")), place.mints)

    def minted(self, place: Place, wanted: dict[str, str] | None = None) -> Answer:
        """The right answer: a new token."""
        if place.is_suspended:
            return refused(403, "This installation has been suspended")
        levels = ("", "read", "write", "admin")
        for name, level in (wanted or {}).items():
            if levels.index(level) > levels.index(place.permissions.get(name, "")):
                return refused(422, "The permissions requested are not granted to this installation.")
        number, ends_at = len(self.tokens), int(self.wall() + self.skew_s) + LASTS_S
        token = f"t{number}.{hashlib.sha256(f'{place.id} {number}'.encode()).hexdigest()}"
        self.tokens[token] = Grant(place, ends_at, dict(wanted or place.permissions))
        body = {"token": token, "expires_at": stamp(ends_at), "permissions": self.tokens[token].permissions}
        return shown(201, {**body, "repository_selection": _selection(place)})

    def mint_times(self, login: str) -> Sequence[float]:
        """When tokens of a place were asked for (seconds since the run began)."""
        path = next(f"/app/installations/{place.id}/access_tokens" for place in self.places if place.login == login)
        return [at for at, ask in self.heard if ask.path == path]


def repository_id(owner: int, number: int) -> int:
    """The id of a repository of an owner of that place in `OWNERS`."""
    return 10_000 + 100 * owner + number


def with_body(answer: Answer, **changed: Any) -> Answer:
    """The same answer with other values; None: without that one."""
    body = {**json.loads(answer.body), **changed}
    return shown(answer.status, {name: value for name, value in body.items() if value is not None})


def _selection(place: Place) -> str:
    return "all" if place.repositories is None else "selected"


def _about(place: Place) -> dict[str, Any]:
    account = {"login": place.login.title(), "id": ORGANIZATIONS[place.login], "type": "Organization"}
    return {
        "id": place.id,
        "account": account,
        "repository_selection": _selection(place),
        "permissions": place.permissions,
        "suspended_at": stamp(BEGAN) if place.is_suspended else None,
    }
