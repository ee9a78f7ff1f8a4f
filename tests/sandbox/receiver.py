"""A receiver of webhooks on loopback, which keeps what it gets and answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from aiohttp import web


@dataclass(frozen=True)
class Posted:
    """One request that came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What came, and how it is answered.

    Attributes:
        url: where it listens.
        status: of its answers.
        is_silent: never answers.
    """

    url: str = ""
    status: int = 200
    is_silent: bool = False
    posted: list[Posted] = field(default_factory=list)
    came: anyio.Event = field(default_factory=anyio.Event)

    async def wait(self, count: int) -> list[Posted]:
        """Come back when `count` requests have come."""
        with anyio.fail_after(60):
            while len(self.posted) < count:
                await self.came.wait()
        return self.posted

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Keep the request, then answer it."""
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.posted.append(Posted(request.path, headers, body))
        came, self.came = self.came, anyio.Event()
        came.set()
        if self.is_silent:
            await asyncio.Event().wait()
        return web.Response(status=self.status, headers={"Location": "/elsewhere"})


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that listens until the block ends."""
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.answer), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()
