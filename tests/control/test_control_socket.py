"""The control socket: who may ask, how much, how long; what is left of it; how a client tells that nobody is there."""

import contextlib
import logging
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest

from bulk.clock import Clock
from bulk.control import client
from bulk.control.place import NAME, PATH_BYTES, reachable
from bulk.control.protocol import CONNECTIONS_MOST, IDLE_S, LINE_BYTES, Answer, Ask, Refused, line_of
from bulk.control.server import ControlServer
from bulk.status import RunStatus

AT = "2026-11-25T08:00:00.000Z"


class Echo:
    """Answers every question with what it was, and whose."""

    def answer(self, ask: Ask, who: str) -> Answer:
        """`set` of `bad` is refused."""
        if "bad" in ask.args:
            raise Refused("that is bad", 2)
        status = RunStatus(name="echo" * 20_000, state="running", at=1.0, started_at=0.0)
        in_force = {"verb": ask.verb, "who": who, **ask.args}
        return Answer(ok=True, state="running", at=AT, in_force=in_force, status=status)

    def refusal(self, refused: Refused) -> Answer:
        """Says why."""
        return Answer(ok=False, state="running", at=AT, error=str(refused), exit=refused.exit_code)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="bulk-"))
    yield folder
    shutil.rmtree(folder)


@asynccontextmanager
async def serving(place: Path, **more: Any) -> AsyncIterator[ControlServer]:
    """A server in that folder."""
    with ControlServer(place, Echo(), Clock(), **more) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve)
            yield server
            tasks.cancel_scope.cancel()


async def said(place: Path, data: bytes) -> list[Answer]:
    """Everything that is answered to these bytes, until the other end closes or is silent."""

    def talk() -> list[Answer]:
        with socket.socket(socket.AF_UNIX) as connection, reachable(place) as path:
            connection.settimeout(1.0)
            connection.connect(path)
            with contextlib.suppress(OSError):  # it answers and closes before it has read all
                connection.sendall(data)
            lines = b""
            with contextlib.suppress(TimeoutError, ConnectionError):
                while chunk := connection.recv(1 << 20):
                    lines += chunk
            return [msgspec.json.decode(line, type=Answer) for line in lines.splitlines()]

    return await anyio.to_thread.run_sync(talk)


async def test_questions_are_answered_in_their_order(place: Path) -> None:
    """Several questions on one connection; one that is none, or is refused, closes nothing."""
    async with serving(place):
        data = b"".join(line_of(Ask(verb=verb, args={"n": n}, who="test")) for n, verb in enumerate(("status", "set")))
        answers = await said(place, data + b'{"verb":"dance"}\nnonsense\n{"v":2,"verb":"stop"}\n' + data)
    assert [answer.ok for answer in answers] == [True, True, False, False, False, True, True]
    assert [answer.in_force["n"] for answer in answers if answer.ok] == [0, 1, 0, 1]
    assert answers[0].in_force["who"].endswith(" (test)")
    errors = " ".join(answer.error for answer in answers)
    assert "'dance'" in errors
    assert "not 2" in errors


async def test_the_client_says_who_is_not_there(place: Path) -> None:
    """Without a socket, with one that a killed process left, and at a folder that is none: nobody is reached."""

    def ask(*question: Any) -> Awaitable[Answer]:
        return anyio.to_thread.run_sync(partial(client.ask, *question))

    with pytest.raises(client.Unreached):
        await ask(place, "status")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(place / NAME))
    with pytest.raises(client.Unreached):
        await ask(place, "status")
    async with serving(place):
        mode = (place / NAME).stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
        assert (await ask(place, "pause")).in_force["verb"] == "pause"
        refused = await ask(place, "set", {"bad": 1})
        assert (refused.ok, refused.exit, refused.error) == (False, 2, "that is bad")
    assert not (place / NAME).exists()


async def test_a_process_that_does_not_answer(place: Path) -> None:
    """Who accepts and says nothing is silent, not gone."""
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(place / NAME))
        mute.listen(1)
        with pytest.raises(client.Silent):
            await anyio.to_thread.run_sync(client.ask, place, "status")


async def test_another_user_is_refused(place: Path) -> None:
    """The peer's user is asked of the system, and must be the run's."""
    async with serving(place, user=os.geteuid() + 1):
        (answer,) = await said(place, line_of(Ask(verb="stop")))
    assert (answer.ok, answer.error, answer.exit) == (False, "the run belongs to another user", 5)


