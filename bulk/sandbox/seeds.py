"""What a state begins with: the standard data, then what `--seed-data FILE` adds to it or replaces.

A seed file is YAML (or JSON, where its name ends in `.json`) with any of these keys; an unknown one is an error:

    standard: true            # false: begin without the standard data
    users:         [{login, name, email, site_admin, enterprise_owner}]
    organizations: [{login, name, description, owners: [login], members: [login]}]
    repositories:  [{organization, name, private, description, default_branch, files: {path: text}}]
                   # or a generated fleet, in the list or alone: {organization, count, readme_bytes, prefix}
    notifications: [{user, repository: organization/name, count, reason, title, type, unread, updated_at}]
    tokens:        [{token, user, kind, scopes, permissions: {name: read | write}, organization, seconds}]

Who or what is there already (by login, name or token, in any case) is replaced and keeps its id. Organizations that
only a repository names are made, owned by whoever owns the standard ones. A file is applied to a state once: started
again with the same file, the state goes on as it is. Either all of it takes effect, or an error names the file and
the place.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import orjson
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from bulk.sandbox.notification_seeds import NotificationSeed
from bulk.sandbox.notification_seeds import plant as plant_notifications
from bulk.sandbox.records import Organization, Repository, TokenKind, User
from bulk.sandbox.rights import ALL_SCOPES
from bulk.sandbox.settings import SettingError, Settings
from bulk.sandbox.state import State

ENTERPRISE_ID: Final = 1
INSTALLATION_S: Final = 3600.0

Login = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,100}$")]


class UserSeed(msgspec.Struct, forbid_unknown_fields=True):
    """A user of a seed file."""

    login: Login
    name: str | None = None
    email: str | None = None
    site_admin: bool = False
    enterprise_owner: bool = False


class OrganizationSeed(msgspec.Struct, forbid_unknown_fields=True):
    """An organization of a seed file."""

    login: Login
    name: str | None = None
    description: str = ""
    owners: list[str] = []
    members: list[str] = []


class RepositorySeed(msgspec.Struct, forbid_unknown_fields=True):
    """A repository of a seed file (`name`), or a fleet of generated ones (`count`)."""

    organization: Login
    name: Name | None = None
    private: bool = False
    description: str = ""
    default_branch: str = "main"
    files: dict[str, str] = {}
    count: Annotated[int, msgspec.Meta(ge=1, le=100_000_000)] | None = None
    readme_bytes: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 3000
    prefix: Name = "repo-"


class TokenSeed(msgspec.Struct, forbid_unknown_fields=True):
    """A token of a seed file."""

    token: Annotated[str, msgspec.Meta(min_length=1)]
    user: str
    kind: TokenKind = TokenKind.CLASSIC
    scopes: list[str] | None = None
    permissions: dict[str, Literal["read", "write"]] = {}
    organization: str | None = None
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None


class SeedFile(msgspec.Struct, forbid_unknown_fields=True):
    """A whole seed file."""

    standard: bool = True
    users: list[UserSeed] = []
    organizations: list[OrganizationSeed] = []
    repositories: list[RepositorySeed] | RepositorySeed = []
    notifications: list[NotificationSeed] = []
    tokens: list[TokenSeed] = []


def plant(state: State, settings: Settings, now: float) -> None:
    """Bring an opened state to what the settings ask for, and read its records into memory.

    Raises:
        SettingError: the seed file or a token of the settings can't be used; the state is as before.
    """
    content, seed = (b"", SeedFile()) if settings.seed_data is None else _read(settings.seed_data)
    with state.transaction() as db:
        if state.is_new:
            _execute(db, "schema.sql")
            db.execute("INSERT INTO enterprises VALUES (?, 'acme', 'Acme')", (ENTERPRISE_ID,))
            if seed.standard:
                _execute(db, "standard.sql")
            state.mark_version()
        state.load()
        if state.is_new and seed.standard:
            _standard_tokens(state)
        digest = hashlib.sha256(content).hexdigest()
        if (
            settings.seed_data is not None
            and not db.execute("SELECT 1 FROM seeds WHERE sha256 = ?", (digest,)).fetchone()
        ):
            db.execute("INSERT INTO seeds VALUES (?, ?)", (digest, now))
            _Planter(state, settings.seed_data, now).plant(seed)
    state.is_planted = True
    for token in settings.tokens:
        user = state.user(token.user)
        if user is None:
            raise SettingError(f"--token of {token.user!r}: there is no such user: use octoadmin, alice, bob or carol")
        state.lend_token(token.token, user, ALL_SCOPES, token.seconds)


def _read(path: Path) -> tuple[bytes, SeedFile]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SettingError(f"--seed-data {path}: {error.strerror}: name a YAML or JSON file") from None
    try:
        text = content.decode("utf-8-sig")
        data = orjson.loads(text) if path.suffix == ".json" else YAML(typ="safe", pure=True).load(text)
        return content, msgspec.convert({} if data is None else data, SeedFile)
    except (UnicodeDecodeError, orjson.JSONDecodeError, YAMLError, msgspec.ValidationError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise SettingError(f"--seed-data {path}: {reason}") from None


def _execute(db: sqlite3.Connection, name: str) -> None:
    """Run one of the package's SQL files within the transaction that is open."""
    for statement in _statements((resources.files("bulk.sandbox") / name).read_text("utf-8")):
        db.execute(statement)


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _standard_tokens(state: State) -> None:
    octoadmin, alice, bob = (state.user_by_id(number) for number in (1, 2, 3))
    state.add_token("sbx-site-admin", octoadmin, scopes=ALL_SCOPES)
    state.add_token("sbx-org-owner", alice, scopes=ALL_SCOPES)
    state.add_token("sbx-member", bob, scopes=ALL_SCOPES)
    state.add_token("sbx-read-only", octoadmin, scopes=("read:org",))
    state.add_token(
        "sbx-fine-grained",
        octoadmin,
        kind=TokenKind.FINE_GRAINED,
        permissions={"contents": "write", "organization_administration": "write"},
    )
    state.add_token(
        "sbx-installation",
        octoadmin,
        kind=TokenKind.INSTALLATION,
        permissions={"contents": "write", "organization_administration": "write", "organization_hooks": "write"},
        organization=state.organization_by_id(101),
        lasts_s=INSTALLATION_S,
    )


