"""The one place where requests leave: each `send` makes one HTTP request or none, and returns an answer or a failure.

Redirects are not followed. Nothing is sent again: aiohttp would do so by itself when a pooled connection drops, which
is switched off, and refused should it try. A cancelled request leaves no connection behind. One timer serves all
deadlines.
Source: design.md §7; performance.md; failures.md rows 1-6, 8-11, 15, 24, 26, 28, 29, 51, 72.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import aiohttp
import orjson
from aiohttp.client_reqrep import ClientRequest
from multidict import CIMultiDict, CIMultiDictProxy, istr
from yarl import URL

from bulk.clock import Clock
from bulk.manifest.manifest import Platform
from bulk.model import BodyFile, ErrorCode, Failure, FailureKind, Media, Reply, Request
from bulk.platform.allowed_addresses import GuardedResolver, flaw_of_download, is_own_host, leads_away
from bulk.platform.auth.secrets import Secret
from bulk.platform.bodies.body_reader import BodyReader, Holder, read_alone, too_long
from bulk.platform.bodies.body_values import A_PAGE, AS_BYTES, Unreadable, read_body
from bulk.platform.bodies.content_coding import ACCEPTED, CodingBroken
from bulk.platform.cache.cache_entry import BY_ETAG, BY_PREDICTION, CacheEntry
from bulk.platform.cache.predictions import etag_for
from bulk.platform.classification import ON_THE_WAY, REDIRECT_STATUSES, header_name, request_headers
from bulk.platform.deadlines import CURRENT, Deadlines, InFlight
from bulk.platform.environment import proxy_for, room_for_connections, tls_context
from bulk.platform.failures import FOREIGN, TOO_MANY_FILES, ConnectionStale, PermitRevoked, ResendRefused, failure_of
from bulk.platform.http1 import (
    FIRST_TIMEOUT,
    KEEP_ALIVE_S,
    NO_TIMEOUT,
    Answering,
    ConnectionPool,
    bounded,
    header_lines,
    is_longer,
    line_start,
    never_resending,
    target_of,
    whole,
)
from bulk.platform.response_heads import BadHead

DNS_S = 30
STREAMED_BYTES = 1024 * 1024
"""Longer request bodies are written in blocks, so that they don't hold up the event loop."""

_LENGTH, _TRANSFER, _CODING, _LINK = (
    istr(name) for name in ("Content-Length", "Transfer-Encoding", "Content-Encoding", "Link")
)
_HEADS = 256
_MAY_LEAD_AWAY = REDIRECT_STATUSES | ON_THE_WAY
_METHODS_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))


