"""Starting, serving and ending: addresses, signals, processes, and a sandbox without threads or sockets."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
import pytest

import bulk.sandbox as sandbox_package
from bulk.sandbox import Sandbox, SettingError, Settings, opened, running, serve
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.http.context import inline

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Start, Visit

SERVE = """\
import anyio, sys
from pathlib import Path
from bulk.sandbox import Settings, serve
settings = Settings.from_options(state=sys.argv[1], journal=sys.argv[2])
anyio.run(serve, settings, lambda sandbox: print(sandbox.base_url, flush=True))
print("ended", flush=True)
"""


async def test_ready_and_cancelled() -> None:
    """`serve` says where it is when requests are answered, and ends cleanly when its caller cancels."""
    ready: list[str] = []
    async with anyio.create_task_group() as group:

        async def ask(url: str) -> None:
            async with aiohttp.request("GET", f"{url}/rate_limit") as reply:
                assert reply.status == 200
            group.cancel_scope.cancel()

        def on_ready(sandbox: Sandbox) -> None:
            ready.append(sandbox.base_url)
            group.start_soon(ask, sandbox.base_url)

        await serve(Settings(), on_ready)
    assert ready[0].startswith("http://127.0.0.1:")
    assert ready[0].endswith("/api/v3")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(tmp_path: Path, number: signal.Signals) -> None:
    """SIGINT and SIGTERM end a serving process cleanly: exit 0, nothing on standard error."""
    command = [sys.executable, "-c", SERVE, str(tmp_path / "state"), str(tmp_path / "journal")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "ended\n", "")


async def test_addresses_that_can_not_be_used() -> None:
    """A port in use, and a host that isn't here, are SettingErrors that say what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"127.0.0.1:{port} is in use by another program"):
            async with running(Settings(port=port)):
                pass
    for host in ("203.0.113.1", "no such host"):
        with pytest.raises(SettingError, match="can't listen on"):
            async with running(Settings(host=host)):
                pass


async def test_an_error_of_the_block_stays_itself() -> None:
    """An exception raised while a sandbox runs leaves as it is, not wrapped in a group."""
    with pytest.raises(ZeroDivisionError):
        async with running(Settings()):
            raise ZeroDivisionError


async def test_two_sandboxes_end_in_any_order(visit: Visit) -> None:
    """Sandboxes of one program are independent of each other."""
    first, second = running(Settings()), running(Settings())
    one = await first.__aenter__()
    other = await second.__aenter__()
    assert one.base_url != other.base_url
    await first.__aexit__(None, None, None)
    assert (await visit(other).ask("GET", "/rate_limit")).status == 200
    await second.__aexit__(None, None, None)


async def test_background_work_that_fails(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Background work that fails is a line in the log; the server goes on."""
    platform = await start()

    async def fail() -> None:
        raise ZeroDivisionError

    platform.sandbox.context.background.start("a test", fail)
    assert (await platform.ask("GET", "/rate_limit")).status == 200
    assert [record.getMessage() for record in caplog.records] == ["background work failed: a test"]


def test_it_imports_nothing_of_the_engine() -> None:
    """The sandbox shares no code with the engine."""
    for path in Path(sandbox_package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                assert name.split(".")[0] not in ("bulk", "jobs") or name.startswith("bulk.sandbox."), (path, name)


class _Pipe(asyncio.Transport):
    """One end of a connection in memory."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self._loop, self._protocol = loop, protocol
        self.written = bytearray()
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.written += data

    def writelines(self, chunks: Any) -> None:
        self.written += b"".join(chunks)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return


async def test_in_memory_without_threads(clock: HandClock) -> None:
    """With a clock and inline work of one's own, a whole exchange needs no socket and no thread."""
    threads = threading.active_count()
    async with opened(Settings(latency_ms=3_600_000), clock=clock, blocking=inline, areas=AREAS) as sandbox:
        loop = asyncio.get_running_loop()
        protocol = sandbox.server()
        pipe = _Pipe(loop, protocol)
        protocol.connection_made(pipe)
        body = b'{"message": "m", "content": "aGk="}'
        protocol.data_received(
            b"PUT /api/v3/repos/acme-eng/hello-world/contents/new.txt HTTP/1.1\r\nHost: sandbox\r\nUser-Agent: t\r\n"
            b"Authorization: Bearer sbx-member\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        with anyio.fail_after(60):
            while not clock.sleepers:
                await anyio.lowlevel.checkpoint()
            assert pipe.written == b""
            clock.advance(3600)
            while not pipe.is_closing():
                await anyio.lowlevel.checkpoint()
        assert pipe.written.startswith(b"HTTP/1.1 201 Created")
        assert b"http://sandbox/api/v3/repos/acme-eng/hello-world/contents/new.txt" in pipe.written
    assert threading.active_count() == threads
