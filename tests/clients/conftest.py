"""Three clients that other people wrote, unmodified, and a `bulk sandbox --vendor github` that they share.

PyGithub waits for each answer; githubkit and gidgethub are asynchronous. Of their options, only those are set that say
where the platform is, and that leave pauses and repeats out. Starting a process is most of the time that a test takes,
so they share one: each writes to paths, webhooks and users of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from types import ModuleType
from typing import Any

import aiohttp
import github
import pytest
from gidgethub.aiohttp import GitHubAPI

from tests.e2e.support.platform import ADMIN, Served, served
from tests.sandbox.receiver import Receiver, receiving

READERS = {"peg": 3, "pam": 3, "kim": 3, "ken": 3, "gil": 3, "max": 60}
"""Users, whose token is `sbx-` and the name, and how many unread threads each has."""

Connect = Callable[..., github.Github]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Two of the clients are used on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def direct() -> Iterator[None]:
    """Two of the clients obey the environment's proxies, which know nothing of this machine's loopback."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NO_PROXY", "no_proxy"):
            patch.setenv(name, "127.0.0.1")
        yield


@pytest.fixture(scope="session")
def githubkit() -> ModuleType:
    """The package, imported once and only where it is used: its models take their time. All of it is `Any`."""
    for name in ("exception", "webhooks"):
        importlib.import_module(f"githubkit.{name}")
    return importlib.import_module("githubkit")


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A sandbox as a process, with the standard data and the users of `READERS`."""
    seed = {
        "users": [{"login": name} for name in READERS],
        "apps": [{"slug": "fleet", "client_id": "Iv1.fleet", "installations": [{"organization": "acme-ops"}]}],
        "new_organizations": {"repositories": [{"name": "notes", "private": True}]},
        "tokens": [{"token": f"sbx-{name}", "user": name} for name in READERS],
        "notifications": [
            {"user": name, "repository": "acme-eng/hello-world", "count": count, "updated_at": "2025-06-01T00:00:00Z"}
            for name, count in READERS.items()
        ],
    }
    with served(tmp_path_factory.mktemp("clients"), "--vendor", "github", seed=seed) as it:
        yield it


@pytest.fixture
def pygithub(platform: Served) -> Iterator[Connect]:
    """Makes clients: `pygithub(token, **options)`. They ask for nothing that a test doesn't ask for."""
    made: list[github.Github] = []

    def connect(token: str = ADMIN, **options: Any) -> github.Github:
        given: dict[str, Any] = {
            "base_url": platform.base_url,
            "auth": github.Auth.Token(token),
            "retry": None,
            "seconds_between_requests": 0,
            "seconds_between_writes": 0,
            "lazy": True,
        }
        made.append(github.Github(**(given | options)))
        return made[-1]

    yield connect
    for each in made:
        each.close()


@pytest.fixture
async def kit(platform: Served, githubkit: ModuleType) -> AsyncIterator[Callable[..., Any]]:
    """Makes clients: `await kit(token, **options)`, without their cache unless asked."""
    async with AsyncExitStack() as stack:

        async def connect(token: str | None = ADMIN, **options: Any) -> Any:
            given = {"base_url": platform.base_url, "auto_retry": False, "http_cache": False}
            return await stack.enter_async_context(githubkit.GitHub(token, **(given | options)))

        yield connect


@pytest.fixture
async def gidget(platform: Served) -> AsyncIterator[Callable[..., GitHubAPI]]:
    """Makes clients: `gidget(token, **options)`."""
    async with aiohttp.ClientSession() as session:
        yield lambda token=ADMIN, **options: GitHubAPI(
            session, "tests", oauth_token=token, base_url=platform.base_url, **options
        )


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver of webhooks on loopback."""
    async with receiving() as it:
        yield it
