"""One request and the head of its answer in HTTP/1.1, on a connection of aiohttp, which brings pool, TLS and parser.

The work of a session around each request (URL objects, cookies, authentication, redirects, traces, tasks that write)
takes more time than everything else together, and nothing here needs it. A request is one block of bytes: the target,
and header lines that are made once for each kind of request. It is written once, and no code here could repeat it.
This is the one file that touches private attributes of aiohttp.
Source: RFC 9112; performance.md; failures.md rows 8, 57, 58.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

import aiohttp
from aiohttp import EMPTY_PAYLOAD
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from multidict import CIMultiDictProxy, istr
from yarl import URL

from bulk.platform.deadlines import FIRST_CONNECTION_S, InFlight
from bulk.platform.failures import ConnectionStale, PermitRevoked
from bulk.platform.response_heads import WITHOUT_BODY, AnswerProtocol, BadHead

_BREAKING = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_METHOD = re.compile(r"[A-Z]+")
_LENGTH = istr("Content-Length")

KEEP_ALIVE_S = 4.0
"""An idle connection is given up before servers close it (usually after 5 s or more; seconds): a request that meets a
closing connection is lost."""

MOST_REPEATED = 3
"""After this many answers that repeated the one before them, each request has a connection of its own (count)."""

SMALL_BYTES = 64 * 1024
"""A body up to this long never makes aiohttp hold up its connection."""

NO_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
"""One sweeper serves all deadlines: see `deadlines.py`."""

FIRST_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=FIRST_CONNECTION_S, sock_read=None)
"""Time-outs until a first connection was made."""


class ResponseHead:
    """The head of an answer; either `release` or `close` ends it."""

    __slots__ = ("_connection", "_has_body", "_pool", "_protocol", "content", "headers", "status")

    def __init__(
        self,
        status: int,
        headers: CIMultiDictProxy[str],
        content: aiohttp.StreamReader,
        pool: "ConnectionPool",
        connection: Connection,
        protocol: ResponseHandler,
        has_body: bool,
    ) -> None:
        self.status, self.headers, self.content = status, headers, content
        self._pool, self._protocol, self._has_body = pool, protocol, has_body
        self._connection: Connection | None = connection

    def release(self) -> None:
        """Let the connection serve the next request, if both sides want that; the body must be read to its end."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        # if the answer came before all of the request had left, bytes still to be written belong to this request
        way = connection.transport if self._has_body else None
        is_behind = self._has_body and (way is None or way.get_write_buffer_size() > 0)
        if is_behind or self._protocol.should_close or self._pool.repeated >= MOST_REPEATED:
            connection.close()
        else:
            self._pool.idle.append((connection, self._protocol, self._pool.monotonic()))

    def close(self) -> None:
        """Give up the answer and its connection, unless that was released: it may serve another request now."""
        if self._connection is not None:
            self._connection.close()


Answering: TypeAlias = ResponseHead | aiohttp.ClientResponse
"""An answer whose head is there."""


