"""The address of a store: a libpq URI without a password, or `service=NAME`.

Every user of the machine can read a command line, so a password in it is refused: the password belongs into a file that
PGPASSFILE names. A server on another machine must prove its identity: `sslmode=verify-full`.
"""

import configparser
import contextlib
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bulk.errors import UsageError

VERIFIED = "verify-full"
PASSWORD_FILE = (
    "put it into a file of mode 0600, as HOST:PORT:DATABASE:USER:PASSWORD, and let PGPASSFILE name that file"
)
_URI = ("postgresql://", "postgres://")
_EXPECTED = "STORE: expected a libpq URI, postgresql://USER@HOST/DATABASE, or service=NAME"
_SECRETS = ("password", "sslpassword")
_ROOTS = Path(".postgresql", "root.crt")
"""The file below the user's home that lists the authorities that libpq trusts; it need not exist."""


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where a store is.

    Attributes:
        text: the address as the user gave it; no secret is in it.
        conninfo: the connection string for libpq.
    """

    text: str
    conninfo: str

    def __str__(self) -> str:
        return self.text


def read(text: str) -> StoreAddress:
    """Return the address of the store that `text` names.

    Raises:
        UsageError: the text can't be used; the message never repeats what might be a password.
    """
    if not text.startswith(("service=", *_URI)):
        raise UsageError(_EXPECTED)
    try:
        found = conninfo_to_dict(text)
    except psycopg.Error:
        raise UsageError(_EXPECTED) from None
    if any(found.get(name) for name in _SECRETS) or ":" in str(found.get("user", "")):  # u%3Apassword@ is one user
        raise UsageError(f"STORE: a password must not stand on a command line; {PASSWORD_FILE}")
    service = found.get("service") or os.environ.get("PGSERVICE")
    if service:
        found = {**_service(str(service)), **found}
    hosts = [
        host
        for name in ("host", "hostaddr")
        for host in str(found.get(name) or os.environ.get(f"PG{name.upper()}", "")).split(",")
    ]
    more = {} if all(map(is_here, hosts)) else _proof(found)
    return StoreAddress(text, make_conninfo(text, **more))


def _proof(found: Mapping[str, object]) -> dict[str, str]:
    """Return the settings that must be added so that a server on another machine proves its identity.

    Raises:
        UsageError: the address or the environment asks for a weaker `sslmode`.
    """
    if (found.get("sslmode") or os.environ.get("PGSSLMODE") or VERIFIED) != VERIFIED:
        raise UsageError(f"STORE: its host is another machine: only sslmode={VERIFIED} tells who answers")
    more = {"sslmode": VERIFIED}
    if not (found.get("sslrootcert") or os.environ.get("PGSSLROOTCERT") or (Path.home() / _ROOTS).exists()):
        more["sslrootcert"] = "system"
    return more


def _service(name: str) -> dict[str, str]:
    """Return the settings of a service from the user's or the system's service file; empty where neither has it."""
    system = os.environ.get("PGSYSCONFDIR")
    places = [Path(os.environ.get("PGSERVICEFILE") or Path.home() / ".pg_service.conf")]
    places += [Path(system) / "pg_service.conf"] if system else []
    for place in places:
        services = configparser.RawConfigParser(strict=False, allow_no_value=True)
        with contextlib.suppress(OSError, ValueError, configparser.Error):
            services.read(place, encoding="utf-8")
        if services.has_section(name):
            return {key: value for key, value in services.items(name) if value}
    return {}


def is_here(host: str) -> bool:
    """Return whether the host is this machine: a socket in a folder, or a loopback address."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
