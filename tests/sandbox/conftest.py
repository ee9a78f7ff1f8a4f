"""A sandbox on loopback, a client that repeats nothing, and a clock that is moved by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from yarl import URL

from bulk.sandbox import Sandbox, Settings, running
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.clock import Clock
from bulk.sandbox.http.routes import Area

START = 1_800_000_000.25


class HandClock:
    """Stands still until `advance`."""

    def __init__(self) -> None:
        self._now = START
        self._moved = anyio.Event()
        self.sleepers = 0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        until = self._now + seconds
        self.sleepers += 1
        try:
            while self._now < until:
                await self._moved.wait()
        finally:
            self.sleepers -= 1

    def advance(self, seconds: float) -> None:
        self._now += seconds
        moved, self._moved = self._moved, anyio.Event()
        moved.set()


@dataclass(frozen=True)
class Reply:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


class Platform:
    """A running sandbox and a client of it. Every request has a connection of its own, so none is ever repeated."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        self.sandbox, self.session, self.url = sandbox, session, sandbox.base_url

    async def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = "sbx-site-admin",
        body: object = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request; `path` is relative to the base address, or a whole URL."""
        sent = {"User-Agent": "tests", **(headers or {})}
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token}")
        data = raw if body is None else json.dumps(body).encode()
        url = path if path.startswith("http") else self.url + path
        async with self.session.request(
            method, URL(url, encoded=True), data=data, headers=sent, allow_redirects=False
        ) as reply:
            return Reply(reply.status, reply.headers, await reply.read())

    def journal(self) -> list[dict[str, Any]]:
        """All lines of the journal."""
        path = self.sandbox.journal
        assert path is not None
        return [json.loads(line) for line in path.read_text().splitlines()]


Start = Callable[..., Awaitable[Platform]]
Visit = Callable[[Sandbox], Platform]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The sandbox is built on asyncio."""
    return "asyncio"


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still."""
    return HandClock()


@pytest.fixture
async def visit() -> AsyncIterator[Visit]:
    """A client of a sandbox that the test runs itself."""
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        yield lambda sandbox: Platform(sandbox, session)


@pytest.fixture
async def start(request: pytest.FixtureRequest, tmp_path: Path, visit: Visit) -> AsyncIterator[Start]:
    """Starts sandboxes; `clock` and `areas` are handed on, everything else goes into the settings.

    The areas are those that the module names as `TEST_AREAS`, else all. Making git repositories is most of a start: a
    module that reads no file does without them.
    """
    chosen: Sequence[Area] = getattr(request.module, "TEST_AREAS", AREAS)
    async with AsyncExitStack() as stack:

        async def begin(*, clock: Clock | None = None, areas: Sequence[Area] = chosen, **options: Any) -> Platform:
            settings = Settings(**{"journal": tmp_path / "journal.jsonl", **options})
            sandbox = await stack.enter_async_context(running(settings, clock=clock, areas=areas))
            return visit(sandbox)

        yield begin


@pytest.fixture
async def platform(start: Start) -> Platform:
    """A sandbox of its own with the standard data and settings."""
    return await start()


@pytest.fixture(scope="module")
async def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    """The same, for all tests of a module that leave no traces for each other."""
    settings = Settings(journal=tmp_path_factory.mktemp("shared") / "journal.jsonl")
    areas: Sequence[Area] = getattr(request.module, "TEST_AREAS", AREAS)
    connector = aiohttp.TCPConnector(force_close=True)
    async with (
        running(settings, areas=areas) as sandbox,
        aiohttp.ClientSession(connector=connector, auto_decompress=False) as session,
    ):
        yield Platform(sandbox, session)
