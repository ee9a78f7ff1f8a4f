"""Conditional requests of clients that other people wrote: what did not change costs nothing and comes back whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gidgethub.abc import CACHE_TYPE
from gidgethub.aiohttp import GitHubAPI

from tests.clients.conftest import Connect
from tests.e2e.support.platform import Served

HELLO = "acme-eng/hello-world"


def answers(platform: Served, path: str) -> list[tuple[int, int]]:
    """Status of each read of a path, and the budget that it left."""
    reads = (line for line in platform.requests(path=path) if line["method"] == "GET")
    return [(line["status"], line["remaining"]) for line in reads]


def test_pygithub_updates_only_what_changed(pygithub: Connect, platform: Served) -> None:
    """PyGithub's `update` says that nothing changed, for nothing, until something did."""
    repository = pygithub("sbx-org-owner").get_repo(HELLO)
    repository.create_file("again/PyGithub.txt", "Create", "one")
    found: Any = repository.get_contents("again/PyGithub.txt")
    assert not found.update()
    (first, left), (second, still_left) = answers(platform, "again/PyGithub.txt")
    assert (first, second, still_left) == (200, 304, left)
    repository.update_file("again/PyGithub.txt", "Update", "two", found.sha)
    assert found.update()
    assert found.decoded_content == b"two"


async def test_githubkit_asks_again_for_nothing(kit: Callable[..., Any], platform: Served) -> None:
    """A cached answer of githubkit's is asked for again, by its validator: 304, no budget, the same content."""
    client = await kit(http_cache=True)
    replies = [await client.rest.repos.async_get_readme("acme-ops", "runbook") for _ in range(2)]
    assert [reply.raw_response.extensions["hishel_revalidated"] for reply in replies] == [False, True]
    assert replies[0].parsed_data == replies[1].parsed_data
    (first, left), (second, still_left) = answers(platform, "runbook/readme")[-2:]
    assert (first, second, still_left) == (200, 304, left)


async def test_gidgethub_takes_from_its_cache(gidget: Callable[..., GitHubAPI], platform: Served) -> None:
    """What gidgethub has in its cache costs nothing, until it changed."""
    cache: CACHE_TYPE = {}
    client, url = gidget("sbx-org-owner", cache=cache), f"/repos/{HELLO}/contents/again/gidgethub.txt"
    created = await client.put(url, data={"message": "Create", "content": "b25l"})
    first, second = await client.getitem(url), await client.getitem(url)
    assert first == second
    assert first["content"] == "b25l\n"
    await client.put(url, data={"message": "Update", "content": "dHdv", "sha": created["content"]["sha"]})
    assert (await client.getitem(url))["content"] == "dHdv\n"
    statuses = [status for status, _ in answers(platform, "gidgethub.txt")]
    assert statuses == [200, 304, 200]


async def test_gidgethub_polls_notifications_for_nothing(gidget: Callable[..., GitHubAPI], platform: Served) -> None:
    """A poll of notifications that did not change is a 304, and gidgethub's list is the one from before."""
    client = gidget(cache={})
    first, second = await client.getitem("/notifications"), await client.getitem("/notifications")
    assert first == second
    assert [status for status, _ in answers(platform, "/notifications")[-2:]] == [200, 304]
