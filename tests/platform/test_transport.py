"""What goes over the wire for a request, and what comes back of an answer."""

import gzip
import socket
import tracemalloc
import zlib

import aiohttp
import orjson
import pytest
from aiohttp.abc import AbstractResolver

from bulk.model import Effect, Failure, FailureKind, Media, Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.bodies.body_values import Unreadable
from bulk.platform.cache.cache_entry import CacheEntry
from bulk.platform.cache.cache_entry import head_of as head_of_kept
from tests.platform.conftest import OpenTransport
from tests.platform.raw_server import Peer, always, answer, once, serving

GET = Request(method="GET", path="/repos/acme/api/readme")


def head_of(request: bytes) -> tuple[str, dict[str, str]]:
    """Request line and headers (lower case); no header twice."""
    line, *rest = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    pairs = [header.split(": ", 1) for header in rest]
    assert len({name.lower() for name, _ in pairs}) == len(pairs)
    return line, {name.lower(): value for name, value in pairs}


async def reply_to(open_transport: OpenTransport, data: bytes, request: Request = GET) -> Reply:
    """What the transport makes of these bytes."""
    async with serving(always(data)) as server, open_transport(server.base_url) as transport:
        answered = await transport.send(request, Secret("tok_0123456789abcdef"))
    assert isinstance(answered, Reply), answered
    return answered


async def test_the_headers_of_a_read_are_few_and_right(open_transport, token):
    """A read says who asks, what it accepts and which version; nothing else goes over the wire."""
    async with (
        serving(always(answer())) as server,
        open_transport(server.base_url, api_version="2026-03-10") as transport,
    ):
        await transport.send(GET, token)
    line, headers = head_of(server.requests[0])
    assert line == "GET /api/v3/repos/acme/api/readme HTTP/1.1"
    assert headers.pop("user-agent").startswith("bulk")
    assert headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept": "application/vnd.service+json",
        "accept-encoding": "gzip, deflate",
        "authorization": "Bearer tok_0123456789abcdef",
        "x-service-api-version": "2026-03-10",
    }


async def test_the_vendor_names_headers_and_media_types(open_transport, token):
    """With the vendor github, the same request speaks that dialect."""
    async with (
        serving(always(answer(headers="X-GitHub-Request-Id: AB:12\r\n"))) as server,
        open_transport(server.base_url, vendor="github", api_version="2022-11-28") as transport,
    ):
        reply = await transport.send(Request(method="GET", path="/x", media=Media.RAW), token)
    _, headers = head_of(server.requests[0])
    assert headers["accept"] == "application/vnd.github.raw+json"
    assert headers["x-github-api-version"] == "2022-11-28"
    assert isinstance(reply, Reply)
    assert reply.request_id == "AB:12"


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE"])
async def test_a_body_is_json_with_its_length_and_type(open_transport, token, method):
    """What is sent is the JSON of `body`, with Content-Type and Content-Length, in one piece."""
    body = {"message": "Grüße", "content": "QUJD", "sha": None}
    async with serving(always(answer())) as server, open_transport(server.base_url) as transport:
        await transport.send(Request(method=method, path="/x", body=body, effect=Effect.SET), token)
        await transport.send(Request(method=method, path="/x", effect=Effect.SET), token)
    head, _, sent = server.requests[0].partition(b"\r\n\r\n")
    headers = head_of(head)[1]
    assert orjson.loads(sent) == body
    assert (headers["content-type"], headers["content-length"]) == ("application/json", str(len(sent)))
    without = head_of(server.requests[1])[1]
    assert "content-type" not in without
    assert without["content-length"] == "0"


