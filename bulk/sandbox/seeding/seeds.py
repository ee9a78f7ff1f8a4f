"""The first contents of a state: the standard data, then the additions and replacements of `--seed-data FILE`
(`seed_file.py`).

An entry that exists already (by login, name, slug or token, in any case) is replaced and keeps its id. Organizations
that only a repository names are made, with the owners of the standard ones. A file is applied to a state once: started
again with the same file, the state goes on as it is. Either all of the file takes effect, or an error names the file
and the place.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Final

from bulk.sandbox.clock import Clock, parse_iso
from bulk.sandbox.http.auth.rights import ALL_SCOPES
from bulk.sandbox.seeding import new_repositories, seed_file
from bulk.sandbox.seeding.app_seeds import AppPlanter, AppSeed, InstallationSeed
from bulk.sandbox.seeding.notification_seeds import NotificationSeed
from bulk.sandbox.seeding.notification_seeds import plant as plant_notifications
from bulk.sandbox.seeding.seed_file import (
    CommittersSeed,
    LicenseSeed,
    OrganizationSeed,
    RepositorySeed,
    SeedFile,
    TeamSeed,
    TokenSeed,
    UserSeed,
)
from bulk.sandbox.settings import SettingError, Settings
from bulk.sandbox.store.apps import INSTALLATION_S, Apps
from bulk.sandbox.store.records import App, Organization, Repository, TokenKind, User
from bulk.sandbox.store.state import State

ENTERPRISE_ID: Final = 1
LICENSE_S: Final = 365 * 86_400.0
"""How long a license lasts where its end is not given (seconds)."""


def plant(state: State, settings: Settings, clock: Clock, directory: Path) -> None:
    """Put the contents that the settings ask for into an opened state, and read its records into memory.

    Raises:
        SettingError: the seed file or a token of the settings can't be used; the state is as before.
    """
    now = clock.now()
    content, seed = (b"", SeedFile()) if settings.seed_data is None else seed_file.read(settings.seed_data)
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
            _Planter(state, settings.seed_data, now, Apps(state, clock), directory).plant(seed)
    state.is_planted = True
    for token in settings.tokens:
        user = state.user(token.user)
        if user is None:
            raise SettingError(f"--token of {token.user!r}: there is no such user: use octoadmin, alice, bob or carol")
        state.lend_token(token.token, user, ALL_SCOPES, token.seconds)


def _execute(db: sqlite3.Connection, name: str) -> None:
    """Run one of the package's SQL files within the transaction that is open."""
    for statement in _statements((resources.files("bulk.sandbox.store") / name).read_text("utf-8")):
        db.execute(statement)


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


STANDARD_TOKENS: Final[Mapping[str, str]] = {
    "sbx-site-admin": "octoadmin, site administrator, owner of the enterprise and of every organization",
    "sbx-org-owner": "alice, owner of the organizations",
    "sbx-member": "bob, plain member of acme-eng",
    "sbx-fine-grained": "octoadmin, fine-grained: contents and organization administration",
    "sbx-installation": "an installation of acme-eng, ends after 60 minutes",
    "sbx-read-only": "octoadmin, may only read organizations",
}
"""The tokens of the standard data, and the user of each."""


STANDARD_PASSWORD: Final = "sbx-password"
"""The password of octoadmin, alice and bob."""


def _standard_tokens(state: State) -> None:
    octoadmin, alice, bob = (state.user_by_id(number) for number in (1, 2, 3))
    state.add_token("sbx-site-admin", octoadmin, scopes=ALL_SCOPES)
    state.add_token("sbx-org-owner", alice, scopes=ALL_SCOPES)
    for user in (octoadmin, alice, bob):
        state.set_password(user, STANDARD_PASSWORD)
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


def slug_of(name: str) -> str:
    """Return the slug of an enterprise team. Source: specification, Enterprise teams."""
    return "ent:" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


