"""What is known about a request that got no answer: nothing left, or it may have happened."""

import asyncio
import gzip
import socket
import subprocess
import sys
import zlib

import aiohttp
import anyio
import anyio.lowlevel
import pytest
from aiohttp.abc import AbstractResolver

from bulk.govern.rate_limit_poller import ASK_LIMITS
from bulk.model import Effect, ErrorCode, Failure, FailureKind, Media, Reply, Request
from bulk.platform.bodies.body_values import Unreadable
from bulk.platform.classification import limits_from_body
from bulk.platform.environment import PLENTY_OF_FILES, SPARE_FILES
from tests.platform.conftest import acquired, in_use
from tests.platform.raw_server import Peer, always, answer, hang, once, serving, then

GET = Request(method="GET", path="/x")
PUT = Request(method="PUT", path="/x", body={"a": 1}, effect=Effect.SET)
BOTH = pytest.mark.parametrize("request_", [GET, PUT], ids=["GET", "PUT"])


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Names(AbstractResolver):
    """A resolver that fails, or never answers."""

    def __init__(self, error: OSError | None) -> None:
        self.error = error

    async def resolve(self, host, port=0, family=socket.AF_INET):
        if self.error is None:
            await asyncio.get_running_loop().create_future()
        raise self.error or OSError()

    async def close(self) -> None:
        pass


@BOTH
async def test_a_name_that_cant_be_resolved_means_nothing_was_sent(open_transport, token, request_):
    """failures.md row 1: DNS fails: not sent, and the message names the host."""
    connector = aiohttp.TCPConnector(resolver=Names(socket.gaierror(socket.EAI_NONAME, "Name or service not known")))
    async with open_transport("http://code.example.com/api/v3", connector=connector) as transport:
        failure = await transport.send(request_, token)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.code) == (FailureKind.NOT_SENT, ErrorCode.CONNECTION)
        assert "code.example.com" in failure.message
        assert "Name or service not known" in failure.message
        assert transport.sent == 0


@BOTH
async def test_a_slow_resolver_ends_at_the_deadline_with_nothing_sent(open_transport, token, request_):
    """failures.md row 1: DNS hangs: the deadline counts from the start, and nothing was sent."""
    connector = aiohttp.TCPConnector(resolver=Names(None))
    async with open_transport(
        "http://code.example.com/api/v3", connector=connector, request_timeout_s=0.05
    ) as transport:
        failure = await transport.send(request_, token)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.code) == (FailureKind.NOT_SENT, ErrorCode.TIMEOUT)
        assert transport.sent == 0


@BOTH
async def test_a_refused_connection_means_nothing_was_sent(open_transport, token, request_):
    """failures.md row 2: nobody listens: not sent."""
    async with open_transport(f"http://127.0.0.1:{free_port()}/api/v3") as transport:
        failure = await transport.send(request_, token)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.code, failure.is_certificate) == (
            FailureKind.NOT_SENT,
            ErrorCode.CONNECTION,
            False,
        )
        assert transport.sent == 0


async def reset_after_request(peer: Peer) -> None:
    """Receive, then reset."""
    await peer.request()
    peer.reset()


async def reset_in_head(peer: Peer) -> None:
    """Receive, begin an answer, then reset."""
    await peer.request()
    await peer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    peer.reset()


async def close_after_request(peer: Peer) -> None:
    """Receive, then close."""
    await peer.request()


async def close_in_head(peer: Peer) -> None:
    """Receive, begin an answer, then close."""
    await peer.request()
    await peer.write(b"HTTP/1.1 2")


@BOTH
@pytest.mark.parametrize("lose", [reset_after_request, reset_in_head, close_after_request, close_in_head])
async def test_an_answer_lost_before_its_status_may_have_happened(open_transport, token, request_, lose):
    """failures.md row 4: a connection that ends after the request and before a status is lost, and sent once."""
    async with serving(lose) as server, open_transport(server.base_url) as transport:
        failure = await transport.send(request_, token)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.code) == (FailureKind.LOST, ErrorCode.CONNECTION)
        assert transport.sent == 1
    assert len(server.requests) == 1