class _Request(ClientRequest):
    """aiohttp's request, which tells its flight that it is being written, and is written once."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        flight = CURRENT.get()
        if flight.is_written:
            raise ResendRefused
        protocol = conn.protocol
        # the peer closed the connection while it was idle, or sent bytes that no request asked for
        if protocol is None or protocol.should_close or not protocol.is_connected():
            raise ConnectionStale
        if flight.may_leave is not None and not flight.may_leave():
            raise PermitRevoked
        flight.is_written = True
        return await super().send(conn)


class Transport:
    """Sends requests to one platform; an async context manager, to be left in the task that entered it.

    Args:
        platform: the platform's settings; `.netrc` is never read, also where the environment is trusted.
        concurrency: most requests that will be in flight (count); the pool never makes a request wait.
        request_timeout_s: longest time from the start of a request to the end of its answer (seconds).
        connector: used in place of TCP, for simulations; closed together with the transport.
        body_reader: reads bodies that have a holder; None: all are read into memory.

    Attributes:
        sent: requests that were written (count).
        most_in_flight: requests that the limit of open files has room for (count); falls when that limit is met.
    """

    def __init__(
        self,
        platform: Platform,
        *,
        concurrency: int,
        request_timeout_s: float,
        clock: Clock,
        connector: aiohttp.BaseConnector | None = None,
        body_reader: BodyReader | None = None,
    ) -> None:
        self.sent = 0
        self.most_in_flight = room_for_connections(concurrency)
        self.platform, self._base = platform, URL(platform.base_url, encoded=True)
        self._base_path = self._base.raw_path.rstrip("/")
        self._request_id_name = istr(header_name(platform.vendor, "Request-Id"))
        self._timeout_s, self._clock, self._given_connector = request_timeout_s, clock, connector
        self._body_reader = body_reader
        self._heads: dict[tuple[Secret, Media, str, bool], tuple[bytes, bytes]] = {}
        self._place = f"{self._base.host}:{self._base.port}"
        self._stack = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None
        self._pool: ConnectionPool | None = None
        self._outside: aiohttp.ClientSession | None = None
        self._forget_addresses: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        """Open the pool; no connection is made yet.

        Raises:
            UsageError: the CA bundle or the environment's proxy can't be used.
        """
        loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(loop, self._clock, self._timeout_s)
        ca_bundle = self.platform.ca_bundle
        self._tls = tls_context(ca_bundle) if self._base.scheme == "https" or ca_bundle else None
        proxy = proxy_for(self.platform.base_url) if self.platform.trust_env else None
        connector = self._given_connector or self._connector(None)
        if isinstance(connector, aiohttp.TCPConnector):
            self._forget_addresses = connector.clear_dns_cache
        self._session = await self._stack.enter_async_context(self._new_session(connector, proxy))
        # only the session knows how to go through a proxy
        if proxy is None:
            self._pool = ConnectionPool(connector, self._base, self._clock.monotonic, self._request_id_name)
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        """Close every connection."""
        self._deadlines.close()
        if self._pool is not None:
            self._pool.close()
        self._session = self._outside = None
        await self._stack.aclose()

    def send(
        self,
        request: Request,
        token: Secret,
        stored: CacheEntry | None = None,
        may_leave: Callable[[], bool] | None = None,
        holder: Holder | None = None,
    ) -> Coroutine[Any, Any, Reply | Failure]:
        """Send `request` once, with the validators of `stored`, and read its answer. A 304 comes back as a 304.

        Args:
            may_leave: asked once more when a connection is there; if it returns False, the Failure is NOT_SENT.
            holder: the item that the answer is for.

        Failures of the network are values; exceptions are bugs, such as a path that is not encoded.
        """
        data = None if request.body is None else orjson.dumps(request.body)
        target = target_of(self._base_path, request.path, request.query)
        conditions = self._conditions(request, stored, token) if stored is not None and not request.is_fresh else ()
        if self._pool is None or (data is not None and len(data) >= STREAMED_BYTES):
            return self._send_by_session(request, token, target, data, conditions, may_leave, holder)
        pool = self._pool
        start, lines = self._head(pool, request, token, data is not None)
        length = b"" if data is None else b"Content-Length: %d\r\n" % len(data)
        told = header_lines(conditions) if conditions else b""
        head = b"%b%b%b%b%b\r\n" % (start, target.encode(), lines, told, length)
        flight = self._deadlines.begin(may_leave)
        return self._exchange(request, flight, pool.send(head, data, flight), self._place, holder)

    async def _send_by_session(
        self,
        request: Request,
        token: Secret,
        target: str,
        data: bytes | None,
        conditions: Sequence[tuple[str, str]],
        may_leave: Callable[[], bool] | None,
        holder: Holder | None,
    ) -> Reply | Failure:
        """Send by aiohttp's session: through a proxy, or with a body that is better written in blocks."""
        assert self._session is not None, "the transport is open"
        if self._pool is not None:
            self._pool.lend()
        headers = CIMultiDict({**self._headers(request, token, data is not None), **dict(conditions)})
        options: dict[str, Any] = {} if self.sent else {"timeout": FIRST_TIMEOUT}
        if data is not None:
            options["data"] = data if len(data) < STREAMED_BYTES else io.BytesIO(data)
        elif request.method in _METHODS_WITH_BODY:
            options["skip_auto_headers"] = ("Content-Type",)
        url = URL(f"{self._base.origin()}{target}", encoded=True)
        flight = self._deadlines.begin(may_leave)
        CURRENT.set(flight)
        opening = self._session.request(request.method, url, headers=headers, allow_redirects=False, **options)
        return await self._exchange(request, flight, opening, self._place, holder)

    def distrust(self) -> None:
        """Close all connections that are idle now, because an answer did not belong to its request.

        The next answers on these connections might not either.
        """
        if self._pool is not None:
            self._pool.close()

    def step_aside(self, holder: Holder) -> None:
        """Note that an item, whose answer may have been long, is about to wait for something, such as a permit."""
        if self._body_reader is not None:
            self._body_reader.step_aside(holder)

    async def download(
        self, url: str, max_bytes: int, *, takes_file: bool = False, holder: Holder | None = None
    ) -> Reply | Failure:
        """Download from an absolute URL that the platform gave, without a token. Redirects are not followed.

        A URL that must not be followed (other scheme, user name in it, private address that is not the platform's own
        host) is a Failure NOT_SENT with the code `bad_response`: repeating it is useless.
        """
        assert self._session is not None, "the transport is open"
        flaw = flaw_of_download(url, self.platform.base_url)
        if flaw:
            return Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.BAD_RESPONSE, message=f"not downloaded: {flaw}")
        target = URL(url, encoded=True).with_fragment(None)
        request = Request(method="GET", path="", media=Media.RAW, max_bytes=max_bytes, takes_file=takes_file)
        headers = CIMultiDict({"Accept": "*/*", "Accept-Encoding": ACCEPTED, "User-Agent": _user_agent()})
        is_own = is_own_host(target.raw_host or "", self.platform.base_url)
        session = self._session if is_own else await self._outside_session()
        options: dict[str, Any] = {"proxy": proxy_for(url)} if self.platform.trust_env and not is_own else {}
        flight = self._deadlines.begin()
        CURRENT.set(flight)
        opening = session.request("GET", target, headers=headers, allow_redirects=False, **options)
        return await self._exchange(request, flight, opening, f"{target.host}:{target.port}", holder)

    async def _exchange(
        self, request: Request, flight: InFlight, opening: Awaitable[Answering], place: str, holder: Holder | None
    ) -> Reply | Failure:
        """Return the answer whose head `opening` brings, or its failure, and end `flight`. `place`: for people."""
        try:
            response = await opening
            content, named = response.content, response.headers
            if _TRANSFER in named and (_LENGTH in named or ",".join(named.getall(_TRANSFER)).lower() != "chunked"):
                # where this answer ends, and the next one begins, is not certain (RFC 9112 §6.3)
                response.close()
                raise BadHead("tells in two ways where it ends", is_http=True)
            # a small answer is there as a whole when its head is
            raw = whole(content) if _CODING not in named else None
            if raw is None:
                return self._answer(request, response, await self._body(request, response, flight, holder))
            response.release()
            came = raw if len(raw) <= request.max_bytes else too_long(request.max_bytes)
            return self._answer(request, response, came)
        except asyncio.CancelledError as error:
            if not flight.take_back():
                raise
            return self._failure(flight, error, place)
        except FOREIGN as error:
            return self._failure(flight, error, place)
        finally:
            self._deadlines.end(flight)
            self.sent += flight.is_written

    async def _body(
        self, request: Request, response: Answering, flight: InFlight, holder: Holder | None
    ) -> bytes | BodyFile | Unreadable | None:
        """Return the body; None: it broke off. That never raises a failure, as the status is known."""
        is_read = False
        try:
            if self._body_reader is None or holder is None:
                body: bytes | BodyFile | Unreadable = await read_alone(response, request.max_bytes)
            else:
                body = await self._body_reader.read(response, request, flight, holder)
            is_read = not isinstance(body, Unreadable)
            return body
        except asyncio.CancelledError:
            if not flight.take_back():
                raise
            return None
        except (*FOREIGN, CodingBroken, RuntimeError):  # RuntimeError: the connection is gone
            return None
        finally:
            if not is_read:
                response.close()

    def _answer(self, request: Request, response: Answering, came: bytes | BodyFile | Unreadable | None) -> Reply:
        status = response.status
        found = response.headers
        headers: Mapping[str, str] = _with_one_link(found) if _LINK in found else found
        came = None if request.media in AS_BYTES and is_longer(response) else came
        body: Any = None
        raw = b""
        if isinstance(came, bytes):
            raw = came
            body = read_body(request.media, status, headers, raw)
            if status in _MAY_LEAD_AWAY and (
                status in ON_THE_WAY or leads_away(request, headers, self.platform.base_url)
            ):
                body = A_PAGE
        elif 200 <= status < 300:  # a file is always of such an answer
            body = came
        is_truncated, request_id = came is None, found.get(self._request_id_name)
        return Reply(status, headers, body, False, is_truncated, request_id, raw)

    def _failure(self, flight: InFlight, error: BaseException, place: str) -> Failure:
        if isinstance(error, OSError) and error.errno in TOO_MANY_FILES:
            self.most_in_flight = max(1, min(self.most_in_flight, len(self._deadlines) - 1))
        elif not flight.is_written:
            self._forget_addresses()  # a platform that fails over may have another address by now
        return failure_of(
            error,
            is_written=flight.is_written,
            is_overdue=flight.is_overdue,
            timeout_s=self._timeout_s,
            place=place,
        )

    def _head(self, pool: ConnectionPool, request: Request, token: Secret, has_body: bool) -> tuple[bytes, bytes]:
        """Return the bytes before the target of a request, and those after it that are the same for all of its kind."""
        key = (token, request.media, request.method, has_body)
        head = self._heads.get(key)
        if head is None:
            headers = {"Host": pool.host, **self._headers(request, token, has_body)}
            if not has_body and request.method != "GET":
                headers[_LENGTH] = "0"
            if len(self._heads) >= _HEADS:
                self._heads.clear()
            head = self._heads[key] = line_start(request.method), b" HTTP/1.1\r\n" + header_lines(headers.items())
        return head

    def _conditions(self, request: Request, stored: CacheEntry, token: Secret) -> list[tuple[str, str]]:
        """Return the header lines that ask whether the stored answer is still the right one."""
        if stored.way == BY_PREDICTION:
            accept = request_headers(request, self.platform.vendor, None, has_body=False)["Accept"]
            return [("If-None-Match", etag_for(accept, f"Bearer {token.reveal()}", stored.body))]
        found = [("If-None-Match", stored.etag)] if stored.etag and stored.way == BY_ETAG else []
        if stored.last_modified:
            found.append(("If-Modified-Since", stored.last_modified))
        return found

    def _headers(self, request: Request, token: Secret, has_body: bool) -> dict[str, str]:
        return {
            **request_headers(request, self.platform.vendor, self.platform.api_version, has_body),
            "Accept-Encoding": ACCEPTED,
            "User-Agent": _user_agent(),
            "Authorization": f"Bearer {token.reveal()}",
        }

    def _connector(self, resolver: GuardedResolver | None) -> aiohttp.BaseConnector:
        return bounded(
            aiohttp.TCPConnector(
                limit=0,  # permits are the limit; waiting for the pool would take from the time of a request
                keepalive_timeout=KEEP_ALIVE_S,
                ttl_dns_cache=DNS_S,
                ssl=self._tls or True,
                resolver=resolver,
            )
        )

    def _new_session(self, connector: aiohttp.BaseConnector, proxy: str | None) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=connector,
            request_class=_Request,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=NO_TIMEOUT,
            auto_decompress=False,
            trust_env=False,
            proxy=proxy,
        )
        return never_resending(session)  # `_Request` refuses a second sending in any case

    async def _outside_session(self) -> aiohttp.ClientSession:
        if self._outside is None:
            if self._given_connector is not None:
                assert self._session is not None
                return self._session
            connector = self._connector(GuardedResolver(self.platform.base_url))
            self._outside = await self._stack.enter_async_context(self._new_session(connector, None))
        return self._outside


def _with_one_link(headers: CIMultiDictProxy[str]) -> Mapping[str, str]:
    """Return `headers` with all their `Link` headers joined into one (RFC 9110 §5.2)."""
    found = headers.copy()
    found[_LINK] = ", ".join(headers.getall(_LINK))
    return found


@cache
def _user_agent() -> str:
    try:
        return f"bulk/{version('bulkops')}"
    except PackageNotFoundError:
        return "bulk"
