"""A whole migration as one manifest, the one that is shipped, against `bulk sandbox`: killed, resumed, and repeated.

What it must do is counted from the items files alone, and judged by the sandbox's journal and its repositories.
"""

import itertools
import json
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.support.judging import Line, changed_files, effects
from tests.e2e.support.migrating import LOGINS, PATIENCE_S, SECRET, command, kill_after, rehearsal, rows
from tests.e2e.support.platform import Home, Served

ORGANIZATIONS, REPOSITORIES = 50, ("api", "web")
JOBS = {
    "configuration": 1,
    "organizations": ORGANIZATIONS,
    "teams": 3 * ORGANIZATIONS,
    "attach": ORGANIZATIONS,
    "files": 4 * 2 * ORGANIZATIONS,
    "rulesets": ORGANIZATIONS,
    "webhooks": ORGANIZATIONS,
    "snapshots": ORGANIZATIONS,
}
SEED = 20261121


def single(effect: str) -> list[str]:
    """An effect without the numbers and hashes that nobody can know before; that of an array call one by one."""
    words = effect.split()
    match words[0]:
        case "webhook":
            return [" ".join(["webhook", *words[2:]])]
        case "snapshot":
            return [" ".join(words[:4])]
        case "configuration" if "attached" in words:
            numbers = len(effect.partition("repositories ")[2].partition(" of ")[0].split(", "))
            return [f"attached to {numbers} of {words[-1]}"]
        case "team":
            head, _, organizations = effect.partition(" assigned to ")
            return [f"{head} assigned to {login}" for login in organizations.split(", ")]
    return [effect]


def wanted_effects() -> Counter[str]:
    """Each effect of the migration, once."""
    return Counter(
        [
            "configuration Borealis baseline created in enterprise acme",
            *(f"organization {login} created" for login in LOGINS),
            *(f"team {row['enterprise-team']} assigned to {row['org']}" for row in rows("teams")),
            *(f"attached to 2 of {login}" for login in LOGINS),
            *(f"commit {row['owner']}/{row['repo']} {row['path']}" for row in rows("files")),
            *(f"ruleset Protect main of {login} created" for login in LOGINS),
            *(f"webhook of {login} created for https://hooks.borealis.example/code" for login in LOGINS),
            *(f"snapshot {login}/api migration acme-inventory" for login in LOGINS),
        ]
    )


def done(lines: Sequence[Line]) -> Counter[str]:
    """How often the journal has each effect."""
    return Counter(itertools.chain.from_iterable(map(single, effects(lines))))


def classify(home: Home, sandbox: Served) -> None:
    """Every effect exactly once, every item exactly once, and what is there is what was asked for."""
    assert done(sandbox.journal()) == wanted_effects()
    lines = home.results("run")
    assert Counter((line["job"], line["index"]) for line in lines) == Counter(
        (job, index) for job, count in JOBS.items() for index in range(count)
    )
    assert {line["outcome"] for line in lines} <= {"succeeded", "unchanged"}
    with closing(sqlite3.connect(sandbox.folder / "state" / "state.db")) as database:
        attached = database.execute(
            "SELECT count(*) FROM configuration_repositories JOIN configurations ON configurations.id = "
            "configuration_id WHERE configurations.name = 'Borealis baseline' AND status = 'attached'"
        ).fetchone()
        secrets = {json.loads(row[0]).get("secret") for row in database.execute("SELECT config_json FROM hooks")}
    assert attached == (2 * ORGANIZATIONS,)
    assert secrets == {None, SECRET}  # the standard data has one without
    paths = {row["path"] for row in rows("files")}
    for login, repository in itertools.product(LOGINS[::16], REPOSITORIES):
        written = changed_files(sandbox.folder / "state", f"{login}/{repository}")
        assert (len(written), set(written)) == (4, paths)


def repeat(home: Home, sandbox: Served, *, loses_answers: bool = False) -> str:
    """The same manifest in a new run directory: nothing changes. How much it took."""
    before, started = len(sandbox.journal()), time.monotonic()
    again = home.run(*command("again"), timeout_s=PATIENCE_S)
    took_s = time.monotonic() - started
    assert again.exit_code == 0, again.err
    assert effects(sandbox.journal()[before:]) == []
    outcomes = Counter((line["job"], line["outcome"]) for line in home.results("again"))
    # no endpoint reads a snapshot, so the same one is sent again, which changes nothing
    sent = {"snapshots"}
    if loses_answers:  # what was sent and lost is never called unchanged; only attachments are sent, too
        sent.add("attach")
        outcomes["attach", "succeeded"] += outcomes.pop(("attach", "unchanged"))
    assert outcomes == Counter(
        {(job, "succeeded" if job in sent else "unchanged"): count for job, count in JOBS.items()}
    )
    return f"again: {len(sandbox.journal()) - before:,} requests, no effect, {took_s:.1f} s"


def test_a_migration_is_killed_resumed_and_repeated(tmp_path: Path, figure) -> None:
    """Killed while it creates, writes and follows, and resumed: each effect exactly once; again: none
    (failures.md rows 42, 43)."""
    with rehearsal(tmp_path) as (home, sandbox):
        started = time.monotonic()
        for requests in (60, 400, 600):
            kill_after(home, sandbox, requests)
        ran = home.run(*command("run"), timeout_s=PATIENCE_S)
        took_s = time.monotonic() - started
        assert ran.exit_code == 0, ran.err
        classify(home, sandbox)
        sent = len(sandbox.requests())
        again = repeat(home, sandbox)
        items, effected = sum(JOBS.values()), len(wanted_effects())
        figure(f"{items} items, {effected} effects, 3 kills: {sent:,} requests in {took_s:.1f} s; {again}")


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("lost", [0.0, 0.05], ids=["all-answered", "answers-lost"])
def test_a_migration_under_many_kills(tmp_path: Path, figure, lost: float) -> None:
    """Twenty kills at random moments, with all answers or 5% of them lost: each effect exactly once; again: none."""
    options = ("--fault", f"drop-after={lost}", "--fault-seed", str(SEED)) if lost else ()
    dice = random.Random(SEED)
    with rehearsal(tmp_path, "--latency", "5", *options) as (home, sandbox):
        kills = 0
        for _ in range(20):
            kill_after(home, sandbox, dice.randint(1, 90))
            kills += 1
        ran = home.run(*command("run"), timeout_s=200)
        assert ran.exit_code == 0, ran.err
        classify(home, sandbox)
        repeat(home, sandbox, loses_answers=lost > 0)
        figure(f"seed {SEED}: {kills} kills, {lost:.0%} of the answers lost; {len(sandbox.requests()):,} requests")


@pytest.mark.soak
def test_a_migration_left_alone(tmp_path: Path, figure) -> None:
    """Without a kill every item succeeds, and the figures of its speed are told."""
    with rehearsal(tmp_path) as (home, sandbox):
        started = time.monotonic()
        ran = home.run(*command("run"), timeout_s=PATIENCE_S)
        took_s = time.monotonic() - started
        assert ran.exit_code == 0, ran.err
        classify(home, sandbox)
        assert {line["outcome"] for line in home.results("run")} == {"succeeded"}
        figure(f"{sum(JOBS.values())} items in {took_s:.1f} s, {len(sandbox.requests()):,} requests")
