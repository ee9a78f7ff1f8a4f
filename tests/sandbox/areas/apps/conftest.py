"""Sandboxes with Apps: keys, and JSON web tokens signed with them by another library than the sandbox checks with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.sandbox.conftest import START, HandClock, Platform, Start

SEED = """
users: [{login: dora, password: dora-password}]
repositories: [{organization: acme-eng, name: closed, private: true, files: {README.md: "# Closed"}}]
tokens: [{token: dora-oauth, user: dora, kind: oauth, scopes: [repo], app: Iv1.fleet}]
apps:
  - slug: fleet
    client_id: Iv1.fleet
    client_secret: fleet-secret
    public_keys: [app.pub]
    interval: 0.5
    installations:
      - {organization: acme-eng}
      - {organization: acme-ops, repositories: [runbook], permissions: {contents: read}}
      - {prefix: made-, count: 3, each: 2}
  - {slug: other, client_id: Iv1.other, public_keys: [other.pub]}
"""

Sign = Callable[..., str]
StartApps = Callable[..., Awaitable[Platform]]


@pytest.fixture(scope="session")
def keys() -> tuple[rsa.RSAPrivateKey, rsa.RSAPrivateKey]:
    """Two keys; making one takes a tenth of a second."""
    return tuple(rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))  # type: ignore[return-value]


def public(key: rsa.RSAPrivateKey) -> bytes:
    """The public half, as PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private(key: rsa.RSAPrivateKey) -> str:
    """The whole, as PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


@pytest.fixture
def sign(keys: tuple[rsa.RSAPrivateKey, rsa.RSAPrivateKey]) -> Sign:
    """Signs claims: those that a client sends, changed as asked for; None leaves one out."""

    def signed(which: int = 0, algorithm: str = "RS256", **changed: Any) -> str:
        claims: Mapping[str, Any] = {"iss": "Iv1.fleet", "iat": int(START) - 60, "exp": int(START) + 540} | changed
        key = private(keys[which]) if algorithm == "RS256" else "a shared secret of more than thirty-two bytes"
        return jwt.encode({name: each for name, each in claims.items() if each is not None}, key, algorithm)

    return signed


@pytest.fixture
def start_apps(start: Start, tmp_path: Path, clock: HandClock, keys: tuple[rsa.RSAPrivateKey, ...]) -> StartApps:
    """Starts a sandbox with the Apps of `SEED`."""

    async def begin(**options: Any) -> Platform:
        (tmp_path / "app.pub").write_bytes(public(keys[0]))
        (tmp_path / "other.pub").write_bytes(public(keys[1]))
        (tmp_path / "seed.yaml").write_text(SEED)
        return await start(clock=clock, seed_data=tmp_path / "seed.yaml", **options)

    return begin
