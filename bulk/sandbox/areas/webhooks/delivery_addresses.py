"""Where webhooks may be delivered to: loopback, and the hosts that `--deliver-to` names.

The check applies to the address that a name has at the moment of sending, and the connection goes to that very address.
So a name with another address, now or the next time, reaches nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

import aiohttp
import anyio
from aiohttp.abc import AbstractResolver, ResolveResult

LOOKUPS = 4
"""How many names are looked up at once (count). A lookup that has begun can't be stopped, and the server's end waits
for it: hundreds of lookups, of names in a rehearsal that do not exist, would take long."""


class AddressRefused(Exception):
    """Nothing is delivered to this host."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is not on loopback; --deliver-to {host} allows it")


class Addresses:
    """The hosts to which deliveries are allowed.

    Args:
        allowed: names or IP addresses besides loopback, in any case.

    Attributes:
        lookups: a limiter for all deliveries together, which is held while a name is looked up.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(_plain(host) for host in allowed)
        self.lookups = anyio.Semaphore(LOOKUPS)

    def check(self, host: str) -> None:
        """Refuse a host that is an address but not an allowed one; names are judged when they are looked up.

        Raises:
            AddressRefused: nothing is delivered to this address.
        """
        if _address(host) is not None and not (self.allows(host) or is_loopback(host)):
            raise AddressRefused(host)

    def allows(self, host: str) -> bool:
        """Return whether the command line named this host."""
        return _plain(host) in self._allowed


class LoopbackResolver(AbstractResolver):
    """A resolver that keeps only loopback addresses of a name, unless the name is allowed."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses, self._inner = addresses, aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host that may be connected to.

        Raises:
            AddressRefused: the host has no such address.
        """
        async with self._addresses.lookups:
            found = await self._inner.resolve(host, port, family)
        if self._addresses.allows(host):
            return found
        kept = [one for one in found if is_loopback(one["host"])]
        if not kept:
            raise AddressRefused(host)
        return kept

    async def close(self) -> None:
        """Do nothing, because nothing is held open."""


def is_loopback(text: str) -> bool:
    """Return whether a text is an IP address of this machine's loopback."""
    address = _address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and address.is_loopback


def _plain(host: str) -> str:
    address = _address(host)
    return host.casefold().rstrip(".") if address is None else str(address)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
