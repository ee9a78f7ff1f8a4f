"""Reads tokens from their sources: `env:NAME`, `file:PATH`, `command:PROGRAM ARG…`. No token is ever shown.

A token is printable ASCII without spaces, so that it can't break a header. A file must be this user's own and closed to
others. A program gets no standard input, 30 s, and an environment without tokens; its standard error is thrown away; on
a second line it may say when its token ends. Source: interface.md §2; failures.md rows 35, 36, 38, 58, 61.
"""

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, TypeVar

import anyio

from bulk.clock import Clock, iso_utc
from bulk.errors import CredentialMissing, CredentialRefused
from bulk.platform.auth.secrets import Secret
from bulk.redaction import is_secret, redact
from bulk.redaction.printable import printable
from bulk.storage.private_files import NoSecret, read_secret

T = TypeVar("T")

TOKEN_BYTES = 4096
"""Longest token (bytes)."""

RENEWED_S: Mapping[str, float] = MappingProxyType({"file": 60.0, "command": 3_300.0})
"""Age of a token at which its source is asked again (seconds), if that does not say when the token ends: the file may
hold another token by now; tokens that a program prints often last an hour."""

COMMAND_S = 30.0
"""How long a program may take to print a token (seconds)."""

LONG_OVER_S = 86_400.0
"""A token that ended longer ago than this by this machine's clock is not tried, even if that clock is a little wrong
(seconds)."""

RENEW = "Have its source give a token that lasts, then give the same command again"
"""The way out where a source gave a token that has ended."""

_POLL_S = 0.1
_TOKEN = re.compile(rb"[\x21-\x7e]+")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN_VARIABLE = re.compile(r"BULK_\w*TOKEN\w*", re.IGNORECASE)


