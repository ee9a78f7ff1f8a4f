"""How the second platform is put on a connection: in memory, or on a real port.

`Server` is an asyncio protocol that reads and writes HTTP/1.1: header names in lower case, every second body in chunks.
`MemoryConnector` is what aiohttp gets connections to it from, without a network.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from tests.hostile.http.messages import Answer, Ask, refused
from tests.hostile.wrong import Course, Guest

TRIP_S = 0.02
"""How long a request and its answer take together (seconds)."""
BODILESS = (204, 304)
REASON = "Because"
"""The reason phrase of every answer: it says nothing."""


class Service:
    """Every guest's platform, found by the token.

    Attributes:
        wall: seconds since 1970, UTC. connections: how many were opened. behind: answers that were not their request's.
        repeats_at: on each connection the answer before this one (count) is sent once more, so that all that follow are
            one answer behind; 0: on none.
    """

    def __init__(self, guests: Mapping[str, Guest], wall: Callable[[], float], repeats_at: int = 0) -> None:
        self.guests, self.wall, self.repeats_at = guests, wall, repeats_at
        self.connections = self.behind = 0

    def hear(self, ask: Ask) -> Course:
        """What becomes of a request."""
        guest = self.guests.get(ask.token)
        return Course(refused(401, "who are you?")) if guest is None else guest.hear(ask, self.wall())


def as_bytes(answer: Answer, *, is_chunked: bool) -> bytes:
    """An answer in HTTP/1.1."""
    lines = [f"HTTP/1.1 {answer.status} {REASON}", *(f"{name}: {value}" for name, value in answer.headers)]
    if answer.status in BODILESS:
        return "\r\n".join([*lines, "", ""]).encode()
    if not is_chunked:
        return "\r\n".join([*lines, f"content-length: {len(answer.body)}", "", ""]).encode() + answer.body
    head = "\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode()
    half = len(answer.body) // 2
    parts = [part for part in (answer.body[:half], answer.body[half:]) if part]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Server(asyncio.Protocol):
    """The platform's side of one connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._read = b""
        self._is_open = False
        self._transport: Any = None
        self._answered = 0
        self._newest = b""
        service.connections += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It begins."""
        self._transport, self._is_open = transport, True

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._is_open = False

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        self._read += data
        while (found := _request(self._read)) is not None:
            ask, used = found
            self._read = self._read[used:]
            asyncio.get_running_loop().call_later(TRIP_S / 2, self._do, ask)

    def _do(self, ask: Ask) -> None:
        loop, course = asyncio.get_running_loop(), self._service.hear(ask)
        for seconds, what in course.later:
            loop.call_later(seconds, partial(self._do_later, what))
        loop.call_later(TRIP_S / 2, self._answer, course)

    def _do_later(self, what: Callable[[float], None]) -> None:
        what(self._service.wall())

    def _answer(self, course: Course) -> None:
        if not self._is_open or course.end == "mute":
            return
        if course.end == "reset":
            self._transport.abort()
            return
        if course.answer is not None and course.end in ("", "half"):
            self._answered += 1
            is_chunked = self._answered % 2 == 0 and course.end == ""
            data = course.wire or as_bytes(course.answer, is_chunked=is_chunked)
            body = len(course.answer.body)
            if 0 < self._service.repeats_at <= self._answered and course.end == "":
                self._service.behind += 1
                data, self._newest = self._newest, data
            else:
                self._newest = data
            self._transport.write(data if course.end == "" else data[: len(data) - max(1, body // 2)])
        if course.end:
            self._transport.close()


def _request(data: bytes) -> tuple[Ask, int] | None:
    """The first request in `data` and its length; None while it is not all there."""
    head, mark, rest = data.partition(b"\r\n\r\n")
    if not mark:
        return None
    line, *fields = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
    if headers.get("transfer-encoding") == "chunked":
        found = _chunks(rest)
        return None if found is None else (Ask.of(method, target, headers, found[0]), len(head) + 4 + found[1])
    size = int(headers.get("content-length", "0"))
    if len(rest) < size:
        return None
    return Ask.of(method, target, headers, rest[:size]), len(head) + 4 + size


def _chunks(data: bytes) -> tuple[bytes, int] | None:
    body, at = b"", 0
    while True:
        line, mark, _ = data[at:].partition(b"\r\n")
        if not mark:
            return None
        size = int(line.split(b";")[0], 16)
        at += len(line) + 2
        if len(data) < at + size + 2:
            return None
        body, at = body + data[at : at + size], at + size + 2
        if size == 0:
            return body, at


class Pipe(asyncio.Transport):
    """One end of a connection in memory; what is written arrives at the other end, in order."""

    other: "Pipe"

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__({"peername": ("192.0.2.1", 443), "sockname": ("192.0.2.2", 40_000)})
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[bytes | None] = deque()
        self._is_paused = self._is_closing = self._is_over = False

    def write(self, data: Any) -> None:
        """Send bytes."""
        if not self._is_closing and data:
            self._loop.call_soon(self.other._arrive, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Send several."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """End it, after what was written."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self.other._arrive, None)
            self._loop.call_soon(self._end, None)

    def abort(self) -> None:
        """Reset it: the other side hears of it as an error."""
        self._is_closing = True
        self.other._arrived.clear()
        self._loop.call_soon(self.other._end, ConnectionResetError(104, "reset by peer"))
        self._loop.call_soon(self._end, None)

    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Hold back what arrives."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Give what was held back."""
        self._is_paused = False
        self._loop.call_soon(self._give)

    def is_reading(self) -> bool:
        """Whether what arrives is given at once."""
        return not self._is_paused

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Another protocol from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol."""
        return self._protocol

    def get_write_buffer_size(self) -> int:
        """Nothing ever waits here."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing ever waits here."""

    def can_write_eof(self) -> bool:
        """Connections are never half closed."""
        return False

    def _arrive(self, data: bytes | None) -> None:
        self._arrived.append(data)
        self._give()

    def _give(self) -> None:
        while self._arrived and not self._is_paused and not self._is_over:
            data = self._arrived.popleft()
            if data is None:
                self._protocol.eof_received()  # type: ignore[attr-defined]  # both protocols have it
                self._end(None)
            else:
                self._protocol.data_received(data)  # type: ignore[attr-defined]

    def _end(self, error: Exception | None) -> None:
        if not self._is_over:
            self._is_over = self._is_closing = True
            self._protocol.connection_lost(error)


