"""Budgets, through clients that other people wrote: each user of this sandbox has three requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import gidgethub
import github
import pytest
from gidgethub.aiohttp import GitHubAPI

from tests.clients.conftest import Connect
from tests.e2e.support.platform import ADMIN, Served, served

LIMIT, WINDOW_S = 3, 3600
USERS = ("peg", "kim", "gil", "ann", "eve", "joe")
SEED = {
    "users": [{"login": name} for name in USERS],
    "tokens": [{"token": f"sbx-{name}", "user": name} for name in USERS],
}
HELLO = "acme-eng/hello-world"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A sandbox of this module, where every user has three requests."""
    folder = tmp_path_factory.mktemp("budgets")
    with served(folder, "--vendor", "github", "--rate-limit", f"core={LIMIT}/{WINDOW_S}", seed=SEED) as it:
        yield it


@pytest.fixture(scope="module")
def too_fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A sandbox of this module, to which everything is too fast."""
    with served(tmp_path_factory.mktemp("limited"), "--vendor", "github", "--fault", "limited=1.0") as it:
        yield it


def test_asking_for_the_rate_limit_costs_pygithub_nothing(pygithub: Connect) -> None:
    """However often PyGithub asks for its rate limit, all of it is left."""
    client = pygithub("sbx-ann")
    left = [client.get_rate_limit().resources.core for _ in range(LIMIT + 1)]
    assert {(core.limit, core.remaining, core.used) for core in left} == {(LIMIT, LIMIT, 0)}


def test_pygithub_follows_the_headers(pygithub: Connect) -> None:
    """What PyGithub reads from the headers of an answer is what the rate limit says when it is asked for."""
    client = pygithub("sbx-eve")
    client.get_repo(HELLO).get_readme()
    assert client.rate_limiting == (LIMIT - 1, LIMIT)
    reset_at = client.rate_limiting_resettime
    core = client.get_rate_limit().resources.core
    assert (core.remaining, core.reset.timestamp()) == (LIMIT - 1, reset_at)


def test_pygithub_ends_with_its_budget(pygithub: Connect) -> None:
    """The request after the last of the budget is PyGithub's RateLimitExceededException."""
    client = pygithub("sbx-peg")
    repository = client.get_repo(HELLO)
    for _ in range(LIMIT):
        repository.get_readme()
    with pytest.raises(github.RateLimitExceededException) as refused:
        repository.get_readme()
    assert refused.value.status == 403
    assert client.rate_limiting == (0, LIMIT)


async def test_githubkit_ends_with_its_budget(kit: Callable[..., Any], githubkit: Any) -> None:
    """The request after the last of the budget tells githubkit's caller how long the window lasts."""
    client = await kit("sbx-kim")
    for _ in range(LIMIT):
        await client.rest.repos.async_get_readme("acme-eng", "hello-world")
    with pytest.raises(githubkit.exception.PrimaryRateLimitExceeded) as refused:
        await client.rest.repos.async_get_readme("acme-eng", "hello-world")
    assert timedelta(seconds=WINDOW_S - 60) < refused.value.retry_after <= timedelta(seconds=WINDOW_S)


async def test_githubkit_reads_every_category(kit: Callable[..., Any]) -> None:
    """The rate limit status fits githubkit's model, category by category."""
    found = (await (await kit("sbx-ann")).rest.rate_limit.async_get()).parsed_data.resources
    assert found.core.limit == LIMIT
    assert found.dependency_snapshots.remaining == found.dependency_snapshots.limit > 0


async def test_gidgethub_ends_with_its_budget(gidget: Callable[..., GitHubAPI]) -> None:
    """gidgethub counts down with the headers; the request after the last is its RateLimitExceeded."""
    client, left = gidget("sbx-gil"), []
    for _ in range(LIMIT):
        await client.getitem(f"/repos/{HELLO}/readme")
        assert client.rate_limit is not None
        left.append(client.rate_limit.remaining)
    assert left == [2, 1, 0]
    with pytest.raises(gidgethub.RateLimitExceeded) as refused:
        await client.getitem(f"/repos/{HELLO}/readme")
    assert refused.value.rate_limit.remaining == 0


async def test_what_is_refused_for_the_budget_has_no_effect(gidget: Callable[..., GitHubAPI], platform: Served) -> None:
    """A write beyond the budget changes nothing."""
    client, path = gidget("sbx-joe"), f"/repos/{HELLO}/readme"
    for _ in range(LIMIT):
        await client.getitem(path)
    with pytest.raises(gidgethub.RateLimitExceeded):
        await client.put(f"/repos/{HELLO}/contents/late.txt", data={"message": "m", "content": ""})
    assert [line["effect"] for line in platform.requests(path="late.txt")] == [None]


async def test_githubkit_knows_a_secondary_limit(kit: Callable[..., Any], githubkit: Any, too_fast: Served) -> None:
    """Asked to slow down, githubkit tells the pause that the platform wants."""
    client = await kit(ADMIN, base_url=too_fast.base_url)
    with pytest.raises(githubkit.exception.SecondaryRateLimitExceeded) as refused:
        await client.rest.repos.async_get_readme("acme-eng", "hello-world")
    assert refused.value.retry_after == timedelta(seconds=1)


def test_pygithub_is_told_of_a_secondary_limit(pygithub: Connect, too_fast: Served) -> None:
    """Asked to slow down, PyGithub's caller sees status, pause and a message that begins as PyGithub expects it."""
    with pytest.raises(github.GithubException) as refused:
        pygithub(base_url=too_fast.base_url).get_repo(HELLO).get_readme()
    assert refused.value.status == 429
    assert refused.value.headers is not None
    assert refused.value.headers["retry-after"] == "1"
    assert (refused.value.message or "").startswith("You have exceeded a secondary rate limit")
