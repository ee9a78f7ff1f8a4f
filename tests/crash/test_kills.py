"""`bulk run` under kill -9: whatever the moment, the same command goes on, and nothing is lost or done twice."""

import base64
import json
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.judging import changed_files, effects, git
from tests.e2e.platform import TICK_S, Home, Served, has_ended, served

KILLS = 50
REPOSITORIES, FILES, ORGANIZATIONS, SNAPSHOTS = 40, 900, 200, 900
SEED = 20261121
EARLY = 0.15
"""Share of the kills that hit at a random time after the start, so also before anything was sent."""
EARLY_S = 0.6
REQUESTS_MOST = 150
"""A kill in the working phase comes after up to so many requests: 50 of them fit into about 5,000 requests."""

FLEET = {"organization": "acme-fleet", "count": REPOSITORIES, "readme_bytes": 200}


def repository(number: int) -> str:
    """The repository of the n-th file or snapshot."""
    return f"repo-{number % REPOSITORIES:05d}"


def content(number: int) -> str:
    """What the n-th file holds."""
    return f"file {number}\n"


def jobs(home: Home) -> dict[str, Any]:
    """2,000 writes in three jobs."""
    common = {"version": 0, "ref": "refs/heads/main", "sha": "0" * 39 + "1", "scanned": "2026-11-21T08:00:00Z"}
    detector = {"name": "d", "version": "1", "url": "https://example.com/d"}
    home.lines(
        "files.jsonl",
        [
            {
                "owner": "acme-fleet",
                "repo": repository(number),
                "path": f"docs/{number}.txt",
                "content": base64.b64encode(content(number).encode()).decode(),
            }
            for number in range(FILES)
        ],
    )
    home.lines(
        "snapshots.jsonl",
        [
            {"owner": "acme-fleet", "repo": repository(number), "job": {"id": "1", "correlator": f"build-{number}"}}
            for number in range(SNAPSHOTS)
        ],
    )
    home.write("orgs.csv", "login,admin\n" + "".join(f"new-{n:03d},octoadmin\n" for n in range(ORGANIZATIONS)))
    return {
        "files": {"operation": "contents.put", "items": "files.jsonl", "with": {"message": "Add a file"}},
        "orgs": {"operation": "organization.create", "items": "orgs.csv"},
        "snapshots": {
            "operation": "snapshot.create",
            "items": "snapshots.jsonl",
            "with": {**common, "detector": detector},
        },
    }


def kill_at_random(home: Home, sandbox: Served, dice: random.Random, seen: Counter[str]) -> bool:
    """Start the command and kill it at a random moment; whether it had ended before."""
    size = sandbox.journal_path.stat().st_size
    is_early, delay_s, requests = dice.random() < EARLY, dice.uniform(0.0, EARLY_S), dice.randint(1, REQUESTS_MOST)
    with home.running("run", "manifest.yaml", "--run-dir", "run", "--progress", "none") as process:
        if is_early:
            is_over = has_ended(process, delay_s)
        else:
            is_over = False
            with sandbox.journal_path.open("rb") as journal:
                journal.seek(size)
                while requests > 0 and not is_over:
                    requests -= journal.read().count(b"\n")
                    is_over = has_ended(process, TICK_S)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=20)
    assert is_over or process.returncode == -signal.SIGKILL, (process.returncode, out, err)
    assert "Traceback" not in err, err
    new = sandbox.journal_path.stat().st_size > size
    seen["while working" if new else "before anything was sent"] += 1
    return is_over


@pytest.mark.timeout(170)
def test_fifty_kills_lose_nothing_and_double_nothing(tmp_path: Path, figure) -> None:
    """50 kills over 2,000 writes, 5% of the answers lost: every effect exactly once (failures.md row 42, 43).

    A snapshot whose answer was lost is sent again, as operations.md says: the platform keeps it already, so the
    journal's effect of the repeat is null. That is no second effect; one would have an id of its own.
    """
    home, dice, seen = Home(tmp_path), random.Random(SEED), Counter[str]()
    options = ("--rate-limit", "off", "--latency", "5", "--fault", "drop-after=0.05", "--fault-seed", str(SEED))
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs(home), limits={"settle": "1s"})
        started = time.monotonic()
        for _ in range(KILLS):
            assert not kill_at_random(home, sandbox, dice, seen), "the run was over before the last kill"
        lines_before = len(sandbox.requests())
        last = home.run("run", "manifest.yaml", "--run-dir", "run", "--progress", "none", timeout_s=90)
        took_s = time.monotonic() - started
        lines = sandbox.requests()
        assert last.exit_code == 0, last.err
        lost = sum(line["fault"] == "drop-after" for line in lines)
        figure(
            f"seed {SEED}: {KILLS} kills {dict(seen)}; {len(lines):,} requests, {lines_before:,} before the last kill; "
            f"{lost} answers lost, {took_s:.0f} s"
        )
        state = sandbox.folder / "state"

    results = home.results("run")
    assert Counter((line["job"], line["index"]) for line in results) == Counter(
        [
            *(("files", n) for n in range(FILES)),
            *(("orgs", n) for n in range(ORGANIZATIONS)),
            *(("snapshots", n) for n in range(SNAPSHOTS)),
        ]
    )
    assert Counter(line["outcome"] for line in results) == {"succeeded": FILES + ORGANIZATIONS + SNAPSHOTS}, [
        json.dumps(line) for line in results if line["outcome"] != "succeeded"
    ][:5]
    assert Counter(effects(lines, "organization")) == Counter(
        f"organization new-{n:03d} created" for n in range(ORGANIZATIONS)
    )
    assert Counter(effects(lines, "commit")) == Counter(
        f"commit acme-fleet/{repository(n)} docs/{n}.txt" for n in range(FILES)
    )
    snapshots = Counter(tuple(effect.split()[1:4]) for effect in effects(lines, "snapshot"))
    assert snapshots == Counter(("acme-fleet/" + repository(n), f"build-{n}", "d") for n in range(SNAPSHOTS))
    for number in range(REPOSITORIES):
        name = f"acme-fleet/{repository(number)}"
        mine = range(number, FILES, REPOSITORIES)
        assert sorted(changed_files(state, name)) == sorted(f"docs/{n}.txt" for n in mine)
        shown = git(state, name, "grep", "-h", "^file", "main", "--", "docs").splitlines()
        assert sorted(shown) == sorted(content(n).strip() for n in mine)
