"""How a run stops early: by a signal, by a silent platform, by too many failures; and how the same command goes on."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.judging import arrived, effects
from tests.e2e.support.platform import Home, Served, has_ended, served, wait_for
from tests.tries import quickest

REPOSITORIES = 400
FLEET = {"organization": "acme-fleet", "count": REPOSITORIES, "readme_bytes": 100}
READS = 32
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
GOES_ON = "bulk resume run"
ANSWERS_MS, ON_THEIR_WAY_S = 1_500, 1.2
"""What left before a signal was handled arrives within this time (seconds), on a machine that stands still for a
second, too; what is sent when an answer has come leaves later."""
GONE_MOST_S = 8.0
SECOND_MOST_S = 3.0
"""Within a second, on a machine that does nothing else; that answers were not waited for is seen from what is left."""


def readmes(count: int) -> dict[str, Any]:
    """A job of `count` reads, one request each."""
    items = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count)]
    return {"readmes": {"operation": "readme.get", "items": items}}


def files(count: int) -> dict[str, Any]:
    """A job of `count` writes, each in a repository of its own."""
    items = [
        {"owner": "acme-fleet", "repo": f"repo-{n:05d}", "path": f"{n}.txt", "content": "QQ=="} for n in range(count)
    ]
    return {"files": {"operation": "contents.put", "items": items, "with": {"message": "Add a file"}}}


@contextmanager
def started(home: Home, sandbox: Served, requests: int) -> Iterator[Any]:
    """Start the command and wait until it has sent `requests` requests."""
    before = len(sandbox.requests())
    with home.running(*COMMAND) as process:
        wait_for(lambda: len(sandbox.requests()) >= before + requests, process)
        yield process


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_lets_requests_finish_and_starts_nothing(number: int, exit_code: int, tmp_path: Path, figure) -> None:
    """After the first SIGINT or SIGTERM nothing new is sent, what is in flight is recorded (failures.md row 39)."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--latency", str(ANSWERS_MS), seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, readmes(READS), limits={"concurrency": 8})
        with started(home, sandbox, 12) as process:
            at = time.clock_gettime(time.CLOCK_REALTIME)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
        took_s = time.clock_gettime(time.CLOCK_REALTIME) - at
        sent = sandbox.requests()
        later = [line for line in sent if arrived(line) > at + ON_THEIR_WAY_S]
        done = len(home.results("run"))
        again = home.run(*COMMAND)
        everything = sandbox.requests()
    figure(
        f"ended {took_s:.2f} s after signal {number:d} with exit {process.returncode}, {done} of {len(sent)} recorded"
    )
    assert process.returncode == exit_code, err
    assert later == []
    assert done == len(sent) < READS
    assert err.splitlines()[-1] == GOES_ON
    assert again.exit_code == 0, again.err
    assert len(everything) == READS
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(READS))


def test_the_second_sigint_stops_at_once(tmp_path: Path, figure) -> None:
    """A second SIGINT ends the run within a second; the next run settles what was in flight (failures.md row 40)."""
    took_s = quickest(lambda number: _stopped_twice(tmp_path / str(number)), SECOND_MOST_S)
    figure(f"ended {took_s:.2f} s after the second SIGINT")
    assert took_s <= SECOND_MOST_S


def _stopped_twice(folder: Path) -> float:
    """How long it takes after the second SIGINT."""
    folder.mkdir()
    home = Home(folder)
    options = ("--latency", str(ANSWERS_MS), "--rate-limit", "off")
    with served(folder / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, files(6), limits={"settle": "1s"})
        index = sandbox.folder / "state" / "repositories" / "acme-fleet"
        with home.running(*COMMAND) as process:
            # a repository exists from its first write on; the answer to that comes much later
            wait_for(lambda: index.exists() and any(index.iterdir()), process)
            process.send_signal(signal.SIGINT)
            assert not has_ended(process, 0.2), "requests in flight are waited for"
            at = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        took_s = time.monotonic() - at
        results = home.folder / "run" / "results.jsonl"
        left = 6 - len(results.read_text().splitlines())
        again = home.run(*COMMAND)
        lines = sandbox.requests()
    assert process.returncode == 130, err
    assert left
    assert err.splitlines()[-1] == GOES_ON
    assert again.exit_code == 0, again.err
    assert Counter(effects(lines)) == Counter(f"commit acme-fleet/repo-{n:05d} {n}.txt" for n in range(6))
    assert Counter(line["outcome"] for line in home.results("run")) == {"succeeded": 6}
    return took_s


