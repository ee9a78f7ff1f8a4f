"""The steps that every request goes through, in order; the area function is one of them.

journal begins → fault decided → version → User-Agent → authentication → rate limit → the token may use the route →
area function → latency → conditional answer (a 304 is free; writes never get one) → headers → fault at the answer →
journal line → answer.

A request refused before the rate limit (400 unknown version, 403 without User-Agent, 403 locked out) counts in no
budget and carries no `X-RateLimit` headers; a 401 counts as an anonymous request of its address.
A bug in an area is a 500 and a log line.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Final

import orjson
from aiohttp import web
from multidict import CIMultiDict

from bulk.sandbox.clock import http_date
from bulk.sandbox.http import conditional, faults
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.auth.authentication import Authentication
from bulk.sandbox.http.auth.token_headers import token_headers
from bulk.sandbox.http.budgets import Window, address_of
from bulk.sandbox.http.call import Call, Query
from bulk.sandbox.http.context import Context
from bulk.sandbox.http.faults import Faults
from bulk.sandbox.http.journal import Entry, Journal
from bulk.sandbox.http.media import JSON, Accepts
from bulk.sandbox.http.observing import Observe, Observed
from bulk.sandbox.http.refusals import Refused, bad_request, forbidden, not_found
from bulk.sandbox.http.routes import Route, Router
from bulk.sandbox.store.records import Token

LOG = logging.getLogger("bulk.sandbox")
OLDEST_VERSION: Final = "2022-11-28"
VERSIONS: Final = (OLDEST_VERSION, "2026-03-10")
# enough for a file of 100 MB in Base64, and the JSON around it
MOST_BODY_BYTES: Final = 150 * 1024 * 1024
HOSTS_IN_MEMORY: Final = 100
BODILESS: Final = frozenset({204, 205, 304})
HOST = re.compile(r"[A-Za-z0-9._-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")


@dataclass(slots=True)
class _Exchange:
    """One request on its way through."""

    request: web.BaseRequest
    entry: Entry
    path: str
    query: str
    match: tuple[Route, dict[str, str]] | None
    version: str = OLDEST_VERSION
    media: str = JSON
    token: Token | None = None
    window: Window | None = None
    window_started_at: int | None = None
    call: Call | None = None


class Pipeline:
    """The server's one handler: give it to `aiohttp.web.Server`."""

    def __init__(self, context: Context, router: Router, journal: Journal, observe: Observe | None = None) -> None:
        self._context, self._router, self._journal, self._observe = context, router, journal, observe
        self._clock = context.clock
        self._authentication = Authentication(context.state, context.apps)
        self._accepts = Accepts(context.vendor)
        self._faults = Faults(context.settings.faults, context.settings.fault_seed)
        self._version_header = context.vendor.header("Api-Version")
        self._request_id_header = context.vendor.header("Request-Id")
        self._fixed: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
        self._base_urls: dict[tuple[str, str], str] = {}
        self._boot = int(self._clock.now() * 1000)
        self._count = 0
        self._date = (0, "")

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        exchange = self._begin(request)
        entry = exchange.entry
        raw = b""
        if request.body_exists:
            try:
                if request.headers.get("Expect", "").lower() == "100-continue":
                    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    # aiohttp counts the bytes of the answer from here on: those written before are not part of it
                    request.writer.output_size = 0
                raw = await request.read()
            except web.HTTPRequestEntityTooLarge:
                return self._finish(
                    exchange, self._render(exchange, Answer(413, Refused(413, "Payload too large").body()))
                )
            except (OSError, web.RequestPayloadError):
                # The client went away before its request was complete: nothing was asked.
                self._journal.write(entry, self._clock.now())
                faults.cut(request, reset=False)
                return web.Response()
        fault = entry.fault = self._faults.choose(is_rate_limit=exchange.path == "/rate_limit")
        if fault in faults.BEFORE:
            self._describe(exchange)
            return self._fail(exchange, fault)
        answer = await self._answer(exchange, raw)
        entry.applied, entry.effect = answer.status < 400, answer.effect
        response = self._render(exchange, answer)
        if exchange.window is not None and entry.category is not None:
            entry.remaining = exchange.window.remaining
        if fault is None:
            return self._finish(exchange, response)
        if fault == "truncate":
            return await self._truncate(exchange, response)
        if fault == "slow":
            return await self._drip(exchange, response)
        return self._fail(exchange, fault)

    def _begin(self, request: web.BaseRequest) -> _Exchange:
        target = request.raw_path
        if not target.startswith("/"):
            target = request.rel_url.raw_path_qs
        path, _, query = target.partition("?")
        entry = Entry(self._clock.now(), request.method, path)
        base = self._context.settings.base_path
        inner = path[len(base) :] if path.startswith(base + "/") else path if path.startswith("/login/") else ""
        return _Exchange(request, entry, inner, query.partition("#")[0], self._router.match(request.method, inner))

    def _describe(self, exchange: _Exchange) -> None:
        """Enter into the journal who would have paid for a request that a fault keeps out."""
        entry = exchange.entry
        token = self._authentication.peek(exchange.request.headers.get("Authorization"), entry.at)
        entry.user = token.user.login if token else None
        entry.category = self._category(exchange)
        if entry.category and not self._context.budgets.is_off:
            payer = token.payer if token else address_of(self._address(exchange))
            entry.remaining = self._context.budgets.window(payer, entry.category, entry.at).remaining

    @staticmethod
    def _category(exchange: _Exchange) -> str | None:
        return exchange.match[0].category if exchange.match else "core"

    @staticmethod
    def _address(exchange: _Exchange) -> str:
        return exchange.request.remote or "local"

    async def _answer(self, exchange: _Exchange, raw: bytes) -> Answer:
        """Return the platform's answer, which is a refusal or a 500 where an error occurs."""
        try:
            route, call = self._admit(exchange, raw)
            rights.admit(call)
            answer = await route.function(call)
        except Refused as refused:
            answer = Answer(refused.status, refused.body(), headers=refused.headers)
        except Exception:
            LOG.exception("%s %s failed", exchange.entry.method, exchange.entry.path)
            answer = Answer(500, Refused(500, "Server Error").body())
        if exchange.call is not None:
            await exchange.call.pause()
        elif self._context.settings.latency_ms:
            await self._clock.sleep(self._context.settings.latency_ms / 1000)
        return answer

    def _admit(self, exchange: _Exchange, raw: bytes) -> tuple[Route, Call]:
        """Check version, User-Agent, authentication and budget; return the call that may go on and its route, or
        `Refused`.
        """
        headers, entry = exchange.request.headers, exchange.entry
        exchange.media = self._accepts.wanted(headers.get("Accept", "*/*"))
        version = headers.get(self._version_header) or OLDEST_VERSION
        if version not in VERSIONS:
            raise bad_request(f"The API version {version!r} is not supported. Supported are {', '.join(VERSIONS)}.")
        exchange.version = version
        if not headers.get("User-Agent", "").strip():
            raise forbidden(
                "Request forbidden by administrative rules. Please make sure your request has a User-Agent header."
            )
        address = self._address(exchange)
        try:
            token = exchange.token = self._authentication.identify(headers.get("Authorization"), address, entry.at)
        except Refused as refused:
            if refused.status == 401:
                self._charge(exchange, address_of(address), entry, is_refused=True)
            raise
        entry.user = token.user.login if token else None
        payer = entry.payer = token.payer if token else address_of(address)
        self._charge(exchange, payer, entry)
        if exchange.match is None:
            raise not_found()
        route, params = exchange.match
        call = exchange.call = Call(
            context=self._context,
            access=route.access,
            anonymous=route.anonymous,
            method=entry.method,
            path=exchange.path,
            params=params,
            query=Query(exchange.query),
            headers=headers,
            version=version,
            media=exchange.media,
            token=token,
            payer=payer,
            base_url=self._base_url(exchange.request),
            raw=raw,
            now=entry.at,
        )
        return route, call

    def _charge(self, exchange: _Exchange, payer: str, entry: Entry, *, is_refused: bool = False) -> None:
        """Count the request in the budget of its payer, or refuse it where the budget is spent.

        A request that `is_refused` for another reason is only counted.
        """
        budgets = self._context.budgets
        entry.category = self._category(exchange)
        if budgets.is_off:
            return
        window = exchange.window = budgets.window(payer, entry.category or "core", entry.at)
        if entry.category is None:
            return
        if not window.take(entry.at) and not is_refused:
            kind, _, number = payer.partition(":")
            whose = f"{kind} ID {number}" if kind in ("user", "installation") else number
            raise forbidden(f"API rate limit exceeded for {whose}.")
        exchange.window_started_at = window.started_at

    def _base_url(self, request: web.BaseRequest) -> str:
        host, scheme = request.headers.get("Host", ""), request.scheme
        known = self._base_urls.get((scheme, host))
        if known is None:
            named = host if HOST.fullmatch(host) else self._context.settings.host
            known = f"{scheme}://{named}{self._context.settings.base_path}"
            if len(self._base_urls) < HOSTS_IN_MEMORY:
                self._base_urls[scheme, host] = known
        return known

    def _render(self, exchange: _Exchange, answer: Answer) -> web.Response:
        """Return the answer as it goes out: conditional, with all headers."""
        body = answer.raw
        content_type = answer.content_type
        if body is None and answer.body is not None:
            body = orjson.dumps(answer.body)
            content_type = "application/json; charset=utf-8"
        status, etag = answer.status, answer.etag
        if status == 200 and exchange.request.method in ("GET", "HEAD"):
            asked = exchange.request.headers
            if body is not None and self._context.settings.etag_is_of_token:
                # a JSON body with one-time URLs differs each time, so the area gives the validator
                is_exact = etag is None or answer.raw is not None
                etag = conditional.etag_for(body if is_exact else (etag or "").encode(), asked)
            elif etag is None and body is not None:
                etag = conditional.etag_of(body)
            if conditional.is_unmodified(
                asked.get("If-None-Match"), asked.get("If-Modified-Since"), etag, answer.last_modified
            ):
                status, body = 304, None
        if status == 304 and exchange.window is not None and exchange.entry.category is not None:
            exchange.window.give_back(exchange.window_started_at)
        if status in BODILESS:
            body = None
        headers = self._common_headers(exchange)
        if etag is not None:
            headers.append(("ETag", etag))
        if answer.last_modified is not None:
            headers.append(("Last-Modified", http_date(answer.last_modified)))
        if body is not None:
            headers.append(("Content-Type", content_type or "application/octet-stream"))
        if answer.headers:
            headers += answer.headers.items()
        return web.Response(status=status, body=body, headers=CIMultiDict(headers))

    def _common_headers(self, exchange: _Exchange) -> list[tuple[str, str]]:
        now = self._clock.now()
        if int(now) != self._date[0]:
            self._date = (int(now), http_date(now))
        self._count += 1
        headers = [
            ("Date", self._date[1]),
            (self._request_id_header, f"{self._boot:X}:{self._count:X}"),
            *self._fixed_headers(exchange.version, exchange.media),
        ]
        if exchange.token is not None:
            access = exchange.match[0].access if exchange.match else None
            headers += token_headers(exchange.token, access, self._context.apps, now)
        window = exchange.window
        if window is not None:
            headers += [
                ("X-RateLimit-Limit", str(window.limit)),
                ("X-RateLimit-Remaining", str(window.remaining)),
                ("X-RateLimit-Used", str(window.used)),
                ("X-RateLimit-Reset", str(window.reset_at(now))),
                ("X-RateLimit-Resource", window.category),
            ]
        return headers

    def _fixed_headers(self, version: str, media: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that are the same for every answer of a version and media type."""
        fixed = self._fixed.get((version, media))
        if fixed is None:
            name, header = self._context.vendor.name, self._context.vendor.header
            shown = f"{name}.v3; format=json" if media == JSON else f"{name}.v3; param={media}"
            fixed = self._fixed[version, media] = (
                (header("Api-Version-Selected"), version),
                (header("Media-Type"), shown),
                ("Server", name),
                ("Vary", f"Accept, Authorization, {self._version_header}"),
                ("X-Content-Type-Options", "nosniff"),
            )
        return fixed

    def _finish(self, exchange: _Exchange, response: web.Response) -> web.Response:
        """Write the journal line, then let the answer go."""
        entry = exchange.entry
        entry.status = response.status
        self._journal.write(entry, self._clock.now())
        if self._observe is not None and entry.fault is None:
            route = exchange.match[0] if exchange.match else None
            body = response.body if isinstance(response.body, bytes) else b""
            self._observe(
                Observed(
                    entry.method,
                    entry.path,
                    route,
                    exchange.version,
                    exchange.media,
                    response.status,
                    response.headers,
                    body,
                )
            )
        return response

    def _fail(self, exchange: _Exchange, fault: str) -> web.Response:
        """Return what a fault gives instead: an answer of its own, or a closed connection."""
        instead = self._faults.instead(fault)
        if instead is not None:
            exchange.window = None
            return self._finish(exchange, self._render(exchange, instead))
        self._journal.write(exchange.entry, self._clock.now())
        faults.cut(exchange.request, reset=fault == "reset")
        return web.Response()

    async def _truncate(self, exchange: _Exchange, response: web.Response) -> web.StreamResponse:
        body = response.body
        if not isinstance(body, bytes) or not body:
            return self._fail(exchange, "drop-after")
        stream = await self._open(exchange, response, len(body))
        exchange.entry.status = response.status
        self._journal.write(exchange.entry, self._clock.now())
        await stream.write(body[: len(body) // 2])
        faults.cut(exchange.request, reset=False)
        return stream

    async def _drip(self, exchange: _Exchange, response: web.Response) -> web.StreamResponse:
        body = response.body
        if not isinstance(body, bytes) or not body:
            return self._finish(exchange, response)
        exchange.entry.status = response.status
        pause_s = min(faults.SLOW_BYTE_S, faults.SLOW_MOST_S / len(body))
        try:
            stream = await self._open(exchange, response, len(body))
            for place in range(len(body) - 1):
                await stream.write(body[place : place + 1])
                await self._clock.sleep(pause_s)
        finally:
            self._journal.write(exchange.entry, self._clock.now())
        await stream.write(body[-1:])
        return stream

    @staticmethod
    async def _open(exchange: _Exchange, response: web.Response, length: int) -> web.StreamResponse:
        stream = web.StreamResponse(status=response.status, headers=response.headers)
        stream.content_length = length
        await stream.prepare(exchange.request)
        return stream
