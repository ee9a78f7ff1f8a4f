"""The guard: it decides which requests the page's server answers.

Every user of the machine reaches loopback, and so does every page that is open in the user's browser. So each request
must have the `Host` that is served (otherwise a page of another name that resolves to this address could read
everything), must come from this page or from no page, and must carry the key in a header, which no browser sends by
itself. A request that changes a run must be a POST with JSON from this very page. A refusal repeats nothing of the
request.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aiohttp import web

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""The headers of every answer."""

METRICS = "/metrics"
_API = "/api/"
_KNOWN_SITES = ("same-origin", "none")


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard of one server.

    Attributes:
        port: the port that the server listens on. key: the key of the page. metrics_key: opens `/metrics` and nothing
            else.
        is_read_only: whether every request that would change a run is refused.
    """

    port: int
    key: str
    metrics_key: str
    is_read_only: bool

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the values of `Host` that are let in."""
        names = ("127.0.0.1", "localhost", "[::1]")
        return tuple(f"{name}:{self.port}" for name in names) + (names if self.port == 80 else ())

    def refusal(self, request: web.Request) -> tuple[int, str] | None:
        """Return the status and the message with which a request is refused; None: the request is let in."""
        headers = request.headers
        host = headers.get("Host", "")
        if host not in self.hosts or len(headers.getall("Host", ())) != 1:
            return 421, "this address is served under its own name only"
        origin = headers.get("Origin")
        is_foreign = origin is not None and origin != f"http://{host}"
        if is_foreign or headers.get("Sec-Fetch-Site", "none") not in _KNOWN_SITES:
            return 403, "another page may not ask"
        if request.path == METRICS:
            is_known = self._is_key(headers.get("Authorization", ""), self.metrics_key)
            return None if is_known else (401, "the key of the metrics is missing")
        if request.path.startswith(_API) and not self._is_key(headers.get("Authorization", ""), self.key):
            return 401, "the key is missing: open the address that `bulk serve` has printed"
        return self._refused_change(request) if request.method not in ("GET", "HEAD") else None

    def _refused_change(self, request: web.Request) -> tuple[int, str] | None:
        if request.method != "POST" or not request.path.startswith(_API):
            return 405, "this can only be looked at"
        if request.headers.get("Origin") is None:
            return 403, "only the page itself changes something"
        if request.content_type != "application/json":
            return 415, "it must be JSON"
        return (403, "this page was started with --read-only") if self.is_read_only else None

    @staticmethod
    def _is_key(sent: str, key: str) -> bool:
        scheme, _, value = sent.partition(" ")
        return hmac.compare_digest(value.encode("utf-8", "replace"), key.encode()) and scheme.lower() == "bearer"


def middleware(
    guard: Guard, refused: Callable[[int, str], web.Response]
) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that asks the guard before every handler; `refused` makes the answer of a refusal."""

    @web.middleware
    async def stand_before(request: web.Request, handler: Handler) -> web.StreamResponse:
        note = getattr(request.protocol, "note_request", None)
        if note is not None:
            note()
        refusal = guard.refusal(request)
        return refused(*refusal) if refusal is not None else await handler(request)

    return stand_before


async def add_headers(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add to an answer the headers that every answer has."""
    response.headers.update(HEADERS)
    response.headers.pop("Server", None)