class _Planter:
    """Applies a seed file to a state."""

    def __init__(self, state: State, path: Path, now: float) -> None:
        self._state, self._path, self._now = state, path, now

    def plant(self, seed: SeedFile) -> None:
        for user in seed.users:
            former = self._state.user(user.login)
            number = former.id if former else self._state.allocate("user")
            name, email = user.name or user.login, user.email or f"{user.login}@acme.example"
            self._state.add_user(User(number, user.login, name, email, user.site_admin, user.enterprise_owner))
        for organization in seed.organizations:
            self._organization(organization)
        repositories = seed.repositories if isinstance(seed.repositories, list) else [seed.repositories]
        for place, repository in enumerate(repositories):
            if (repository.name is None) == (repository.count is None):
                raise self._error(
                    f"repositories[{place}]: give either name (one repository) or count (a generated fleet)"
                )
            self._repository(repository)
        for place, notification in enumerate(seed.notifications):
            self._notification(notification, f"notifications[{place}]")
        for token in seed.tokens:
            self._token(token)

    def _error(self, reason: str) -> SettingError:
        return SettingError(f"--seed-data {self._path}: {reason}")

    def _user(self, login: str, where: str) -> User:
        user = self._state.user(login)
        if user is None:
            raise self._error(f"{where}: there is no user {login!r}: add it to users")
        return user

    def _organization(self, seed: OrganizationSeed) -> Organization:
        if self._state.user(seed.login):
            raise self._error(f"organizations: {seed.login!r} is a user already")
        former = self._state.organization(seed.login)
        number = former.id if former else self._state.allocate("organization")
        made = Organization(number, ENTERPRISE_ID, seed.login, seed.name or seed.login, seed.description, self._now)
        self._state.add_organization(made, [self._user(login, f"owners of {seed.login}") for login in seed.owners])
        for login in seed.members:
            self._state.set_role(made, self._user(login, f"members of {seed.login}"), "member")
        return made

    def _repository(self, seed: RepositorySeed) -> None:
        owner = self._state.organization(seed.organization)
        if owner is None:
            owners = [login for login in ("octoadmin", "alice") if self._state.user(login)]
            owner = self._organization(OrganizationSeed(seed.organization, owners=owners))
        if seed.name is None:
            self._state.db.execute(
                "INSERT OR REPLACE INTO fleets VALUES (?, ?, ?, ?, ?, ?)",
                (
                    self._state.allocate("repository", seed.count or 0),
                    owner.id,
                    seed.prefix,
                    seed.count,
                    seed.readme_bytes,
                    self._now,
                ),
            )
            return
        former = self._state.repository(owner, seed.name)
        number = former.id if former else self._state.allocate("repository")
        self._state.add_repository(
            Repository(number, owner.id, seed.name, seed.private, seed.description, seed.default_branch, self._now)
        )
        for path, text in seed.files.items():
            self._state.db.execute("INSERT OR REPLACE INTO seed_files VALUES (?, ?, ?)", (number, path, text.encode()))

    def _notification(self, seed: NotificationSeed, where: str) -> None:
        user = self._user(seed.user, where)
        owner, _, name = seed.repository.partition("/")
        organization = self._state.organization(owner)
        repository = organization and self._state.repository(organization, name)
        if not repository:
            raise self._error(f"{where}: there is no repository {seed.repository!r}")
        plant_notifications(self._state, seed, user, repository, self._now)

    def _token(self, seed: TokenSeed) -> None:
        user = self._user(seed.user, "tokens")
        organization = None
        if seed.organization is not None:
            organization = self._state.organization(seed.organization)
            if organization is None:
                raise self._error(f"tokens: there is no organization {seed.organization!r}")
        if (seed.kind is TokenKind.INSTALLATION) != (organization is not None):
            raise self._error("tokens: an installation token, and no other, names its organization")
        self._state.add_token(
            seed.token,
            user,
            kind=seed.kind,
            scopes=ALL_SCOPES if seed.scopes is None else seed.scopes,
            permissions=seed.permissions,
            organization=organization,
            lasts_s=seed.seconds or (INSTALLATION_S if seed.kind is TokenKind.INSTALLATION else None),
        )
