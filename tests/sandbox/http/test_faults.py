"""Every kind of injected fault: what the client sees, whether it took effect, what it costs, what the journal says."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import anyio
import anyio.to_thread
import pytest

from bulk.sandbox import FAULT_KINDS, Settings
from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.snapshots import snapshots
from bulk.sandbox.http.faults import BEFORE, PAGE, Faults

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start

CREATE = {"login": "brand-new", "admin": "alice"}
TEST_AREAS = (organizations.AREA, rate_limit.AREA, rulesets.AREA, snapshots.AREA)


async def core_used(platform: Platform) -> int:
    """Requests counted in core (count)."""
    reply = await platform.ask("GET", "/rate_limit")
    used: int = reply.json()["resources"]["core"]["used"]
    return used


async def is_there(start: Start, platform: Platform) -> bool:
    """Whether the organization that was asked for exists."""
    return platform.sandbox.context.state.organization("brand-new") is not None


def line_of(platform: Platform, method: str) -> dict[str, Any]:
    """The one journal line of a method."""
    found = [line for line in platform.journal() if line["method"] == method]
    assert len(found) == 1
    return found[0]


def exchange(url: str, request: bytes) -> bytes:
    """Send a request as bytes and read all that comes back."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=60) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def create(platform: Platform) -> bytes:
    """A request that creates an organization, as bytes."""
    body = b'{"login": "brand-new", "admin": "alice"}'
    head = "POST /api/v3/admin/organizations HTTP/1.1\r\nHost: x\r\nUser-Agent: t\r\n"
    head += "Authorization: Bearer sbx-site-admin\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("kind", ["drop-before", "drop-after"])
async def test_dropped(start: Start, kind: str) -> None:
    """The connection is closed without a byte: before the effect and uncounted, or after it and counted."""
    platform = await start(faults={kind: 1.0})
    assert await anyio.to_thread.run_sync(exchange, platform.url, create(platform)) == b""
    applied = kind == "drop-after"
    assert await is_there(start, platform) is applied
    assert await core_used(platform) == applied
    line = line_of(platform, "POST")
    assert (line["status"], line["applied"], line["fault"]) == (None, applied, kind)
    assert line["effect"] == ("organization brand-new created" if applied else None)
    assert (line["user"], line["category"], line["remaining"]) == ("octoadmin", "core", 5000 - applied)


async def test_reset(start: Start) -> None:
    """The connection ends with a TCP reset, before the effect and uncounted."""
    platform = await start(faults={"reset": 1.0})
    with pytest.raises(ConnectionResetError):
        await anyio.to_thread.run_sync(exchange, platform.url, create(platform))
    assert not await is_there(start, platform)
    assert await core_used(platform) == 0
    line = line_of(platform, "POST")
    assert (line["status"], line["applied"], line["effect"], line["fault"]) == (None, False, None, "reset")


@pytest.mark.parametrize(
    ("kind", "status", "retry_after"),
    [("unavailable", 503, "1"), ("limited", 429, "1"), ("html", 502, None), ("forbidden", 403, None)],
)
async def test_answered_before(start: Start, kind: str, status: int, retry_after: str | None) -> None:
    """Answers that come before the request is admitted: no effect, nothing counted, no word of the budget."""
    platform = await start(faults={kind: 1.0})
    reply = await platform.ask("POST", "/admin/organizations", body=CREATE)
    assert (reply.status, reply.headers.get("Retry-After")) == (status, retry_after)
    assert "X-RateLimit-Remaining" not in reply.headers
    if kind == "html":
        assert (reply.headers["Content-Type"], reply.content) == ("text/html; charset=utf-8", PAGE)
    elif kind == "forbidden":
        assert reply.content == b""
    else:
        assert reply.json()["status"] == str(status)
    assert not await is_there(start, platform)
    assert await core_used(platform) == 0
    line = line_of(platform, "POST")
    assert (line["status"], line["applied"], line["effect"], line["fault"]) == (status, False, None, kind)


