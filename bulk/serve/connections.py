"""Connections to the page: their number, the time that they may take, and the answer to bytes that are not a request.

Every user of the machine reaches loopback. A user who opens connections and sends nothing, or a letter a minute, must
not keep others out, nor use up the files that this process may open. Bytes that can't be read as a request may hold a
key, so they are neither repeated nor logged.
"""

import asyncio
import socket
from collections.abc import Callable

from aiohttp import web

from bulk.serve.guard import HEADERS

FIRST_S, IDLE_S = 10.0, 60.0
"""After how long a connection is closed that has never sent a request, and one without further requests (seconds)."""
BODY_S = 10.0
"""How long the body of a request may take (seconds)."""
LINGERS_S = 1.0
"""How long the rest of a body is read after its request was answered (seconds)."""
MOST = 200
"""The most connections at once (count): a browser has six."""

Refused = Callable[[int, str], web.Response]
"""Makes the answer of a refusal."""


class Connection(web.RequestHandler):
    """One connection.

    Args:
        server: the aiohttp server of the application.
    """

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, refused: Refused) -> None:
        # None: no access log, as its runner would have it
        super().__init__(server, loop=loop, access_log=None, lingering_time=LINGERS_S)  # type: ignore[arg-type]
        self._server, self._timers, self._refused = server, loop, refused
        self._asked = self._seen = 0
        self._at = loop.time()
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take in a connection; where there are too many, close the least important one (see `importance`)."""
        super().connection_made(transport)
        every = self._server.connections
        others = [each for each in every if isinstance(each, Connection) and each.is_open and each is not self]
        if len(others) >= MOST:
            min(others, key=lambda each: each.importance).force_close()
        self._look = self._timers.call_later(FIRST_S, self._looked)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget a connection that is gone."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open and not about to be closed."""
        return self.transport is not None and not self.transport.is_closing()

    @property
    def importance(self) -> tuple[bool, float]:
        """Return a key by which connections are sorted: the lowest one is closed first.

        Connections without a request come first, then those whose last request is oldest.
        """
        return self._asked > 0, self._at

    def note_request(self) -> None:
        """Note that the whole head of a request has come."""
        self._asked += 1
        self._at = self._timers.time()

    def _looked(self) -> None:
        if self._asked == self._seen:
            self.force_close()
            return
        self._seen = self._asked
        self._look = self._timers.call_later(IDLE_S, self._looked)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to bytes that are not a request, or to a request at which the page itself has failed.

        `message` is not used, because it quotes the bytes that were sent.
        """
        if status == 500:
            self.log_exception("the page has failed", exc_info=exc)
        answer = self._refused(status, "the page itself has failed" if status == 500 else "that is not a request")
        answer.headers.update(HEADERS)
        answer.force_close()
        return answer


async def listen(runner: web.AppRunner, sock: socket.socket, refused: Refused) -> asyncio.Server:
    """Listen on a bound socket, and return the server."""
    loop, server = asyncio.get_running_loop(), runner.server
    assert server is not None, "it was set up"
    return await loop.create_server(lambda: Connection(server, loop, refused), sock=sock)
