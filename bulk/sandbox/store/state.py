"""The state: one SQLite file, and the records that every request needs in memory above it.

Users, tokens, memberships and organizations are all in memory; a repository is from its first use on. Every change of
them must go through the methods here, so that memory and file never differ; areas use `db` for their own tables, with
changes inside `transaction()`. All calls are made on the event loop's thread, and no transaction spans an `await`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bulk.sandbox.clock import Clock
from bulk.sandbox.settings import SettingError
from bulk.sandbox.store import rows
from bulk.sandbox.store.records import App, Organization, Repository, Token, TokenKind, User

SCHEMA_VERSION = "4"
REPOSITORIES_IN_MEMORY = 50_000

RepositorySource = Callable[[Organization, str], Repository | None]


class State:
    """The state of the platform.

    Attributes:
        db: the open database (`sqlite3.Row` rows), for the areas' own tables.
        is_new: whether this start created it.
        is_planted: whether it has its first contents; from then on a failed transaction undoes memory too.
        token_changes: a number that grows when tokens or passwords change, for caches of tokens by their texts.
    """

    def __init__(self, db: sqlite3.Connection, clock: Clock, is_new: bool) -> None:
        self.db, self.is_new = db, is_new
        self.is_planted = False
        self.token_changes = 0
        self._clock = clock
        self._opened_at = clock.now()
        self._users: dict[str, User] = {}
        self._users_by_id: dict[int, User] = {}
        self._tokens: dict[bytes, Token] = {}
        self._organizations: dict[str, Organization] = {}
        self._organizations_by_id: dict[int, Organization] = {}
        self._renamed_at: dict[int, float] = {}
        self._roles: dict[tuple[int, int], str] = {}
        self._repositories: dict[tuple[int, str], Repository] = {}
        # Organizations whose repositories have rows: those of a fleet have none, so the file need not be asked.
        self._with_repositories: set[int] = set()
        self._sources: list[RepositorySource] = []
        self._rename_listeners: list[Callable[[str, str], None]] = []

    @classmethod
    def open(cls, path: Path, clock: Clock, *, is_kept: bool = True) -> State:
        """Open the state file, or create an empty one.

        Args:
            path: the file.
            clock: where the state gets the time from.
            is_kept: whether it shall outlive a power cut; it always outlives this process.

        Raises:
            SettingError: the file is not a sandbox's state, is of another version, or can't be written.
        """
        try:
            db = sqlite3.connect(path, isolation_level=None)
        except sqlite3.Error as error:
            raise SettingError(f"--state {path.parent}: {error}: name a directory that can be written") from None
        db.row_factory = sqlite3.Row
        try:
            is_new = not db.execute("SELECT 1 FROM sqlite_master").fetchone()
            if not is_new:
                _check_version(db, path)
            db.execute("PRAGMA journal_mode=WAL")
            # A killed sandbox loses nothing either way, because the system has all that SQLite wrote.
            db.execute(f"PRAGMA synchronous={'NORMAL' if is_kept else 'OFF'}")
        except sqlite3.Error as error:
            db.close()
            raise SettingError(f"--state {path}: {error}: name a directory of a sandbox, or an empty one") from None
        except SettingError:
            db.close()
            raise
        return cls(db, clock, is_new)

    def mark_version(self) -> None:
        """Write the version into a new state."""
        self.db.execute("INSERT INTO meta VALUES ('version', ?)", (SCHEMA_VERSION,))

    def load(self) -> None:
        """Read the records that are kept in memory again."""
        for kept in (self._users, self._users_by_id, self._organizations, self._organizations_by_id):
            kept.clear()
        self._roles.clear()
        self._repositories.clear()
        self._renamed_at.clear()
        # Negative ids are lent tokens, which no file holds.
        self._tokens = {digest: token for digest, token in self._tokens.items() if token.id < 0}
        for row in self.db.execute("SELECT * FROM users"):
            self._keep_user(rows.user(row))
        for row in self.db.execute("SELECT * FROM tokens"):
            self._tokens[row["digest"]] = rows.token(row, self._users_by_id)
        for row in self.db.execute("SELECT * FROM organizations"):
            self._keep_organization(rows.organization(row))
        for row in self.db.execute("SELECT key, value FROM meta WHERE key LIKE 'renamed %'"):
            self._renamed_at[int(row["key"].removeprefix("renamed "))] = float(row["value"])
        for row in self.db.execute("SELECT * FROM memberships"):
            self._roles[row["organization_id"], row["user_id"]] = row["role"]
        for row in self.db.execute("SELECT DISTINCT organization_id FROM repositories"):
            self._with_repositories.add(row["organization_id"])

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Make all changes of the block take effect together, or none if it raises. Not nested, no `await` inside."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield self.db
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if self.is_planted:
                self.load()
            raise

    def allocate(self, kind: str, count: int = 1) -> int:
        """Return the first of `count` new ids of a kind (`organization`, `repository`, `snapshot`, …), which were never
        used before."""
        row = self.db.execute(
            "INSERT INTO sequences VALUES (?, 1 + ?) ON CONFLICT (name) DO UPDATE SET next = next + ? RETURNING next",
            (kind, count, count),
        ).fetchone()
        return int(row["next"]) - count

    def user(self, login: str) -> User | None:
        """Return the user of that login, in any case."""
        return self._users.get(login.casefold())

    def user_by_id(self, user_id: int) -> User:
        """Return the user of that id (KeyError: there is none)."""
        return self._users_by_id[user_id]

    def add_user(self, user: User) -> None:
        """Add a user, or replace the one of the same id."""
        self.db.execute(
            "INSERT INTO users VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET login = excluded.login, "
            "name = excluded.name, email = excluded.email, site_admin = excluded.site_admin, "
            "enterprise_owner = excluded.enterprise_owner",
            (user.id, user.login, user.name, user.email, user.site_admin, user.enterprise_owner, self._clock.now()),
        )
        self._keep_user(user)

    def token(self, text: str) -> Token | None:
        """Return the token of that text, ended or not."""
        return self._tokens.get(digest_of(text))

    def add_token(
        self,
        text: str,
        user: User,
        *,
        kind: TokenKind = TokenKind.CLASSIC,
        scopes: Sequence[str] = (),
        permissions: Mapping[str, str] | None = None,
        organization: Organization | None = None,
        lasts_s: float | None = None,
        app: App | None = None,
        sso: Iterable[Organization] = (),
    ) -> None:
        """Add a token, or replace the one of the same text. It ends `lasts_s` (seconds) from now; None: never.

        Args:
            sso: organizations whose single sign-on it was not authorized for.
        """
        self.keep_token(
            text,
            Token(
                0,
                kind,
                user,
                organization.id if organization else None,
                frozenset(scopes),
                dict(permissions or {}),
                None if lasts_s is None else self._clock.now() + lasts_s,
                app_id=app.id if app else None,
                sso_ids=frozenset(each.id for each in sso),
            ),
        )

    def keep_token(self, text: str, token: Token) -> None:
        """Add a token as it is, under an id of its own, or replace the one of the same text."""
        limited_to = None if token.repository_ids is None else json.dumps(sorted(token.repository_ids))
        row = self.db.execute(
            "INSERT OR REPLACE INTO tokens (digest, kind, user_id, organization_id, scopes_json, permissions_json, "
            "ends_at, app_id, installation_id, repositories_json, is_scoped, usable_at, sso_json) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
            (
                digest_of(text),
                token.kind,
                token.user.id,
                token.organization_id,
                json.dumps(sorted(token.scopes)),
                json.dumps(dict(token.permissions), sort_keys=True),
                token.ends_at,
                token.app_id,
                token.installation_id,
                limited_to,
                token.is_scoped,
                token.usable_at,
                json.dumps(sorted(token.sso_ids)),
            ),
        ).fetchone()
        self._tokens[row["digest"]] = rows.token(row, self._users_by_id)
        self.token_changes += 1

    def drop_token(self, digest: bytes) -> None:
        """Forget the token of that digest, so that it is refused from now on."""
        self.db.execute("DELETE FROM tokens WHERE digest = ?", (digest,))
        self._tokens.pop(digest, None)
        self.token_changes += 1

    def lend_token(self, text: str, user: User, scopes: Sequence[str], lasts_s: float | None) -> None:
        """Add a classic token in memory only: it is gone at the next start. Lent again then, it ends when it did."""
        digest, ends_at = digest_of(text), None
        if lasts_s is not None:
            self.db.execute("INSERT OR IGNORE INTO lent_tokens VALUES (?, ?)", (digest, self._opened_at + lasts_s))
            row = self.db.execute("SELECT ends_at FROM lent_tokens WHERE digest = ?", (digest,)).fetchone()
            ends_at = float(row["ends_at"])
        # Negative ids, which the file never has.
        number = -1 - len(self._tokens)
        self.token_changes += 1
        self._tokens[digest] = Token(number, TokenKind.CLASSIC, user, None, frozenset(scopes), {}, ends_at)

    def set_password(self, user: User, password: str) -> None:
        """Let a user log in with a password."""
        digest = digest_of(f"{user.login.lower()}:{password}")
        self.db.execute("INSERT OR REPLACE INTO passwords VALUES (?, ?)", (user.id, digest))
        self.token_changes += 1

    def has_password(self, user: User, password: str) -> bool:
        """Return whether that is the user's password."""
        row = self.db.execute("SELECT digest FROM passwords WHERE user_id = ?", (user.id,)).fetchone()
        return row is not None and bytes(row["digest"]) == digest_of(f"{user.login.lower()}:{password}")

    def organization(self, login: str) -> Organization | None:
        """Return the organization of that name, in any case."""
        return self._organizations.get(login.casefold())

    def organization_by_id(self, organization_id: int) -> Organization:
        """Return the organization of that id (KeyError: there is none)."""
        return self._organizations_by_id[organization_id]

    def add_organization(self, organization: Organization, owners: Sequence[User] = ()) -> None:
        """Add an organization, or replace the one of the same id; `owners` join it."""
        self.db.execute(
            "INSERT INTO organizations VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET login = excluded.login, name = excluded.name, "
            "description = excluded.description",
            (
                organization.id,
                organization.enterprise_id,
                organization.login,
                organization.name,
                organization.description,
                organization.created_at,
            ),
        )
        self._keep_organization(organization)
        for user in owners:
            self.set_role(organization, user, "owner")

    def rename_organization(self, former: Organization, login: str) -> None:
        """Give an organization another name, and remember when."""
        self.add_organization(replace(former, login=login))
        now = self._renamed_at[former.id] = self._clock.now()
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"renamed {former.id}", str(now)))

    def renamed_at(self, organization_id: int) -> float:
        """Return when an organization got its name by a rename (UTC epoch seconds); 0.0: it always had it."""
        return self._renamed_at.get(organization_id, 0.0)

    def role(self, organization: Organization, user: User) -> str | None:
        """Return `owner`, `security_manager`, `member` or None. Enterprise owners and site administrators own all
        organizations.
        """
        if user.site_admin or user.enterprise_owner:
            return "owner"
        return self._roles.get((organization.id, user.id))

    def set_role(self, organization: Organization, user: User, role: str) -> None:
        """Make a user `owner`, `security_manager` or `member` of an organization."""
        self.db.execute("INSERT OR REPLACE INTO memberships VALUES (?, ?, ?)", (organization.id, user.id, role))
        self._roles[organization.id, user.id] = role

    def repository(self, organization: Organization, name: str) -> Repository | None:
        """Return the repository of that name, in any case: from memory, the file, or a source of generated ones."""
        key = (organization.id, name.casefold())
        found = self._repositories.get(key)
        if found is None:
            found = self._stored_repository(organization, name)
            if found is None:
                found = next(filter(None, (source(organization, name) for source in self._sources)), None)
            if found is not None:
                if len(self._repositories) >= REPOSITORIES_IN_MEMORY:
                    self._repositories.clear()
                self._repositories[key] = found
        return found

    def _stored_repository(self, organization: Organization, name: str) -> Repository | None:
        if organization.id not in self._with_repositories:
            return None
        row = self.db.execute(
            "SELECT * FROM repositories WHERE organization_id = ? AND name = ?", (organization.id, name)
        ).fetchone()
        return rows.repository(row) if row else None

    def add_repository(self, repository: Repository) -> None:
        """Add a repository, or replace the one of the same id."""
        self.db.execute(
            "INSERT OR REPLACE INTO repositories VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                repository.id,
                repository.organization_id,
                repository.name,
                repository.private,
                repository.description,
                repository.default_branch,
                repository.created_at,
            ),
        )
        self._with_repositories.add(repository.organization_id)
        self._repositories.clear()

    def add_seed_files(self, repository_id: int, files: Mapping[str, str]) -> None:
        """Add text files by path: the first commit of a repository, made when it is first opened."""
        rows = [(repository_id, path, text.encode()) for path, text in files.items()]
        self.db.executemany("INSERT OR REPLACE INTO seed_files VALUES (?, ?, ?)", rows)

    def add_source(self, source: RepositorySource) -> None:
        """Ask `source(organization, name)` for repositories that have no row (generated fleets)."""
        self._sources.append(source)

    def full_name(self, repository: Repository) -> str:
        """Return `organization/name`, as of now."""
        return f"{self._organizations_by_id[repository.organization_id].login}/{repository.name}"

    def when_renamed(self, listener: Callable[[str, str], None]) -> None:
        """Call `listener(old login, new login)` after each rename of an organization has taken effect."""
        self._rename_listeners.append(listener)

    def tell_renamed(self, old: str, new: str) -> None:
        """Call all listeners of renames."""
        for listener in self._rename_listeners:
            listener(old, new)

    def _keep_user(self, user: User) -> None:
        former = self._users_by_id.get(user.id)
        if former is not None:
            self._users.pop(former.login.casefold(), None)
        self._users[user.login.casefold()] = self._users_by_id[user.id] = user

    def _keep_organization(self, organization: Organization) -> None:
        former = self._organizations_by_id.get(organization.id)
        if former is not None:
            self._organizations.pop(former.login.casefold(), None)
        self._organizations[organization.login.casefold()] = self._organizations_by_id[organization.id] = organization


def digest_of(text: str) -> bytes:
    """Return the digest as which a token is kept: SHA-256 of its text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    try:
        found = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    except sqlite3.OperationalError:
        found = None
    if found is None:
        raise SettingError(f"--state {path}: this is not the state of a sandbox: name another directory")
    if found["value"] != SCHEMA_VERSION:
        raise SettingError(
            f"--state {path}: it is of version {found['value']}, this sandbox writes {SCHEMA_VERSION}: "
            "name another directory"
        )