class ConnectionPool:
    """The way to one platform, with the idle connections to it.

    Args:
        base: where requests go; its path is not used.
        monotonic: method `monotonic` of the clock.
        request_id: name of the header that has the platform's own id of a request.

    Attributes:
        repeated: answers that repeated the one before them (count).
    """

    def __init__(
        self, connector: aiohttp.BaseConnector, base: URL, monotonic: Callable[[], float], request_id: istr
    ) -> None:
        self._connect, self._loop, self.monotonic = connector.connect, connector._loop, monotonic
        # tells the pool where to connect to; this request is never sent
        self._place = ClientRequest("GET", base.origin(), loop=connector._loop)
        self.host = self._place.headers["Host"]
        self._reads_to_end, self._timeout = False, FIRST_TIMEOUT
        self.idle: deque[tuple[Connection, Any, float]] = deque()
        self._request_id, self._first_id, self._are_ids_own = request_id, "", False
        self.repeated = 0

    def _kept(self) -> tuple[Connection, Any] | None:
        """Return the connection that was idle longest, if not too long, and that nothing has happened to since."""
        idle = self.idle
        while idle:
            connection, protocol, since = idle.popleft()
            way = protocol.transport
            # not usable: the peer has closed the connection, or sent bytes that no request asked for
            is_usable = way is not None and not way.is_closing() and not protocol._buffer
            if is_usable and self.monotonic() - since <= KEEP_ALIVE_S:
                return connection, protocol
            connection.close()
        return None

    def lend(self) -> None:
        """Give one idle connection to aiohttp's pool, for a request that goes by its session."""
        kept = self._kept()
        if kept is not None:
            kept[0].release()

    def close(self) -> None:
        """Close all idle connections."""
        while self.idle:
            self.idle.popleft()[0].close()

    def _refuse_repeated(self, protocol: Any, message: Any, head: bytes) -> None:
        """Refuse an answer that repeats the one before it on its connection, which was to another request.

        From there on each answer would be taken for the next request's. This needs a platform that gives each request
        an id of its own.
        """
        own = message.headers.get(self._request_id)
        if own is None or type(protocol) is not AnswerProtocol:
            return
        number, raw_headers, asked = protocol.newest
        protocol.newest = own, message.raw_headers, head
        if not self._are_ids_own:
            self._first_id = self._first_id or own
            self._are_ids_own = own != self._first_id
        if own != number or not self._are_ids_own or raw_headers != message.raw_headers:
            return
        if asked.partition(b"\r\n")[0] != head.partition(b"\r\n")[0]:
            self.repeated += 1
            if self.repeated == MOST_REPEATED:
                self.close()
            raise BadHead("is its answer to the request before", is_http=True)

    def _cut(self, protocol: ResponseHandler) -> aiohttp.StreamReader:
        """Make a reader for an answer that may go on until the connection ends, and let its body count as broken off.

        The parser was not told to expect such an answer, which comes only through old proxies. From now on such answers
        are read; until then an answer without a body needs no reader.
        """
        self._reads_to_end = True
        self.close()  # the parsers of idle connections were not told to expect such answers
        content = aiohttp.StreamReader(protocol, SMALL_BYTES, loop=self._loop)
        content.set_exception(aiohttp.ClientPayloadError())
        return content

    async def _open(self) -> Connection:
        connection = await self._connect(self._place, [], self._timeout)
        self._timeout = NO_TIMEOUT
        return connection

    async def send(self, head: bytes, body: bytes | None, flight: InFlight) -> ResponseHead:
        """Write a request, once, and wait for the head of its answer.

        Raises:
            ConnectionStale, PermitRevoked: nothing was written.
            One of `failures.FOREIGN`: see `flight.is_written`.
        """
        kept = self._kept()
        connection = kept[0] if kept is not None else await self._open()
        try:
            # Any: aiohttp's annotations of what is read hold for its parser in Python only, not for the one in C
            protocol: Any = kept[1] if kept is not None else connection.protocol
            if kept is None and (protocol is None or protocol.should_close or not protocol.is_connected()):
                raise ConnectionStale
            if flight.may_leave is not None and not flight.may_leave():
                raise PermitRevoked
            if kept is None:  # the parser of a kept connection goes on where the last answer ended
                protocol.set_response_params(read_until_eof=self._reads_to_end, auto_decompress=False)
            if type(protocol) is AnswerProtocol:
                protocol.begin_request()
            flight.is_written = True
            protocol.transport.write(head if body is None else head + body)
            while True:
                if not protocol._buffer:  # the same as its own `read`, which would be one more coroutine
                    if protocol._exception is not None:
                        raise protocol._exception
                    waiter = protocol._waiter = self._loop.create_future()
                    await waiter
                (message, content), _ = protocol._buffer.popleft()
                status = message.code
                if status >= 200 or status < 100 or status == 101:  # others announce the answer
                    self._refuse_repeated(protocol, message, head)
                    if content is EMPTY_PAYLOAD and status not in WITHOUT_BODY and _LENGTH not in message.headers:
                        content = self._cut(protocol)
                    return ResponseHead(status, message.headers, content, self, connection, protocol, body is not None)
        except PermitRevoked:
            connection.release()
            raise
        except BaseException:
            connection.close()
            raise


def whole(content: aiohttp.StreamReader) -> bytes | None:
    """Return a body that is there to its end; None if it is not, or broke off.

    The blocks of a small body are taken directly: `read_nowait` has the connection read on after each block.
    """
    if content is EMPTY_PAYLOAD:
        return b""
    if not content._eof or content._exception is not None:
        return None
    if type(content) is aiohttp.StreamReader and content.total_bytes <= SMALL_BYTES:
        blocks = content._buffer
        return blocks.popleft() if len(blocks) == 1 else b"".join(blocks)
    return content.read_nowait()


def is_longer(response: Answering) -> bool:
    """Return whether more bytes of an answer came than its length says, so that its body may be cut.

    This must be asked at the end of the answer.
    """
    protocol = response._protocol
    return type(protocol) is AnswerProtocol and protocol.is_longer


def target_of(base_path: str, path: str, query: str) -> str:
    """Return the target of a request line.

    Raises:
        ValueError: path or query are not percent-encoded, and would break the line.
    """
    # visible ASCII only, and nothing that ends the path or the query
    if not (path.isascii() and path.isprintable()) or " " in path or "?" in path or "#" in path:
        raise ValueError("the path is not percent-encoded")
    if not query:
        return base_path + path
    if not (query.isascii() and query.isprintable()) or " " in query or "#" in query:
        raise ValueError("the query is not percent-encoded")
    return f"{base_path}{path}?{query}"


def header_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the header lines, each with its end.

    Raises:
        ValueError: a value would break its line.
    """
    lines = ""
    for name, value in headers:
        if not value.isprintable() and _BREAKING.search(value) is not None:  # the first test is quicker, and stricter
            raise ValueError(f"the header {name} holds a control character")
        lines += f"{name}: {value}\r\n"
    # a value that came as bytes that are not UTF-8 leaves as the same bytes
    return lines.encode() if lines.isascii() else lines.encode("utf-8", "surrogateescape")


def line_start(method: str) -> bytes:
    """Return the beginning of a request line.

    Raises:
        ValueError: `method` is not a method.
    """
    if _METHOD.fullmatch(method) is None:
        raise ValueError(f"{method!r} is not a method")
    return f"{method} ".encode()


def bounded(connector: aiohttp.BaseConnector) -> aiohttp.BaseConnector:
    """Have the connections of `connector` keep to the limits of `response_heads.py` from now on, and return it."""
    connector._factory = partial(AnswerProtocol, loop=connector._loop)  # type: ignore[assignment]
    return connector


def never_resending(session: aiohttp.ClientSession) -> aiohttp.ClientSession:
    """Keep `session` from sending a request twice by itself, and return it; there is no public switch for that."""
    session._retry_connection = False
    return session
