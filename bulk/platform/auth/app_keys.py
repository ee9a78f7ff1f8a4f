"""Signs as an App: with a private key that is read for each signature and then dropped, or by a program.

A program (`sign: command:PROGRAM`) gets what is to be signed on its standard input and prints the signature in Base64,
so that the key never leaves its vault. Source: interface.md §2.
"""

import base64
import binascii
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bulk.clock import Clock
from bulk.manifest.credential_specs import CANNOT_SIGN, AppSpec, can_sign
from bulk.platform.auth.credentials import COMMAND_S, Credential, child_environ
from bulk.platform.auth.secrets import Secret

KEY_BYTES = 16 * 1024
"""Longest private key (bytes)."""
LASTS_S, EARLY_S = 540, 60
"""A JWT ends so long after it was made, and begins so long before (seconds): the platform allows ten minutes in all,
and its clock may be behind ours."""


class PrivateKey(Credential):
    """Where a private key is; what it holds is given to whoever signs, and kept nowhere."""

    most_bytes = KEY_BYTES

    def pem(self) -> bytes:
        """Return the key as it is now (PEM). Blocks while a program runs.

        Raises:
            CredentialMissing: it can't be read, is open to others, or is no private key.
        """
        raw = self.raw()
        if b"\\n" in raw and b"\n" not in raw.strip():  # as variables often hold it
            raw = raw.replace(b"\\n", b"\n")
        if b"PRIVATE KEY-----" not in raw:
            raise self.missing("it holds no private key (PEM)")
        return raw


class AppSigner:
    """Makes JSON web tokens of an App.

    Args:
        name: of the credential. environ, base_dir: as of a `Credential`.

    Attributes:
        keys: how many keys there are to try (count).
    """

    def __init__(
        self, name: str, spec: AppSpec, environ: Mapping[str, str], base_dir: Path, *, clock: Clock | None = None
    ) -> None:
        self.name, self._spec, self._environ, self._base_dir = name, spec, environ, base_dir
        self._keys = [PrivateKey(name, source, environ, base_dir, clock=clock) for source in spec.keys]
        self.keys = max(1, len(self._keys))

    def check(self) -> None:
        """Read every key once.

        Raises:
            CredentialMissing: none of them can be used, or what signs with them is not installed.
        """
        if self._keys and not can_sign():
            raise self._keys[0].missing(CANNOT_SIGN)
        for key in self._keys:
            key.pem()

    def signed(self, now: float, which: int = 0) -> Secret:
        """Return a JWT that is good from `now` (UTC epoch seconds, platform time) for nine minutes. Blocks.

        Args:
            which: number of the key.

        Raises:
            CredentialMissing: the key or the program can't be used.
        """
        claims = {"iat": int(now) - EARLY_S, "exp": int(now) + LASTS_S, "iss": self._spec.client_id}
        if self._spec.sign:
            return _secret(self._by_program(claims))
        import jwt  # imported only where a manifest has an App

        pem = self._keys[which % len(self._keys)].pem()
        try:
            return _secret(jwt.encode(claims, pem, algorithm="RS256"))
        except (ValueError, TypeError, jwt.exceptions.PyJWTError):
            del pem  # no traceback may hold it
            raise self._keys[which % len(self._keys)].missing("it is no RSA key that can be used") from None

    def _by_program(self, claims: Mapping[str, object]) -> str:
        head = {"alg": "RS256", "typ": "JWT"}
        signed = b".".join(_base64(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
        program = Credential(self.name, self._spec.sign, self._environ, self._base_dir)
        try:
            done = subprocess.run(
                program.arguments(),
                input=signed,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environ(self._environ),
                cwd=self._base_dir,
                timeout=COMMAND_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise program.missing(f"the program gave no signature within {COMMAND_S:g} s") from None
        except OSError as error:
            raise program.missing(f"the program can't be started: {os.strerror(error.errno or 0)}") from None
        if done.returncode:
            raise program.missing(f"the program ended with exit code {done.returncode}")
        try:
            signature = base64.b64decode(done.stdout.strip().translate(bytes.maketrans(b"-_", b"+/")) + b"==")
        except binascii.Error:
            signature = b""
        if len(signature) < 128:
            raise program.missing("what the program prints is no RSA signature in Base64")
        return (signed + b"." + _base64(signature)).decode()


def _secret(token: str) -> Secret:
    """Return a JSON web token, of which claims and signature alone are secrets, too; the head is everybody's."""
    return Secret(token, parts=token.split(".")[1:])


def _base64(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