def connected(client: asyncio.Protocol, service: Service) -> Pipe:
    """Open a connection in memory; the client's end."""
    server = Server(service)
    ours, theirs = Pipe(client), Pipe(server)
    ours.other, theirs.other = theirs, ours
    server.connection_made(theirs)
    client.connection_made(ours)
    return ours


class MemoryConnector(aiohttp.BaseConnector):
    """Connections to a service in memory, for aiohttp; `client` makes the other end of each.

    A command may have several sessions, one after the other: what is closed are the connections.
    """

    def __init__(
        self, service: Service, client: Callable[[asyncio.AbstractEventLoop], ResponseHandler] = ResponseHandler
    ) -> None:
        super().__init__(limit=0, keepalive_timeout=4.0)
        self._service, self._client = service, client
        self._opened: list[Pipe] = []
        self._is_dead = False

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        if self._is_dead:
            raise ConnectionRefusedError(111, "a killed process sends nothing")
        client = self._client(asyncio.get_running_loop())
        self._opened = [pipe for pipe in self._opened if not pipe.is_closing()]
        self._opened.append(connected(client, self._service))
        return client

    def close(self, **more: Any) -> Any:
        """Close the connections."""
        ended = super().close(**more)
        self._closed = self._is_dead
        return ended

    def die(self) -> None:
        """Close every connection, as the system does for a killed process, and open none any more."""
        self._is_dead = True
        for pipe in self._opened:
            pipe.close()


async def serve(service: Service, host: str = "127.0.0.1", port: int = 0) -> asyncio.Server:
    """Put it on a real port."""
    return await asyncio.get_running_loop().create_server(lambda: Server(service), host, port)
