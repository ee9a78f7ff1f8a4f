"""Normalizes or refuses the base URL of the platform and the sources of credentials.

No message repeats what could be a secret: neither the user part of a URL nor a source that may be a token itself.
Source: interface.md §2, failures.md rows 61, 73 and 74.
"""

import ipaddress
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

USUAL_PATH = "/api/v3"
"""Where a self-managed platform has its interface; a cloud edition has it on a host of its own."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SEGMENTS = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_EXPECTED = "expected https://HOST/api/v3, or https://api.HOST for a cloud edition"
_INSIST = ", or insist with `allow_insecure_http: true` in the manifest's `platform`"


def base_url(text: str, *, allow_insecure_http: bool = False, way_out: str = _INSIST) -> str:
    """Return the URL in one spelling: lower-case scheme and host, no default port, no slash at the end.

    Args:
        allow_insecure_http: accept `http:` to another machine, where everyone on the way can read the token.
        way_out: the end of the message about `http:`, which names a way out besides `https:`.

    Raises:
        ValueError: the URL can't be used; the message says why and repeats nothing of it.
    """
    if any(ord(char) <= 32 or ord(char) == 127 for char in text):
        raise ValueError(f"{_EXPECTED}, got a text with spaces or control characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"{_EXPECTED}, got something that is not a URL") from None
    scheme = parts.scheme.lower()
    if "://" not in text:
        raise ValueError(f"{_EXPECTED}, got no https:// in front of the host")
    if scheme not in _DEFAULT_PORTS:
        raise ValueError(f"{_EXPECTED} (or http:), got another scheme")
    if "@" in parts.netloc:
        raise ValueError(f"{_EXPECTED}, got a user name or password in it; a token goes into `credentials`")
    if parts.query or "?" in text:
        raise ValueError(f"{_EXPECTED}, got a query (?…)")
    if parts.fragment or "#" in text:
        raise ValueError(f"{_EXPECTED}, got a fragment (#…)")
    if port == 0:
        raise ValueError(f"{_EXPECTED}, got the port 0")
    host = _host(parts)
    path = _path(parts.path)
    if scheme == "http" and not allow_insecure_http and not is_loopback(host):
        raise ValueError(f"plain http: would show the token to everyone on the way; use https:{way_out}")
    at = f"[{host}]" if ":" in host else host
    return f"{scheme}://{at}{'' if port in (None, _DEFAULT_PORTS[scheme]) else f':{port}'}{path}"


def is_loopback(host: str) -> bool:
    """Return whether `host` (a name or an address without brackets) is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    if ":" in host:
        try:
            return ipaddress.IPv6Address(host).compressed
        except ValueError:
            raise ValueError(f"{_EXPECTED}, got a bad IPv6 address") from None
    try:
        host = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError:
        raise ValueError(f"{_EXPECTED}, got a host name that can't be") from None
    if not _HOST.fullmatch(host) or len(host) > 253:
        raise ValueError(f"{_EXPECTED}, got a host name that can't be" if host else f"{_EXPECTED}, got no host")
    return host


def notes_on(url: str) -> Iterator[str]:
    """Yield notes for the user on a base URL that can be used.

    Args:
        url: the URL as `base_url` returns it.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not parts.path and not host.startswith("api.") and not is_loopback(host):
        yield f"{url} has no path: a self-managed platform answers at {url}{USUAL_PATH}, a cloud edition at https://api.…"


def _path(path: str) -> str:
    path = path.rstrip("/")
    if not _SEGMENTS.fullmatch(path) or any(part in (".", "..") for part in path.split("/")):
        raise ValueError(f"{_EXPECTED}, got a path that is not a plain one")
    return path


def credential_source(text: str, folder: Path) -> str:
    """Return the source of a token in one spelling; a `file:` path becomes absolute, from `folder`. Nothing is opened.

    Raises:
        ValueError: `text` is not a source. The message repeats nothing of it, because it may be the token itself.
    """
    kind, colon, rest = text.partition(":")
    rest = rest.strip()
    match kind if colon else "":
        case "env" if _ENVIRONMENT_NAME.fullmatch(rest):
            return f"env:{rest}"
        case "env":
            raise ValueError("expected env:NAME with the name of a variable (letters, digits, _)")
        case "file" if rest and "\0" not in rest:
            return f"file:{absolute(rest, folder)}"
        case "file":
            raise ValueError("expected file:PATH")
        case "command" if _is_command(rest):
            return f"command:{rest}"
        case "command":
            raise ValueError("expected command:PROGRAM ARG…, with quotes closed")
    raise ValueError(
        "expected where the token is (env:NAME, file:PATH or command:PROGRAM ARG…), never the token itself; "
        "if this was one, replace it on the platform"
    )


def absolute(text: str, folder: Path) -> Path:
    """Return the absolute path that `text` names, relative to `folder`; `~` is the user's home."""
    path = Path(text)
    if text == "~" or text.startswith("~/"):
        path = path.expanduser()
    return Path(folder.absolute(), path)


def _is_command(text: str) -> bool:
    try:
        return bool(shlex.split(text))
    except ValueError:
        return False
