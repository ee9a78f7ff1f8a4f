"""Allows or refuses the addresses to which a URL of the platform leads (failures.md row 10).

A download leads to a public address, or to the platform's own host. The addresses that a name resolves to are checked,
and only these are connected to, so that the name can't lead elsewhere in between.
"""

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from bulk.model import Media, Request
from bulk.urls import within_base

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether this IP address is one that everyone may reach; IPv4 within IPv6 counts as what it leads to."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is not None:
            ip = inner
    return ip.is_global and not ip.is_multicast


def leads_away(request: Request, headers: Mapping[str, str], base_url: str) -> bool:
    """Return whether a redirect leads out of the platform, as to a page to log in. Bytes of a file may lie there."""
    return request.media is not Media.RAW and within_base(headers.get("location", ""), base_url, request.path) is None


def flaw_of_download(url: str, base_url: str) -> str:
    """Return why `url` must not be downloaded; empty if it may be, as far as can be told before its name resolves."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "its URL holds characters that no URL may hold"
    try:
        target, base = urlsplit(url), urlsplit(base_url)
        port, host = target.port, target.hostname
    except ValueError:
        return "its URL can't be read"
    if target.scheme not in ("http", "https") or (base.scheme == "https" and target.scheme != "https"):
        return f"its URL is not {base.scheme}"
    if not host or port == 0 or "@" in target.netloc:
        return "its URL names no plain host"
    is_private = _is_address(host) and not is_public(host)
    return "its host is a private address" if is_private and not is_own_host(host, base_url) else ""


def is_own_host(host: str, base_url: str) -> bool:
    """Return whether `host` is the platform's own host, or a name below it.

    Files of a self-managed platform often have such a name.
    """
    own = urlsplit(base_url).hostname or ""
    host = host.lower()
    return host == own or (not _is_address(own) and host.endswith(f".{own}"))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class GuardedResolver(AbstractResolver):
    """Resolves names; a name that is not the platform's own resolves only to public addresses.

    Args:
        resolver: the resolver that is asked; None: the system's.
    """

    def __init__(self, base_url: str, resolver: AbstractResolver | None = None) -> None:
        self._base_url = base_url
        self._resolver = resolver or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of `host`.

        Raises:
            OSError: `host` can't be resolved, or only to addresses that are not public.
        """
        found = await self._resolver.resolve(host, port, family)
        if is_own_host(host, self._base_url):
            return found
        allowed = [each for each in found if is_public(each["host"])]
        if not allowed:
            raise OSError(None, "it leads to a private address")
        return allowed

    async def close(self) -> None:
        """Close the resolver that is asked."""
        await self._resolver.close()
