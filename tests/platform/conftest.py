"""A transport for tests, on each event loop that people use, which counts connections that it lost."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import fields
from importlib.util import find_spec
from typing import Any, TypeAlias

import pytest

from bulk.clock import Clock
from bulk.manifest.manifest import Platform
from bulk.platform.auth.secrets import Secret
from bulk.platform.transport import Transport

OpenTransport: TypeAlias = Callable[..., AbstractAsyncContextManager[Transport]]


LOOPS = {"asyncio": False} | ({"uvloop": True} if find_spec("uvloop") else {})


@pytest.fixture(scope="session", params=list(LOOPS.values()), ids=list(LOOPS))
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Sockets behave a little differently on uvloop, and the engine uses it where it is installed."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def token() -> Secret:
    """A token like those of the platform."""
    return Secret("tok_0123456789abcdef")


@pytest.fixture
def open_transport() -> OpenTransport:
    """Opens a transport; when it is closed, none of its connections may still be in use."""

    @asynccontextmanager
    async def opened(base_url: str, **options: Any) -> AsyncIterator[Transport]:
        given = {"concurrency": 64, "request_timeout_s": 10.0, "clock": Clock(), **options}
        names = given.keys() & {field.name for field in fields(Platform)}
        platform = Platform(base_url, **{name: given.pop(name) for name in names})
        async with Transport(platform, **given) as transport:
            yield transport
            assert in_use(transport) == 0, "a connection was lost"

    return opened


def acquired(transport: Transport) -> set[Any]:
    """aiohttp's own record of the connections that were taken from the pool and not given back."""
    assert transport._session is not None
    connector = transport._session.connector
    assert connector is not None
    kept = transport._pool.idle if transport._pool is not None else ()
    return set(connector._acquired) - {protocol for _, protocol, _ in kept}


def in_use(transport: Transport) -> int:
    """How many these are (count)."""
    return len(acquired(transport))
