"""What `bulk login NAME` stored: the tokens of a user for whom an App acts, in a private file of this machine.

A refresh token works once and ends the pair that it came with. So whoever refreshes holds a lock, reads again what is
there, and writes the new pair to disk before he uses it: of many processes one refreshes. A crash between the
platform's answer and the file needs `bulk login` again.
"""

import fcntl
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bulk.clock import Clock
from bulk.errors import CredentialMissing
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.device_login import Site, refreshed
from bulk.platform.auth.secrets import Secret
from bulk.redaction import remember
from bulk.redaction.known import MASK
from bulk.storage.private_files import replacing

TURN_S, LOOK_S = 60.0, 0.05
"""Longest wait for another process that refreshes, which takes it half of that at most, and how often it is looked
(seconds)."""
EARLY_S, EARLY_SHARE = 300.0, 0.1
"""A token is refreshed so long before its end (seconds), or by this share of its life: the smaller."""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds. Moments are UTC epoch seconds, by this machine's clock; None: no end is known.

    Its tokens are remembered for `redact`, and not shown by `repr`.

    Attributes:
        lasts_s: how long the token lasts in all (seconds).
    """

    base_url: str
    client_id: str
    access_token: str
    ends_at: float | None = None
    lasts_s: float = 0.0
    refresh_token: str | None = None
    ca_bundle: str | None = None

    def __post_init__(self) -> None:
        for token in (self.access_token, self.refresh_token):
            if token is not None:
                remember(token, is_deep=True)

    def __repr__(self) -> str:
        return f"Login({MASK})"

    @classmethod
    def of(cls, base_url: str, client_id: str, ca_bundle: str | None, told: Mapping[str, Any], now: float) -> "Login":
        """Return what the platform told at that moment."""
        lasts_s = told.get("expires_in")
        return cls(
            base_url=base_url,
            client_id=client_id,
            access_token=str(told["access_token"]),
            ends_at=None if lasts_s is None else now + float(lasts_s),
            lasts_s=float(lasts_s or 0.0),
            refresh_token=told.get("refresh_token"),
            ca_bundle=ca_bundle,
        )


def folder_of(environ: Mapping[str, str]) -> Path:
    """Return where logins are."""
    given = environ.get("BULK_LOGINS")
    if given:
        return Path(given)
    import platformdirs

    return platformdirs.user_config_path("bulk") / "logins"


def store(folder: Path, name: str, login: Login) -> Path:
    """Write a login, closed to others; return its file."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    with replacing(path) as file:
        file.write(msgspec.json.encode(login))
    return path


class LoginCredential(Credential):
    """A login as a credential: its token is refreshed before it ends, by one process for all."""

    def __init__(self, name: str, login: str, environ: Mapping[str, str], base_dir: Path, clock: Clock) -> None:
        super().__init__(name, f"login:{login}", environ, base_dir, clock=clock)
        self._login, self._folder, self._now = login, folder_of(environ), clock
        self._given: str | None = None

    @property
    def renews_after_s(self) -> float | None:
        """Age at which it is looked for another token whose end is not known (seconds)."""
        return 3_300.0

    def check_source(self) -> None:
        """Do nothing: there is nothing to check without opening it."""

    def raw(self, stop: threading.Event | None = None) -> bytes:
        """Return the token, refreshed where it ends soon or was given before."""
        login = self._read()
        if login.access_token == self._given or self._ends_soon(login):
            login = self._refreshed(login.access_token, stop or threading.Event())
        self._given, self.ends_at = login.access_token, login.ends_at
        return login.access_token.encode()

    def _token(self, raw: bytes) -> Secret:
        ends_at = self.ends_at
        secret = super()._token(raw)
        self.ends_at = ends_at
        return secret

    def _ends_soon(self, login: Login) -> bool:
        early_s = min(EARLY_S, EARLY_SHARE * login.lasts_s)
        return login.ends_at is not None and login.ends_at - self._now.now() < early_s

    def _read(self) -> Login:
        try:
            raw = Credential(self.name, f"file:{self._folder / self._login}.json", {}, Path()).raw()
            return msgspec.json.decode(raw, type=Login)
        except (CredentialMissing, msgspec.MsgspecError):
            raise self.missing(
                f"there is no login {self._login!r} on this machine; run: bulk login {self._login} --client-id ID"
            ) from None

    def _refreshed(self, known: str, stop: threading.Event) -> Login:
        """Return the login with another token than the one that is `known`; whoever is first refreshes it."""
        path = self._folder / f"{self._login}.lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_turn(lock, path, stop)
            login = self._read()
            if login.access_token != known and not self._ends_soon(login):
                return login
            if login.refresh_token is None:
                return login
            site = Site.of(login.base_url, None if login.ca_bundle is None else Path(login.ca_bundle))
            try:
                told = refreshed(site, login.client_id, login.refresh_token)
            except CredentialMissing as error:
                again = f"bulk login {self._login} --client-id {login.client_id}"
                raise self.missing(f"{error}; run: {again}") from None
            login = Login.of(login.base_url, login.client_id, login.ca_bundle, told, self._now.now())
            store(self._folder, self._login, login)
            return login
        finally:
            os.close(lock)

    def _wait_turn(self, lock: int, path: Path, stop: threading.Event) -> None:
        """Lock a file that is open: of many processes one at a time refreshes, and one that stands still holds up the
        others for `TURN_S` only."""
        until = self._now.monotonic() + TURN_S
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._now.monotonic() >= until or stop.wait(LOOK_S):
                    raise self.missing(
                        f"another process has been refreshing the login {self._login!r} for {TURN_S:g} s: end the one "
                        f"that holds {path}, then run the same command again"
                    ) from None
