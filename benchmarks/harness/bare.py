"""The reference: a bare loop of aiohttp with every setting that helps, and nothing else. Prints what the loop took.

Unique URLs, built without parsing; workers that share one iterator; one connection each; no time-outs, no cookies, no
automatic anything; uvloop; the collector frozen; answers parsed with orjson. No schedule, no limits, no ledger, no
retries, no results: what an engine costs is measured against it.

    python -m benchmarks.harness.bare BASE_URL [--requests 100000] [--in-flight 64] [--kind read|conditional|write]
"""

import argparse
import asyncio
import contextlib
import gc
import json
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import orjson
import uvloop
from yarl import URL

from benchmarks.harness.canned_platform import CONTENT

Send = Callable[[int], Awaitable[Any]]
Wrap = Callable[[Send], AbstractAsyncContextManager[Send]]


def sender(session: aiohttp.ClientSession, base: URL, kind: str) -> Send:
    """Sends one request of its own URL."""
    scheme, authority, root = base.scheme, base.authority, base.path
    headers = {"Accept": "application/vnd.service+json", "Authorization": "Bearer 0123456789", "User-Agent": "bare"}
    if kind == "conditional":
        headers["If-None-Match"] = '"0123456789abcdef0123456789abcdef"'

    async def read(number: int) -> object:
        path = f"{root}/repos/acme/api-{number}/readme"
        url = URL.build(scheme=scheme, authority=authority, path=path, encoded=True)
        response = await session.get(url, headers=headers, allow_redirects=False)
        return orjson.loads(await response.read())

    async def confirm(number: int) -> object:
        path = f"{root}/repos/acme/api-{number}/readme"
        url = URL.build(scheme=scheme, authority=authority, path=path, encoded=True)
        response = await session.get(url, headers=headers, allow_redirects=False)
        await response.read()
        return response.status

    async def write(number: int) -> object:
        path = f"{root}/repos/acme/api-{number}/contents/CODEOWNERS"
        url = URL.build(scheme=scheme, authority=authority, path=path, encoded=True)
        body = orjson.dumps({"message": "Add CODEOWNERS", "content": CONTENT})
        response = await session.put(url, headers=headers, data=body, allow_redirects=False)
        return orjson.loads(await response.read())

    return {"read": read, "conditional": confirm, "write": write}[kind]


@contextlib.asynccontextmanager
async def nothing_else(send: Send) -> AsyncIterator[Send]:
    """What each worker does is to send."""
    yield send


async def loop(base_url: str, requests: int, in_flight: int, kind: str, wrap: Wrap = nothing_else) -> dict[str, float]:
    """Send them all: seconds and CPU seconds of the loop. `wrap`: what is done around each request."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )
    async with session, wrap(sender(session, URL(base_url), kind)) as send:
        numbers = iter(range(requests))
        await send(requests)
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 50, 50)
        used, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(in_flight):
                group.create_task(work(send, numbers))
        took_s, now = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {"requests": requests, "took_s": took_s, "cpu_s": cpu_s}


async def work(send: Send, numbers: Iterator[int]) -> None:
    """One worker."""
    for number in numbers:
        await send(number)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base_url")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--kind", choices=("read", "conditional", "write"), default="read")
    given = parser.parse_args()
    print(json.dumps(uvloop.run(loop(given.base_url, given.requests, given.in_flight, given.kind))))


if __name__ == "__main__":
    main()