def test_a_hangup_does_not_stop_a_run(tmp_path: Path) -> None:
    """SIGHUP, as when a terminal is closed: the run goes on to its end (failures.md row 41)."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--latency", "100", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, readmes(60), limits={"concurrency": 8})
        with started(home, sandbox, 5) as process:
            process.send_signal(signal.SIGHUP)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(home.results("run")) == 60


def test_a_platform_that_goes_away_costs_no_item(tmp_path: Path, figure) -> None:
    """Out of reach for `limits.unreachable`: exit 3, no item failed, resumable (failures.md row 2)."""
    took_s = quickest(lambda number: _left_alone(tmp_path / str(number)), GONE_MOST_S)
    figure(f"stopped {took_s:.1f} s after the platform had gone")
    assert 1.0 < took_s < GONE_MOST_S


def _left_alone(folder: Path) -> float:
    """How long it takes after the platform has gone."""
    folder.mkdir()
    home = Home(folder)
    with served(folder / "sandbox", "--latency", "20", seed={"repositories": FLEET}) as sandbox:
        port = sandbox.base_url.split(":")[2].split("/")[0]
        home.manifest(sandbox.base_url, readmes(REPOSITORIES), limits={"concurrency": 4, "unreachable": "2s"})
        with started(home, sandbox, 50) as process:
            sandbox.process.kill()
            sandbox.process.wait()
            at = time.monotonic()
            _, err = process.communicate(timeout=60)
        took_s = time.monotonic() - at
    assert process.returncode == 3, err
    assert "out of reach" in err
    assert err.splitlines()[-1] == GOES_ON
    assert {line["outcome"] for line in home.results("run")} == {"succeeded"}
    with served(folder / "sandbox", "--port", port, seed={"repositories": FLEET}):
        again = home.run(*COMMAND)
    assert again.exit_code == 0, again.err
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(REPOSITORIES))
    return took_s


def test_a_platform_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Nothing listens at the base URL: exit 3 after `limits.unreachable`, no item failed (failures.md row 2)."""
    home = Home(tmp_path)
    home.manifest("http://127.0.0.1:9/api/v3", readmes(5), limits={"unreachable": "1s"})
    ran = home.run(*COMMAND)
    assert ran.exit_code == 3
    assert "the platform can't be reached: can't connect to 127.0.0.1:9" in ran.err
    assert home.results("run") == []


@pytest.mark.parametrize(("failures", "most"), [("5", 5), ("10%", 10)])
def test_too_many_failures_stop_the_run(failures: str, most: int, tmp_path: Path) -> None:
    """`limits.failures`: exit 3 when more items have failed; the rest can still be done (failures.md row 79)."""
    home = Home(tmp_path)
    missing = [{"owner": "acme-fleet", "repo": f"nothing-{number}"} for number in range(300)]
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        jobs = {"readmes": {"operation": "readme.get", "items": missing}}
        home.manifest(sandbox.base_url, jobs, limits={"failures": failures, "concurrency": 2})
        ran = home.run(*COMMAND)
        done = home.results("run")
        home.manifest(sandbox.base_url, jobs)
        again = home.run(*COMMAND)
    assert ran.exit_code == 3, ran.err
    assert "limits.failures" in ran.err
    assert ran.err.splitlines()[-1] == GOES_ON
    # a share counts from 100 finished items on; what was in flight is recorded
    assert len(done) <= (most + 3 if failures == "5" else 103)
    assert {line["error"]["code"] for line in done} == {"not_found"}
    assert again.exit_code == 1, again.err
    assert len(home.results("run")) == 300


def test_many_failures_in_a_row_are_warned_of(tmp_path: Path) -> None:
    """20 items in a row that are not found give one warning with the likely cause, 38 around one that is found give
    none (failures.md rows 20, 79)."""
    home = Home(tmp_path)
    missing = [{"owner": "acme-fleet", "repo": f"nothing-{number}"} for number in range(60)]
    found = [{"owner": "acme-fleet", "repo": "repo-00000"}]
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        for items, warnings in ((missing[:19], 0), (missing[:19] + found + missing[19:38], 0), (found + missing, 1)):
            jobs = {"readmes": {"operation": "readme.get", "items": items}}
            home.manifest(sandbox.base_url, jobs, limits={"concurrency": 1})
            ran = home.run("run", "manifest.yaml", "--run-dir", f"run-{len(items)}", "--progress", "none")
            assert ran.exit_code == 1, ran.err
            assert ran.err.count("20 items in a row") == warnings
            assert ran.err.count("credential 'default'") == warnings


def test_a_time_limit_stops_the_run(tmp_path: Path) -> None:
    """`--max-duration`: exit 3 when the time is over, what was in flight is recorded, the rest can be done later."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--latency", "100", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, readmes(40), limits={"concurrency": 2})
        ran = home.run(*COMMAND, "--max-duration", "1s")
        done, sent = len(home.results("run")), len(sandbox.requests())
        again = home.run(*COMMAND)
    assert ran.exit_code == 3, ran.err
    assert "max_duration" in ran.err
    assert 0 < done == sent < 40
    assert again.exit_code == 0, again.err
    assert len(home.results("run")) == 40
