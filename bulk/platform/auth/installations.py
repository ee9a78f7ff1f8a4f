"""The installations of an App, and their tokens, which are made when they are first needed and never written down.

An installation that is gone is looked for again, once a minute at most: it may have been installed anew. No single
answer takes one away: before it counts as gone, a list that was made since then says so. Source: failures.md rows 99,
107.
"""

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote

import anyio

from bulk.clock import Clock
from bulk.errors import CredentialMissing, CredentialRefused
from bulk.model import Effect, Reply, Request
from bulk.platform.auth.app import LIST, TRIES, App, Shows, UselessAnswers
from bulk.platform.auth.credentials import is_token
from bulk.platform.auth.secrets import Secret
from bulk.urls import has_next_link, page_size, tells_of_pages

LIST_AGAIN_S = 60.0
"""Least time between two lists of all installations (seconds)."""
RENEWED_S = 3_300.0
"""Age at which a token is renewed if the platform does not name its end (seconds)."""
LEAST_S = 5.0
"""An end that lies less than this behind `Date`, or before it, can't be that of a new token (seconds)."""
DOUBTS_S = (1.0, 2.0, 4.0)
"""Pauses before a token is asked for again where an installation that is listed is not found (seconds): it may be new,
and not known everywhere."""
PAGE = 100
LARGEST_ID = 2**53
_FINAL = frozenset((200, 201, 403, 404, 422))


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation as the platform describes it. `login` is the name of its account, in lower case."""

    id: int
    login: str
    permissions: Mapping[str, str]
    is_selected: bool


class Installations:
    """All installations of an App, by the account that they are in.

    Attributes:
        tokens: the newest token of each installation, by its number.
    """

    def __init__(self, app: App, clock: Clock) -> None:
        self.app, self.clock = app, clock
        self.tokens: dict[int, Secret] = {}
        self._by_login: dict[str, Installation] = {}
        self._missing: set[str] = set()
        self._covered: dict[tuple[int, str], bool] = {}
        self._looking, self._listing = anyio.Lock(), anyio.Lock()
        self._listed_at = self._known_at = -math.inf

    async def find(self, login: str, path: str = "") -> Installation | None:
        """Return the installation in an account; None: there is none.

        Args:
            path: path to ask for the installation of a repository, an organization, … if the list does not have it.
        """
        key = login.casefold()
        if self._listed_at == -math.inf:
            with suppress(UselessAnswers):  # each can be asked for by itself
                await self._list()
        if key not in self._by_login and key not in self._missing and path:
            found = _installation((await self._get(path, partial(_is_in, key))).body)
            if found is not None:
                self._by_login[key] = found
            else:
                self._missing.add(key)
        return self._by_login.get(key)

    async def every(self) -> list[Installation]:
        """Return all installations of the App."""
        if self._listed_at == -math.inf:
            await self._list()
        return list(self._by_login.values())

    async def by_id(self, number: int) -> Installation | None:
        """Return the installation of that number."""
        found = await self._get(f"/app/installations/{number}", partial(_is_numbered, number))
        return _installation(found.body) if found.status == 200 else None

    async def look_again(self, login: str) -> Installation | None:
        """Return the same as `find`, from a new list if the last one is old enough."""
        async with self._listing:  # who comes while it is made waits for it
            if self.clock.monotonic() - self._listed_at >= LIST_AGAIN_S:
                with suppress(UselessAnswers):  # the last list is as good
                    await self._list()
        return self._by_login.get(login.casefold())

    async def seen_since(self, login: str, since: float) -> Installation | None:
        """Return the same as `find`, from a list that was asked for at `since` or later (monotonic).

        Raises:
            CredentialMissing, CredentialRefused: there is no such list.
        """
        async with self._listing:
            if self._known_at < since:
                await self._list()
        return self._by_login.get(login.casefold())

    async def covers(self, installation: Installation, path: str) -> bool:
        """Return whether an installation is for the repository of a path (`path_of`); True if that is not known."""
        number = installation.id
        async with self._looking:
            known = self._covered.get((number, path))
            if known is not None:
                return known
            try:
                found = await self._get(path, partial(_is_in, installation.login))
            except (CredentialRefused, CredentialMissing):
                return True
            told = _installation(found.body) if found.status == 200 else None
            covers = self._covered[number, path] = found.status != 404 and (told is None or told.id == number)
            return covers

    async def _list(self) -> None:
        """List all installations, and forget what was found out of single ones: the App may be installed anew.

        A page ends the list if it shows nothing new, or has no link to a next one and either is not full or names the
        last one. Of two accounts that it shows with one number, one is wrong: each is asked for by itself.
        """
        self._listed_at = asked_at = self.clock.monotonic()
        page, found = 1, dict[str, Installation]()
        entries: list[object] = []
        while True:
            reply = await self._get(LIST, _is_list, f"per_page={PAGE}&page={page}")
            before, entries = entries, reply.body if isinstance(reply.body, list) else []
            for entry in entries:
                each = _installation(entry)
                if each is not None:
                    found[each.login] = each
            is_full = len(entries) >= page_size(len(entries), PAGE) and not tells_of_pages(reply.headers)
            if entries in ([], before) or not (is_full or has_next_link(reply.headers)):
                accounts = Counter(each.id for each in found.values())
                self._by_login = {login: each for login, each in found.items() if accounts[each.id] == 1}
                self._known_at = asked_at
                self._missing.clear()
                self._covered.clear()
                return
            page += 1

    async def _get(self, path: str, shows: Shows, query: str = "") -> Reply:
        request = Request(method="GET", path=path, query=query, accept=_FINAL, is_fresh=True)
        reply = await self.app.ask(request, shows)
        self.app.prove()
        return reply


class InstallationSource:
    """Mints the tokens of one installation (a `CredentialSource`).

    Args:
        name: name of the account: `CREDENTIAL@OWNER`.
        permissions: the permissions that are asked for; None: all that the installation has.

    Attributes:
        renewal_problem: why there is no token, for people. is_gone: the App is not installed there any more.
    """

    def __init__(
        self, name: str, where: Installations, installation: Installation, permissions: Mapping[str, str] | None
    ) -> None:
        self.name, self.renewal_problem, self.is_gone = name, "", False
        self.ends_at: float | None = None
        self.installation, self._where, self._permissions = installation, where, permissions
        self._secret: Secret | None = None
        self._former: Secret | None = None

    @property
    def renews_after_s(self) -> float | None:
        """Age at which a token is renewed whose end is not known (seconds)."""
        return RENEWED_S

    def read(self) -> Secret:
        """Return the token that was minted last; raise CredentialMissing if there is none."""
        if self._secret is None:
            raise CredentialMissing(f"credential {self.name!r}: no token was minted yet")
        return self._secret

    async def covers(self, owner: str, repo: str) -> bool:
        """Return whether the installation is for a repository; the platform is asked once for each repository.

        Whether it is for selected ones is looked at again, because that may have changed: once a minute at most, and
        not while the App has to wait.
        """
        where, installation = self._where, self.installation
        if not installation.is_selected:
            if where.app.closed_until > where.clock.monotonic():
                return True
            try:
                again = await where.look_again(installation.login)
            except (CredentialRefused, CredentialMissing):
                return True
            if again is None or again.id != installation.id or not again.is_selected:
                return True
            self.installation = again
        return await where.covers(self.installation, path_of(owner, repo, ""))

    async def renew(self) -> bool:
        """Mint another token; return False if the platform gives none, and let `renewal_problem` say why."""
        where, began = self._where, self._where.clock.monotonic()
        try:
            reply = await self._mint()
            for pause_s in DOUBTS_S:
                if reply.status != 404 or (again := await where.look_again(self.installation.login)) is None:
                    break
                if again.id == self.installation.id:
                    await where.clock.sleep(pause_s)
                self.installation = again
                reply = await self._mint()
            if reply.status == 404:
                again = await where.seen_since(self.installation.login, began)
                if again is not None and again.id != self.installation.id:
                    self.installation = again
                    reply = await self._mint()
        except (CredentialRefused, CredentialMissing) as error:
            self.renewal_problem = str(error)
            return False
        body = reply.body if isinstance(reply.body, dict) else {}
        if reply.status < 300:
            self._replace(body["token"])
            self.renewal_problem = ""
            ends_at = _moment(body.get("expires_at"))
            is_possible = ends_at is not None and ends_at > where.app.told(reply) + LEAST_S
            self.ends_at = ends_at if is_possible else None
            return True
        place = f"in {self.installation.login} (credential {self.name!r})"
        said = body.get("message") or f"status {reply.status} and no message"
        match reply.status:
            case 404:
                self.is_gone = True
                self.renewal_problem = f"the App is not installed {place}"
            case 403:
                self.renewal_problem = f"the App's installation {place} gives no token: {said}"
            case _:
                asked = ", ".join(f"{name}: {level}" for name, level in (self._permissions or {}).items())
                self.renewal_problem = f"the App's installation {place} does not grant {asked}: {said}"
        return False

    def _replace(self, token: str) -> None:
        """Take another token and forget the last but one, which has ended: fifty installations have 1,350 a day."""
        if self._secret is not None and self._secret.reveal() == token:
            return
        if self._former is not None:
            self._former.forget()
        self._former, self._secret = self._secret, Secret(token)
        self._where.tokens[self.installation.id] = self._secret

    def _shows_new(self) -> Shows:
        """Return what tells whether an answer has a token that nobody has yet.

        An answer that is given once more has an old one. That of another installation, for which that one pays, is
        never taken; the one that this installation has already is, where nothing else comes.
        """
        again = 0

        def shows(body: object) -> bool:
            nonlocal again
            if not (isinstance(body, dict) and is_token(body.get("token"))):
                return False
            held = {token.reveal(): number for number, token in self._where.tokens.items()}
            holder = held.get(body["token"])
            again += holder == self.installation.id
            return holder is None or again >= TRIES

        return shows

    async def _mint(self) -> Reply:
        body = None if self._permissions is None else {"permissions": dict(self._permissions)}
        request = Request(
            method="POST",
            path=f"/app/installations/{self.installation.id}/access_tokens",
            body=body,
            effect=Effect.CREATE,
            accept=_FINAL,
            is_fresh=True,
        )
        reply = await self._where.app.ask(request, self._shows_new())
        self._where.app.prove()
        return reply


def no_installation(name: str, number: int | None) -> str:
    """Return the message for an App that does not have the installation which its credential names."""
    return (
        f"credential {name!r}: the App has no installation {number}; the address of the installation's page ends with "
        "its number, and `installation: auto` finds it by the owner of each item"
    )


def path_of(owner: str, repo: str, enterprise: str) -> str:
    """Return the path that describes the installation for a repository, an organization or an enterprise."""
    if enterprise:
        return f"/enterprises/{quote(enterprise, safe='')}/installation"
    if repo:
        return f"/repos/{quote(owner, safe='')}/{quote(repo, safe='')}/installation"
    return f"/orgs/{quote(owner, safe='')}/installation"


def _installation(entry: object) -> Installation | None:
    if not isinstance(entry, dict):
        return None
    number, account, permissions = entry.get("id"), entry.get("account"), entry.get("permissions")
    login = (account.get("login") or account.get("slug")) if isinstance(account, dict) else None
    if type(number) is not int or not 0 < number <= LARGEST_ID or not isinstance(login, str):
        return None
    held = permissions if isinstance(permissions, dict) else {}
    return Installation(number, login.casefold(), held, entry.get("repository_selection") == "selected")


def _is_in(login: str, body: object) -> bool:
    """Return whether an answer is the installation in an account, whose name is in lower case."""
    found = _installation(body)
    return found is not None and found.login == login


def _is_numbered(number: int, body: object) -> bool:
    found = _installation(body)
    return found is not None and found.id == number


def _is_list(body: object) -> bool:
    return isinstance(body, list)


def _moment(text: object) -> float | None:
    """Return a moment of the platform's (UTC epoch seconds), which is in UTC where it names no zone."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return None if moment is None else (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
