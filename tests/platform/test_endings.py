"""How the end of an answer is told: by a length, by chunks, by its status, or by the end of its connection."""

import anyio
import pytest

from bulk.model import Effect, Reply, Request
from tests.platform.raw_server import Peer, answer, serving

GET = Request(method="GET", path="/x")
PUT = Request(method="PUT", path="/x", body={}, effect=Effect.SET)
HEAD, BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b'{"a": 1}'


def endless(*, is_head_alone: bool):
    """Answer every request with a body that ends where its connection does; of the first one send only the head."""

    async def conversation(peer: Peer) -> None:
        if await peer.request() is None:
            return
        if is_head_alone and peer.number == 1:
            await peer.write(HEAD)
            assert await peer.request() is None, "the other side has heard enough, and closes"
        else:
            await peer.write(HEAD + BODY)

    return conversation


@pytest.mark.parametrize("is_head_alone", [True, False])
async def test_an_answer_that_ends_with_its_connection_is_read_from_the_second_on(open_transport, token, is_head_alone):
    """Of the first one the status is known and the body is not; all later ones are read to their end."""
    async with (
        serving(endless(is_head_alone=is_head_alone)) as server,
        open_transport(server.base_url) as transport,
    ):
        first = await transport.send(GET, token)
        assert isinstance(first, Reply)
        assert (first.status, first.is_truncated, first.body) == (200, True, None)
        for request in (GET, PUT, GET):
            later = await transport.send(request, token)
            assert isinstance(later, Reply)
            assert (later.status, later.is_truncated, later.body) == (200, False, {"a": 1})
    assert server.connections == len(server.requests) == 4


async def test_a_connection_that_was_idle_then_is_not_used_again(open_transport, token):
    """Its parser would take the next answer without a length for one without a body."""

    async def conversation(peer: Peer) -> None:
        for number in range(3):
            request = await peer.request()
            if request is None:
                return
            if b"/long" in request:
                await peer.write(HEAD + BODY)
                return
            await peer.write(answer(b'{"number": %d}' % number))

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(transport.send, GET, token)
        assert server.connections == len(transport._pool.idle) == 2
        first = await transport.send(Request(method="GET", path="/long"), token)
        assert isinstance(first, Reply)
        assert first.is_truncated
        assert not transport._pool.idle
        later = await transport.send(Request(method="GET", path="/long"), token)
        assert isinstance(later, Reply)
        assert later.body == {"a": 1}


@pytest.mark.parametrize(("status", "connections"), [(204, 1), (304, 1), (205, 3)])
async def test_what_has_no_body_needs_no_length(open_transport, token, status, connections):
    """These are whole without one; the parser expects a body of a 205 all the same, so its connection is closed."""

    async def conversation(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.write(b'HTTP/1.1 %d X\r\nETag: "e"\r\n\r\n' % status)

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        for _ in range(3):
            found = await transport.send(GET, token)
            assert isinstance(found, Reply)
            assert (found.status, found.is_truncated, found.body) == (status, False, None)
    assert server.connections == connections


async def test_an_empty_body_has_a_length(open_transport, token):
    """A length of zero is the end of an answer like any other."""
    async with (
        serving(_empty) as server,
        open_transport(server.base_url) as transport,
    ):
        for _ in range(2):
            found = await transport.send(PUT, token)
            assert isinstance(found, Reply)
            assert (found.status, found.is_truncated, found.body) == (202, False, None)
    assert server.connections == 1


async def _empty(peer: Peer) -> None:
    while await peer.request() is not None:
        await peer.write(b"HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n")
