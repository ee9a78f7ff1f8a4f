"""How a store is named: a libpq URI without a password, or `service=NAME`.

A command line is read by everybody on the machine, so a password in it is refused: it belongs into a file that
PGPASSFILE names. Off this machine the server must prove who it is: `sslmode=verify-full`.
"""

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bulk.errors import UsageError

VERIFIED = "verify-full"
_URI = ("postgresql://", "postgres://")
_EXPECTED = "--store: expected a libpq URI, postgresql://USER@HOST/DATABASE, or service=NAME"
_SECRETS = ("password", "sslpassword")
_ROOTS = Path(".postgresql", "root.crt")
"""Below the user's home: which authorities libpq trusts, where that file is there."""


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where a store is.

    Attributes:
        text: as the user gave it; no secret is in it.
        conninfo: for libpq.
        is_service: host and encryption stand in a service file, and are known once there is a connection.
    """

    text: str
    conninfo: str
    is_service: bool

    def __str__(self) -> str:
        return self.text


def read(text: str) -> StoreAddress:
    """Return what `text` names.

    Raises:
        UsageError: it can't be used; the message never repeats what might be a password.
    """
    is_service = text.startswith("service=")
    if not is_service and not text.startswith(_URI):
        raise UsageError(_EXPECTED)
    try:
        found = conninfo_to_dict(text)
    except psycopg.Error:
        raise UsageError(_EXPECTED) from None
    if any(found.get(name) for name in _SECRETS):
        raise UsageError(
            "--store: a password must not stand on a command line; put it into a file of mode 0600, as "
            "HOST:PORT:DATABASE:USER:PASSWORD, and let PGPASSFILE name that file"
        )
    more: dict[str, str] = {}
    hosts = str(found.get("host") or found.get("hostaddr") or os.environ.get("PGHOST", "")).split(",")
    if not is_service and not all(map(is_here, hosts)):
        if (found.get("sslmode") or os.environ.get("PGSSLMODE") or VERIFIED) != VERIFIED:
            raise UsageError(f"--store: its host is another machine: only sslmode={VERIFIED} tells who answers")
        more["sslmode"] = VERIFIED
        is_named = found.get("sslrootcert") or os.environ.get("PGSSLROOTCERT") or (Path.home() / _ROOTS).exists()
        if not is_named:
            more["sslrootcert"] = "system"
    return StoreAddress(text, make_conninfo(text, **more), is_service)


def is_here(host: str) -> bool:
    """Return whether that host is this machine: a socket in a folder, or a loopback address."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
