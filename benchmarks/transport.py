"""What `Transport.send` costs beside a bare, tuned aiohttp loop: CPU time of both and the ratio (aim: at least 0.9).

A tiny server in a process of its own gives the same 3 kB of JSON to everything. Both clients run in this process on one
event loop, in turns (A B A B …), each with its own pool, 64 workers, unique URLs and orjson; the median of the ratios
counts. CPU time of this process, not elapsed time, because that also measures who else uses the machine.

    python -m benchmarks.transport [--requests 4000] [--rounds 25] [--in-flight 64]
"""

import argparse
import asyncio
import gc
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import cast

import aiohttp
import anyio
import orjson
from yarl import URL

from benchmarks.harness.measuring import row
from bulk.clock import Clock
from bulk.manifest.manifest import Platform
from bulk.model import Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.transport import Transport

LEAST_RATIO = 0.9
BODY = orjson.dumps({"type": "file", "encoding": "base64", "size": 2000, "name": "README.md", "content": "QUJD" * 690})
ANSWER = (
    b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 08:00:00 GMT\r\nContent-Type: application/json; charset=utf-8\r\n"
    b"X-RateLimit-Limit: 5000\r\nX-RateLimit-Remaining: 4999\r\nX-RateLimit-Reset: 1795248000\r\n"
    b'ETag: "0123456789abcdef"\r\nX-Service-Request-Id: 0123:4567\r\nContent-Length: %d\r\n\r\n' % len(BODY) + BODY
)


class Canned(asyncio.Protocol):
    """Answers whatever ends in an empty line."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer as many requests as end in it."""
        self.transport.write(ANSWER * data.count(b"\r\n\r\n"))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def cost(get: Callable[[str], Awaitable[object]], paths: list[str], in_flight: int) -> float:
    """CPU time of a request (µs)."""
    todo = iter(paths)

    async def work() -> None:
        for path in todo:
            await get(path)

    gc.collect()
    gc.freeze()
    started = time.process_time()
    async with anyio.create_task_group() as group:
        for _ in range(in_flight):
            group.start_soon(work)
    return (time.process_time() - started) / len(paths) * 1e6


async def compare(port: int, requests: int, rounds: int, in_flight: int) -> None:
    base_url = f"http://127.0.0.1:{port}/api/v3"
    numbers = itertools.count()
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    bare_headers = {
        "Accept": "application/vnd.service+json",
        "Authorization": "Bearer 0123456789",
        "User-Agent": "bulk/1",
    }
    session = aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())
    transport = Transport(
        Platform(base_url, api_version="2026-03-10"),
        concurrency=in_flight,
        request_timeout_s=60.0,
        clock=Clock(),
    )
    token = Secret("0123456789")

    async def bare(path: str) -> object:
        url = URL.build(scheme="http", host="127.0.0.1", port=port, path="/api/v3" + path, encoded=True)
        response = await session.request("GET", url, headers=bare_headers)
        return orjson.loads(await response.read())

    async def ours(path: str) -> object:
        reply = await transport.send(Request(method="GET", path=path), token)
        assert isinstance(reply, Reply)
        return reply.body

    def paths() -> list[str]:
        return [f"/repos/acme/api-{next(numbers)}/readme" for _ in range(requests)]

    async with session, transport:
        ratios, bare_us, ours_us = [], [], []
        for turn in range(rounds + 1):
            before = await cost(bare, paths(), in_flight)
            between = await cost(ours, paths(), in_flight)
            after = await cost(bare, paths(), in_flight)
            if turn:  # the first one warms up
                ratios.append((before + after) / 2 / between)
                bare_us += [before, after]
                ours_us.append(between)
    median = statistics.median
    print(f"CPU time of a request (µs, median): bare {median(bare_us):.1f}, transport {median(ours_us):.1f}")
    low, middle, high = statistics.quantiles(ratios, n=4)
    figure = f"{middle:.2f} (half of {rounds} rounds from {low:.2f} to {high:.2f})"
    row(
        "CPU time of a request in the transport, of a bare aiohttp loop",
        figure,
        f"{LEAST_RATIO:g}",
        middle >= LEAST_RATIO,
    )


def loop_factory() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        if options.serve:
            runner.run(serve())
            return
        command = [sys.executable, "-m", "benchmarks.transport", "--serve"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline())
                runner.run(compare(port, options.requests, options.rounds, options.in_flight))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