class Credential:
    """One credential of a manifest that has one token.

    Args:
        name: name of the credential in the manifest.
        source: where its token is, never the token itself.
        environ: environment for `env:`, and from which a `command:` inherits.
        base_dir: relative `file:` paths are relative to it.

    Attributes:
        ends_at: when the token ends, where its program says so (UTC epoch seconds, platform time).
        renewal_problem: why the last `renew` brought no token, for people; empty if it brought one.
        identity: name, given by the user, of the identity whose answers its tokens see; empty: none was given.
        is_gone: always False; only the credential of an installation may lose its source for good.
    """

    most_bytes: ClassVar[int] = TOKEN_BYTES
    gives: ClassVar[str] = "token"

    def __init__(
        self,
        name: str,
        source: str,
        environ: Mapping[str, str],
        base_dir: Path,
        *,
        clock: Clock | None = None,
        identity: str = "",
    ) -> None:
        self.name, self.identity = name, identity
        self.renewal_problem, self.is_gone = "", False
        self.ends_at: float | None = None
        self._kind, _, self._place = source.partition(":")
        self._environ, self._base_dir = environ, base_dir
        if self._kind == "env":
            named_variables.add(self._place)
        self._clock = clock or Clock()
        self._secret: Secret | None = None

    def __repr__(self) -> str:
        return f"Credential({self.name!r}, {self._kind if self._kind in _SOURCES else '?'})"

    @property
    def renews_after_s(self) -> float | None:
        """Age at which the source should be asked again (seconds); None: it never changes."""
        return RENEWED_S.get(self._kind)

    def check_source(self) -> None:
        """Check how the source is written, without opening it.

        Raises:
            CredentialMissing: no token can ever come from the source.
        """
        place = self._place
        match self._kind:
            case "env" if not _ENV_NAME.fullmatch(place):
                raise self.missing("expected env:NAME with the name of an environment variable")
            case "file" if not place.strip() or "\0" in place:
                raise self.missing("expected file:PATH")
            case "command":
                self.arguments()
            case "env" | "file":
                pass
            case _:
                expected = "env:NAME, file:PATH or command:PROGRAM ARG…, never the token itself"
                raise CredentialMissing(f"credential {self.name!r}: expected {expected}")

    def read(self) -> Secret:
        """Return the token. Its source is opened at the first call; later calls return the last read or renewed token.

        Blocks while a `command:` runs, at most 30 s.

        Raises:
            CredentialMissing: the source is missing, not private, hangs or gives junk, which is never shown.
            CredentialRefused: the program says that its token ended more than a day ago.
        """
        if self._secret is None:
            self._secret = self._first(threading.Event())
        return self._secret

    async def opened(self) -> Secret:
        """Return the same as `read`, without blocking the event loop; a cancellation stops the program."""
        if self._secret is None and self._kind not in ("env", "file"):
            self._secret = await interruptible(self._first)
        return self.read()

    async def renew(self) -> bool:
        """Open the source again; return whether another token came, which `read` returns from now on.

        The result is False if the token is the same, if the source fails, and for `env:`, which can't change;
        `renewal_problem` says which. A cancellation stops the program.
        """
        if self._kind == "env":
            self.renewal_problem = "an environment variable can't be renewed"
            return False
        try:
            renewed = await interruptible(self._open)
        except CredentialMissing as error:
            self.renewal_problem = str(error)
            return False
        if self._secret is not None and renewed.is_same(self._secret):
            self.renewal_problem = "its source gives the same token again"
            return False
        self._secret, self.renewal_problem = renewed, ""
        return True

    def _first(self, stop: threading.Event) -> Secret:
        """Return the first token. The platform's time is not known yet, so this machine's clock, which may be wrong,
        is believed in an end that is long over; later ends are judged in `token_expiry.py`."""
        secret = self._open(stop)
        if self._kind == "command" and self.ends_at is not None and self.ends_at < self._clock.now() - LONG_OVER_S:
            raise CredentialRefused(
                self.name,
                f"credential {self.name!r} (command): the program gave a token that had already ended, at "
                f"{iso_utc(self.ends_at)}, so nothing was sent with it. {RENEW} (if it should be good still: this "
                f"machine's clock says {iso_utc(self._clock.now())})",
            )
        return secret

    def _open(self, stop: threading.Event) -> Secret:
        return self._token(self.raw(stop))

    def raw(self, stop: threading.Event | None = None) -> bytes:
        """Return the bytes that the source gives, unchanged. Blocks while a program runs, until `stop` is set.

        Raises:
            CredentialMissing: the source is missing, not private, or hangs.
        """
        self.check_source()
        match self._kind:
            case "env":
                return os.fsencode(self._variable())
            case "file":
                return self._file_bytes()
            case _:
                return self._command_bytes(stop or threading.Event())

    def _token(self, raw: bytes) -> Secret:
        """Return the token in the bytes that a source gave; line ends after the token are not part of it."""
        ends_at = None
        if self._kind == "command":
            raw, ends_at = _without_end(raw)
        flaw = _flaw_of_token(raw := raw.rstrip(b"\r\n"))
        if flaw:
            del raw  # no traceback may hold it
            raise self.missing(f"what {_SOURCES.get(self._kind, 'its source')} gives is not a token: it {flaw}")
        self.ends_at = ends_at
        return Secret(raw.decode("ascii"))

    def missing(self, why: str) -> CredentialMissing:
        """Return the error that says why no token comes from the source."""
        place = f"env:{self._place}" if self._kind == "env" and _ENV_NAME.fullmatch(self._place) else self._kind
        return CredentialMissing(f"credential {self.name!r} ({place}): {why}")

    def _variable(self) -> str:
        value = self._environ.get(self._place, "")
        if not value:
            raise self.missing(
                f"the environment variable {self._place} is {'empty' if self._place in self._environ else 'not set'}"
            )
        return value

    @property
    def path(self) -> Path | None:
        """Return the file of a `file:` source; None for another source."""
        return self._base_dir / Path(self._place).expanduser() if self._kind == "file" else None

    def _file_bytes(self) -> bytes:
        path = self.path
        assert path is not None, "its source is a file"
        try:
            return read_secret(path, self.most_bytes + 3)
        except NoSecret as flaw:
            raise self.missing(str(flaw)) from None

    def arguments(self) -> list[str]:
        """Return the program of a `command:` and its arguments."""
        try:
            arguments = shlex.split(self._place)
        except ValueError as error:
            raise self.missing(f"can't be split into a program and its arguments: {str(error).lower()}") from None
        if not arguments:
            raise self.missing("expected command:PROGRAM ARG…")
        return arguments

    def answer_of(self, given: bytes, stop: threading.Event) -> bytes:
        """Return the output of the program of a `command:` when `given` is its standard input. Blocks.

        Args:
            given: input, shorter than a pipe holds. stop: the program is ended once this is set.

        Raises:
            CredentialMissing: the program can't be started, hangs, or fails.
        """
        self.check_source()
        return self._command_bytes(stop, given)

    def _command_bytes(self, stop: threading.Event, given: bytes | None = None) -> bytes:
        arguments = self.arguments()
        program = printable(redact(arguments[0]))
        environ = child_environ(self._environ)
        try:
            child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environ,
                cwd=self._base_dir,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "its name or an argument can't be used"
            raise self.missing(f"{program} can't be started: {reason}") from None
        until = self._clock.monotonic() + COMMAND_S
        if child.stdin is not None and given is not None:
            with contextlib.suppress(BrokenPipeError), child.stdin as pipe:  # the program may not read its input
                pipe.write(given)
        try:
            output = self._output_of(child, until, stop)
        finally:
            status = _end(child)
        if output is None:
            raise self.missing(f"{program} printed no {self.gives} within {COMMAND_S:g} s")
        if status and len(output) <= self.most_bytes:
            del output  # no traceback may hold it
            ending = f"exit code {status}" if status > 0 else f"signal {-status}"
            raise self.missing(f"{program} ended with {ending}")
        return output

    def _output_of(self, child: "subprocess.Popen[bytes]", until: float, stop: threading.Event) -> bytes | None:
        """Return the output of `child` until it ends or has printed too much; None: `until` (monotonic) came first."""
        pipe = child.stdout
        assert pipe is not None, "its output is a pipe"
        output, is_open = b"", True
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while len(output) <= self.most_bytes:
                has_ended = child.poll() is not None
                left_s = until - self._clock.monotonic()
                if left_s <= 0 or stop.is_set():
                    return None
                if not is_open:
                    if has_ended:
                        break
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(min(left_s, _POLL_S))
                elif selector.select(0 if has_ended else min(left_s, _POLL_S)):
                    block = os.read(pipe.fileno(), self.most_bytes + 2)
                    is_open = bool(block)
                    output += block
                elif has_ended:  # something that it left running still holds its output
                    break
        return output


