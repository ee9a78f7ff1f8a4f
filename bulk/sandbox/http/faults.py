"""Injected faults: which requests they hit, and what they do to them.

One seeded stream decides, one draw for each request in the order of arrival, so the same seed and order give the same
faults. `GET /rate_limit` is spared, and draws nothing, unless a kind is given for it as `rate_limit:KIND`.

Before the request is admitted (nothing takes effect, nothing is counted in a budget, the journal says applied false):
    drop-before  the connection is closed without an answer
    reset        the same, by a TCP reset
    unavailable  503 with Retry-After: 1
    html         502 with an HTML page
    limited      429 with Retry-After: 1
    forbidden    403 with an empty body and no rate-limit header: unexplained
After it was carried out and counted like any other:
    drop-after   the connection is closed without an answer
    error-after  502 instead of the answer, as an HTML page and as JSON in turn
    truncate     the answer's head with its full Content-Length, half the body, then the connection is closed; an
        answer without a body is dropped
    slow         the head, then the body a byte at a time: `SLOW_BYTE_S` between two, less where all would take more
        than `SLOW_MOST_S`
"""

from __future__ import annotations

import random
import socket
import struct
from asyncio import Transport
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.refusals import Refused
from bulk.sandbox.settings import FAULT_KINDS, RATE_LIMIT_FAULT

BEFORE: Final = frozenset({"drop-before", "reset", "unavailable", "html", "limited", "forbidden"})
SLOW_BYTE_S: Final = 0.02
SLOW_MOST_S: Final = 2.0
PAGE: Final = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n"
    b"<body><h1>502 Bad Gateway</h1><p>The server did not answer in time.</p></body></html>\n"
)


class Faults:
    """Decides each request's fault."""

    def __init__(self, shares: Mapping[str, float], seed: int) -> None:
        self._random = random.Random(seed)
        self._is_page_next = True
        # Always in the same order, so that a seed doesn't depend on the order of the options.
        self._shares = [(kind, shares[kind]) for kind in FAULT_KINDS if shares.get(kind)]
        self._rate_limit_shares = [
            (kind, shares[RATE_LIMIT_FAULT + kind]) for kind in FAULT_KINDS if shares.get(RATE_LIMIT_FAULT + kind)
        ]

    def choose(self, *, is_rate_limit: bool) -> str | None:
        """Return the kind of fault that hits the next request; None: no fault does."""
        shares = self._rate_limit_shares if is_rate_limit else self._shares
        if not shares:
            return None
        draw = self._random.random()
        for kind, share in shares:
            draw -= share
            if draw < 0:
                return kind
        return None

    def instead(self, kind: str) -> Answer | None:
        """Return the answer that a fault gives instead of the platform's; None: the fault gives no answer, or lets the
        platform's through."""
        match kind:
            case "unavailable":
                refused = Refused(503, "Service unavailable, please try again later")
                return Answer(503, refused.body(), headers={"Retry-After": "1"})
            case "limited":
                refused = Refused(429, "You have exceeded a secondary rate limit. Please wait before you try again")
                return Answer(429, refused.body(), headers={"Retry-After": "1"})
            case "forbidden":
                return Answer(403)
            case "html":
                return _page()
            case "error-after":
                self._is_page_next = not self._is_page_next
                return Answer(502, Refused(502, "Server Error").body()) if self._is_page_next else _page()
        return None


def _page() -> Answer:
    return Answer(502, raw=PAGE, content_type="text/html; charset=utf-8")


def cut(request: web.BaseRequest, *, reset: bool) -> None:
    """Close the request's connection without a further byte; `reset`: by a TCP reset, where it is a TCP connection."""
    transport: Transport | None = request.transport
    if transport is None:
        return
    if not reset:
        transport.close()
        return
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is not None:
        # Lingering for zero seconds turns the close into a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