async def test_a_long_body_is_streamed_and_whole(open_transport, token):
    """Three megabytes arrive as they were, without a warning about blocking."""
    content = "QUJD" * 750_000
    request = Request(method="PUT", path="/x", body={"content": content}, effect=Effect.SET)
    async with serving(always(answer())) as server, open_transport(server.base_url) as transport:
        assert isinstance(await transport.send(request, token), Reply)
    assert orjson.loads(server.requests[0].partition(b"\r\n\r\n")[2]) == {"content": content}


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/repos/a/b/contents/%2e%2e/x", ""),
        ("/repos/a/b/contents/a%2Fb%3F%23%25", "ref=a%26b"),
        ("/enterprises/e/teams/ent%3Aplatform/organizations", "per_page=100&page=2"),
        ("/repos/a/b/contents//double", "q=%00%7F"),
        ("/x/~!$&'()*+,;=:@", "a[]=1&a[]=2"),
    ],
)
async def test_paths_go_out_exactly_as_they_were_encoded(open_transport, token, path, query):
    """failures.md row 57: nothing is decoded, encoded a second time or normalized on the way to the wire."""
    async with serving(always(answer())) as server, open_transport(server.base_url) as transport:
        await transport.send(Request(method="GET", path=path, query=query), token)
    target = f"/api/v3{path}" + (f"?{query}" if query else "")
    assert head_of(server.requests[0])[0] == f"GET {target} HTTP/1.1"


@pytest.mark.parametrize(
    ("path", "query"),
    [("/a b", ""), ("/ä", ""), ("/a?b", ""), ("/a#b", ""), ("/a\r\nX: y", ""), ("/a", "b c"), ("/a", "b#")],
)
async def test_what_is_not_encoded_never_leaves(open_transport, token, path, query):
    """failures.md row 58: a path that could break the request line is a bug that is told, and nothing is sent."""
    async with serving(always(answer())) as server, open_transport(server.base_url) as transport:
        with pytest.raises(ValueError, match=r"encoded|control"):
            await transport.send(Request(method="GET", path=path, query=query), token)
    assert server.requests == []


ETAG, LAST_MODIFIED = 'W/"weak, with a comma"', "Sat, 21 Nov 2026 08:00:00 GMT"


def kept(etag: str) -> CacheEntry:
    """An answer with these validators, as the store has it."""
    return CacheEntry((1, b"key", head_of_kept(etag, LAST_MODIFIED, "", "") or "", b"{}", 0), Media.JSON)


async def test_validators_go_back_verbatim_and_a_304_comes_back_as_one(open_transport, token):
    """A stored answer's validators are sent as they came, weak ones too; fresh requests go without."""
    fresh = Request(method="GET", path="/x", is_fresh=True)
    not_modified = b'HTTP/1.1 304 Not Modified\r\nETag: "new"\r\n\r\n'
    async with serving(always(not_modified)) as server, open_transport(server.base_url) as transport:
        reply = await transport.send(GET, token, kept(ETAG))
        await transport.send(fresh, token, kept(ETAG))
        await transport.send(GET, token, None)
        await transport.send(GET, token, kept(""))
    first, second, third, fourth = (head_of(request)[1] for request in server.requests)
    assert (first["if-none-match"], first["if-modified-since"]) == (ETAG, LAST_MODIFIED)
    assert not {"if-none-match", "if-modified-since"} & (second.keys() | third.keys())
    assert "if-none-match" not in fourth
    assert "if-modified-since" in fourth
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body, reply.headers["etag"]) == (304, None, '"new"')


