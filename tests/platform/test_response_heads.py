"""The head of an answer: what is long is taken, what is too long or odd is named and concerns its own request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from bulk.model import Effect, ErrorCode, Failure, FailureKind, Media, Reply, Request
from bulk.platform.response_heads import INTERIM, LINE_BYTES, LINES, AnswerProtocol
from tests.platform.conftest import in_use
from tests.platform.raw_server import Peer, RawServer, answer, once, serving

GET = Request(method="GET", path="/x")
PUT = Request(method="PUT", path="/x", body={"a": 1}, effect=Effect.SET)
LONG_PUT = Request(method="PUT", path="/x", body={"a": "x" * 1_100_000}, effect=Effect.SET)
"""Its body is so long that aiohttp's session sends it."""

REQUESTS = {
    "write": PUT,
    "long write": LONG_PUT,
    "rate limit": Request(method="GET", path="/rate_limit", is_fresh=True),
}

Ask = Callable[[], Awaitable[Reply | Failure]]


@asynccontextmanager
async def asking(way: str, open_transport, token, monkeypatch, conversation) -> AsyncIterator[tuple[RawServer, Ask]]:
    """A server that holds `conversation`, and what asks it in one of the ways that requests go."""
    async with serving(conversation) as server:
        base_url, options = server.base_url, {}
        if way == "by a proxy":
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
            monkeypatch.delenv("no_proxy", raising=False)
            base_url, options = "http://code.example.com/api/v3", {"trust_env": True}
        async with open_transport(base_url, **options) as transport:

            async def ask() -> Reply | Failure:
                if way == "as a download":
                    answered = await transport.download(f"http://127.0.0.1:{server.port}/raw", 10_000)
                else:
                    answered = await transport.send(REQUESTS.get(way, GET), token)
                assert isinstance(answered, Reply | Failure)
                return answered

            yield server, ask
            with anyio.fail_after(60):
                while in_use(transport):
                    await server.changed.wait()


WAYS = pytest.mark.parametrize("way", ["read", "write", "long write", "by a proxy", "as a download", "rate limit"])

LONG = {
    "a cookie of 12 KiB": "Set-Cookie: a=" + "x" * 12_288 + "\r\n",
    "a policy of nearly 64 KiB": "Content-Security-Policy: " + "x" * (LINE_BYTES - 10) + "\r\n",
    "900 lines": "".join(f"X-{number}: {number}\r\n" for number in range(900)),
    "three lines of 64 KiB": "".join(f"X-{number}: {'y' * LINE_BYTES}\r\n" for number in range(3)),
}


@WAYS
@pytest.mark.parametrize("headers", LONG.values(), ids=LONG)
async def test_long_heads_are_taken(way, headers, open_transport, token, monkeypatch):
    """Long cookies and policies of proxies, and many lines, are read like any other head (failures.md row 28)."""
    async with asking(way, open_transport, token, monkeypatch, once(answer(headers=headers))) as (_, ask):
        reply = await ask()
    assert isinstance(reply, Reply), reply
    assert (reply.status, reply.is_truncated) == (200, False)


END = b"Content-Length: 2\r\n\r\n{}"
BEGIN = b"HTTP/1.1 200 OK\r\n"
BAD = {
    "a line": (BEGIN + b"X: " + b"x" * (LINE_BYTES + 1) + b"\r\n" + END, "a line of more than 64 KiB"),
    "a name": (BEGIN + b"x" * (LINE_BYTES + 1) + b": x\r\n" + END, "a line of more than 64 KiB"),
    "a reason": (b"HTTP/1.1 200 " + b"x" * (LINE_BYTES + 1) + b"\r\n" + END, "a line of more than 64 KiB"),
    "many lines": (BEGIN + b"X: y\r\n" * (LINES + 1) + END, "more than 1,000 header lines"),
    "all together": (
        BEGIN + b"".join(b"X-%d: %b\r\n" % (number, b"y" * 60_000) for number in range(5)) + END,
        "more than 256 KiB altogether",
    ),
    "a flood of interim answers": (
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * (INTERIM + 1) + BEGIN + END,
        "more than 100 interim answers",
    ),
    "a control character": (BEGIN + b"X: a\x00b\r\n" + END, "not valid HTTP"),
    "two lengths": (BEGIN + b"Content-Length: 3\r\n" + END, "not valid HTTP"),
    "a length that is a word": (BEGIN + b"Content-Length: two\r\n\r\n{}", "not valid HTTP"),
    "a length and chunks": (
        BEGIN + b"Transfer-Encoding: chunked\r\n" + END[:-2] + b"2\r\n{}\r\n0\r\n\r\n",
        "",
    ),
}


