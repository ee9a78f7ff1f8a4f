"""JSON web tokens of an App: what they say, and what is wrong with a key."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bulk.errors import CredentialMissing
from bulk.manifest.credential_specs import AppSpec, kind_of, spec_of, text_of
from bulk.platform.auth.app_keys import AppSigner
from bulk.redaction import redact
from bulk.redaction.known import MASK

NOW = 1_800_000_000.7
UNCHECKED: Any = {"verify_exp": False, "verify_iat": False}


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    """A key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem_of(key: rsa.RSAPrivateKey) -> str:
    """As PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def test_a_jwt_says_who_and_for_how_long(key, tmp_path: Path) -> None:
    """It begins a minute before, ends nine minutes after, names the App, and its key's other half verifies it; a key in
    a variable may have its line ends written out."""
    (tmp_path / "app.pem").write_text(pem_of(key))
    (tmp_path / "app.pem").chmod(0o600)
    variables = {"KEY": pem_of(key).replace("\n", "\\n")}
    for source in ("file:app.pem", "env:KEY"):
        signer = AppSigner("app", AppSpec("Iv1.x", (source,)), variables, tmp_path)
        token = signer.signed(NOW).reveal()
        claims = jwt.decode(token, key.public_key(), algorithms=["RS256"], options=UNCHECKED)
        assert claims == {"iat": int(NOW) - 60, "exp": int(NOW) + 540, "iss": "Iv1.x"}


def test_parts_of_a_jwt_are_secrets_too(key, tmp_path: Path) -> None:
    """Claims and signature alone are taken out of what is written, until that is forgotten (failures.md row 63)."""
    signed = AppSigner("app", AppSpec("Iv1.x", ("env:KEY",)), {"KEY": pem_of(key)}, tmp_path).signed(NOW)
    _, claims, signature = signed.reveal().split(".")
    for part in (claims, signature, signature.encode().hex(), base64.b64encode(signature.encode()).decode()):
        assert redact(f"x {part} y") == f"x {MASK} y"
    signed.forget()
    assert redact(f"x {signature} y") == f"x {signature} y"


@pytest.mark.parametrize("content", [None, "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
@pytest.mark.parametrize("order", [("file:app.pem", "env:KEY"), ("env:KEY", "file:app.pem")])
def test_one_key_of_two_is_enough(
    key, tmp_path: Path, content: str | None, order: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """While keys are exchanged, one may be gone or damaged: the other one signs, and a warning names the first; where
    both are, the App is refused."""
    if content is not None:
        (tmp_path / "app.pem").write_text(content)
        (tmp_path / "app.pem").chmod(0o600)
    signer = AppSigner("app", AppSpec("Iv1.x", order), {"KEY": pem_of(key)}, tmp_path)
    signer.check()
    assert "app.pem" in caplog.text
    for which in (0, 1):
        jwt.decode(signer.signed(NOW, which).reveal(), key.public_key(), algorithms=["RS256"], options=UNCHECKED)
    neither = AppSigner("app", AppSpec("Iv1.x", order), {}, tmp_path)
    for refused in (neither.check, lambda: neither.signed(NOW)):
        with pytest.raises(CredentialMissing):
            refused()


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        ("no key", 0o600, "is not a private key"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0o600, "app.pem is damaged or not whole"),
        ("-----BEGIN PRIVATE KEY-----", 0o640, "chmod 600"),
        (base64.b64encode(b"-----BEGIN RSA PRIVATE KEY-----\nAAAA").decode(), 0o600, "is a key in Base64; decode it"),
    ],
)
def test_what_is_wrong_with_a_key(tmp_path: Path, content: str, mode: int, reason: str) -> None:
    """A key that can't be used is refused with the reason, which does not show it."""
    (tmp_path / "app.pem").write_text(content)
    (tmp_path / "app.pem").chmod(mode)
    signer = AppSigner("app", AppSpec("Iv1.x", ("file:app.pem",)), {}, tmp_path)
    with pytest.raises(CredentialMissing) as refused:
        signer.signed(NOW)
    assert reason in str(refused.value)
    assert "AAAA" not in str(refused.value)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print('c2hvcnQ=')", "is not an RSA signature"),
        ("print(open('app.pem').read())", "is not an RSA signature"),
        ("print(*open('app.pem').read().splitlines()[1:-1], sep='')", "is not an RSA signature"),
        ("print('5a' * 256)", "is not an RSA signature"),
        ("import json; print(json.dumps({'signature': 'QUJD' * 85 + 'QQ=='}))", "is not an RSA signature"),
        ("print('vault:v1:' + 'QUJD' * 85 + 'QQ==')", "is not an RSA signature"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
)
def test_a_program_that_signs_badly(key, tmp_path: Path, program: str, reason: str) -> None:
    """A program that gives no signature is named as the reason. What it prints would be sent: the key itself never
    is, nor a signature in another spelling, which the platform would refuse."""
    (tmp_path / "app.pem").write_text(pem_of(key))
    (tmp_path / "sign.py").write_text(program)
    spec = AppSpec("Iv1.x", sign=f"command:{sys.executable} sign.py")
    with pytest.raises(CredentialMissing, match=reason):
        AppSigner("app", spec, {}, tmp_path).signed(NOW)


def test_a_program_signs(tmp_path: Path) -> None:
    """It gets head and claims on its standard input, and an environment without what an `env:` names."""
    (tmp_path / "sign.py").write_text(
        "import base64, os, sys\n"
        "got = sys.stdin.buffer.read()\n"
        "assert 'NAMED_BY_ENV' not in os.environ and got.count(b'.') == 1\n"
        "print(base64.b64encode(b'x' * 256).decode())\n"
    )
    environ = {"NAMED_BY_ENV": "value-of-a-secret"}
    AppSigner("other", AppSpec("Iv1.y", ("env:NAMED_BY_ENV",)), environ, tmp_path)
    spec = AppSpec("Iv1.x", sign=f"command:{sys.executable} sign.py")
    token = AppSigner("app", spec, environ, tmp_path).signed(NOW).reveal()
    assert base64.urlsafe_b64decode(token.rpartition(".")[2] + "==") == b"x" * 256


def test_a_spec_is_a_text() -> None:
    """What a manifest says of an App is remembered as a text, and read again as the same."""
    spec = AppSpec("Iv1.x", ("file:/a", "env:B"), installation=7, permissions="all")
    text = text_of("app", spec)
    assert (kind_of(text), spec_of(text, AppSpec)) == ("app", spec)
    assert kind_of("env:BULK_TOKEN") == ""