async def interruptible(call: Callable[[threading.Event], T]) -> T:
    """Return the result of a call, made in a thread, that may run a program; a cancellation sets its stop event."""
    stop = threading.Event()
    try:
        return await anyio.to_thread.run_sync(call, stop, abandon_on_cancel=True)
    finally:
        stop.set()


_SOURCES = {"env": "the environment variable", "file": "the file", "command": "the program"}


def _flaw_of_token(raw: bytes) -> str:
    """Return why `raw` can't be a token; empty if it can. The reason never shows the bytes themselves."""
    if not raw:
        return "is empty"
    if len(raw) > TOKEN_BYTES:
        return f"is longer than {TOKEN_BYTES:,} bytes"
    if b"\n" in raw or b"\r" in raw:
        return "has more than one line"
    if raw[0] in b"\"'" or raw[-1] in b"\"'":
        return "stands in quotation marks, which are not part of it; leave them out"
    if re.match(rb"(?i:bearer|token|basic|authorization:)\s", raw):
        return "begins with a word of a header; give the token alone"
    return "" if _TOKEN.fullmatch(raw) else "has characters other than printable ASCII without spaces"


def is_token(text: object) -> bool:
    """Return whether a platform gave a token, which can stand in a header."""
    return isinstance(text, str) and text.isascii() and not _flaw_of_token(text.encode())


def _without_end(raw: bytes) -> tuple[bytes, float | None]:
    """Return the output of a program without its second line, and the end of the token that this line names.

    The line reads like `2026-11-21T09:00:00Z`; the end is in UTC epoch seconds. Without such a line, return the whole
    output and None.
    """
    token, _, line = raw.partition(b"\n")
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(line.strip().decode("ascii"))
        if moment.tzinfo is not None:
            return token, moment.timestamp()
    return raw, None


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program, without variables that hold a secret, that a source names, or named so."""
    return {
        name: value
        for name, value in environ.items()
        if not (name in named_variables or is_secret(value) or _TOKEN_VARIABLE.fullmatch(name))
    }


named_variables: set[str] = set()
"""Environment variables that an `env:` source of this process names."""


def _end(child: "subprocess.Popen[bytes]") -> int:
    """Return the exit status of `child`; if it still runs, kill it and the processes that it started."""
    with child:
        if child.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            child.kill()
        return child.wait()