async def test_error_after(start: Start) -> None:
    """502 although it was done, as a page and as JSON in turn."""
    platform = await start(faults={"error-after": 1.0})
    first = await platform.ask("POST", "/admin/organizations", body=CREATE)
    assert (first.status, first.content) == (502, PAGE)
    assert "X-RateLimit-Remaining" not in first.headers
    assert await is_there(start, platform)
    line = line_of(platform, "POST")
    assert (line["status"], line["applied"], line["effect"]) == (502, True, "organization brand-new created")
    assert (line["fault"], line["remaining"]) == ("error-after", 4999)
    second = await platform.ask("POST", "/admin/organizations", body=CREATE)
    assert (second.status, second.json()["message"]) == (502, "Server Error")
    assert await core_used(platform) == 2


async def test_truncated(start: Start) -> None:
    """The head says the full length, half of the body comes, then the connection is closed; the write took effect."""
    platform = await start(faults={"truncate": 1.0})
    answer = await anyio.to_thread.run_sync(exchange, platform.url, create(platform))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 201 Created")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert len(body) == length // 2
    assert await is_there(start, platform)
    line = line_of(platform, "POST")
    assert (line["status"], line["applied"], line["fault"]) == (201, True, "truncate")


async def test_truncated_without_a_body(start: Start) -> None:
    """An answer that has no body to cut is not given at all."""
    platform = await start()
    etag = (await platform.ask("GET", "/orgs/acme-eng/rulesets")).headers["ETag"]
    cut = await start(faults={"truncate": 1.0}, journal=None)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await cut.ask("GET", "/orgs/acme-eng/rulesets", headers={"If-None-Match": etag})


async def test_slow(start: Start, clock: HandClock) -> None:
    """The head comes at once, the body a byte at a time; the journal line is there before the last byte."""
    platform = await start(clock=clock, faults={"slow": 1.0})
    async with platform.session.post(
        platform.url + "/admin/organizations",
        json=CREATE,
        headers={"Authorization": "Bearer sbx-site-admin", "User-Agent": "tests"},
    ) as reply:
        assert (reply.status, clock.now() % 1) == (201, 0.25)
        total = reply.content_length or 0
        received = await reply.content.read(1)
        assert len(received) == 1
        while len(received) < total:
            clock.advance(1)
            chunk = await reply.content.read(10)
            assert len(chunk) == 1
            received += chunk
    line = line_of(platform, "POST")
    assert (line["status"], line["applied"], line["fault"]) == (201, True, "slow")
    assert line["elapsed_ms"] >= 1000


async def test_rate_limit_is_spared(start: Start) -> None:
    """GET /rate_limit is hit by no fault, unless a kind is given for it."""
    platform = await start(faults={"unavailable": 1.0})
    assert (await platform.ask("GET", "/rate_limit")).status == 200
    other = await start(faults={"rate_limit:unavailable": 1.0})
    assert (await other.ask("GET", "/rate_limit")).status == 503
    assert (await other.ask("GET", "/orgs/acme-eng/rulesets")).status == 200


def test_one_seed_one_sequence() -> None:
    """The same seed gives the same faults in any order of the options, each in its share; another seed others."""
    shares = dict.fromkeys(FAULT_KINDS, 0.05)

    def drawn(shares: dict[str, float], seed: int) -> list[str | None]:
        faults = Faults(shares, seed)
        return [faults.choose(is_rate_limit=place % 7 == 0) for place in range(7000)]

    first = drawn(shares, 1)
    assert first == drawn(dict(reversed(shares.items())), 1) != drawn(shares, 2)
    for kind in FAULT_KINDS:
        assert 220 <= first.count(kind) <= 380
    assert first[::7] == [None] * 1000


def test_every_kind_is_sorted() -> None:
    """Every kind is either before or after the effect."""
    assert set(FAULT_KINDS) > BEFORE
    assert set(FAULT_KINDS) - BEFORE == {"drop-after", "error-after", "truncate", "slow"}
    assert Settings(faults={"slow": 0.0}).faults == {"slow": 0.0}