async def test_a_long_question_is_refused(place: Path) -> None:
    """More than 64 KiB without an end are not kept; up to that, a question is one."""
    async with serving(place):
        fits = line_of(Ask(verb="set", args={"x": "a" * (LINE_BYTES - 200)}))
        (good,) = await said(place, fits)
        (long,) = await said(place, b"a" * (LINE_BYTES + 1))
        (with_end,) = await said(place, line_of(Ask(verb="set", args={"x": "a" * LINE_BYTES})))
    assert good.ok
    for answer in (long, with_end):
        assert (answer.ok, answer.exit) == (False, 2)
        assert "65,536 bytes" in answer.error


async def test_only_so_many_are_connected(place: Path) -> None:
    """The seventeenth connection is told so; when one has gone, another may come."""
    async with serving(place):
        others = [socket.socket(socket.AF_UNIX) for _ in range(CONNECTIONS_MOST)]
        try:
            for other in others:
                other.connect(str(place / NAME))
                other.sendall(line_of(Ask(verb="status")))
                await anyio.wait_readable(other)
            (answer,) = await said(place, line_of(Ask(verb="status")))
            assert (answer.ok, answer.error) == (False, "16 are connected already")
            others.pop().close()
            await anyio.lowlevel.checkpoint()
            while not (await said(place, line_of(Ask(verb="status"))))[0].ok:
                pass
        finally:
            for other in others:
                other.close()


async def test_who_asks_is_told_alike(place: Path) -> None:
    """Whatever is asked, the run hears the user and by what the question came, also where a status is watched."""
    async with serving(place):
        (asked,) = await said(place, line_of(Ask(verb="status", who="cli")))
        with socket.socket(socket.AF_UNIX) as watching:
            watching.connect(str(place / NAME))
            watching.setblocking(False)
            watching.send(line_of(Ask(verb="watch", who="cli")))
            held = b""
            with anyio.fail_after(60):
                while b"\n" not in held:
                    await anyio.wait_readable(watching)
                    held += watching.recv(1 << 20)
    watched = msgspec.json.decode(held.partition(b"\n")[0], type=Answer)
    assert asked.in_force["who"].endswith(" (cli)")
    assert watched.in_force["who"] == asked.in_force["who"]


async def test_who_says_nothing_is_sent_away(place: Path) -> None:
    """A connection that is idle for five seconds is closed; one that watches is not, however slowly it reads."""
    async with serving(place):
        with socket.socket(socket.AF_UNIX) as idle, socket.socket(socket.AF_UNIX) as watching:
            for connection in (idle, watching):
                connection.connect(str(place / NAME))
                connection.setblocking(False)
            watching.send(line_of(Ask(verb="watch")))
            with anyio.fail_after(IDLE_S + 5.0):
                await anyio.wait_readable(idle)
            assert idle.recv(10) == b""
            await anyio.wait_readable(watching)
            held = b""
            with anyio.fail_after(60):
                while held.count(b"\n") < 12:  # more than a buffer holds: it goes on where it stopped
                    await anyio.wait_readable(watching)
                    held += watching.recv(1 << 20)
    whole = held[: held.rindex(b"\n")].splitlines()
    assert {msgspec.json.decode(line, type=Answer).state for line in whole} == {"running"}


async def test_a_long_path(place: Path) -> None:
    """A run directory whose path is longer than that of a socket may be is reached by its descriptor."""
    deep = place / ("a" * 100) / ("b" * 100)
    deep.mkdir(parents=True)
    assert len(os.fsencode(deep)) > PATH_BYTES
    async with serving(deep) as server:
        assert server.is_open
        answer = await anyio.to_thread.run_sync(client.ask, deep, "status")
    assert answer.ok
    assert list(deep.iterdir()) == []


async def test_without_sockets_there_is_a_warning(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where the socket can't be made, the run goes on and says that signals work."""
    (place / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        async with serving(place / "file") as server:
            assert not server.is_open
    assert "signals stop it as ever" in caplog.text
    with pytest.raises(client.Unreached):
        await anyio.to_thread.run_sync(client.ask, place / "file", "status")


async def test_the_socket_of_the_next_holder_stays(place: Path) -> None:
    """A server that ends late does not take away the socket that another has made since."""
    async with serving(place):
        (place / NAME).rename(place / "old")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(place / NAME))
    assert (place / NAME).exists()
