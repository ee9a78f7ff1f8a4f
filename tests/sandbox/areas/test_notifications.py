"""Notifications: the list, its validators and poll interval, and marking as read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from bulk.sandbox import Settings, running
from bulk.sandbox.areas import notifications, rate_limit
from bulk.sandbox.areas.notifications import AT_ONCE, MOST_POLL_S, POLL_S, POLLS_WITHOUT_LOAD, READ_S, note_change
from bulk.sandbox.clock import http_date, iso
from bulk.sandbox.settings import SettingError
from tests.sandbox.conftest import START

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start, Visit

TEST_AREAS = (notifications.AREA, rate_limit.AREA)
MANY = AT_ONCE + 1
BEYOND = "9999-12-31T23:59:59-14:00"
"""A timestamp that the platform could not write, because it is one of the year 10000 where there is no offset."""
FIELDS = [
    "id",
    "repository",
    "subject",
    "reason",
    "unread",
    "updated_at",
    "last_read_at",
    "url",
    "subscription_url",
]


async def ids(platform: Platform, query: str = "", token: str = "sbx-site-admin") -> list[str]:
    """Ids of the threads that are listed."""
    reply = await platform.ask("GET", f"/notifications{query}", token=token)
    assert reply.status == 200, reply.content
    return [thread["id"] for thread in reply.json()]


async def mark(platform: Platform, **body: object) -> Any:
    """Mark all as read; the answer."""
    return await platform.ask("PUT", "/notifications", body=body)


async def poll(platform: Platform, since: str | None = None) -> Any:
    """Poll the list; the answer."""
    return await platform.ask("GET", "/notifications", headers={"If-Modified-Since": since} if since else {})


def seeded(path: Path, count: int = MANY) -> Path:
    """A seed file with that many unread threads of alice, of 2020."""
    seed = path / "seed.yaml"
    seed.write_text(
        "notifications:\n"
        f"  - {{user: alice, repository: acme-eng/hello-world, count: {count}, updated_at: 2020-02-02T02:02:02Z}}\n"
    )
    return seed


def effects(platform: Platform) -> list[str | None]:
    """What the requests that changed something or tried to have done."""
    return [line["effect"] for line in platform.journal() if line["method"] != "GET"]


async def test_the_list(shared: Platform) -> None:
    """Unread threads of the caller, the one that was updated last first, with all fields of thread and repository."""
    reply = await shared.ask("GET", "/notifications")
    assert [thread["id"] for thread in reply.json()] == ["1", "2", "4"]
    first = reply.json()[0]
    assert list(first) == FIELDS
    assert (first["reason"], first["unread"], first["last_read_at"]) == ("mention", True, None)
    assert first["updated_at"] == "2025-06-01T00:00:00Z"
    assert first["subject"] == {
        "title": "The greeting is too loud",
        "url": f"{shared.url}/repos/acme-eng/hello-world/issues/1",
        "latest_comment_url": f"{shared.url}/repos/acme-eng/hello-world/issues/1",
        "type": "Issue",
    }
    assert first["repository"]["full_name"] == "acme-eng/hello-world"
    assert first["repository"]["owner"]["login"] == "acme-eng"
    assert first["url"] == f"{shared.url}/notifications/threads/1"
    assert (await shared.ask("GET", first["url"])).json() == first
    assert await ids(shared, token="sbx-member") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?all=true", ["1", "2", "3", "4"]),
        ("?all=false", ["1", "2", "4"]),
        ("?participating=true", ["1", "2"]),
        ("?since=2025-05-01T00:00:00Z", ["1", "2"]),
        ("?before=2025-05-01T00:00:00Z", ["4"]),
        ("?since=2025-01-01T00:00:00Z&before=2025-05-15T00:00:00Z&all=true", ["2", "3"]),
        ("?per_page=2", ["1", "2"]),
        ("?per_page=2&page=2", ["4"]),
    ],
)
async def test_filters_and_pages(shared: Platform, query: str, expected: list[str]) -> None:
    """`all` adds read ones, `participating` takes out mere subscriptions, `since` and `before` cut; pages go on."""
    assert await ids(shared, query) == expected


async def test_fifty_on_a_page(start: Start, tmp_path: Path) -> None:
    """A page has 50 threads, and never more."""
    platform = await start(seed_data=seeded(tmp_path))
    for query in ("", "?per_page=100"):
        reply = await platform.ask("GET", f"/notifications{query}", token="sbx-org-owner")
        assert len(reply.json()) == 50
        assert 'rel="next"' in reply.headers["Link"]


@pytest.mark.parametrize("query", ["?since=yesterday", "?before=2025-05-01", "?since=", f"?since={BEYOND}"])
async def test_list_refused(shared: Platform, query: str) -> None:
    """A moment that is none is 422."""
    reply = await shared.ask("GET", f"/notifications{query}")
    assert (reply.status, reply.json()["errors"][0]["code"]) == (422, "invalid")


@pytest.mark.parametrize("token", ["sbx-fine-grained", "sbx-installation", "sbx-read-only"])
async def test_classic_tokens_only(shared: Platform, token: str) -> None:
    """Other kinds of token, and classic ones without the scope, are 403; no token is 401."""
    for method, path in (("GET", ""), ("PUT", ""), ("GET", "/threads/1"), ("PATCH", "/threads/1")):
        assert (await shared.ask(method, f"/notifications{path}", token=token)).status == 403
    assert (await shared.ask("GET", "/notifications", token=None)).status == 401


@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize("number", ["99", "x", "9" * 30])
async def test_threads_that_are_not_there(shared: Platform, method: str, number: str) -> None:
    """A thread that is not there, or somebody else's, is 404."""
    assert (await shared.ask(method, f"/notifications/threads/{number}")).status == 404
    assert (await shared.ask(method, "/notifications/threads/1", token="sbx-org-owner")).status == 404


