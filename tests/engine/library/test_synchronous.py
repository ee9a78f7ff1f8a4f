"""`bulk.run` and `bulk.map`: without async, inside of a running event loop too, and Ctrl-C ends them as it should."""

import json
import multiprocessing
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

import bulk
from tests.e2e.support.platform import ADMIN, Home, Served, served, wait_for
from tests.engine.library.conftest import COUNT
from tests.tries import quickest

MOST_TIMES = 3.5
"""How much longer `bulk.map` may take than `Engine.map`."""

TOKEN = {"BULK_TOKEN": ADMIN}


def reads(count: int) -> Iterator[dict[str, str]]:
    """`count` READMEs."""
    return ({"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count))


def loops() -> list[str]:
    """The threads that run an event loop for `bulk.run` or `bulk.map`, by name."""
    return [thread.name for thread in threading.enumerate() if "portal" in thread.name]


def write_manifest(folder: Path, count: int) -> Path:
    """A manifest of `count` reads."""
    job = {"readmes": {"operation": "readme.get", "items": list(reads(count))}}
    path = folder / "manifest.yaml"
    path.write_text(json.dumps({"version": 1, "jobs": job}))
    return path


def test_map_gives_every_outcome(sandbox: Served) -> None:
    """`bulk.map` in a plain script gives each outcome once."""
    found = Counter(one.index for one in bulk.map("readme.get", reads(COUNT), base_url=sandbox.base_url, environ=TOKEN))
    assert found == Counter(range(COUNT))


def test_run_gives_the_report(sandbox: Served, tmp_path: Path) -> None:
    """`bulk.run` gives the report, tells progress in the caller's thread, and leaves no thread behind."""
    told, running = [], set()

    def progress(status: bulk.RunStatus) -> None:
        told.append((status.state, threading.current_thread() is threading.main_thread()))
        running.add(len(loops()))

    report = bulk.run(
        write_manifest(tmp_path, 20),
        run_dir=tmp_path / "run",
        progress=progress,
        base_url=sandbox.base_url,
        environ=TOKEN,
    )
    assert (report.exit_code, report.outcomes["succeeded"]) == (0, 20)
    assert running == {1}
    assert told[-1] == ("complete", True)
    assert all(is_main for _, is_main in told)
    assert loops() == []


@pytest.mark.anyio
async def test_both_work_in_a_running_loop(sandbox: Served, tmp_path: Path) -> None:
    """Within a running event loop, as in a notebook, both work as elsewhere; the loop is there afterwards."""
    found = [one.outcome for one in bulk.map("readme.get", reads(50), base_url=sandbox.base_url, environ=TOKEN)]
    report = bulk.run(write_manifest(tmp_path, 5), run_dir=tmp_path / "run", base_url=sandbox.base_url, environ=TOKEN)
    await anyio.lowlevel.checkpoint()
    assert (Counter(found), report.exit_code) == (Counter(succeeded=50), 0)


def test_items_are_taken_in_the_callers_thread(sandbox: Served) -> None:
    """A generator that may only run in its own thread, such as over rows of SQLite, can give the items."""
    with sqlite3.connect(":memory:") as rows:
        rows.execute("CREATE TABLE repos (owner, repo)")
        rows.executemany("INSERT INTO repos VALUES (:owner, :repo)", list(reads(30)))
        cursor = ({"owner": owner, "repo": repo} for owner, repo in rows.execute("SELECT owner, repo FROM repos"))
        found = list(bulk.map("readme.get", cursor, base_url=sandbox.base_url, environ=TOKEN))
    rows.close()
    assert len(found) == 30


def test_errors_come_out(sandbox: Served, tmp_path: Path) -> None:
    """What `Engine` raises is raised here as it is, and what progress raises too."""
    with pytest.raises(bulk.ManifestError, match=r"^items\[0\]: rpeo"):
        list(bulk.map("readme.get", [{"owner": "x", "rpeo": "y"}], base_url=sandbox.base_url, environ=TOKEN))
    with pytest.raises(bulk.CredentialRefused):
        list(bulk.map("readme.get", reads(1), base_url=sandbox.base_url, environ={"BULK_TOKEN": "wrong-token"}))
    with pytest.raises(bulk.ManifestError):
        bulk.run(tmp_path / "nowhere.yaml", base_url=sandbox.base_url, environ=TOKEN)

    def broken(status: bulk.RunStatus) -> None:
        raise LookupError("the caller's own")

    with pytest.raises(LookupError, match="the caller's own"):
        list(bulk.map("readme.get", reads(COUNT), progress=broken, base_url=sandbox.base_url, environ=TOKEN))


def test_a_reader_may_leave(sandbox: Served) -> None:
    """Leaving the loop stops the run soon, and no thread is left."""
    before = len(sandbox.requests())
    many = ({"owner": "acme-fleet", "repo": f"nowhere-{number}"} for number in range(20_000))
    for _ in bulk.map("readme.get", many, base_url=sandbox.base_url, environ=TOKEN, concurrency=2):
        break
    assert len(sandbox.requests()) < before + 20_000
    assert loops() == []


HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""Whoever runs the tests in the background has them ignore Ctrl-C, and what they start as well."""
MAP = """
import bulk, sys
item = {"owner": "acme-fleet", "message": "m", "content": "YQ=="}
items = [{**item, "repo": f"repo-{number % 40:05d}", "path": f"stop/{number}"} for number in range(60)]
try:
    done = sum(1 for _ in bulk.map("contents.put", items, base_url=sys.argv[1], run_dir="run", concurrency=4))
    print("all", done)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""
RUN = """
import bulk, sys
try:
    print("all", bulk.run("manifest.yaml", base_url=sys.argv[1], run_dir="run", concurrency=4).outcomes["succeeded"])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""
IN_A_LOOP = """
import asyncio
async def cell():
    exec(SCRIPT, globals())
asyncio.run(cell())
"""


@pytest.mark.parametrize("is_in_a_loop", [False, True], ids=["script", "loop"])
@pytest.mark.parametrize("script", [MAP, RUN], ids=["map", "run"])
def test_ctrl_c_interrupts(script: str, is_in_a_loop: bool, tmp_path: Path) -> None:
    """Ctrl-C raises KeyboardInterrupt; the same call goes on, and every effect happened once."""
    home = Home(tmp_path)
    item = {"owner": "acme-fleet", "message": "m", "content": "YQ=="}
    items = [{**item, "repo": f"repo-{number % 40:05d}", "path": f"stop/{number}"} for number in range(60)]
    home.write(
        "manifest.yaml", json.dumps({"version": 1, "jobs": {"put": {"operation": "contents.put", "items": items}}})
    )
    program = HEARD + (script if not is_in_a_loop else IN_A_LOOP.replace("SCRIPT", repr(script)))
    fleet = {"organization": "acme-fleet", "count": 40, "readme_bytes": 200}
    with served(tmp_path / "sandbox", "--latency", "50", seed={"repositories": fleet}) as sandbox:
        command = [sys.executable, "-c", program, sandbox.base_url]
        with home.start_any(command) as process:
            wait_for(lambda: len(sandbox.requests(path="/stop/")) > 20, process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert out == "interrupted\n"
        assert err.rstrip().endswith("KeyboardInterrupt")
        assert process.returncode in (-signal.SIGINT, 130)
        ran = home.run_any(command)
        assert (ran.exit_code, ran.out) == (0, "all 60\n"), ran.err
        applied = Counter(
            line["path"]
            for line in sandbox.requests(path="/stop/")
            if line["method"] == "PUT" and line["status"] == 201
        )
    assert applied == dict.fromkeys(applied, 1)
    assert len(applied) == 60


def test_a_forked_process_maps_as_its_parent_did(sandbox: Served) -> None:
    """What `multiprocessing` forks has none of the parent's threads, and starts its own."""

    def read() -> int:
        return len(list(bulk.map("readme.get", reads(5), base_url=sandbox.base_url, environ=TOKEN)))

    assert read() == 5
    child = multiprocessing.get_context("fork").Process(target=lambda: sys.exit(0 if read() == 5 else 1))
    child.start()
    child.join(60)
    child.kill()
    assert child.exitcode == 0


def test_it_costs_little(sandbox: Served, figure: Callable[[str], None]) -> None:
    """What the thread and its queue cost for an item is told: `bulk.map` beside `Engine.map`, over the same items."""

    async def asynchronous() -> int:
        async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
            return len([one async for one in engine.map("readme.get", reads(COUNT))])

    def synchronous() -> int:
        return len(list(bulk.map("readme.get", reads(COUNT), base_url=sandbox.base_url, environ=TOKEN)))

    took_s = [0.0, 0.0]

    def times(_: int) -> float:
        for place, work in enumerate((lambda: anyio.run(asynchronous), synchronous)):
            since = time.monotonic()
            assert work() == COUNT
            took_s[place] = time.monotonic() - since
        return took_s[1] / took_s[0]

    found = quickest(times, MOST_TIMES)
    figure(f"{COUNT:,} reads: Engine.map {took_s[0]:.2f} s, bulk.map {took_s[1]:.2f} s")
    assert found <= MOST_TIMES
