"""Giving up after the time of a request, and being cancelled from outside, in whatever order they come."""

import asyncio
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from bulk.model import Effect, ErrorCode, Failure, FailureKind, Reply, Request
from bulk.platform.deadlines import Deadlines
from tests.platform.conftest import acquired, in_use
from tests.platform.raw_server import Peer, always, answer, hang, serving
from tests.virtual_time import VirtualClock, run_virtual

GET = Request(method="GET", path="/x")
PUT = Request(method="PUT", path="/x", body={"a": 1}, effect=Effect.SET)
LENGTH_S = 60.0


def deadlines() -> Deadlines:
    """Deadlines of the running (virtual) loop."""
    return Deadlines(asyncio.get_running_loop(), VirtualClock(), LENGTH_S)


def now() -> float:
    """Seconds since the loop began."""
    return asyncio.get_running_loop().time()


async def flight(all_: Deadlines, seconds: float, log: list[str]) -> None:
    """Something that takes `seconds` and is enclosed by a flight, as `Transport` does it."""
    one = all_.begin()
    try:
        await anyio.sleep(seconds)
        log.append("done")
    except asyncio.CancelledError:
        if not one.take_back():
            log.append("cancelled")
            raise
        log.append("overdue")
    finally:
        all_.end(one)


@pytest.mark.parametrize(("seconds", "fate"), [(59.9, "done"), (60.1, "overdue"), (1e9, "overdue")])
def test_a_flight_is_given_up_after_its_time(seconds, fate):
    """A flight ends by itself before its time, or is cancelled at its time, and its task goes on."""

    async def scenario() -> None:
        log: list[str] = []
        await flight(deadlines(), seconds, log)
        assert log == [fate]
        assert now() == pytest.approx(min(seconds, LENGTH_S), abs=0.01)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await anyio.sleep(1)

    run_virtual(scenario)


def test_thousands_of_flights_are_given_up_each_at_its_own_time():
    """Ten thousand flights with a begin each: every one ends at its own moment, with one timer for all of them."""

    async def scenario() -> None:
        all_ = deadlines()
        ends: dict[int, float] = {}

        async def one(number: int) -> None:
            await anyio.sleep(number * 0.01)
            began = now()
            log: list[str] = []
            takes = 1.0 if number % 3 else 1e6
            await flight(all_, takes, log)
            assert log == ["done" if number % 3 else "overdue"]
            ends[number] = now() - began - min(takes, LENGTH_S)

        async with anyio.create_task_group() as group:
            for number in range(10_000):
                group.start_soon(one, number)
        assert len(ends) == 10_000
        assert max(map(abs, ends.values())) < 0.01
        assert len(all_) == 0

    run_virtual(scenario)


@pytest.mark.parametrize("is_outer_first", [True, False])
def test_cancelling_a_scope_at_the_same_moment_still_cancels(is_outer_first):
    """A cancel scope that ends in the turn of the loop of the deadline: what follows in the scope is not reached."""

    async def scenario() -> None:
        all_ = deadlines()
        log: list[str] = []
        loop = asyncio.get_running_loop()
        with anyio.CancelScope() as scope:
            at = now() + LENGTH_S
            if is_outer_first:
                loop.call_at(at, scope.cancel)
            all_.end(all_.begin())  # the timer is set, and stays
            if not is_outer_first:
                loop.call_at(at, scope.cancel)
            await flight(all_, 1e6, log)
            await anyio.sleep(1)
            log.append("went on")
        assert scope.cancelled_caught
        assert "went on" not in log
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await anyio.sleep(1)  # the task is as good as new

    run_virtual(scenario)


@pytest.mark.parametrize("order", ["cancel first", "deadline first"])
def test_cancelling_a_task_at_the_same_moment_still_cancels(order):
    """A task that is cancelled in the turn in which its flight comes due ends as cancelled."""

    async def scenario() -> None:
        all_ = deadlines()
        log: list[str] = []
        started: list[asyncio.Task[object]] = []

        async def work() -> None:
            task = asyncio.current_task()
            assert task is not None
            started.append(task)
            if order == "cancel first":
                asyncio.get_running_loop().call_at(now() + LENGTH_S, task.cancel)
            await flight(all_, 1e6, log)
            log.append("went on")

        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await anyio.lowlevel.checkpoint()
            if order == "deadline first":
                asyncio.get_running_loop().call_at(now() + LENGTH_S, started[0].cancel)
        assert log == ["cancelled"]

    run_virtual(scenario)


def test_a_flight_that_ends_in_the_moment_it_is_given_up_leaves_no_trace():
    """Foreign code that swallows the cancellation and has a result: the task does not stay cancelled."""

    async def scenario() -> None:
        all_ = deadlines()
        one = all_.begin()
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            pass
        finally:
            all_.end(one)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await anyio.sleep(1)

    run_virtual(scenario)