@BOTH
@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "closed"])
@pytest.mark.parametrize("framing", ["Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n64\r\n{"])
async def test_a_body_that_breaks_keeps_its_status(open_transport, token, request_, is_reset, framing):
    """failures.md row 5: the status was seen, so it is known; the body is flagged as broken."""
    head_seen = anyio.Event()

    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.write(f"HTTP/1.1 201 Created\r\nX-Service-Request-Id: 7\r\n{framing}".encode())
        if is_reset:  # which throws away what was not read yet
            await head_seen.wait()
            peer.reset()

    async with serving(cut) as server, open_transport(server.base_url) as transport, anyio.create_task_group() as group:

        @group.start_soon
        async def watch() -> None:
            while not any(getattr(protocol, "_payload", None) for protocol in acquired(transport)):
                await anyio.lowlevel.checkpoint()
            head_seen.set()

        reply = await transport.send(request_, token)
        group.cancel_scope.cancel()
    assert isinstance(reply, Reply)
    assert (reply.status, reply.is_truncated, reply.body, reply.raw) == (201, True, None, b"")
    assert reply.request_id == "7"


PACKED = gzip.compress(bytes(range(256)) * 20, mtime=0)
MISCODED = {
    "cut deflate": ("deflate", zlib.compress(bytes(range(256)))[:-20]),
    "no deflate": ("deflate", b"no deflate at all"),
    "bad deflate": ("deflate", b"\x78\x9c" + b"\xff" * 50),
    "deflate and more": ("deflate", zlib.compress(b"{}") + b"{}"),
    "cut gzip": ("gzip", PACKED[:-30]),
    "gzip without its sum": ("gzip", PACKED[:-8]),
    "gzip with a wrong sum": ("gzip", PACKED[:-8] + bytes(8)),
    "gzip and more": ("gzip", PACKED + b"{}"),
    "no gzip": ("gzip", b"{}"),
    "a coding that was not offered": ("br", b"{}"),
    "two codings": ("gzip, gzip", gzip.compress(PACKED)),
    "two codings in two lines": ("gzip\r\nContent-Encoding: gzip", gzip.compress(PACKED)),
    "a coding in a second line": ("identity\r\nContent-Encoding: gzip", PACKED),
}


@pytest.mark.parametrize(("coding", "packed"), MISCODED.values(), ids=MISCODED.keys())
async def test_a_body_that_cant_be_decoded_is_broken(open_transport, token, coding, packed):
    """failures.md row 5: the length is right and the coding is not: the status is known, the body is flagged."""
    data = answer(packed, headers=f"Content-Encoding: {coding}\r\n")
    async with serving(always(data)) as server, open_transport(server.base_url) as transport:
        reply = await transport.send(Request(method="GET", path="/x", media=Media.RAW), token)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.is_truncated, reply.body) == (200, True, None)


async def test_an_answer_about_limits_is_small_or_useless(open_transport, token):
    """failures.md row 29: one with very many categories is not read to its end: the event loop would stand still."""
    many = b",".join(b'"c%d":{"limit":1,"used":0,"remaining":1,"reset":1}' % number for number in range(40_000))
    data = answer(b'{"resources":{%b}}' % many)
    async with serving(always(data)) as server, open_transport(server.base_url) as transport:
        reply = await transport.send(ASK_LIMITS, token)
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, Unreadable)
    assert limits_from_body(reply.body) == {}


async def drip(peer: Peer) -> None:
    """Receive, then answer byte by byte."""
    await peer.request()
    await peer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    with anyio.move_on_after(5):
        while not peer.writer.is_closing():
            await peer.write(b" ")
            await anyio.lowlevel.checkpoint()


async def connect(transport, token):
    """Open a connection, which on a busy machine can take longer than the short time of a request."""
    while isinstance(await transport.send(GET, token), Failure):
        pass


@BOTH
async def test_a_silent_platform_is_given_up(open_transport, token, request_):
    """failures.md row 6: no answer within the time of a request: lost, and its connection is closed."""
    async with serving(then(hang)) as server, open_transport(server.base_url, request_timeout_s=0.5) as transport:
        await connect(transport, token)
        failure = await transport.send(request_, token)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.code) == (FailureKind.LOST, ErrorCode.TIMEOUT)
        assert "0.5 s" in failure.message
        assert in_use(transport) == 0
        await server.until(lambda server: server.open_connections == 0)


async def test_a_dripping_body_is_given_up_and_its_status_kept(open_transport, token):
    """failures.md row 6: bytes that trickle in don't prolong the time; the status that came is known."""
    async with serving(then(drip)) as server, open_transport(server.base_url, request_timeout_s=0.5) as transport:
        await connect(transport, token)
        reply = await transport.send(PUT, token)
        assert isinstance(reply, Reply)
        assert (reply.status, reply.is_truncated) == (200, True)
        await server.until(lambda server: server.open_connections == 0)


