"""A server that speaks bytes: it receives whole requests, keeps what it received, and answers whatever a test wants."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio


@dataclass
class RawServer:
    """What a test sees of it."""

    port: int = 0
    scheme: str = "http"
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def base_url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/api/v3"

    def note(self) -> None:
        changed, self.changed = self.changed, anyio.Event()
        changed.set()

    async def until(self, condition: Callable[["RawServer"], bool]) -> None:
        """Wait until `condition` is true of this server."""
        with anyio.fail_after(60):
            while not condition(self):
                await self.changed.wait()


@dataclass
class Peer:
    """One connection of a client."""

    server: RawServer
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int

    async def request(self) -> bytes | None:
        """The next whole request, head and body; None: the client is gone."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            whole = head + await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            return None
        self.server.requests.append(whole)
        self.server.note()
        return whole

    async def write(self, data: bytes) -> None:
        with suppress(OSError, RuntimeError):  # the second one is uvloop's for a client that is gone
            self.writer.write(data)
            await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the client has closed."""
        with suppress(OSError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        """Close with a TCP reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Conversation = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serving(conversation: Conversation, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """A server on loopback that holds `conversation` with each client."""
    raw = RawServer(scheme="https" if tls else "http")

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raw.connections += 1
        raw.open_connections += 1
        try:
            await conversation(Peer(raw, reader, writer, raw.connections))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            raw.open_connections -= 1
            raw.note()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls, limit=1 << 26)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        await raw.until(lambda raw: raw.open_connections == 0)


def answer(
    body: bytes = b"{}", *, status: int = 200, headers: str = "", content_type: str = "application/json"
) -> bytes:
    """A whole answer with its length."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def always(data: bytes) -> Conversation:
    """Answer every request with the same bytes."""

    async def conversation(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.write(data)

    return conversation


def once(data: bytes) -> Conversation:
    """Answer the first request of a connection with these bytes, then close it."""

    async def conversation(peer: Peer) -> None:
        if await peer.request() is not None:
            await peer.write(data)

    return conversation


async def hang(peer: Peer) -> None:
    """Receive, and never answer."""
    while await peer.request() is not None:
        pass


def then(conversation: Conversation) -> Conversation:
    """Answer the first request, so that the client is connected, and go on with `conversation`."""

    async def first(peer: Peer) -> None:
        if await peer.request() is not None:
            await peer.write(answer())
            await conversation(peer)

    return first