# Polling


async def test_nothing_new(start: Start, clock: HandClock) -> None:
    """With exactly the last `Last-Modified` it is 304, which costs nothing; with any other value it is not."""
    platform = await start(clock=clock)
    first = await poll(platform)
    seen = first.headers["Last-Modified"]
    assert seen == "Sun, 01 Jun 2025 00:00:00 GMT"
    again = await poll(platform, seen)
    assert (again.status, again.headers["Last-Modified"]) == (304, seen)
    assert again.headers["X-Poll-Interval"] == str(POLL_S)
    assert again.headers["X-RateLimit-Remaining"] == first.headers["X-RateLimit-Remaining"]
    for other in (http_date(START), "Sun, 01 Jun 2025 00:00:01 GMT", "Sunday, 01-Jun-25 00:00:00 GMT"):
        assert (await poll(platform, other)).status == 200


async def test_no_change_is_missed(start: Start, clock: HandClock) -> None:
    """Also two changes within the second of a poll show in the next one."""
    platform = await start(clock=clock)
    assert (await platform.ask("PATCH", "/notifications/threads/1")).status == 205
    between = (await poll(platform)).headers["Last-Modified"]
    assert (await platform.ask("PATCH", "/notifications/threads/2")).status == 205
    assert (await poll(platform, between)).status == 200
    clock.advance(1)
    after = await poll(platform, between)
    assert (after.status, [thread["id"] for thread in after.json()]) == (200, ["4"])
    assert (await poll(platform, after.headers["Last-Modified"])).status == 304


async def test_news_are_seen(start: Start, clock: HandClock) -> None:
    """A thread that comes changes the validator."""
    platform = await start(clock=clock)
    seen = (await poll(platform)).headers["Last-Modified"]
    state = platform.sandbox.context.state
    with state.transaction() as db:
        db.execute("UPDATE threads SET unread = 1, updated_at = ? WHERE id = 3", (START - 5,))
        note_change(state, 1, START - 5)
    reply = await poll(platform, seen)
    assert [thread["id"] for thread in reply.json()] == ["3", "1", "2", "4"]
    assert reply.headers["Last-Modified"] == http_date(START - 5)


async def test_the_interval_grows_under_load(start: Start, clock: HandClock) -> None:
    """Many polls in a minute make it longer, up to ten minutes; further pages are not polls; then it shrinks again."""
    platform = await start(clock=clock)

    async def interval(query: str = "") -> int:
        return int((await platform.ask("GET", f"/notifications{query}")).headers["X-Poll-Interval"])

    assert [await interval() for _ in range(POLLS_WITHOUT_LOAD)] == [POLL_S] * POLLS_WITHOUT_LOAD
    assert [await interval("?page=2&per_page=1") for _ in range(20)] == [POLL_S] * 20
    assert await interval() == 2 * POLL_S
    for _ in range(120):
        longest = await interval()
    assert longest == MOST_POLL_S
    clock.advance(61)
    assert await interval() == POLL_S


# Marking as read


