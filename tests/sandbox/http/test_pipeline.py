"""What every request goes through, whatever it asks for."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest

from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.routes import Area, Route

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start

ERROR_KEYS = {"message", "documentation_url", "status"}


async def broken(call: Call) -> Answer:
    """An area function with a bug."""
    raise ZeroDivisionError("a bug of ours")


async def echo(call: Call) -> Answer:
    """What the call held."""
    return Answer(
        body={
            "media": call.media,
            "version": call.version,
            "base_url": call.base_url,
            "user": call.user.login if call.user else None,
            "labels": call.query.every("labels"),
            "body": call.json_object(),
        }
    )


async def nothing(call: Call) -> Answer:
    """An answer whose status allows no body."""
    return Answer(205, body={"ignored": True}, headers={"X-Poll-Interval": "60"})


TEST_AREAS = (
    *AREAS,
    Area(
        "Test",
        (
            Route("GET", "/test/broken", broken),
            Route("GET", "/test/echo", echo, anonymous=True),
            Route("POST", "/test/echo", echo),
            Route("PATCH", "/test/nothing", nothing),
        ),
    ),
)


def exchange(url: str, head: str) -> bytes:
    """Send bytes as they are and read all that comes back."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=60) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nothing/here"),
        ("GET", "/rate_limit/"),
        ("GET", "//rate_limit"),
        ("DELETE", "/rate_limit"),
        ("GET", "/orgs/acme-ops/rulesets/"),
    ],
)
async def test_unknown_paths(shared: Platform, method: str, path: str) -> None:
    """What has no endpoint, a trailing slash and another method included, is 404 with the platform's error body."""
    reply = await shared.ask(method, path)
    assert (reply.status, set(reply.json())) == (404, ERROR_KEYS)
    assert reply.json()["message"] == "Not Found"
    assert reply.json()["status"] == "404"


async def test_paths_outside_the_base(shared: Platform) -> None:
    """Everything lies below /api/v3; outside, there is only 404."""
    for path in ("/", "/rate_limit", "/api/v3", "/api/v30/rate_limit"):
        reply = await shared.ask("GET", shared.url.removesuffix("/api/v3") + path)
        assert (path, reply.status) == (path, 404)


async def test_versions(shared: Platform) -> None:
    """Without a version header the oldest version answers; an unknown one is 400; the one that answered is named."""
    header = "X-Service-Api-Version"
    for asked, selected in ((None, "2022-11-28"), ("2022-11-28", "2022-11-28"), ("2026-03-10", "2026-03-10")):
        reply = await shared.ask("GET", "/test/echo", headers={header: asked} if asked else {})
        assert (reply.status, reply.json()["version"]) == (200, selected)
        assert reply.headers["X-Service-Api-Version-Selected"] == selected
    refused = await shared.ask("GET", "/test/echo", headers={header: "2020-01-01"})
    assert (refused.status, set(refused.json())) == (400, ERROR_KEYS)
    assert "2020-01-01" in refused.json()["message"]


async def test_user_agent(shared: Platform) -> None:
    """A request without a User-Agent is refused."""
    answer = await anyio.to_thread.run_sync(
        exchange, shared.url, "GET /api/v3/rate_limit HTTP/1.1\nHost: x\nConnection: close\n\n"
    )
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"User-Agent" in answer


async def test_vendor_github(start: Start) -> None:
    """With the vendor github, headers and media types carry its name."""
    platform = await start(vendor="github", areas=TEST_AREAS)
    reply = await platform.ask(
        "GET",
        "/test/echo",
        headers={"X-GitHub-Api-Version": "2026-03-10", "Accept": "application/vnd.github.v3.raw"},
    )
    assert (reply.json()["version"], reply.json()["media"]) == ("2026-03-10", "raw")
    assert reply.headers["X-GitHub-Api-Version-Selected"] == "2026-03-10"
    assert reply.headers["X-GitHub-Media-Type"] == "github.v3; param=raw"
    assert "X-GitHub-Request-Id" in reply.headers


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (None, "json"),
        ("*/*", "json"),
        ("application/json", "json"),
        ("application/vnd.service+json", "json"),
        ("application/vnd.service.raw+json", "raw"),
        ("application/vnd.service.html+json", "html"),
        ("application/vnd.service.object+json", "object"),
        ("application/vnd.service.raw", "raw"),
        ("application/vnd.service.v3.html", "html"),
        ("application/vnd.service.v3.object+json", "object"),
        ("APPLICATION/VND.SERVICE.RAW+JSON", "raw"),
        ("text/x-unknown, application/vnd.service.raw+json", "raw"),
        ("application/vnd.service.raw+json,application/json", "raw"),
        ("application/vnd.service.raw+json;q=0.5, application/json", "json"),
        ("application/vnd.service.nebula-preview+json", "json"),
        ("application/vnd.other.raw+json", "json"),
        ("application/vnd.servicex.raw+json", "json"),
        ("application/vnd.service.raw+json;q=zero", "json"),
        ("nonsense", "json"),
    ],
)
async def test_media_types(shared: Platform, accept: str | None, media: str) -> None:
    """Accept may list several types, long or short; unknown ones mean plain JSON and are never refused."""
    reply = await shared.ask("GET", "/test/echo", headers={"Accept": accept} if accept else {})
    assert (reply.status, reply.json()["media"]) == (200, media)