@WAYS
@pytest.mark.parametrize(("data", "why"), BAD.values(), ids=BAD)
async def test_a_head_that_cant_be_used_is_named(way, data, why, open_transport, token, monkeypatch):
    """What is beyond the limits or odd is a `bad_response` of its request, which may have happened (row 28)."""
    async with asking(way, open_transport, token, monkeypatch, once(data)) as (server, ask):
        failure = await ask()
        await server.until(lambda server: server.open_connections == 0)
    assert isinstance(failure, Failure), failure
    assert (failure.kind, failure.code, failure.is_answer) == (FailureKind.LOST, ErrorCode.BAD_RESPONSE, True)
    assert why in failure.message
    assert len(failure.message) < 200


async def test_what_is_no_http_at_all_is_no_answer(open_transport, token):
    """A peer that speaks something else counts as out of reach, so that a wrong port stops the run."""
    async with (
        serving(once(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")) as server,
        open_transport(server.base_url) as transport,
    ):
        failure = await transport.send(GET, token)
    assert isinstance(failure, Failure)
    assert (failure.code, failure.is_answer) == (ErrorCode.BAD_RESPONSE, False)


@WAYS
async def test_an_endless_head_does_not_fill_the_memory(way, open_transport, token, monkeypatch):
    """A peer whose head never ends is given up after 256 KiB and what was on its way, long before its time is over."""
    written = 0

    async def conversation(peer: Peer) -> None:
        nonlocal written
        await peer.request()
        await peer.write(BEGIN)
        while not peer.writer.is_closing() and written < 64 << 20:
            line = b"X: " + b"y" * 60_000 + b"\r\n"
            await peer.write(line)
            written += len(line)
            await anyio.lowlevel.checkpoint()

    async with asking(way, open_transport, token, monkeypatch, conversation) as (_, ask):
        failure = await ask()
    assert isinstance(failure, Failure)
    assert failure.code is ErrorCode.BAD_RESPONSE
    assert written < 32 << 20


@WAYS
async def test_odd_heads_are_read(way, open_transport, token, monkeypatch):
    """Bytes beyond ASCII, no reason, HTTP/1.0, some interim answers: the answer is there (failures.md row 28)."""
    for data in (
        BEGIN + b'X-Service-Request-Id: caf\xe9 \x7f\r\nETag: "\xff"\r\nLink: <\xe9>; rel="next"\r\n' + END,
        b"HTTP/1.1 200\r\n" + END,
        b"HTTP/1.1 200 \r\n" + END,
        b"HTTP/1.0 200 OK\r\n" + END,
        b"HTTP/1.1 100 Continue\r\n\r\n" * INTERIM + BEGIN + END,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + BEGIN + END,
    ):
        async with asking(way, open_transport, token, monkeypatch, once(data)) as (_, ask):
            reply = await ask()
        assert isinstance(reply, Reply), reply
        assert (reply.status, reply.is_truncated) == (200, False)


@WAYS
async def test_a_length_that_lies_breaks_its_answer_alone(way, open_transport, token, monkeypatch):
    """A body shorter than its length broke off; what follows a longer one is never taken for the next answer."""

    async def short(peer: Peer) -> None:
        await peer.request()
        await peer.write(BEGIN + b"Content-Length: 10\r\n\r\n{}")

    async with asking(way, open_transport, token, monkeypatch, short) as (_, ask):
        reply = await ask()
    assert isinstance(reply, Reply)
    assert reply.is_truncated


@pytest.mark.parametrize("stray", [b"HTTP/1.1 201 No", b"garbage", BEGIN, answer(b'{"whose": "stray"}')])
async def test_bytes_that_come_late_are_never_part_of_the_next_answer(stray, open_transport, token):
    """What arrives while a connection is idle ends it, were it the beginning of an answer only (failures.md row 15)."""
    may_stray, has_strayed = anyio.Event(), anyio.Event()

    async def conversation(peer: Peer) -> None:
        await peer.request()
        await peer.write(answer(b'{"whose": "own"}'))
        if peer.number == 1:
            await may_stray.wait()
            await peer.write(stray)
            await peer.gone()
            has_strayed.set()
        else:
            await peer.gone()

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        first = await transport.send(GET, token)
        may_stray.set()
        with anyio.fail_after(60):
            await has_strayed.wait()
        second = await transport.send(GET, token)
    for reply in (first, second):
        assert isinstance(reply, Reply)
        assert reply.body == {"whose": "own"}
    assert server.connections == 2


async def test_one_bad_head_leaves_the_others_alone(open_transport, token):
    """Of many requests at once, only the ones whose own answer can't be used fail."""

    async def conversation(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            is_bad = b"GET /api/v3/bad" in request
            await peer.write(answer(headers="X: " + "x" * (LINE_BYTES + 1) + "\r\n") if is_bad else answer())

    found: dict[str, Reply | Failure] = {}
    async with serving(conversation) as server, open_transport(server.base_url) as transport:

        async def send(path: str) -> None:
            found[path] = await transport.send(Request(method="GET", path=path), token)

        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                for number in range(30):
                    tasks.start_soon(send, f"/bad{number}" if number % 3 == 0 else f"/good{number}")
    for path, answered in found.items():
        assert isinstance(answered, Failure) == path.startswith("/bad"), answered


async def test_a_proxy_that_answers_nonsense_is_named(open_transport, token, monkeypatch):
    """A proxy whose answer to CONNECT can't be used: nothing was sent, and it is the proxy that is named."""
    async with serving(once(BEGIN + b"X: " + b"x" * (LINE_BYTES + 1) + b"\r\n\r\n")) as server:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with open_transport("https://code.example.com/api/v3", trust_env=True) as transport:
            failure = await transport.send(GET, token)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.code) == (FailureKind.NOT_SENT, ErrorCode.CONNECTION)
    assert failure.message == "what the proxy answered has a line of more than 64 KiB in its head"


TEXT = b"# Read me\n\n"
WHOLE = {
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + TEXT,
    "line feeds alone": b"HTTP/1.1 200 OK\nContent-Length: 11\n\n" + TEXT,
    "interim answers": b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + TEXT,
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n" + TEXT + b"\r\n0\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 11\r\n\r\n",
    "nothing": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
}


def received(*blocks: bytes) -> AnswerProtocol:
    """A connection that has received these blocks of one answer."""
    protocol = AnswerProtocol(asyncio.get_running_loop())
    protocol.set_response_params(read_until_eof=False, auto_decompress=False)
    for block in blocks:
        protocol.data_received(block)
    protocol._buffer.clear()  # somebody has taken it
    return protocol


@pytest.mark.parametrize("data", WHOLE.values(), ids=WHOLE)
async def test_an_answer_that_is_whole_is_not_longer_than_it_says(data):
    """However it is cut into blocks."""
    for place in range(len(data)):
        protocol = received(data[:place], data[place:])
        assert (protocol.is_longer, protocol.should_close) == (False, False), place


@pytest.mark.parametrize(("said", "behind"), [(10, b""), (9, b""), (11, b"\n"), (11, b"\r\n")])
async def test_line_ends_behind_an_answer_are_noticed(said, behind):
    """A length that is too short by the ends of lines with which a file ends, which parsers skip: wherever it is cut
    into blocks, but behind the last byte that the length counts."""
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % said + TEXT + behind
    for place in range(len(data) - len(behind) - len(TEXT) + said):
        protocol = received(data[:place], data[place:])
        assert protocol.is_longer, place
        assert protocol.should_close, place


@pytest.mark.parametrize(("said", "behind"), [(4, b""), (11, b"<!-- proxy -->"), (11, b"H"), (11, b"\r\nmore")])
async def test_any_bytes_behind_a_long_answer_are_noticed(said, behind):
    """A body that comes in several blocks, as a long file does, and the last of them holds more than its length counts:
    parsers may only close the connection, as if the answer before were whole."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % said
    data = head + TEXT + behind
    for place in range(len(head), len(head) + said):
        protocol = received(data[:place], data[place:])
        assert protocol.is_longer, place
        assert protocol.should_close, place


@pytest.mark.parametrize("behind", [b"", b"more"])
async def test_bytes_behind_a_long_answer_are_noticed_when_it_is_read_on(behind):
    """A body that is longer than what is held unread: the parser waits at its end, until that was taken."""
    body = b"x" * 600_000
    protocol = AnswerProtocol(asyncio.get_running_loop())
    protocol.set_response_params(read_until_eof=False, auto_decompress=False)
    protocol.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:300_000])
    (_, content), _ = protocol._buffer.popleft()
    protocol.data_received(body[300_000:] + behind)
    assert not content.is_eof()
    assert await content.read() == body
    assert (protocol.is_longer, protocol.should_close) == (bool(behind), bool(behind))


@pytest.mark.parametrize(("media", "is_truncated"), [(Media.RAW, True), (Media.JSON, False)])
async def test_a_file_with_more_behind_it_is_never_whole(media, is_truncated, open_transport, token):
    """failures.md row 15: bytes of a file that its answer's length does not count: it is taken for cut, and its
    connection is not used again. JSON shows by itself whether it is whole."""
    data = answer(b"[1]", headers="X: y\r\n") + b"\n"

    async def conversation(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.write(data)

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        for number in (1, 2):
            reply = await transport.send(Request(method="GET", path="/x", media=media), token)
            assert isinstance(reply, Reply)
            assert reply.is_truncated is is_truncated
            assert server.connections == number