_NO_LICENSE: Final = {
    "enterprise_id": ENTERPRISE_ID,
    "seats": 0,
    "advanced_security_seats": 0,
    "kind": "standard",
    "standalone": False,
}


class _Planter:
    """Applies a seed file to a state."""

    def __init__(self, state: State, path: Path, now: float, apps: Apps, directory: Path) -> None:
        self._state, self._path, self._now, self._apps = state, path, now, apps
        self._app_planter = AppPlanter(state, apps, path.parent.resolve(), directory, now)

    def plant(self, seed: SeedFile) -> None:
        for user in seed.users:
            self._person(user)
        for organization in seed.organizations:
            self._organization(organization)
        repositories = seed.repositories if isinstance(seed.repositories, list) else [seed.repositories]
        for repository in repositories:
            self._repository(repository)
        if seed.new_organizations is not None:
            new_repositories.keep(self._state, seed.new_organizations.repositories)
        for place, team in enumerate(seed.teams):
            self._team(team, f"teams[{place}]")
        if seed.license is not None:
            self._license(seed.license)
        for place, committers in enumerate(seed.committers):
            self._committers(committers, f"committers[{place}]")
        for place, notification in enumerate(seed.notifications):
            self._notification(notification, f"notifications[{place}]")
        for app in seed.apps:
            self._app(app)
        for token in seed.tokens:
            self._token(token)

    def _app(self, seed: AppSeed) -> None:
        try:
            app = self._app_planter.plant(seed)
        except SettingError as flaw:
            raise self._error(str(flaw)) from None
        for each in seed.installations:
            names = [each.organization] if each.organization else [f"{each.prefix}{n + 1}" for n in range(each.count)]
            for login in names:
                organization = self._state.organization(login) or self._generated(login, each)
                try:
                    self._app_planter.install(app, each, organization)
                except SettingError as flaw:
                    raise self._error(str(flaw)) from None

    def _generated(self, login: str, seed: InstallationSeed) -> Organization:
        """Return a new organization with a fleet of repositories."""
        if seed.prefix is None:
            raise self._error(f"apps: there is no organization {login!r}")
        if seed.each:
            self._repository(RepositorySeed(login, count=seed.each, readme_bytes=seed.readme_bytes))
        made = self._state.organization(login)
        return made or self._organization(OrganizationSeed(login))

    def _error(self, reason: str) -> SettingError:
        return SettingError(f"--seed-data {self._path}: {reason}")

    def _instant(self, moment: datetime | None, where: str) -> float | None:
        try:
            return None if moment is None else parse_iso(moment.isoformat())
        except ValueError as flaw:
            raise self._error(f"{where}: {flaw}") from None

    def _user(self, login: str, where: str) -> User:
        user = self._state.user(login)
        if user is None:
            raise self._error(f"{where}: there is no user {login!r}: add it to users")
        return user

    def _person(self, seed: UserSeed) -> None:
        former = self._state.user(seed.login)
        number = former.id if former else self._state.allocate("user")
        name, email = seed.name or seed.login, seed.email or f"{seed.login}@acme.example"
        user = User(number, seed.login, name, email, seed.site_admin, seed.enterprise_owner)
        self._state.add_user(user)
        if seed.password is not None:
            self._state.set_password(user, seed.password)
        self._state.db.execute("DELETE FROM billing_managers WHERE user_id = ?", (number,))
        if seed.billing_manager:
            self._state.db.execute("INSERT INTO billing_managers VALUES (?, ?)", (number, ENTERPRISE_ID))

    def _organization(self, seed: OrganizationSeed) -> Organization:
        if self._state.user(seed.login):
            raise self._error(f"organizations: {seed.login!r} is a user already")
        former = self._state.organization(seed.login)
        number = former.id if former else self._state.allocate("organization")
        made = Organization(number, ENTERPRISE_ID, seed.login, seed.name or seed.login, seed.description, self._now)
        self._state.add_organization(made, [self._user(login, f"owners of {seed.login}") for login in seed.owners])
        for role, logins in (("member", seed.members), ("security_manager", seed.security_managers)):
            for login in logins:
                self._state.set_role(made, self._user(login, f"{role}s of {seed.login}"), role)
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
        self._state.add_seed_files(number, seed.files)
        if seed.advanced_security:
            self._state.db.execute("INSERT OR IGNORE INTO advanced_security_repositories VALUES (?)", (number,))

    def _stored(self, full_name: str, where: str) -> Repository:
        owner, _, name = full_name.partition("/")
        organization = self._state.organization(owner)
        repository = organization and self._state.repository(organization, name)
        if not repository:
            raise self._error(f"{where}: there is no repository {full_name!r}")
        return repository

    def _team(self, seed: TeamSeed, where: str) -> None:
        db, slug = self._state.db, slug_of(seed.name)
        former = db.execute("SELECT id FROM teams WHERE slug = ?", (slug,)).fetchone()
        number = former["id"] if former else self._state.allocate("team")
        db.execute(
            "INSERT INTO teams VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description",
            (number, ENTERPRISE_ID, seed.name, slug, seed.description, self._now),
        )
        db.execute("DELETE FROM team_organizations WHERE team_id = ?", (number,))
        for login in seed.organizations:
            organization = self._state.organization(login)
            if organization is None:
                raise self._error(f"{where}: there is no organization {login!r}")
            db.execute("INSERT OR IGNORE INTO team_organizations VALUES (?, ?)", (number, organization.id))

    def _license(self, seed: LicenseSeed) -> None:
        db = self._state.db
        former = db.execute("SELECT * FROM licenses WHERE enterprise_id = ?", (ENTERPRISE_ID,)).fetchone()
        kept = dict(former) if former else _NO_LICENSE | {"expire_at": self._now + LICENSE_S}
        given = {
            "seats": seed.seats,
            "advanced_security_seats": seed.advanced_security_seats,
            "kind": seed.kind,
            "expire_at": self._instant(seed.expire_at, "license"),
            "standalone": seed.standalone,
        }
        kept |= {column: value for column, value in given.items() if value is not None}
        db.execute(
            "INSERT OR REPLACE INTO licenses VALUES "
            "(:enterprise_id, :seats, :advanced_security_seats, :kind, :expire_at, :standalone)",
            kept,
        )

    def _committers(self, seed: CommittersSeed, where: str) -> None:
        repository = self._stored(seed.repository, where)
        at = self._instant(seed.last_pushed_at, where)
        users = {self._user(login, where).id for login in seed.users}
        self._state.db.execute("DELETE FROM committers WHERE repository_id = ?", (repository.id,))
        self._state.db.executemany(
            "INSERT INTO committers VALUES (?, ?, ?)",
            [(repository.id, user, self._now if at is None else at) for user in sorted(users)],
        )

    def _notification(self, seed: NotificationSeed, where: str) -> None:
        user = self._user(seed.user, where)
        newest = self._instant(seed.updated_at, where)
        plant_notifications(self._state, seed, user, self._stored(seed.repository, where), newest, self._now)

    def _named_app(self, client_id: str) -> App:
        app = self._apps.app(client_id)
        if app is None:
            raise self._error(f"tokens: there is no App {client_id!r}: add it to apps")
        return app

    def _token(self, seed: TokenSeed) -> None:
        user = self._user(seed.user, "tokens")
        organization = None if seed.organization is None else self._organization_of_token(seed.organization)
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
            app=None if seed.app is None else self._named_app(seed.app),
            sso=[self._organization_of_token(login) for login in seed.needs_sso],
        )

    def _organization_of_token(self, login: str) -> Organization:
        organization = self._state.organization(login)
        if organization is None:
            raise self._error(f"tokens: there is no organization {login!r}")
        return organization
