"""Other clients with the work of `governed.py`, each used as its documentation says where a budget is spent.

gidgethub: 64 at once; it raises `RateLimitExceeded`, and its user waits until the reset and asks again. githubkit: 64
at once; by default it waits and repeats once; its cache is off, as nothing is read twice. PyGithub: 16 threads; by
default it pauses between requests and between writes (its threads at the same time, so 16 go on together), waits and
repeats. octokit: 64 at once; by default it throttles, waits and repeats once (`octokit/peer.mjs`).

An item that a client gives up is lost, and the rest goes on. `governed.py` starts each in a process of its own:

    python -m benchmarks.compared.governed_peers NAME BASE_URL WORK_FILE
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.octokit.installing import octokit

Strand = Sequence[dict[str, str]]
"""Items to be done one after the other: of `contents.put` where they have a path, else of `readme.get`."""

PEERS = ("gidgethub", "githubkit", "pygithub", "octokit")
IN_FLIGHT, THREADS = 64, 16


def is_here(name: str) -> bool:
    """Whether a peer is installed, or can be; where not, that is said."""
    return name != "octokit" or octokit() is not None


def command_of(name: str, base_url: str, work: Path) -> list[str]:
    """What does the work with a peer."""
    if name == "octokit":
        started_with = octokit()
        assert started_with is not None
        return [*started_with, "governed", base_url, str(work)]
    return [sys.executable, "-m", "benchmarks.compared.governed_peers", name, base_url, str(work)]


async def gidgethub(base_url: str, token: str, strands: Sequence[Strand]) -> int:
    """Its user waits for the reset that the exception tells, as often as it comes."""
    import aiohttp
    from gidgethub import GitHubException, RateLimitExceeded
    from gidgethub.aiohttp import GitHubAPI

    async with aiohttp.ClientSession() as session:
        client = GitHubAPI(session, "bench", oauth_token=token, base_url=base_url)

        async def send(item: dict[str, str]) -> None:
            while True:
                try:
                    await once(item)
                except RateLimitExceeded as limited:
                    now = datetime.now(UTC)  # noqa: TID251 - not the engine
                    await asyncio.sleep(max((limited.rate_limit.reset_datetime - now).total_seconds(), 0.0))
                else:
                    return

        async def once(item: dict[str, str]) -> None:
            repository = f"/repos/{item['owner']}/{item['repo']}"
            if "path" in item:
                data = {"message": item["message"], "content": item["content"]}
                await client.put(f"{repository}/contents/{item['path']}", data=data)
            else:
                await client.getitem(f"{repository}/readme")

        return await together(send, strands, GitHubException)


async def githubkit(base_url: str, token: str, strands: Sequence[Strand]) -> int:
    """With its own repeats, as they are by default."""
    from githubkit import GitHub
    from githubkit.exception import GitHubException

    async with GitHub(token, base_url=base_url, http_cache=False) as client:

        async def send(item: dict[str, str]) -> None:
            if "path" in item:
                await client.rest.repos.async_create_or_update_file_contents(**item)
            else:
                await client.rest.repos.async_get_readme(**item)

        return await together(send, strands, GitHubException)


async def together(
    send: Callable[[dict[str, str]], Awaitable[None]], strands: Sequence[Strand], lost: type[Exception]
) -> int:
    """All strands, `IN_FLIGHT` at once: how many items ended with such an exception (count)."""
    waiting, failed = iter(strands), 0

    async def work() -> None:
        nonlocal failed
        for strand in waiting:
            for item in strand:
                try:
                    await send(item)
                except lost:
                    failed += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())
    return failed


def pygithub(base_url: str, token: str, strands: Sequence[Strand]) -> int:
    """With its own pauses and repeats, as they are by default; repositories are named, not asked for."""
    from github import Auth, Github, GithubException

    client = Github(auth=Auth.Token(token), base_url=base_url, lazy=True, pool_size=THREADS)

    def send(item: dict[str, str]) -> None:
        repository = client.get_repo(f"{item['owner']}/{item['repo']}")
        if "path" in item:
            repository.create_file(item["path"], item["message"], base64.b64decode(item["content"]))
        else:
            repository.get_readme()

    def all_of(strand: Strand) -> int:
        failed = 0
        for item in strand:
            try:
                send(item)
            except (GithubException, OSError):  # OSError: of requests
                failed += 1
        return failed

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(all_of, strands))


def main() -> None:
    """Within a process of its own: do the work, print how many items were lost."""
    name, base_url, work = sys.argv[1:]
    strands, token = json.loads(Path(work).read_text()), os.environ["BULK_TOKEN"]
    done: Any = globals()[name](base_url, token, strands)
    print(json.dumps({"failed": done if name == "pygithub" else asyncio.run(done)}))


if __name__ == "__main__":
    main()
