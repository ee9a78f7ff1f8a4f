"""Connections to the page: how many there may be, how long one may take to ask, and what is said to what can't be read.

Every user of the machine reaches loopback. One who opens connections and sends nothing, or a letter a minute, must not
keep others out, nor use up the files that this process may open. What can't be read as a request may hold a key, so it
is neither repeated nor logged.
"""

import asyncio
import socket
from collections.abc import Callable

from aiohttp import web

from bulk.serve.guard import HEADERS

FIRST_S, IDLE_S = 10.0, 60.0
"""A connection that has never asked anything is closed after so long, and one that asks nothing any more (seconds)."""
BODY_S = 10.0
"""So long the body of a request may take (seconds)."""
LINGERS_S = 1.0
"""So long the rest of a body is taken that nobody waits for any more (seconds)."""
MOST = 200
"""Connections at once (count): a browser has six."""

Refused = Callable[[int, str], web.Response]
"""Makes the answer of a refusal."""


class Connection(web.RequestHandler):
    """One connection.

    Args:
        server: what the application was made into.
    """

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, refused: Refused) -> None:
        # None: no access log, as its runner would have it
        super().__init__(server, loop=loop, access_log=None, lingering_time=LINGERS_S)  # type: ignore[arg-type]
        self._server, self._timers, self._refused = server, loop, refused
        self._asked = self._seen = 0
        self._at = loop.time()
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take it in; where there are too many, one goes that has asked nothing, or whose last request is oldest."""
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
        """Return whether it is not on its way out."""
        return self.transport is not None and not self.transport.is_closing()

    @property
    def importance(self) -> tuple[bool, float]:
        """Return what is the least of the one that goes first."""
        return self._asked > 0, self._at

    def note_request(self) -> None:
        """Note that a whole head has come."""
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
        """Return what is answered to what is no request, or where the page itself has failed; `message` is not used,
        because it has a piece of what was sent."""
        if status == 500:
            self.log_exception("the page has failed", exc_info=exc)
        answer = self._refused(status, "the page itself has failed" if status == 500 else "that is no request")
        answer.headers.update(HEADERS)
        answer.force_close()
        return answer


async def listen(runner: web.AppRunner, sock: socket.socket, refused: Refused) -> asyncio.Server:
    """Take connections on a socket that is bound."""
    loop, server = asyncio.get_running_loop(), runner.server
    assert server is not None, "it was set up"
    return await loop.create_server(lambda: Connection(server, loop, refused), sock=sock)
