"""Apps and their installations: rows of the state, with the records that every request may need in memory."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bulk.sandbox.clock import Clock
from bulk.sandbox.store import rows
from bulk.sandbox.store.records import App, Installation, Organization, Token, TokenKind, User
from bulk.sandbox.store.state import State, digest_of

REFRESH_S = 184 * 86_400.0
"""How long a refresh token lasts (seconds)."""
INSTALLATION_S = 3600.0
"""How long an installation's token lasts (seconds). Source: specification, Limits."""


class Apps:
    """Finds Apps and installations, and makes their tokens. Called on the event loop's thread.

    Args:
        mint_lag_s: how long a new token of an installation is refused after it was made (seconds).
    """

    def __init__(self, state: State, clock: Clock, mint_lag_s: float = 0.0) -> None:
        self._state, self._clock, self._mint_lag_s = state, clock, mint_lag_s
        self._apps: dict[str, App] = {}
        self._installations: dict[int, Installation] = {}
        self._places: dict[tuple[int, int], int] = {}
        for row in state.db.execute("SELECT * FROM apps"):
            self._keep_app(rows.app(row, state.user_by_id(row["user_id"])))
        for row in state.db.execute("SELECT * FROM installations"):
            self._keep(rows.installation(row))

    def _keep_app(self, app: App) -> None:
        self._apps[str(app.id)] = self._apps[app.client_id] = app

    def _keep(self, installation: Installation) -> None:
        self._installations[installation.id] = installation
        self._places[installation.app_id, installation.organization_id] = installation.id

    def app(self, name: str | int) -> App | None:
        """Return the App of that id or client id."""
        return self._apps.get(str(name))

    @property
    def every(self) -> list[App]:
        """Return all Apps, in the order of their ids."""
        return sorted({app.id: app for app in self._apps.values()}.values(), key=lambda app: app.id)

    def add_app(self, app: App) -> None:
        """Add an App, or replace the one of the same id."""
        settings = {"token_s": app.token_s, "interval_s": app.interval_s}
        self._state.db.execute(
            "INSERT OR REPLACE INTO apps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                app.id,
                app.client_id,
                app.slug,
                app.name,
                app.secret_digest,
                app.user.id,
                json.dumps(dict(app.permissions), sort_keys=True),
                json.dumps(app.keys),
                json.dumps(settings),
                app.created_at,
            ),
        )
        self._keep_app(app)

    def installation(self, installation_id: int) -> Installation | None:
        """Return the installation of that id."""
        return self._installations.get(installation_id)

    def installation_in(self, app: App, organization: Organization) -> Installation | None:
        """Return the App's installation in an organization."""
        return self._installations.get(self._places.get((app.id, organization.id), 0))

    def installations_of(self, app: App) -> list[Installation]:
        """Return all installations of an App, oldest first."""
        return sorted(
            (each for each in self._installations.values() if each.app_id == app.id), key=lambda each: each.id
        )

    def install(self, installation: Installation) -> None:
        """Add an installation, or replace the one of the same App and organization."""
        limited_to = None if installation.repository_ids is None else json.dumps(sorted(installation.repository_ids))
        self._state.db.execute(
            "INSERT OR REPLACE INTO installations VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                installation.id,
                installation.app_id,
                installation.organization_id,
                json.dumps(dict(installation.permissions), sort_keys=True),
                limited_to,
                installation.suspended_at,
                installation.created_at,
            ),
        )
        self._keep(installation)

    def suspend(self, installation: Installation, at: float | None) -> None:
        """Suspend an installation at that moment (UTC epoch seconds), or let it go on (None)."""
        self.install(replace(installation, suspended_at=at))

    def uninstall(self, installation: Installation) -> None:
        """Remove an installation: its tokens are refused from now on."""
        self._state.db.execute("DELETE FROM installations WHERE id = ?", (installation.id,))
        self._installations.pop(installation.id, None)
        self._places.pop((installation.app_id, installation.organization_id), None)

    def mint(
        self,
        installation: Installation,
        app: App,
        permissions: Mapping[str, str],
        repository_ids: frozenset[int] | None,
        *,
        is_scoped: bool,
    ) -> tuple[str, float]:
        """Return a new token of an installation, and when it ends (UTC epoch seconds)."""
        now = self._clock.now()
        text = "ghs_" + secrets.token_urlsafe(27).replace("-", "A").replace("_", "B")
        token = Token(
            0,
            TokenKind.INSTALLATION,
            app.user,
            installation.organization_id,
            frozenset(),
            dict(permissions),
            float(int(now + INSTALLATION_S)),
            app.id,
            installation.id,
            repository_ids,
            is_scoped,
            now + self._mint_lag_s,
        )
        self._state.keep_token(text, token)
        return text, token.ends_at or 0.0

    def grant(self, app: App, user: User) -> dict[str, object]:
        """Return a new pair of tokens with which an App acts for a user, as the platform writes it."""
        token, refresh = f"ghu_{secrets.token_hex(18)}", f"ghr_{secrets.token_hex(36)}"
        self._state.add_token(
            token, user, kind=TokenKind.APP_USER, permissions=app.permissions, lasts_s=app.token_s, app=app
        )
        self._state.db.execute(
            "INSERT INTO refresh_tokens VALUES (?, ?, ?, ?, ?)",
            (digest_of(refresh), digest_of(token), app.id, user.id, self._clock.now() + REFRESH_S),
        )
        return {
            "access_token": token,
            "expires_in": int(app.token_s),
            "refresh_token": refresh,
            "refresh_token_expires_in": int(REFRESH_S),
            "scope": "",
            "token_type": "bearer",
        }

    def refresh(self, app: App, refresh: str) -> dict[str, object] | None:
        """Return a new pair of tokens for a refresh token, which ends the old pair; None: it is unknown or was used."""
        row = self._state.db.execute(
            "DELETE FROM refresh_tokens WHERE digest = ? AND app_id = ? RETURNING *", (digest_of(refresh), app.id)
        ).fetchone()
        if row is None or row["ends_at"] <= self._clock.now():
            return None
        self._state.drop_token(bytes(row["token_digest"]))
        return self.grant(app, self._state.user_by_id(row["user_id"]))

    def app_of(self, token: Token) -> App | None:
        """Return the App that a token belongs to; None: it belongs to no App."""
        return None if token.app_id is None else self._apps.get(str(token.app_id))


def installed(
    number: int,
    app: App,
    organization: Organization,
    permissions: Mapping[str, str] | None,
    repository_ids: Sequence[int] | None,
    at: float,
) -> Installation:
    """Return a new installation; permissions None: those that the App asks for; repositories None: all."""
    return Installation(
        number,
        app.id,
        organization.id,
        dict(app.permissions if permissions is None else permissions),
        None if repository_ids is None else frozenset(repository_ids),
        None,
        at,
    )
