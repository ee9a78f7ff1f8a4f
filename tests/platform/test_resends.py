"""Exactly one request on the wire: counted by servers that close, reset or pollute connections at their next use."""

import anyio
import anyio.lowlevel
import pytest

from bulk.model import Effect, ErrorCode, Failure, FailureKind, Reply, Request
from tests.platform.conftest import acquired
from tests.platform.raw_server import Peer, answer, serving

METHODS = pytest.mark.parametrize("method", ["PUT", "DELETE", "GET", "POST", "PATCH"])


def request_of(method: str, path: str = "/x") -> Request:
    """A read or a write with that method."""
    body = {"a": 1} if method in ("PUT", "POST", "PATCH") else None
    return Request(method=method, path=path, body=body, effect=Effect.READ if method == "GET" else Effect.SET)


def second_one(end: str):
    """Answer the first request of a connection; on the next one, receive it whole and close or reset."""

    async def conversation(peer: Peer) -> None:
        await peer.request()
        await peer.write(answer())
        if await peer.request() is not None and end == "reset":
            peer.reset()

    return conversation


@METHODS
@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_connection_closed_at_reuse_is_one_request_for_the_server(open_transport, token, method, end):
    """failures.md row 8: a kept connection that the server closes on the next request: it arrived once, and is lost."""
    async with serving(second_one(end)) as server, open_transport(server.base_url) as transport:
        assert isinstance(await transport.send(request_of("GET", "/first"), token), Reply)
        failure = await transport.send(request_of(method, "/second"), token)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.LOST
        assert transport.sent == 2
    assert sum(b"/second " in request for request in server.requests) == 1
    assert len(server.requests) == 2


@METHODS
async def test_a_second_sending_is_refused_even_if_aiohttp_tries(open_transport, token, method):
    """failures.md row 8: should aiohttp's own re-send come back under another name, the request still leaves once."""
    async with serving(second_one("close")) as server, open_transport(server.base_url) as transport:
        transport._session._retry_connection = True
        transport._pool = None  # by aiohttp's session, as through a proxy
        await transport.send(request_of("GET", "/first"), token)
        failure = await transport.send(request_of(method, "/second"), token)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.LOST
        assert transport.sent == 2
    assert sum(b"/second " in request for request in server.requests) == 1


@METHODS
async def test_a_connection_that_has_closed_while_idle_is_replaced(open_transport, token, method):
    """A server that closes after each answer costs nothing: the next request goes out once, on a new connection."""

    async def conversation(peer: Peer) -> None:
        await peer.request()
        await peer.write(answer())

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        for number in range(3):
            replied = await transport.send(request_of(method, f"/{number}"), token)
            assert isinstance(replied, Reply)
            await server.until(lambda server: server.open_connections == 0)
            await seen_closed(transport)
    assert len(server.requests) == 3
    assert server.connections == 3


async def seen_closed(transport) -> None:
    """Wait until the transport's side has noticed that its idle connections are closed."""
    with anyio.fail_after(60):
        while any(not connection.closed for connection, *_ in transport._pool.idle):
            await anyio.lowlevel.checkpoint()


@METHODS
async def test_an_answer_that_nobody_asked_for_is_never_taken(open_transport, token, method):
    """Bytes that arrive on an idle connection are not an answer to the next request, which goes out on another one."""
    stray_sent = anyio.Event()

    async def conversation(peer: Peer) -> None:
        if peer.number == 1:
            await peer.request()
            await peer.write(answer(b'{"whose": "first"}'))
            await stray_sent.wait()
            await peer.write(answer(b'{"whose": "stray"}'))
        while await peer.request() is not None:
            await peer.write(answer(b'{"whose": "own"}'))

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        assert isinstance(await transport.send(request_of("GET"), token), Reply)
        [(connection, *_)] = transport._pool.idle
        protocol = connection.protocol
        stray_sent.set()
        with anyio.fail_after(60):
            while not protocol.should_close:
                await anyio.lowlevel.checkpoint()
        second = await transport.send(request_of(method), token)
        assert isinstance(second, Reply)
        assert (second.body, server.connections, transport.sent) == ({"whose": "own"}, 2, 2)
        assert not acquired(transport)


async def test_what_breaks_behind_an_announcement_is_a_lost_answer(open_transport, token):
    """Where nonsense follows a 103 before anybody has looked at it, the request is lost, and its connection closed."""
    arrived = anyio.Event()

    async def conversation(peer: Peer) -> None:
        while await peer.request() is not None:
            arrived.set()

    answers = []
    async with serving(conversation) as server, open_transport(server.base_url) as transport:

        async def send() -> None:
            answers.append(await transport.send(request_of("PUT"), token))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await arrived.wait()
            [protocol] = acquired(transport)
            protocol.data_received(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            protocol.data_received(b"nonsense\r\n\r\n")
        assert not acquired(transport)
    [failure] = answers
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.code) == (FailureKind.LOST, ErrorCode.BAD_RESPONSE)


def numbered(number: object, body: bytes = b"{}") -> bytes:
    """An answer with the platform's own id of its request."""
    return answer(body, headers=f"X-Service-Request-Id: {number}\r\n")


@METHODS
async def test_the_answer_to_the_request_before_is_never_taken(open_transport, token, method):
    """A proxy sends an answer twice, and the second copy comes when the next request is under way: that one is lost,
    its connection closed, and nothing later is one answer behind."""

    async def conversation(peer: Peer) -> None:
        sent = 0
        while await peer.request() is not None:
            sent += 1
            number = 2 if peer.number == 1 and sent == 3 else 10 * peer.number + sent
            await peer.write(numbered(2 if peer.number == 1 and sent == 2 else number))

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        first, second, third = [await transport.send(request_of(method, f"/{number}"), token) for number in range(3)]
        assert isinstance(first, Reply)
        assert isinstance(second, Reply)
        assert isinstance(third, Failure)
        assert (third.kind, third.code, third.is_answer) == (FailureKind.LOST, ErrorCode.BAD_RESPONSE, True)
        assert isinstance(await transport.send(request_of(method, "/3"), token), Reply)
        assert (server.connections, transport.sent) == (2, 4)
        assert not acquired(transport)


@pytest.mark.parametrize("is_same_request", [True, False])
async def test_equal_answers_of_a_platform_are_taken(open_transport, token, is_same_request):
    """A cache in between gives the same answer to the same request, and a platform may give all requests one id."""

    async def conversation(peer: Peer) -> None:
        sent = 0
        while await peer.request() is not None:
            sent += 1
            await peer.write(numbered(min(sent, 2) if is_same_request else "always"))

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        for number in range(5):
            asked = request_of("GET", "/same" if is_same_request else f"/{number}")
            assert isinstance(await transport.send(asked, token), Reply)
        assert server.connections == 1


async def test_no_connection_is_used_again_after_an_answer_to_somebody_else(open_transport, token):
    """Whoever sees that an answer was not the request's own has all idle connections closed."""

    async def conversation(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.write(answer())

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        for _ in range(2):
            assert isinstance(await transport.send(request_of("GET"), token), Reply)
        assert server.connections == 1
        transport.distrust()
        assert isinstance(await transport.send(request_of("GET"), token), Reply)
        assert server.connections == 2
