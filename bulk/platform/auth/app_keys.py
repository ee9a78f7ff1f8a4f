"""Signs as an App: with a private key that is read for each signature and then dropped, or by a program.

A program (`sign: command:PROGRAM`) gets the bytes to sign on its standard input and prints the signature in Base64, so
that the key never leaves its vault. Source: interface.md §2.
"""

import base64
import binascii
import json
import logging
import re
import threading
from collections.abc import Mapping
from pathlib import Path

from bulk.clock import Clock
from bulk.errors import CredentialMissing
from bulk.manifest.credential_specs import CANNOT_SIGN, AppSpec, can_sign
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.secrets import Secret
from bulk.redaction import redact
from bulk.redaction.printable import printable

log = logging.getLogger("bulk.platform.auth")

KEY_BYTES = 16 * 1024
"""Longest private key (bytes)."""
_HEAD_BYTES = 512
_FLAWS = (
    (b"BEGIN ENCRYPTED PRIVATE KEY", "is locked with a passphrase; open it: openssl rsa -in LOCKED.pem -out app.pem"),
    (b"Proc-Type: 4,ENCRYPTED", "is locked with a passphrase; open it: openssl rsa -in LOCKED.pem -out app.pem"),
    (b"BEGIN OPENSSH PRIVATE KEY", "is a key of OpenSSH; write it as PEM: ssh-keygen -p -m PEM -f app.pem"),
    (b"BEGIN EC PRIVATE KEY", "is a key of another kind (EC): an App signs with RSA"),
    (b"BEGIN PUBLIC KEY", "is a public key; the private one is what the page of the App gives once"),
    (b"BEGIN RSA PUBLIC KEY", "is a public key; the private one is what the page of the App gives once"),
    (b"LS0tLS1CRUdJTi", "is a key in Base64; decode it: private_key: command:sh -c 'base64 -d KEY.txt'"),
    (b"BEGIN CERTIFICATE", "is a certificate; the private key is what the page of the App gives once"),
)
"""Marks near the beginning of a file that is not a usable key, and the message for each."""
LASTS_S, EARLY_S = 540, 60
"""How long after it was made a JWT ends, and how long before it begins (seconds): the platform allows ten minutes in
all, and its clock may be behind this machine's."""


SIGNATURE_BYTES = range(128, 1025)
"""How long an RSA signature is: as long as the modulus of its key (bytes)."""
_HEX = re.compile(rb"[0-9a-fA-F]*")
_OF_URLS = bytes.maketrans(b"-_", b"+/")


class _SigningProgram(Credential):
    most_bytes = KEY_BYTES
    gives = "signature"


