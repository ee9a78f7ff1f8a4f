"""Logins, as `bulk login NAME` stores them: tokens of a user for whom an App acts, in a private file of this machine.

A refresh token works once and ends the pair that it came with. So a process that refreshes holds a lock, reads the file
again, opens the file of the new pair, and writes that to disk before it is used: of many processes one refreshes. After
a crash between the platform's answer and the file, `bulk login` is needed again, and so it is if the answer never came.
The machine's clock may be wrong by hours: the end of a token is taken from the platform's clock.
"""

import contextlib
import os
import shlex
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from bulk.clock import Clock
from bulk.errors import UNDECODABLE, CredentialMissing
from bulk.platform.auth.credentials import TOKEN_BYTES, Credential
from bulk.platform.auth.device_login import Granted, NoAnswer, Site, refreshed
from bulk.platform.auth.secrets import Secret
from bulk.redaction import remember
from bulk.redaction.known import MASK
from bulk.storage.locks import try_lock
from bulk.storage.private_files import replacing, reserve

TURN_S, LOOK_S = 90.0, 0.05
"""Longest wait for another process that refreshes the token, and the time between two looks (seconds). A refresh takes
at most two thirds of the former."""
EARLY_S, EARLY_SHARE = 300.0, 0.1
"""A token is refreshed this long before its end (seconds), or this share of its life before it, if that is shorter."""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file of a login. Its tokens are remembered for `redact`, and not shown by `repr`.

    Attributes:
        ends_at: when the access token ends (UTC epoch seconds, platform time); None: no end is known.
        lasts_s: how long the access token lasts in all (seconds).
        skew_s: platform time less this machine's time, when the token was given (seconds).
    """

    base_url: str
    client_id: str
    access_token: str
    ends_at: float | None = None
    lasts_s: float = 0.0
    skew_s: float = 0.0
    refresh_token: str | None = None
    ca_bundle: str | None = None

    def __post_init__(self) -> None:
        for token in (self.access_token, self.refresh_token):
            if token is not None:
                remember(token, is_deep=True)

    def __repr__(self) -> str:
        return f"Login({MASK})"

    @classmethod
    def of(cls, base_url: str, client_id: str, ca_bundle: str | None, granted: Granted, now: float) -> "Login":
        """Return the login of tokens that the platform granted at `now` (UTC epoch seconds, this machine's clock)."""
        skew_s = 0.0 if granted.date is None else granted.date - now
        return cls(
            base_url=base_url,
            client_id=client_id,
            access_token=granted.access_token,
            ends_at=None if granted.lasts_s is None else now + skew_s + granted.lasts_s,
            lasts_s=granted.lasts_s or 0.0,
            skew_s=skew_s,
            refresh_token=granted.refresh_token,
            ca_bundle=ca_bundle,
        )

    def again(self, name: str) -> str:
        """Return the command that makes this login anew."""
        bundle = "" if self.ca_bundle is None else f" --ca-bundle {shlex.quote(self.ca_bundle)}"
        return f"bulk login {name} --client-id {self.client_id} --base-url {self.base_url}{bundle}"


def folder_of(environ: Mapping[str, str]) -> Path:
    """Return the folder of all logins."""
    given = environ.get("BULK_LOGINS")
    if given:
        return Path(given)
    import platformdirs

    return platformdirs.user_config_path("bulk") / "logins"


def store(folder: Path, name: str, login: Login, clock: Clock) -> Path:
    """Write a login, closed to others; return its file. Waits for a process that refreshes the former login.

    Raises:
        CredentialMissing: the disk refuses the file, or that process stands still.
    """
    path = folder / f"{name}.json"
    with _written(folder, name, clock), replacing(path) as file:
        file.write(msgspec.json.encode(login))
    return path


def check_place(folder: Path, name: str, clock: Clock) -> None:
    """Check whether a login can be stored in `folder`, before the user types a code for it; raise as `store` does."""
    with _written(folder, name, clock):
        pass


@contextlib.contextmanager
def _written(folder: Path, name: str, clock: Clock) -> Iterator[None]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _turn(folder, name, clock, threading.Event()):
            yield
    except OSError as error:
        raise CredentialMissing(f"the login can't be kept in {folder / name}.json: {error.strerror}") from None


@contextlib.contextmanager
def _turn(folder: Path, name: str, clock: Clock, stop: threading.Event) -> Iterator[None]:
    """Hold the lock of a login, so that of many processes one at a time writes it.

    A process that stands still holds up the others for `TURN_S` only.
    """
    path = folder / f"{name}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = clock.monotonic() + TURN_S
    try:
        while not try_lock(lock):
            if clock.monotonic() >= until or stop.wait(LOOK_S):
                raise CredentialMissing(
                    f"another process has been refreshing the login {name!r} for {TURN_S:g} s: end the one that "
                    f"holds {path}, then run the same command again"
                )
        yield
    finally:
        os.close(lock)


class LoginCredential(Credential):
    """A login as a credential: its token is refreshed before it ends, by one process for all.

    Args:
        login: name of the login. base_url: base URL of the platform that its tokens are for; no other gets them.
    """

    def __init__(
        self, name: str, login: str, base_url: str, environ: Mapping[str, str], base_dir: Path, *, clock: Clock
    ) -> None:
        super().__init__(name, f"login:{login}", environ, base_dir, clock=clock)
        self._login, self._base_url, self._folder, self._now = login, base_url, folder_of(environ), clock
        self._given: str | None = None

    @property
    def renews_after_s(self) -> float | None:
        """Age at which the file is read for another token, if the end of the present one is not known (seconds)."""
        return 3_300.0

    def check_source(self) -> None:
        """Do nothing: there is nothing to check without opening the file."""

    def raw(self, stop: threading.Event | None = None) -> bytes:
        """Return the token, refreshed if it ends soon or was returned before."""
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
        return login.ends_at is not None and login.ends_at - login.skew_s - self._now.now() < early_s

    def _read(self) -> Login:
        path = self._folder / f"{self._login}.json"
        try:
            login = msgspec.json.decode(Credential(self.name, f"file:{path}", {}, Path()).raw(), type=Login)
        except (CredentialMissing, *UNDECODABLE) as error:
            if isinstance(error, CredentialMissing) and path.exists():
                raise  # the file is there, and the error says what is wrong with it
            what = (
                f"there is no login {self._login!r} on this machine"
                if isinstance(error, CredentialMissing)
                else f"{path} is damaged or not whole"
            )
            raise self.missing(
                f"{what}; run: bulk login {self._login} --client-id ID --base-url {self._base_url}"
            ) from None
        if Site.of(login.base_url).url != Site.of(self._base_url).url:
            raise self.missing(
                f"the login {self._login!r} is one of {login.base_url}, and its tokens are sent nowhere else; "
                f"run: bulk login ANOTHER --client-id ID --base-url {self._base_url}, and name that in the manifest"
            )
        return login

    def _refreshed(self, known: str, stop: threading.Event) -> Login:
        """Return the login with another token than `known`; the first process that asks refreshes it."""
        path = self._folder / f"{self._login}.json"
        try:
            with _turn(self._folder, self._login, self._now, stop):
                login = self._read()
                if login.refresh_token is None or (login.access_token != known and not self._ends_soon(login)):
                    return login
                with replacing(path) as file:  # a disk that refuses the file does so before the tokens are spent
                    reserve(file, path.stat().st_size + 2 * TOKEN_BYTES)
                    login = self._exchanged(login, login.refresh_token)
                    file.write(msgspec.json.encode(login))
                    file.truncate()
                return login
        except OSError as error:
            raise self.missing(f"{path} can't be written, so the login can't be refreshed: {error.strerror}") from None

    def _exchanged(self, login: Login, refresh_token: str) -> Login:
        site = Site.of(login.base_url, None if login.ca_bundle is None else Path(login.ca_bundle))
        try:
            granted = refreshed(site, login.client_id, refresh_token)
        except NoAnswer as error:
            raise self.missing(
                f"the login can't be refreshed: {error}; run the same command again when the site answers, and where "
                f"the login has ended then: {login.again(self._login)}"
            ) from None
        except CredentialMissing as error:
            raise self.missing(f"{error}; run: {login.again(self._login)}") from None
        return Login.of(login.base_url, login.client_id, login.ca_bundle, granted, self._now.now())
