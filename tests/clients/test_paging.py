"""Lists of many pages, through clients that other people wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import github
import pytest
from gidgethub.aiohttp import GitHubAPI

from tests.clients.conftest import Connect
from tests.e2e.support.platform import ADMIN, Served

COUNT = 5
LABS = "acme-labs"
CONFIGURATIONS = "/enterprises/acme/code-security/configurations"


@pytest.fixture(scope="module", autouse=True)
def filled(platform: Served) -> Iterator[None]:
    """Five webhooks in an organization; nothing listens where they point."""
    with github.Github(
        base_url=platform.base_url, auth=github.Auth.Token(ADMIN), seconds_between_writes=0, lazy=True
    ) as client:
        for number in range(COUNT):
            client.get_organization(LABS).create_hook("web", {"url": f"http://127.0.0.1:9/{number}"}, ["push"])
        yield


def test_pygithub_counts_without_reading_all(pygithub: Connect, platform: Served) -> None:
    """PyGithub's totalCount is right, from one request for a single entry and the last page in its Link."""
    before = len(platform.requests(path="/orgs/acme-labs/hooks"))
    assert pygithub().get_organization(LABS).get_hooks().totalCount == COUNT
    assert len(platform.requests(path="/orgs/acme-labs/hooks")) == before + 1


def test_pygithub_counts_notifications(pygithub: Connect) -> None:
    """Where the biggest page is smaller, PyGithub counts as well."""
    assert pygithub().get_user().get_notifications(all=True).totalCount == 4


@pytest.mark.parametrize("per_page", [1, 2, 5, 100])
def test_pygithub_follows_every_page(pygithub: Connect, per_page: int) -> None:
    """Whatever the size of a page, PyGithub iterates over each entry once, in order."""
    numbers = [hook.id for hook in pygithub(per_page=per_page).get_organization(LABS).get_hooks()]
    assert len(numbers) == COUNT
    assert numbers == sorted(set(numbers))


def test_pygithub_goes_backwards(pygithub: Connect) -> None:
    """Reversed, PyGithub goes from the last page to the first."""
    hooks = pygithub(per_page=2).get_organization(LABS).get_hooks()
    assert [hook.id for hook in hooks.reversed] == [hook.id for hook in hooks][::-1]


def test_pygithub_takes_one_page(pygithub: Connect) -> None:
    """A page that PyGithub asks for by number has its part of the entries; the one after the last is empty."""
    hooks = pygithub(per_page=2).get_organization(LABS).get_hooks()
    assert [len(hooks.get_page(number)) for number in range(4)] == [2, 2, 1, 0]


def test_pygithub_follows_cursors(pygithub: Connect) -> None:
    """Deliveries, whose pages have cursors instead of numbers, are complete, newest first."""
    deliveries = pygithub(per_page=1).get_organization("acme-ops").get_hook_deliveries(4001)
    assert [delivery.id for delivery in deliveries] == [9003, 9002, 9001]


async def test_githubkit_follows_every_page(kit: Callable[..., Any]) -> None:
    """githubkit's paginator yields each entry once."""
    rest = (await kit()).rest
    numbers = [hook.id async for hook in rest.paginate(rest.orgs.async_list_webhooks, org=LABS, per_page=2)]
    assert len(set(numbers)) == len(numbers) == COUNT


async def test_githubkit_follows_cursors(kit: Callable[..., Any]) -> None:
    """githubkit's paginator goes by the cursors of deliveries."""
    rest = (await kit()).rest
    pages = rest.paginate(rest.orgs.async_list_webhook_deliveries, org="acme-ops", hook_id=4001, per_page=1)
    assert [delivery.id async for delivery in pages] == [9003, 9002, 9001]


async def test_gidgethub_follows_every_page(gidget: Callable[..., GitHubAPI]) -> None:
    """gidgethub's getiter yields each entry once, whether pages have numbers or cursors."""
    client = gidget()
    numbers = [hook["id"] async for hook in client.getiter(f"/orgs/{LABS}/hooks?per_page=2")]
    assert len(set(numbers)) == len(numbers) == COUNT
    made = [(await client.post(CONFIGURATIONS, data={"name": name, "description": "."}))["id"] for name in "abc"]
    listed = [one["id"] async for one in client.getiter(f"{CONFIGURATIONS}?per_page=1")]
    assert len(set(listed)) == len(listed)
    assert set(listed) >= {1001, *made}