@pytest.mark.parametrize(
    ("media", "data", "body"),
    [
        (Media.JSON, answer(b'{"a": [1, 2.5, "\xc3\xa9"]}'), {"a": [1, 2.5, "é"]}),
        (Media.JSON, answer(b"[]"), []),
        (Media.JSON, answer(b'{"id": 18446744073709551615}'), {"id": 2**64 - 1}),
        (Media.JSON, answer(b'{"id": 18446744073709551616}'), {"id": 18446744073709551616.0}),
        (Media.JSON, answer(b'{"a": 1, "a": 2}'), {"a": 2}),
        (Media.OBJECT, answer(b'{"entries": []}'), {"entries": []}),
        (Media.RAW, answer(b'{"a": 1}\x00\xff'), b'{"a": 1}\x00\xff'),
        (Media.RAW, answer(b""), b""),
        (Media.HTML, answer(b"<p>", content_type="text/html"), b"<p>"),
        (Media.JSON, answer(b""), None),
        (Media.JSON, b"HTTP/1.1 204 No Content\r\n\r\n", None),
        (Media.JSON, answer(b"ignored", status=205), None),
        (Media.JSON, answer(b'{"message": "no"}', status=404), {"message": "no"}),
        (Media.RAW, answer(b'{"message": "no"}', status=404), {"message": "no"}),
    ],
)
async def test_bodies_become_what_the_media_says(open_transport, media, data, body):
    """failures.md rows 15 and 26: JSON, bytes or nothing, as asked for; huge numbers and double keys are tolerated."""
    reply = await reply_to(open_transport, data, Request(method="GET", path="/x", media=media))
    assert reply.body == body
    assert not reply.is_truncated


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"[" * 100_000,
        b'{"a": "\xff"}',
        b'{"a": 1',
        b"{'a': 1}",
        b'{"a": 1} {"b": 2}',
        b"\x00",
        b'"\\ud800"',
        b"plain words",
    ],
)
async def test_what_is_no_json_is_a_body_that_cant_be_used(open_transport, body):
    """failures.md row 26: a mark order, NaN, a deep nest, bad UTF-8, garbage: never an exception, never shown."""
    reply = await reply_to(open_transport, answer(body))
    assert isinstance(reply.body, Unreadable)
    assert "words" not in reply.body.why
    assert (await reply_to(open_transport, answer(body, status=500))).body is None


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><html><b>tok</b></html>", b'{"message": "looks like JSON"}'])
async def test_a_web_page_is_never_read_as_json(open_transport, page):
    """failures.md row 24: HTML from a proxy is neither a message nor JSON, whatever it holds."""
    failed = await reply_to(open_transport, answer(page, status=502, content_type="text/html; charset=utf-8"))
    assert (failed.status, failed.body) == (502, None)
    succeeded = await reply_to(open_transport, answer(page, content_type="text/html"))
    assert isinstance(succeeded.body, Unreadable)


async def test_headers_are_found_in_lower_case_and_links_joined(open_transport):
    """Header names are found in lower case; several `Link` headers count as one."""
    links = (
        'LINK: <http://x/1>; rel="prev"\r\nLink: <http://x/3>; rel="next"\r\nETAG: "e"\r\nX-Service-Request-ID: 7\r\n'
    )
    reply = await reply_to(open_transport, answer(headers=links))
    assert reply.headers["link"] == '<http://x/1>; rel="prev", <http://x/3>; rel="next"'
    assert (reply.headers["etag"], reply.request_id) == ('"e"', "7")
    single = await reply_to(open_transport, answer(headers='Link: <http://x/3>; rel="next"\r\n'))
    assert single.headers["link"] == '<http://x/3>; rel="next"'


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
async def test_redirects_are_never_followed(open_transport, token, method, status):
    """failures.md row 11: a redirect comes back as it is, and nothing is sent anywhere."""
    async with serving(always(answer())) as elsewhere:
        redirect = answer(b"", status=status, headers=f"Location: {elsewhere.base_url}/other\r\n")
        async with serving(always(redirect)) as server, open_transport(server.base_url) as transport:
            effect = Effect.READ if method == "GET" else Effect.SET
            reply = await transport.send(Request(method=method, path="/x", effect=effect), token)
        assert isinstance(reply, Reply)
        assert reply.status == status
        assert reply.headers["location"].startswith(elsewhere.base_url)
        assert (len(server.requests), len(elsewhere.requests), transport.sent) == (1, 0, 1)


async def test_cookies_are_never_sent_back(open_transport, token):
    """A cookie that the platform sets is forgotten."""
    data = answer(headers="Set-Cookie: session=1; Path=/\r\n")
    async with serving(always(data)) as server, open_transport(server.base_url) as transport:
        for _ in range(2):
            await transport.send(GET, token)
    assert b"cookie" not in server.requests[1].lower()


def compressed(body: bytes, coding: str) -> bytes:
    """`body` in a content coding, in one of its variants."""
    match coding:
        case "gzip":
            return gzip.compress(body)
        case "gzip in parts":
            return gzip.compress(body[:5]) + gzip.compress(b"") + gzip.compress(body[5:])
        case "deflate":
            return zlib.compress(body)
        case _:
            return zlib.compress(body)[2:-4]