TWO = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
MALFORMED = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "bad status": b"HTTP/1.1 abc OK\r\n\r\n",
    "two lengths": TWO,
    "two different lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    "a header of a mebibyte": b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20) + b"\r\nContent-Length: 2\r\n\r\n{}",
    "1e5 headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"Content-Length: 2\r\n\r\n{}",
    "NUL in a header": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "two codings of the transfer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2\r\n{}\r\n0\r\n\r\n",
    "chunked and then another": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n"
    b"2\r\n{}\r\n0\r\n\r\n",
    "chunked twice": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2\r\n{}\r\n0\r\n\r\n",
    "unknown coding of the transfer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, what\r\n\r\n{}",
}


@BOTH
@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
async def test_an_answer_that_is_no_http_may_have_happened(open_transport, token, request_, data):
    """failures.md row 28: garbage on the connection: the connection is dropped, and the request counts as lost."""
    async with serving(once(data)) as server, open_transport(server.base_url) as transport:
        failure = await transport.send(request_, token)
        assert isinstance(failure, Failure), failure
        assert (failure.kind, failure.code) == (FailureKind.LOST, ErrorCode.BAD_RESPONSE)
        assert len(failure.message) < 200
        assert in_use(transport) == 0
        await server.until(lambda server: server.open_connections == 0)
        assert transport.sent == 1


@pytest.mark.parametrize("chunks", [b"zz\r\n{}\r\n0\r\n\r\n", b"5\r\n{}\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n{}"])
async def test_chunks_of_wrong_length_break_the_body(open_transport, token, chunks):
    """failures.md row 28: chunks that don't add up: never a body that looks whole."""
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    async with serving(once(data)) as server, open_transport(server.base_url) as transport:
        answered = await transport.send(GET, token)
    if isinstance(answered, Reply):
        assert answered.is_truncated
    else:
        assert answered.kind is FailureKind.LOST


async def test_a_body_after_204_is_never_taken_for_the_next_answer(open_transport, token):
    """failures.md row 15: bytes after a 204 are dropped with their connection; the next answer is its own."""
    stray = answer(b'{"whose": "stray"}')

    async def conversation(peer: Peer) -> None:
        await peer.request()
        await peer.write(b"HTTP/1.1 204 No Content\r\nContent-Length: %d\r\n\r\n" % len(stray) + stray)
        if await peer.request() is not None:
            await peer.write(answer(b'{"whose": "own"}'))

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        first = await transport.send(PUT, token)
        second = await transport.send(GET, token)
    assert not isinstance(first, Reply) or (first.status, first.body) == (204, None)
    assert not isinstance(second, Reply) or second.body != {"whose": "stray"}


LOW_LIMIT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))
import anyio
from bulk.clock import Clock
from bulk.manifest.manifest import Platform
from bulk.model import FailureKind, Failure, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.transport import Transport

async def main():
    transport = Transport(Platform(sys.argv[1]), concurrency=500, request_timeout_s=20.0, clock=Clock())
    first = transport.most_in_flight
    results = []
    async with transport:
        async def send():
            results.append(await transport.send(Request(method="GET", path="/x"), Secret("tok_0123456789")))
        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(send)
        failures = [result for result in results if isinstance(result, Failure)]
        assert failures and all(failure.kind is FailureKind.NOT_SENT for failure in failures), failures[:1]
        print(first, transport.most_in_flight, len(failures), failures[0].message)

anyio.run(main)
"""


async def test_too_few_open_files_lower_what_may_be_in_flight(open_transport):
    """failures.md row 51: with 90 open files, 200 requests at once: some are not sent, and `most_in_flight` falls."""
    async with serving(always(answer())) as server:
        done = await anyio.run_process([sys.executable, "-c", LOW_LIMIT, server.base_url], check=False)
    assert done.returncode == 0, done.stderr.decode()
    first, later, failed, message = done.stdout.decode().split(maxsplit=3)
    assert int(first) == 90 - SPARE_FILES
    assert 1 <= int(later) <= int(first)
    assert int(failed) > 0
    assert "too many open files" in message


ROOM = """
import resource, sys
from bulk.platform.environment import room_for_connections
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(room_for_connections(wanted), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("limits", "wanted", "room", "soft"),
    [
        ((1000, 1000), 500, 500, 1000),
        ((1000, 9000), 500, 500, PLENTY_OF_FILES),
        ((1000, 9000), 5000, 5000, 5000 + SPARE_FILES),
        ((5000, 9000), 500, 500, 5000),
        ((200, 400), 500, 400 - SPARE_FILES, 400),
        ((80, 80), 500, 20, 80),
        ((80, 80), 10, 10, 80),
        ((3, 3), 10, 1, 3),
    ],
)
def test_room_for_connections(limits, wanted, room, soft):
    """The limit of open files is raised to what is wanted, or a round number, where that is allowed; never lowered."""
    command = [sys.executable, "-c", ROOM, *map(str, (*limits, wanted))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(room), str(soft)]
