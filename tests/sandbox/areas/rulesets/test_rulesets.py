"""The list of an organization's rulesets, and pages in general. Creating is in `test_ruleset_creation.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest

from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.paging import cut, cut_by_cursor
from bulk.sandbox.http.routes import Area, Route

if TYPE_CHECKING:
    from tests.sandbox.conftest import Platform, Reply


async def paged(call: Call) -> Answer:
    """A list of numbers, by pages."""
    page, headers = cut(call, range(int(call.params["count"])))
    return Answer(body=list(page), headers=headers)


async def cursored(call: Call) -> Answer:
    """A list of numbers, by cursors."""
    numbers = [10 * number for number in range(int(call.params["count"]))]
    page, headers = cut_by_cursor(call, numbers, lambda number: number)
    return Answer(body=list(page), headers=headers)


TEST_AREAS = (
    *AREAS,
    Area("Test", (Route("GET", "/test/pages/{count}", paged), Route("GET", "/test/cursors/{count}", cursored))),
)


def links(reply: Reply) -> dict[str, str]:
    """The URLs of a Link header."""
    header = reply.headers.get("Link", "")
    return {rel: url for url, rel in re.findall(r'<([^>]*)>; rel="([a-z]+)"', header)}


async def test_summaries(shared: Platform) -> None:
    """A summary has the specification's fields."""
    reply = await shared.ask("GET", "/orgs/acme-ops/rulesets")
    (summary,) = reply.json()
    assert list(summary) == (
        ["id", "name", "source_type", "source", "enforcement", "node_id", "_links", "created_at", "updated_at"]
    )
    assert (summary["id"], summary["source_type"], summary["source"]) == (3101, "Organization", "acme-ops")
    assert summary["_links"]["self"]["href"] == f"{shared.url}/orgs/acme-ops/rulesets/3101"
    assert "Link" not in reply.headers


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("targets=branch", 1),
        ("targets=tag,branch", 1),
        ("targets=tag,push", 0),
        ("targets=", 1),
        ("targets[]=tag&targets[]=branch", 1),
        ("targets[]=tag&targets[]=push", 0),
    ],
)
async def test_targets(shared: Platform, query: str, count: int) -> None:
    """`targets` keeps only rulesets of these targets; as an array it is sent once for each, with `[]`."""
    assert len((await shared.ask("GET", f"/orgs/acme-ops/rulesets?{query}")).json()) == count


@pytest.mark.parametrize(
    ("token", "name", "status"),
    [
        ("sbx-org-owner", "acme-eng", 200),
        ("sbx-site-admin", "acme-labs", 200),
        ("sbx-member", "acme-eng", 404),
        ("sbx-installation", "acme-ops", 404),
        ("sbx-site-admin", "missing", 404),
    ],
)
async def test_who_sees_them(shared: Platform, token: str, name: str, status: int) -> None:
    """Owners see an organization's rulesets; for everybody else there are none to see."""
    assert (await shared.ask("GET", f"/orgs/{name}/rulesets", token=token)).status == status


@pytest.mark.parametrize(
    ("query", "first", "length", "rels"),
    [
        ("", 0, 30, {"next": "2", "last": "9"}),
        ("?per_page=100", 0, 100, {"next": "2", "last": "3"}),
        ("?per_page=1000", 0, 100, {"next": "2", "last": "3"}),
        ("?per_page=100&page=2", 100, 100, {"prev": "1", "next": "3", "last": "3", "first": "1"}),
        ("?per_page=100&page=3", 200, 50, {"prev": "2", "first": "1"}),
        ("?per_page=100&page=9", None, 0, {"prev": "3", "first": "1"}),
        ("?per_page=0&page=x", 0, 30, {"next": "2", "last": "9"}),
        ("?per_page=0000000010&page=0000000002", 10, 10, {"prev": "1", "next": "3", "last": "25", "first": "1"}),
        (f"?per_page={'9' * 50}", 0, 100, {"next": "2", "last": "3"}),
        (f"?per_page=100&page={'9' * 20}", None, 0, {"prev": "3", "first": "1"}),
    ],
)
async def test_pages(shared: Platform, query: str, first: int | None, length: int, rels: dict[str, str]) -> None:
    """per_page is 30 unless given and 100 at most; Link leads to prev, next, last and first."""
    reply = await shared.ask("GET", f"/test/pages/250{query}")
    assert (reply.json()[:1], len(reply.json())) == ([] if first is None else [first], length)
    found = links(reply)
    assert {rel: dict(parse_qsl(urlsplit(url).query))["page"] for rel, url in found.items()} == rels
    assert list(found) == [rel for rel in ("prev", "next", "last", "first") if rel in rels]


async def test_links_keep_the_query(shared: Platform) -> None:
    """A link repeats the caller's address and every other parameter as it was given."""
    reply = await shared.ask("GET", "/test/pages/25?targets=branch%2Ctag&per_page=10&a[]=1&a[]=2")
    url = links(reply)["next"]
    assert url.startswith(f"{shared.url}/test/pages/25?")
    query = [("targets", "branch,tag"), ("per_page", "10"), ("a[]", "1"), ("a[]", "2"), ("page", "2")]
    assert parse_qsl(urlsplit(url).query) == query
    assert (await shared.ask("GET", url)).json() == list(range(10, 20))


@pytest.mark.parametrize(("count", "query"), [(0, ""), (30, ""), (100, "?per_page=100")])
async def test_one_page_needs_no_link(shared: Platform, count: int, query: str) -> None:
    """Link is left out when one page is enough."""
    for kind in ("pages", "cursors"):
        reply = await shared.ask("GET", f"/test/{kind}/{count}{query}")
        assert (len(reply.json()), reply.headers.get("Link")) == (count, None)


async def test_cursors(shared: Platform) -> None:
    """Following next goes through everything once, prev the same way back; a bad cursor counts as not given."""
    url, pages = "/test/cursors/25?per_page=10", []
    while url:
        reply = await shared.ask("GET", url)
        pages.append(reply.json())
        url = links(reply).get("next", "")
    assert [number for page in pages for number in page] == [10 * number for number in range(25)]
    back = []
    while "prev" in links(reply):
        reply = await shared.ask("GET", links(reply)["prev"])
        back.append(reply.json())
    assert back == [pages[1], pages[0]]
    for bad in ("!", "YTox", "eA"):
        assert (await shared.ask("GET", f"/test/cursors/25?per_page=10&after={bad}")).json() == pages[0]