async def test_urls_repeat_the_caller(shared: Platform) -> None:
    """URLs in answers have the caller's own scheme, host and port; a malformed Host is not repeated."""
    assert (await shared.ask("GET", "/test/echo")).json()["base_url"] == shared.url
    for host, url in (("code.example.com:81", "http://code.example.com:81/api/v3"), ('a"b', "http://127.0.0.1/api/v3")):
        reply = await shared.ask("GET", "/test/echo", headers={"Host": host})
        assert reply.json()["base_url"] == url


async def test_array_parameters(shared: Platform) -> None:
    """An array parameter is sent once for each entry, with [] after its name."""
    reply = await shared.ask("GET", "/test/echo?labels[]=a&labels%5B%5D=b&labels=c&other=d")
    assert reply.json()["labels"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("raw", "status", "message"),
    [
        (b'{"a": 1', 400, "Problems parsing JSON"),
        (b'{"a": NaN}', 400, "Problems parsing JSON"),
        (b"\xff", 400, "Problems parsing JSON"),
        (b"[1]", 400, "Body should be a JSON object"),
        (b'"text"', 400, "Body should be a JSON object"),
        (b"", 200, None),
        (b' {"a": [1]} ', 200, None),
    ],
)
async def test_bodies(shared: Platform, raw: bytes, status: int, message: str | None) -> None:
    """A body that is not JSON, or no object, is 400; an empty one is an empty object."""
    reply = await shared.ask("POST", "/test/echo", raw=raw)
    assert (reply.status, reply.json().get("message")) == (status, message)


async def test_a_bug_is_one_500(shared: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """A bug in an area is a 500 with the platform's error body and a line in the log; the server goes on."""
    with caplog.at_level(logging.ERROR, "bulk.sandbox"):
        reply = await shared.ask("GET", "/test/broken")
    assert (reply.status, set(reply.json())) == (500, ERROR_KEYS)
    assert "a bug of ours" not in reply.content.decode()
    assert [record.getMessage() for record in caplog.records] == ["GET /api/v3/test/broken failed"]
    assert (await shared.ask("GET", "/test/echo")).status == 200


async def test_answers_without_a_body(shared: Platform) -> None:
    """205 has an empty body, whatever the area gave, and the area's own headers."""
    reply = await shared.ask("PATCH", "/test/nothing")
    assert (reply.status, reply.content, reply.headers["X-Poll-Interval"]) == (205, b"", "60")


async def test_head(shared: Platform) -> None:
    """HEAD has the headers of GET and no body."""
    got, head = await shared.ask("GET", "/test/echo"), await shared.ask("HEAD", "/test/echo")
    assert (head.status, head.content) == (200, b"")
    assert head.headers["ETag"] == got.headers["ETag"]
    assert head.headers["Content-Length"] == str(len(got.content))


async def test_headers_of_every_answer(start: Start, clock: HandClock) -> None:
    """Every answer says the server's time, an id of its own, its version, its media type and its budget."""
    platform = await start(clock=clock, areas=TEST_AREAS)
    first, second = [(await platform.ask("GET", path)).headers for path in ("/test/echo", "/nothing")]
    assert first["Date"] == "Fri, 15 Jan 2027 08:00:00 GMT"
    assert first["X-Service-Request-Id"] != second["X-Service-Request-Id"]
    for headers in (first, second):
        assert headers["X-Service-Media-Type"] == "service.v3; format=json"
        assert headers["Content-Type"] == "application/json; charset=utf-8"
        assert headers["X-RateLimit-Resource"] == "core"


async def test_keep_alive_and_expect(shared: Platform) -> None:
    """A caller that waits for `100 Continue` before its body gets it, and its connection serves a second request."""
    head = "Host: x\nUser-Agent: t\nAuthorization: Bearer sbx-site-admin\n"
    post = f"POST /api/v3/admin/organizations HTTP/1.1\n{head}Expect: 100-continue\nContent-Length: 2\n\n{{}}"
    get = f"GET /api/v3/rate_limit HTTP/1.1\n{head}Connection: close\n\n"
    answer = await anyio.to_thread.run_sync(exchange, shared.url, post + get)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 422 ")
    assert b"HTTP/1.1 200 OK" in answer


async def test_a_request_that_breaks_off(start: Start) -> None:
    """A request whose body never comes whole does nothing, and its journal line says so."""
    platform = await start()
    address = urlsplit(platform.url)
    stream = await anyio.connect_tcp(address.hostname or "", address.port or 0)
    async with stream:
        await stream.send(
            b"POST /api/v3/admin/organizations HTTP/1.1\r\nHost: x\r\nUser-Agent: t\r\n"
            b'Authorization: Bearer sbx-site-admin\r\nContent-Length: 100\r\n\r\n{"login": "half", '
        )
    with anyio.fail_after(60):
        while not platform.journal():
            await platform.ask("GET", "/rate_limit")
    line = next(line for line in platform.journal() if line["method"] == "POST")
    assert (line["status"], line["applied"], line["effect"]) == (None, False, None)
