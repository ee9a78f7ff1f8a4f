"""The machine's part in a connection: trusted certificate authorities, proxies, open files.

Proxies count only where the manifest says `trust_env`; `.netrc` never does (failures.md rows 3, 51, 72).
"""

import contextlib
import resource
import ssl
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from yarl import URL

from bulk.errors import UsageError
from bulk.redaction import remember

SPARE_FILES = 64
"""Open files that are not connections: ledger, results, items, logs (count)."""

PLENTY_OF_FILES = 4_096
"""The limit of open files is raised to this at least, if the system allows that (count): many jobs have their own."""


LEAST_FILES = 40
"""With fewer open files nothing can be run (count): ledger, results, caches, items, and a connection or two."""


def require_open_files() -> None:
    """Raise the limit of open files to the number that a run needs, if it is lower and the system allows that.

    Raises:
        UsageError: the limit stays lower.
    """
    most = _raised(LEAST_FILES)
    if most < LEAST_FILES:
        raise UsageError(
            f"only {most} files may be open at once, and {LEAST_FILES} are needed: raise the limit (ulimit -n)"
        )


def tls_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """Return a TLS context that trusts the system's authorities and those of `ca_bundle` (PEM).

    Raises:
        UsageError: the file can't be read or holds no certificates.
    """
    context = ssl.create_default_context()
    if ca_bundle is not None:
        try:
            context.load_verify_locations(ca_bundle)
        except ssl.SSLError:
            raise UsageError(f"platform.ca_bundle: {ca_bundle} holds no certificates (PEM)") from None
        except OSError as error:
            raise UsageError(f"platform.ca_bundle: {ca_bundle} can't be read: {error.strerror}") from None
    return context


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for `url`, or None; `redact` knows its password.

    Raises:
        UsageError: the environment names something that is not an HTTP proxy.
    """
    parts = urlsplit(url)
    proxies = urllib.request.getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        named = URL(proxy)
        is_usable = named.scheme in ("http", "https") and bool(named.host)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(f"the environment's proxy for {parts.scheme} can't be used: expected http://HOST:PORT")
    if named.password:
        remember(named.password)
    return proxy


def room_for_connections(wanted: int) -> int:
    """Return how many of `wanted` connections the limit of open files has room for (count, >= 1).

    The limit is raised as far as the system allows. Of a low limit, other open files get at most three quarters.
    """
    soft = _raised(max(wanted + SPARE_FILES, PLENTY_OF_FILES))
    return min(wanted, max(1, soft - SPARE_FILES, soft // 4))


def _raised(needed: int) -> int:
    """Raise the limit of open files to `needed` as far as the system allows, and return the limit (count)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    if soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return soft
