"""What other clients reach with the same raw reads: no limits, no ledger, nothing kept. CPU time and time of each read.

Each client in a process of its own on one core, a static nginx on another, one after the other in each round; the whole
command `bulk run` beside them with all that it does. Clients, which read fewer: gidgethub (64 at once), PyGithub (16
threads), githubkit (64 at once), octokit (64 at once, throttling and retry off), and octokit as it comes, of which the
time of each read counts: its throttling waits more than it computes.

    python -m benchmarks.compared.peers [--items 100000] [--rounds 3]
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import Cost, Spread, cost_of, row
from benchmarks.octokit.installing import octokit
from benchmarks.throughput import CASES, Ours

AIMS = {"gidgethub": 1.5, "pygithub": 8.0, "githubkit": 8.0, "octokit": 4.0, "octokit-throttled": 30.0}
SHARES = {"gidgethub": 0.2, "pygithub": 0.05, "githubkit": 0.02, "octokit": 0.1, "octokit-throttled": 0.02}
"""Parts of the items that they read: they are slow, and their start does not count, while ours does."""
OCTOKIT_MODES = {"octokit": "plain", "octokit-throttled": "throttled"}
WAITING = ("octokit-throttled",)
"""Peers that wait more than they compute: their time is compared, not their CPU time."""
IN_FLIGHT, THREADS = 64, 16
TOKEN = "0123456789"


async def gidgethub(base_url: str, items: int) -> float:
    import aiohttp
    from gidgethub.aiohttp import GitHubAPI

    async with aiohttp.ClientSession() as session:
        client = GitHubAPI(session, "bench", oauth_token=TOKEN, base_url=base_url)
        return await together(lambda number: client.getitem(f"/repos/acme/api-{number}/readme"), items)


async def githubkit(base_url: str, items: int) -> float:
    from githubkit import GitHub, TokenAuthStrategy

    async with GitHub(TokenAuthStrategy(TOKEN), base_url=f"{base_url}/", http_cache=False) as client:
        return await together(
            lambda number: client.arequest("GET", f"{base_url}/repos/acme/api-{number}/readme"), items
        )


async def together(read, items: int) -> float:  # type: ignore[no-untyped-def]
    """All reads, `IN_FLIGHT` at once: seconds."""
    numbers, started = iter(range(items)), time.perf_counter()

    async def work() -> None:
        for number in numbers:
            await read(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())
    return time.perf_counter() - started


def pygithub(base_url: str, items: int) -> float:
    from concurrent.futures import ThreadPoolExecutor

    from github import Auth, Github

    client = Github(
        auth=Auth.Token(TOKEN),
        base_url=base_url,
        per_page=100,
        seconds_between_requests=0,
        seconds_between_writes=0,
        pool_size=THREADS,
    )
    started = time.perf_counter()

    def read(number: int) -> object:
        return client.requester.requestJsonAndCheck("GET", f"/repos/acme/api-{number}/readme")

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(read, range(items)):
            pass
    return time.perf_counter() - started


def run_one(name: str, base_url: str, items: int) -> None:
    """Within a process of its own: prints the seconds of the reads and the CPU seconds of all."""
    took_s = pygithub(base_url, items) if name == "pygithub" else asyncio.run(globals()[name](base_url, items))
    print(json.dumps({"took_s": took_s, "cpu_s": time.process_time()}))


def peer(name: str, base_url: str, items: int) -> Cost:
    command = [sys.executable, "-m", "benchmarks.compared.peers", "--peer", name, base_url, "--items", str(items)]
    if name in OCTOKIT_MODES:
        started_with = octokit()
        assert started_with is not None
        command = [*started_with, OCTOKIT_MODES[name], base_url, str(items)]
    found = json.loads(cost_of(command, environ={"BULK_TOKEN": TOKEN}).output.splitlines()[-1])
    return Cost(found["took_s"], found["cpu_s"], 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", nargs=2, metavar=("NAME", "URL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer is not None:
        run_one(given.peer[0], given.peer[1], given.items)
        return
    ours: list[Cost] = []
    theirs: dict[str, list[Cost]] = {name: [] for name in AIMS if name not in OCTOKIT_MODES or octokit() is not None}
    with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
        command = Ours(Path(folder), base_url, CASES["reads"], given.items)
        for _ in range(given.rounds):
            ours.append(command.run())
            for name, costs in theirs.items():
                costs.append(peer(name, base_url, share_of(name, given.items)))
    for name, costs in theirs.items():
        compare(name, ours, costs, given.items)


def share_of(name: str, items: int) -> int:
    """How many of the items a peer reads."""
    return max(1, int(items * SHARES[name]))


def compare(name: str, ours: Sequence[Cost], theirs: Sequence[Cost], items: int) -> None:
    """Print the row of a peer: its CPU time of each read, or its time where it waits, against ours of the same kind."""
    is_time = name in WAITING
    own, other = (
        [(cost.took_s if is_time else cost.cpu_s) / count * 1e6 for cost in costs]
        for costs, count in ((ours, items), (theirs, share_of(name, items)))
    )
    times = Spread(tuple(one / another for one, another in zip(other, own, strict=True)))
    what = "time of each, not CPU time, in µs" if is_time else "CPU µs each"
    figure = f"{times.text(1)} times; {what} {Spread(tuple(own)).text(0)} against {Spread(tuple(other)).text(0)}"
    row(f"raw reads beside {name}", figure, f"{AIMS[name]:g} times", times.median >= AIMS[name])


if __name__ == "__main__":
    main()
