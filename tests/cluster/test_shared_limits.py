"""Two workers with one token: one budget, and what one of them is told holds for both."""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bulk.clock import Clock
from bulk.store.leases import GRACE_S
from tests.cluster.cluster import cluster, run_arguments
from tests.crash.work import ORGANIZATION, Work
from tests.e2e.support.judging import windows
from tests.e2e.support.platform import Home, wait_for

READS = Work(files=0, organizations=0, snapshots=0, refused=0)
LIMIT, WINDOW_S = 50, 2


def reads(home: Home, base_url: str, count: int, **limits: Any) -> None:
    """A manifest of `count` reads."""
    names = [{"owner": ORGANIZATION, "repo": READS.repository(n), "id": str(n)} for n in range(count)]
    home.lines("reads.jsonl", names)
    jobs = {"reads": {"operation": "readme.get", "items": "reads.jsonl"}}
    home.manifest(base_url, jobs, limits={"concurrency": 8, "request_timeout": "5s", "pace": "burst", **limits})


def test_workers_share_a_budget(store_text: str, tmp_path: Path) -> None:
    """Together they never send beyond the limit, and use nearly all of most whole windows.

    A machine that stands still for half of a window loses a part of that one. How much each is used on a machine with
    nothing else to do, the tests in virtual time tell.
    """
    with cluster(store_text, tmp_path, READS, "--rate-limit", f"core={LIMIT}/{WINDOW_S}") as made:
        reads(made.home, made.sandbox.base_url, 11 * LIMIT // 2)
        ran = made.home.run(*run_arguments(store_text))
        assert ran.exit_code == 0, ran.err
        lines = made.sandbox.requests()
        assert Counter(line["status"] for line in lines)[403] == 0
        used = [len(window) for window in windows(lines, "core")]
        assert median(used[1:-1]) >= 0.95 * LIMIT, used
        assert max(used) <= LIMIT


def states(admin: psycopg.Connection) -> bytes:
    """What the row of the budget holds."""
    row = admin.execute("SELECT state FROM bulk.bucket WHERE category = 'core'").fetchone()
    return b"" if row is None else bytes(row[0])


def test_a_budget_that_is_damaged_is_made_anew(store_text: str, tmp_path: Path) -> None:
    """No worker ends, and no window is exceeded: what was lent of it before is waited for, and then it is what the
    platform says (failures.md row 112)."""
    with cluster(store_text, tmp_path, READS, "--rate-limit", f"core={LIMIT}/{WINDOW_S}") as made:
        reads(made.home, made.sandbox.base_url, 3 * LIMIT, request_timeout="1s")
        with made.home.running(*run_arguments(store_text)) as waiting:
            wait_for(lambda: len(made.sandbox.requests()) > LIMIT + 5, waiting)
            with psycopg.connect(store_text, autocommit=True) as admin:
                assert admin.execute("UPDATE bulk.bucket SET state = 'gone'").rowcount
                wait_for(lambda: b"void" in states(admin), waiting)
                sooner = f'{{"void_until":{json.loads(states(admin))["void_until"] - GRACE_S}}}'
                admin.execute("UPDATE bulk.bucket SET state = %s WHERE category = 'core'", (sooner.encode(),))
            out, err = waiting.communicate(timeout=120.0)
            assert waiting.returncode == 0, out + err
        lines = made.sandbox.requests()
        assert Counter(line["status"] for line in lines)[403] == 0
        assert max(len(window) for window in windows(lines, "core")) <= LIMIT
        assert all(worker.poll() is None for worker in made.workers)


def test_workers_leave_to_others_what_the_hour_says(store_text: str, tmp_path: Path) -> None:
    """`limits.hours` hold for the budget that they share: at most half of each window is used."""
    first, behind = (f"{datetime.fromtimestamp(Clock.now() + s, UTC):%H:%M}" for s in (-3_600, 3_600))
    with cluster(store_text, tmp_path, READS, "--rate-limit", f"core={LIMIT}/{WINDOW_S}") as made:
        reads(made.home, made.sandbox.base_url, LIMIT, hours={f"{first}-{behind} UTC": {"reserve": "50%"}})
        ran = made.home.run(*run_arguments(store_text))
        assert ran.exit_code == 0, ran.err
        assert max(len(window) for window in windows(made.sandbox.requests(), "core")) == LIMIT // 2


def test_a_token_that_is_refused_stops_both(store_text: str, tmp_path: Path) -> None:
    """After the first 401 what is in flight is all that still comes; the run says so and whose token it was, exit 4."""
    with cluster(store_text, tmp_path, READS, "--token", "short=octoadmin:6", "--latency", "50", workers=0) as made:
        made.home.token = "short"
        reads(made.home, made.sandbox.base_url, 2_000)
        made.worker()
        made.worker()
        ran = made.home.run(*run_arguments(store_text))
        assert ran.exit_code == 4, ran.err
        assert re.search(rf"worker \S+-({'|'.join(str(worker.pid) for worker in made.workers)}): .*401", ran.err)
        asked, sent = made.sandbox.journal(), made.sandbox.requests()
        assert any(line["status"] == 401 for line in asked)
        assert sum(line["status"] in (401, 403) for line in sent) <= 16, Counter(line["status"] for line in sent)


def test_a_platform_that_was_not_named_gets_no_token(store_text: str, tmp_path: Path) -> None:
    """A worker sends nothing to where its command line does not point, whatever a run says."""
    with cluster(store_text, tmp_path, READS, workers=0) as made:
        reads(made.home, made.sandbox.base_url, 10)
        name = made.home.run("submit", "manifest.yaml", "--store", store_text).out.strip()
        options = ("--store", store_text, "--base-url", "https://elsewhere.example.com/api/v3")
        with made.home.running("worker", *options) as worker:
            assert worker.stderr is not None
            said = [worker.stderr.readline(), worker.stderr.readline()]
        assert "which no --base-url of this worker names" in said[1], said
        assert made.sandbox.journal() == []
        assert made.home.run("status", name, "--store", store_text).exit_code == 0


def test_what_can_not_be_shared_is_refused(store_text: str, tmp_path: Path) -> None:
    """What one process alone could do is refused before anything is submitted."""
    with cluster(store_text, tmp_path, READS, workers=0) as started:
        home, sandbox = started.home, started.sandbox
        reads(home, sandbox.base_url, 3)
        jobs: dict[str, Any] = {"reads": {"operation": "readme.get", "items": "reads.jsonl"}}
        made = {"from": "reads", "map": {"owner": "item.owner", "repo": "item.repo", "content_file": "item.repo"}}
        given = {"path": "x", "message": "Add"}
        files = {"operation": "contents.put", "with": given, "items": made}
        home.manifest(sandbox.base_url, {**jobs, "files": files})
        ran = home.run("submit", "manifest.yaml", "--store", store_text)
        assert ran.exit_code == 2
        assert "jobs.files: which files its items name is known only when they are made" in ran.err
        made = {"from": "reads", "map": {"owner": "item.owner", "repo": "item.repo"}}
        files = {"operation": "contents.put", "with": {**given, "content": "eA=="}, "items": made}
        home.manifest(sandbox.base_url, {**jobs, "files": files}, limits={"waves": [1]})
        ran = home.run("submit", "manifest.yaml", "--store", store_text)
        assert ran.exit_code == 2, ran.out
        assert "jobs.files: with limits.waves it can't be made from results" in ran.err