def test_a_flight_within_a_shield_is_given_up_too():
    """A request in a shielded scope of a cancelled one still has its deadline."""

    async def scenario() -> None:
        log: list[str] = []
        with anyio.CancelScope() as outer:
            outer.cancel()
            with anyio.CancelScope(shield=True):
                await flight(deadlines(), 1e6, log)
                await anyio.sleep(1)
                log.append("went on")
            await anyio.sleep(1)
        assert log == ["overdue", "went on"]
        assert outer.cancelled_caught

    run_virtual(scenario)


async def test_many_requests_at_once_are_all_given_up(open_transport, token):
    """Hundreds of requests without an answer: each a failure of its own, no connection left in use."""
    results: list[object] = []
    async with serving(hang) as server, open_transport(server.base_url, request_timeout_s=0.5) as transport:

        async def send() -> None:
            results.append(await transport.send(GET, token))

        async with anyio.create_task_group() as group:
            for _ in range(300):
                group.start_soon(send)
        assert in_use(transport) == 0
        await server.until(lambda server: server.open_connections == 0)
    assert len(results) == 300
    assert all(isinstance(result, Failure) and result.code is ErrorCode.TIMEOUT for result in results)


async def test_a_transport_works_on_after_a_request_was_given_up(open_transport, token):
    """After a timeout, the next request has a connection and an answer of its own."""

    async def conversation(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            if b"/slow" not in request:
                await peer.write(answer(b'{"whose": "own"}'))

    async with serving(conversation) as server, open_transport(server.base_url, request_timeout_s=0.5) as transport:
        for _ in range(3):
            slow = await transport.send(Request(method="GET", path="/slow"), token)
            assert isinstance(slow, Failure)
            assert slow.kind is FailureKind.LOST
            quick = await transport.send(GET, token)
            assert isinstance(quick, Reply)
            assert quick.body == {"whose": "own"}


async def slowly(peer: Peer) -> None:
    """Answer in many pieces, one for each turn of the loop."""
    while await peer.request() is not None:
        for piece in answer(b'{"a": "' + b"x" * 100_000 + b'"}').split(b"x" * 10_000):
            await peer.write(piece or b"x" * 10_000)
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("request_", [GET, PUT], ids=["GET", "PUT"])
@pytest.mark.parametrize("conversation", [always(answer()), slowly, hang], ids=["quick", "slow", "never"])
async def test_cancelling_at_any_step_leaves_no_connection_behind(open_transport, token, request_, conversation):
    """Cancelled after each number of turns of the loop: no connection stays in use, and no deadline."""
    async with (
        serving(conversation) as server,
        open_transport(server.base_url) as transport,
    ):
        for turns in range(60):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(transport.send, request_, token)
                    for _ in range(turns):
                        await anyio.lowlevel.cancel_shielded_checkpoint()
                    scope.cancel()
            assert not acquired(transport)
            assert len(transport._deadlines) == 0
    assert transport.sent <= 60
    assert len(server.requests) <= transport.sent


async def test_sending_once_more_after_each_cancellation_gives_its_own_answer(open_transport, token):
    """Cancelled at any step, then asked again on the same pool: the answer is that of the second request."""

    async def late_write(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            path = request.split(b" ")[1].removeprefix(b"/api/v3")
            await peer.write(answer(b'{"path": "%s"}' % path))

    async with serving(late_write) as server, open_transport(server.base_url) as transport:
        for turns in range(40):
            async with anyio.create_task_group() as group:
                first = Request(method="GET", path=f"/cancelled/{turns}")
                group.start_soon(partial(transport.send, first, token))
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            reply = await transport.send(Request(method="GET", path=f"/kept/{turns}"), token)
            assert isinstance(reply, Reply)
            assert reply.body == {"path": f"/kept/{turns}"}


@pytest.mark.parametrize(
    ("ours_s", "then_s", "fate"), [(30.0, 55.0, "done"), (30.0, 61.0, "overdue"), (1e4, 50.0, "done")]
)
def test_time_that_is_ours_is_not_the_platforms(ours_s, then_s, fate):
    """A flight that waits for this machine has that time more, and not more than that."""

    async def scenario() -> None:
        all_, log, length_s = deadlines(), list[str](), LENGTH_S
        one = all_.begin()
        try:
            await anyio.sleep(5)
            one.begin_ours(now())
            await anyio.sleep(ours_s)
            one.end_ours(now())
            began = now()
            await anyio.sleep(then_s - 5 + 0.0)
            log.append("done")
        except asyncio.CancelledError:
            assert one.take_back()
            log.append("overdue")
            assert now() - began == pytest.approx(length_s - 5, abs=0.1)
        finally:
            all_.end(one)
        assert log == [fate]
        others: list[str] = []
        await flight(all_, 1e6, others)
        assert others == ["overdue"]

    run_virtual(scenario)
