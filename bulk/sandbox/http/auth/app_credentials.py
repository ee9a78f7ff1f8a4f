"""The credentials of an App: a JSON web token signed with its key, or its client id and secret as Basic.

A JWT is signed with RS256, names the App by its id or client id (`iss`), and lasts at most ten minutes from `iat` to
`exp`; the messages are the public platform's. A key may be a file, which is read for each token, so that the keys of an
App can be exchanged while the sandbox runs. Source: specification, Authentication (1, 3).
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bulk.sandbox.files import read_regular
from bulk.sandbox.http.refusals import Refused, unauthenticated
from bulk.sandbox.store.apps import Apps
from bulk.sandbox.store.records import App, Token, TokenKind
from bulk.sandbox.store.state import digest_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

LONGEST_S: Final = 600.0
"""How far ahead `exp` may lie (seconds)."""
SKEW_S: Final = 30.0
"""How far ahead of the platform's clock `iat` may lie (seconds)."""
KEYS_IN_MEMORY: Final = 1_000

UNDECODABLE: Final = "A JSON web token could not be decoded"
_EXPIRES: Final = "'Expiration time' claim ('exp') "
_ISSUED: Final = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"


def looks_signed(text: str) -> bool:
    """Return whether a bearer token may be a JSON web token: three parts, the first of them a JSON object."""
    return text.count(".") == 2 and text.startswith("eyJ")


class AppCredentials:
    """Checks the credentials of Apps."""

    def __init__(self, apps: Apps) -> None:
        self._apps = apps
        self._keys: dict[bytes, RSAPublicKey] = {}

    def of_client(self, client_id: str, secret: str) -> Token | None:
        """Return the credential of an App by its client id and secret; None: no such App, or a wrong secret."""
        app = self._apps.app(client_id)
        if app is None or app.client_id != client_id or app.secret_digest is None:
            return None
        if not hmac.compare_digest(app.secret_digest, digest_of(secret)):
            return None
        return _token(app, TokenKind.CLIENT)

    def of_signed(self, text: str, now: float) -> Token:
        """Return the credential of an App by a JSON web token.

        Args:
            now: UTC epoch seconds.

        Raises:
            Refused: 401, the token is wrong, or no library to check it is installed; 404, there is no such App.
        """
        head, claims, signature, signed = _parts(text)
        if head.get("alg") != "RS256":
            raise unauthenticated(UNDECODABLE)
        issuer = claims.get("iss")
        if issuer is None:
            raise unauthenticated("Missing 'issuer' claim ('iss')")
        app = self._apps.app(issuer) if isinstance(issuer, str | int) and not isinstance(issuer, bool) else None
        if app is None:
            raise Refused(404, "Integration not found")
        if find_spec("cryptography") is None:  # a state that was made elsewhere may have Apps
            raise unauthenticated("This sandbox can't check JSON web tokens: pip install 'bulkops[app]'")
        if not any(self._verifies(key, signature, signed) for key in _keys_of(app)):
            raise unauthenticated(UNDECODABLE)
        _check_times(claims, now)
        return _token(app, TokenKind.APP)

    def _verifies(self, pem: bytes, signature: bytes, signed: bytes) -> bool:
        # imported late: most sandboxes have no App
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        key = self._keys.get(pem) or _loaded(pem)
        if key is None:
            return False
        if len(self._keys) < KEYS_IN_MEMORY:
            self._keys[pem] = key
        try:
            key.verify(signature, signed, PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True


def _loaded(pem: bytes) -> RSAPublicKey | None:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except ValueError:
        return None
    return key if isinstance(key, RSAPublicKey) else None


def _keys_of(app: App) -> list[bytes]:
    """Return the public keys of an App as they are now (PEM); a file that can't be read holds none."""
    found = []
    for key in app.keys:
        if key.startswith("-----BEGIN"):
            found.append(key.encode())
            continue
        try:
            found.append(read_regular(Path(key)))
        except OSError:
            continue
    return found


def _token(app: App, kind: TokenKind) -> Token:
    return Token(0, kind, app.user, None, frozenset(), {}, None, app.id)


def _parts(text: str) -> tuple[dict[str, object], dict[str, object], bytes, bytes]:
    """Return (head, claims, signature, what was signed) of a JSON web token."""
    try:
        head, claims, signature = (urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in text.split("."))
        told, claimed = json.loads(head), json.loads(claims)
    except ValueError:
        raise unauthenticated(UNDECODABLE) from None
    if not isinstance(told, dict) or not isinstance(claimed, dict):
        raise unauthenticated(UNDECODABLE)
    return told, claimed, signature, text.rpartition(".")[0].encode()


def _check_times(claims: dict[str, object], now: float) -> None:
    issued_at, expires_at = claims.get("iat"), claims.get("exp")
    if not isinstance(expires_at, int | float) or isinstance(expires_at, bool) or expires_at <= now:
        raise unauthenticated(
            f"{_EXPIRES}must be a numeric value representing the future time at which the assertion expires"
        )
    if expires_at > now + LONGEST_S:
        raise unauthenticated(f"{_EXPIRES}is too far in the future")
    if not isinstance(issued_at, int | float) or isinstance(issued_at, bool) or issued_at > now + SKEW_S:
        raise unauthenticated(_ISSUED)