class PrivateKey(Credential):
    """Where a private key is; the key itself is given to the code that signs, and kept nowhere."""

    most_bytes = KEY_BYTES
    gives = "key"

    def pem(self, stop: threading.Event | None = None) -> bytes:
        """Return the key as it is now (PEM). Blocks while a program runs, until `stop` is set.

        Raises:
            CredentialMissing: the key can't be read, is open to others, or is not a private key.
        """
        raw = self.raw(stop)
        if b"\\n" in raw and b"\n" not in raw.strip():  # environment variables often hold a key in this form
            raw = raw.replace(b"\\n", b"\n")
        flaw = next((why for mark, why in _FLAWS if mark in raw[:_HEAD_BYTES]), "")
        if not flaw and b"PRIVATE KEY-----" not in raw:
            flaw = "is not a private key in PEM; the page of the App makes one"
        if flaw:
            del raw  # no traceback may hold it
            raise self.missing(f"{self.place} {flaw}")
        return raw

    @property
    def place(self) -> str:
        """Return where the key is, for people."""
        return str(self.path) if self.path is not None else "what its source gives"

    def unusable(self, pem: bytes) -> CredentialMissing:
        """Return the error that says why nothing can be signed with a key."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            load_pem_private_key(pem, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return self.missing(f"{self.place} is damaged or not whole; copy it anew")
        return self.missing(f"{self.place} is a key of another kind: an App signs with RSA")


class AppSigner:
    """Makes JSON web tokens of an App.

    Args:
        name: name of the credential. environ, base_dir: as of a `Credential`.

    Attributes:
        keys: how many keys there are to try (count). client_id: client id of the App, or its App id.
    """

    def __init__(
        self, name: str, spec: AppSpec, environ: Mapping[str, str], base_dir: Path, *, clock: Clock | None = None
    ) -> None:
        self.name, self._spec, self._environ, self._base_dir = name, spec, environ, base_dir
        self._keys = [PrivateKey(name, source, environ, base_dir, clock=clock) for source in spec.keys]
        self.keys, self.client_id = max(1, len(self._keys)), spec.client_id

    def check(self, stop: threading.Event | None = None) -> None:
        """Sign with every key once, and warn of each that can't be used while another can. Blocks while a program
        runs, until `stop` is set.

        Raises:
            CredentialMissing: no key can be used, or the package that signs with keys is not installed.
        """
        if self._keys and not can_sign():
            raise self._keys[0].missing(CANNOT_SIGN)
        flaws = list[CredentialMissing]()
        for key in self._keys:
            try:
                _signed_with(key, {}, stop).forget()
            except CredentialMissing as flaw:
                flaws.append(flaw)
        if flaws and len(flaws) == len(self._keys):
            raise flaws[0]
        for each in flaws:
            log.warning("%s; another key of the App is used", each)

    def signed(self, now: float, which: int = 0, stop: threading.Event | None = None) -> Secret:
        """Return a JWT that is good from `now` (UTC epoch seconds, platform time) for nine minutes. Blocks.

        Args:
            which: number of the key; where it can't be used, the next one that can is taken. stop: a program is ended
                once this is set.

        Raises:
            CredentialMissing: no key can be used, or the program can't.
        """
        claims = {"iat": int(now) - EARLY_S, "exp": int(now) + LASTS_S, "iss": self._spec.client_id}
        if self._spec.sign:
            return _secret(self._by_program(claims, stop or threading.Event()))
        first: CredentialMissing | None = None
        for number in range(which, which + len(self._keys)):
            try:
                return _signed_with(self._keys[number % len(self._keys)], claims, stop)
            except CredentialMissing as flaw:
                first = first or flaw
        assert first is not None, "there is a key"
        raise first

    def _by_program(self, claims: Mapping[str, object], stop: threading.Event) -> str:
        head = {"alg": "RS256", "typ": "JWT"}
        signed = b".".join(_base64(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
        program = _SigningProgram(self.name, self._spec.sign, self._environ, self._base_dir)
        printed = program.answer_of(signed, stop)
        signature = _signature_in(printed)
        if signature is None:
            del printed  # it may be the key itself: no traceback may hold it
            raise program.missing(
                f"what {printable(redact(program.arguments()[0]))} prints is not an RSA signature in Base64; "
                "it has to sign its standard input (RSA, PKCS #1 v1.5, SHA-256)"
            )
        return (signed + b"." + _base64(signature)).decode()


def _signed_with(key: PrivateKey, claims: Mapping[str, object], stop: threading.Event | None) -> Secret:
    """Return a JWT that is signed with `key`; raise CredentialMissing if the key can't be used."""
    import jwt  # imported only where a manifest has an App

    pem = key.pem(stop)
    try:
        return _secret(jwt.encode(dict(claims), pem, algorithm="RS256"))
    except (ValueError, TypeError, jwt.exceptions.PyJWTError):
        error = key.unusable(pem)
        del pem  # no traceback may hold it
        raise error from None


def _signature_in(printed: bytes) -> bytes | None:
    """Return the signature that a program printed in Base64, with line breaks or without; None: it is something else.

    The check is strict, because the signature is sent: a program that prints the key must not give it to the platform.
    """
    text = b"".join(printed.split(b"\n")).replace(b"\r", b"").strip().rstrip(b"=")
    if _HEX.fullmatch(text):
        return None
    try:
        found = base64.b64decode(text.translate(_OF_URLS) + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None
    return found if len(found) in SIGNATURE_BYTES else None


def _secret(token: str) -> Secret:
    """Return a JSON web token, whose claims and signature are secrets also by themselves; its head is public."""
    return Secret(token, parts=token.split(".")[1:])


def _base64(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
