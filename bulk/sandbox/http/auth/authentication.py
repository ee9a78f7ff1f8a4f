"""Authentication of a request: from `Authorization` to a token, and the lock-out after repeated bad credentials.

Accepted are `Bearer TOKEN`, `token TOKEN` and Basic with a user's login and his password or one of his tokens as
password (or the token as user name), or with an App's client id and secret. A JSON web token of an App goes with
Bearer alone (`app_credentials.py`). A bad credential is 401. Five bad ones within 60 seconds lock out what was
presented, for 60 seconds: 403, even with a good token. What is locked is the pair of the presented credential and the
client's address; with Basic, where the name is an existing user's, also that user from that address, whichever of his
tokens is presented then. Refusals during the lock-out don't prolong it. (The specification shows neither the threshold
nor the time: these are ours.)
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from bulk.sandbox.http.auth.app_credentials import AppCredentials, looks_signed
from bulk.sandbox.http.auth.rights import ALL_SCOPES
from bulk.sandbox.http.refusals import forbidden, unauthenticated
from bulk.sandbox.store.apps import Apps
from bulk.sandbox.store.records import Token, TokenKind
from bulk.sandbox.store.state import State, digest_of

LOCK_AFTER: Final = 5
LOCK_WITHIN_S: Final = 60.0
LOCK_FOR_S: Final = 60.0
FAILURES_IN_MEMORY: Final = 10_000
HEADERS_IN_MEMORY: Final = 1_000


_Key = tuple[str, bytes | int]


@dataclass(slots=True)
class _Failures:
    instants: deque[float] = field(default_factory=lambda: deque(maxlen=LOCK_AFTER))
    locked_until: float = 0.0


class Authentication:
    """Finds the token of a request."""

    def __init__(self, state: State, apps: Apps) -> None:
        self._state, self._apps = state, apps
        self._app_credentials = AppCredentials(apps)
        self._failures: dict[_Key, _Failures] = {}
        # header value -> its token, kept because nearly every request asks for it
        self._known: dict[str, Token] = {}
        self._known_at = state.token_changes

    def peek(self, header: str | None, now: float) -> Token | None:
        """Return the good token in the header, without counting a bad one; None: there is no good token."""
        token = self._remembered(header) if header else None
        return token if token and (token.ends_at is None or now < token.ends_at) else None

    def identify(self, header: str | None, address: str, now: float) -> Token | None:
        """Return the token of a request; None: it brought no credential.

        Args:
            header: the value of `Authorization`.
            address: the client's IP address.
            now: UTC epoch seconds.

        Raises:
            Refused: 401, the credential is bad or has ended; 403, it is locked out.
        """
        if header is None:
            return None
        token = self._remembered(header)
        is_good = token is not None and (token.ends_at is None or now < token.ends_at)
        if is_good and token is not None and token.installation_id is not None:
            is_good = self._is_installed(token, now)
        if is_good and not self._failures:
            return token
        credential = _credential(header)
        if token is None and credential and not credential[0] and looks_signed(credential[1]):
            if not header.lower().startswith("bearer "):
                raise unauthenticated("A JSON web token could not be decoded")
            return self._app_credentials.of_signed(credential[1], now)
        named = self._state.user(credential[0]) if credential else None
        user = named or (token.user if token else None)
        presented: _Key = (address, digest_of(credential[1] if credential else header))
        if self._is_locked(presented, now) or (user and self._is_locked((address, user.id), now)):
            raise forbidden("Maximum number of login attempts exceeded. Please try again later.")
        if is_good:
            return token
        self._failed(presented, now)
        if named:
            self._failed((address, named.id), now)
        raise unauthenticated("Bad credentials")

    def _is_installed(self, token: Token, now: float) -> bool:
        """Return whether the installation of a token is still there.

        Raises:
            Refused: the installation is suspended, or the token is too new.
        """
        installation = self._apps.installation(token.installation_id or 0)
        if installation is None:
            return False
        if installation.suspended_at is not None:
            raise forbidden("This installation has been suspended")
        if now < token.usable_at:
            # this is not a bad credential, so it does not count for a lock-out
            raise (
                forbidden("Resource not accessible by integration")
                if token.is_scoped
                else unauthenticated("Bad credentials")
            )
        return True

    def _remembered(self, header: str) -> Token | None:
        if self._known_at != self._state.token_changes:
            self._known.clear()
            self._known_at = self._state.token_changes
        token = self._known.get(header)
        if token is None:
            token = self._find(_credential(header))
            if token is not None and len(self._known) < HEADERS_IN_MEMORY:
                self._known[header] = token
        return token

    def _find(self, credential: tuple[str, str] | None) -> Token | None:
        if credential is None:
            return None
        name, text = credential
        token = self._state.token(text)
        if token is not None:
            return None if name and name.casefold() != token.user.login.casefold() else token
        if not name:
            return None
        user = self._state.user(name)
        if user is not None and self._state.has_password(user, text):
            return Token(0, TokenKind.CLASSIC, user, None, frozenset(ALL_SCOPES), {}, None)
        return self._app_credentials.of_client(name, text)

    def _is_locked(self, key: _Key, now: float) -> bool:
        failures = self._failures.get(key)
        return failures is not None and now < failures.locked_until

    def _failed(self, key: _Key, now: float) -> None:
        if len(self._failures) >= FAILURES_IN_MEMORY:
            self._failures = {
                kept: failures
                for kept, failures in self._failures.items()
                if now < max(failures.locked_until, failures.instants[-1] + LOCK_WITHIN_S)
            }
        failures = self._failures.setdefault(key, _Failures())
        failures.instants.append(now)
        if len(failures.instants) == LOCK_AFTER and now - failures.instants[0] <= LOCK_WITHIN_S:
            failures.locked_until = now + LOCK_FOR_S
            failures.instants.clear()
            failures.instants.append(now)


def _credential(header: str | None) -> tuple[str, str] | None:
    """Return (login or empty, token's text) of an `Authorization` value; None: it can't be one."""
    scheme, _, rest = (header or "").strip().partition(" ")
    rest = rest.strip()
    match scheme.casefold():
        case "bearer" | "token":
            return ("", rest) if rest else None
        case "basic":
            try:
                name, colon, password = base64.b64decode(rest, validate=True).decode("utf-8").partition(":")
            except (binascii.Error, UnicodeDecodeError):
                return None
            if not colon:
                return None
            return (name, password) if password else ("", name)
    return None