async def test_one_thread(start: Start, clock: HandClock) -> None:
    """205 marks it, with the moment; again it is 304, which changes and costs nothing."""
    platform = await start(clock=clock)
    first = await platform.ask("PATCH", "/notifications/threads/2")
    assert (first.status, first.content) == (205, b"")
    thread = (await platform.ask("GET", "/notifications/threads/2")).json()
    assert (thread["unread"], thread["last_read_at"]) == (False, iso(START))
    again = await platform.ask("PATCH", "/notifications/threads/2")
    assert again.status == 304
    assert again.headers["X-RateLimit-Used"] == "2"
    assert effects(platform) == ["thread 2 of octoadmin read", None]
    assert await ids(platform) == ["1", "4"]


async def test_all_of_them(platform: Platform) -> None:
    """Without a moment all are marked, 205; then there is nothing to mark, 304."""
    assert [(await mark(platform)).status for _ in range(2)] == [205, 304]
    assert await ids(platform) == []
    assert effects(platform)[1] is None


async def test_up_to_a_moment(platform: Platform) -> None:
    """What was updated after `last_read_at` stays unread; updated at that very second counts as read."""
    reply = await mark(platform, last_read_at="2025-05-01T02:00:00+02:00", read=True)
    assert reply.status == 205
    assert await ids(platform) == ["1"]
    assert effects(platform) == ["notifications of octoadmin up to 2025-05-01T00:00:00Z read"]
    assert (await mark(platform, last_read_at="2025-05-01T00:00:00Z")).status == 304


async def test_marking_nothing(shared: Platform) -> None:
    """`read: false` marks nothing; a wrong body is 422."""
    assert (await mark(shared, read=False)).status == 304
    for body in ({"last_read_at": "now"}, {"last_read_at": 5}, {"last_read_at": BEYOND}, {"read": "yes"}):
        assert (await mark(shared, **body)).status == 422
    assert len(await ids(shared)) == 3


async def test_many_are_marked_in_the_background(start: Start, clock: HandClock, tmp_path: Path) -> None:
    """More than fit in a request: 202 with a message; until it is done all are unread, a further request joins it."""
    platform = await start(clock=clock, seed_data=seeded(tmp_path))

    async def as_alice(**body: object) -> Any:
        return await platform.ask("PUT", "/notifications", token="sbx-org-owner", body=body)

    first = await as_alice(last_read_at="2020-02-02T02:02:02Z")
    assert (first.status, "in the background" in first.json()["message"]) == (202, True)
    assert (await as_alice(last_read_at="2020-02-02T02:02:02Z")).status == 202
    assert (await as_alice(last_read_at="2021-01-01T00:00:00Z")).status == 202
    assert len(await ids(platform, token="sbx-org-owner")) == 50
    clock.advance(READ_S)
    with anyio.fail_after(60):
        while await ids(platform, token="sbx-org-owner"):
            await anyio.lowlevel.checkpoint()
    assert READ_S <= 2
    assert (await as_alice()).status == 304
    told = "notifications of alice up to {} read"
    assert effects(platform) == [
        told.format("2020-02-02T02:02:02Z"),
        None,
        told.format("2021-01-01T00:00:00Z"),
        None,
    ]


async def test_it_survives_a_restart(visit: Visit, clock: HandClock, tmp_path: Path) -> None:
    """Marking that was accepted is done after a restart."""
    settings = Settings(state=tmp_path / "state", seed_data=seeded(tmp_path))
    async with running(settings, clock=clock, areas=TEST_AREAS) as sandbox:
        reply = await visit(sandbox).ask("PUT", "/notifications", token="sbx-org-owner")
        assert reply.status == 202
    async with running(settings, clock=clock, areas=TEST_AREAS) as sandbox:
        platform = visit(sandbox)
        assert await ids(platform, token="sbx-org-owner")
        clock.advance(READ_S)
        with anyio.fail_after(60):
            while await ids(platform, token="sbx-org-owner"):
                await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{user: nobody, repository: acme-eng/hello-world}", "no user"),
        ("{user: alice, repository: acme-eng/nothing}", "no repository"),
        ("{user: alice, repository: acme-eng/hello-world, updated_at: yesterday}", "updated_at"),
        ("{user: alice, repository: acme-eng/hello-world, reason: boredom}", "boredom"),
    ],
)
async def test_seeds_refused(tmp_path: Path, line: str, reason: str) -> None:
    """A thread of nobody, about nothing, of no moment or for no known reason is an error that says where."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(f"notifications: [{line}]")
    with pytest.raises(SettingError, match=reason) as raised:
        async with running(Settings(seed_data=seed), areas=TEST_AREAS):
            pass
    assert "notifications[" in str(raised.value)