@pytest.mark.parametrize("coding", ["gzip", "gzip in parts", "deflate", "deflate without its wrapper"])
@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_compressed_answers_are_decompressed(open_transport, coding, size):
    """Both codings that are offered are understood, in all their variants, short and long."""
    value = {"text": "ab" * (size // 2)}
    headers = f"Content-Encoding: {coding.partition(' ')[0]}\r\n"
    data = answer(compressed(orjson.dumps(value), coding), headers=headers)
    assert (await reply_to(open_transport, data)).body == value


@pytest.mark.parametrize("status", [200, 500])
async def test_a_body_beyond_the_cap_is_not_read(open_transport, status):
    """failures.md row 29: what is longer than asked for is given up, and the reply says so."""
    request = Request(method="GET", path="/x", media=Media.RAW, max_bytes=1000)
    exact = await reply_to(open_transport, answer(b"x" * 1000, status=status), request)
    assert exact.body == (b"x" * 1000 if status == 200 else None)
    over = await reply_to(open_transport, answer(b"x" * 1001, status=status), request)
    assert over.status == status
    assert over.raw == b""
    if status == 200:
        assert isinstance(over.body, Unreadable)
        assert over.body.is_too_large
    else:
        assert over.body is None


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_bomb_is_given_up_early(open_transport, coding):
    """failures.md row 29: two gigabytes within two megabytes are given up after the cap, in little memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    blocks = [packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)]
    data = answer(blocks[0] + blocks[1] * 2047, headers=f"Content-Encoding: {coding}\r\n")
    tracemalloc.start()
    try:
        reply = await reply_to(open_transport, data, Request(method="GET", path="/x", max_bytes=32 << 20))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(reply.body, Unreadable)
    assert reply.body.is_too_large
    assert peak < 120 << 20


async def test_one_pool_serves_many_requests(open_transport, token):
    """Connections are kept and used again, and `sent` counts what was written."""
    async with serving(always(answer())) as server, open_transport(server.base_url) as transport:
        for _ in range(20):
            assert isinstance(await transport.send(GET, token), Reply)
        assert transport.sent == 20
    assert (server.connections, len(server.requests)) == (1, 20)


async def test_each_request_carries_the_token_it_was_given(open_transport):
    """After a renewal, the next request carries the new token, on the same connection."""
    async with serving(always(answer())) as server, open_transport(server.base_url) as transport:
        for text in ("tok_old_one", "tok_new_one", "tok_old_one"):
            await transport.send(GET, Secret(text))
    sent = [head_of(request)[1]["authorization"] for request in server.requests]
    assert sent == ["Bearer tok_old_one", "Bearer tok_new_one", "Bearer tok_old_one"]
    assert server.connections == 1


async def test_an_early_answer_to_a_long_upload_is_seen(open_transport, token):
    """A refusal that comes before the whole body was sent is the answer, and the connection is not used again."""

    async def refuse(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.write(answer(b'{"message": "too large"}', status=413))
        await peer.gone()

    request = Request(method="PUT", path="/x", body={"content": "x" * 30_000_000}, effect=Effect.SET)
    async with serving(refuse) as server, open_transport(server.base_url) as transport:
        reply = await transport.send(request, token)
        assert isinstance(reply, Reply), reply
        assert (reply.status, reply.body) == (413, {"message": "too large"})
        await server.until(lambda server: server.open_connections == 0)


async def test_an_address_that_does_not_answer_is_looked_up_again(open_transport, token, monkeypatch):
    """failures.md row 1: a platform that fails over to another address is found there with the next request, and not
    only when its old address would be forgotten anyway."""
    ports: list[int] = []

    class Names(AbstractResolver):
        async def resolve(self, host, port=0, family=socket.AF_INET):
            addresses = {"family": socket.AF_INET, "proto": 6, "flags": socket.AI_NUMERICHOST}
            return [{"hostname": host, "host": "127.0.0.1", "port": ports[-1], **addresses}]

        async def close(self):
            pass

    monkeypatch.setattr(aiohttp.connector, "DefaultResolver", lambda **_: Names())
    async with serving(always(answer())) as second, open_transport("http://platform.test/api/v3") as transport:
        async with serving(once(answer(headers="Connection: close\r\n"))) as first:
            ports.append(first.port)
            assert isinstance(await transport.send(GET, token), Reply)
        failure = await transport.send(GET, token)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.NOT_SENT
        ports.append(second.port)
        assert isinstance(await transport.send(GET, token), Reply)
