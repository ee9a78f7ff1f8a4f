"""`bulk verify --live` looks at what the run has left: of an item what no later one has changed, and no more items."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.platform import Home, Served, served

QUIET = ("--progress", "none")
TEAM = {"enterprise": "acme", "enterprise-team": "ent:security"}
ONE, TWO = "secret_scanning_enabled_for_new_repositories", "dependabot_alerts_enabled_for_new_repositories"
OTHER = "secret_scanning_push_protection_enabled_for_new_repositories"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for a manifest."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    return home


def change(sandbox: Served, query: str, *values: Any) -> None:
    """Somebody else changes something."""
    with closing(sqlite3.connect(sandbox.folder / "state" / "state.db", isolation_level=None)) as database:
        database.execute(query, values)


def settings(sandbox: Served, **wanted: bool) -> None:
    """Somebody else changes settings of the enterprise."""
    with closing(sqlite3.connect(sandbox.folder / "state" / "state.db", isolation_level=None)) as database:
        (shown,) = database.execute("SELECT settings_json FROM enterprise_security").fetchone()
        database.execute("UPDATE enterprise_security SET settings_json = ?", (json.dumps(json.loads(shown) | wanted),))


def looked(home: Home) -> tuple[int, int, list[str], int]:
    """What `bulk verify --live` finds: exit code, items as left, names of jobs that moved, rewritten items."""
    told = home.run("verify", "run", "--live", "--json")
    live = json.loads(told.out)["live"]
    return told.exit_code, live["equal"], [moved["job"] for moved in live["moved"]], live["rewritten"]


def test_what_is_left_of_an_assignment(tmp_path: Path, home: Home) -> None:
    """A team that the run gives two organizations, and takes one of them away again; then somebody takes the other."""
    both = {**TEAM, "organization_slugs": ["acme-ops", "ACME-labs"]}
    jobs = {
        "given": {"operation": "team-organization.add", "items": [both]},
        "taken": {
            "operation": "team-organization.remove",
            "needs": ["given"],
            "items": [{**TEAM, "organization_slugs": ["Acme-Ops"]}],
        },
    }
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        assert looked(home) == (0, 1, [], 1)
        change(sandbox, "DELETE FROM team_organizations WHERE team_id = 502 AND organization_id = 103")
        assert looked(home) == (1, 1, ["given"], 0)


def test_what_is_left_of_settings(tmp_path: Path, home: Home) -> None:
    """What an item expects it does not change: who changes that has changed what an earlier item left. A setting that a
    later item changes is its own."""
    wait = {"enterprise": "acme", "wait": True}

    def job(*needs: str, **settings: Any) -> dict[str, Any]:
        return {"operation": "enterprise-security.update", "needs": needs, "items": [{**wait, **settings}]}

    jobs = {
        "first": job(**{ONE: True}),
        "expects": job("first", **{OTHER: True, "expect": {ONE: True}}),
        "two": job("expects", **{TWO: True, OTHER: False}),
    }
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET, "--yes")
        assert ran.exit_code == 0, ran.out + ran.err
        assert looked(home) == (0, 2, [], 1)
        settings(sandbox, **{ONE: False})
        assert looked(home) == (1, 1, ["first"], 1)
        settings(sandbox, **{ONE: True, OTHER: True, TWO: False})
        assert looked(home) == (1, 2, ["two"], 0)


def test_what_a_stopped_run_did_not_reach_is_not_looked_at(tmp_path: Path, home: Home) -> None:
    """Of a run that waits for its second wave, that is one item of a hundred, and no job that has written nothing."""
    place = {"owner": "acme-eng", "repo": "hello-world", "branch": "main", "message": "m", "content": "eA=="}
    files = [{**place, "path": f"new/{number}"} for number in range(100)]
    later = {"operation": "contents.put", "needs": ["files"], "items": [{**place, "path": "later"}]}
    jobs = {"files": {"operation": "contents.put", "items": files}, "later": later}
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, jobs, limits={"waves": [1, "rest"], "gate": "manual"})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 3
        sent = len(sandbox.requests())
        assert looked(home) == (0, 1, [], 0)
        assert len(sandbox.requests()) == sent + 1


def test_what_can_not_be_looked_at_has_not_moved(tmp_path: Path, home: Home) -> None:
    """A secret that is not there any more, and a credential that may not look: nobody has changed anything."""
    home.variables["HOOK_SECRET"] = "a-secret-of-a-hook"
    config = {"url": "https://u.example.com/y", "secret": "env:HOOK_SECRET"}
    jobs = {
        "hook": {"operation": "webhook.create", "items": [{"org": "acme-ops", "config": config}]},
        "given": {"operation": "team-organization.assign", "items": [{**TEAM, "org": "acme-labs"}]},
    }
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, jobs)
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        del home.variables["HOOK_SECRET"]
        assert looked(home) == (0, 1, [], 0)
        home.token = "sbx-read-only"
        told = home.run("verify", "run", "--live")
        assert told.exit_code == 0, told.out
        assert "0 as left, 0 moved, 2 that can't be looked at" in told.out
        assert "  can't be looked at: Resource not accessible by this token" in told.out
        assert "  can't be looked at: config.secret: the environment variable HOOK_SECRET is not set" in told.out


def test_files_that_items_name_are_those_that_were_sent(tmp_path: Path, home: Home) -> None:
    """Other bytes in a file that an item names would be compared with what the run has left: that is refused."""
    place = {"owner": "acme-eng", "repo": "hello-world", "branch": "main", "message": "m", "content_file": "body"}
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        body = home.write("body", "ours\n")
        source = {"operation": "contents.get", "items": [{"owner": "acme-eng", "repo": "hello-world", "path": "docs"}]}
        made = {"from": "listed", "map": {name: place[name] for name in place} | {"path": "result.name"}}
        jobs = {
            "files": {"operation": "contents.put", "items": [{**place, "path": "new.md"}]},
            "listed": source,
            "made": {"operation": "contents.put", "items": made, "with": {"message": "n"}},
        }
        for chosen in (("files",), ("listed", "made")):
            jobs_here = {name: jobs[name] for name in chosen}
            home.manifest(sandbox.base_url, jobs_here, limits={"settle": "1s"})
            run = f"run-{chosen[-1]}"
            body.write_text("ours\n")
            assert home.run("run", "manifest.yaml", "--run-dir", run, *QUIET).exit_code == 0
            assert home.run("verify", run, "--live").exit_code == 0
            body.write_text("theirs\n")
            told = home.run("verify", run, "--live")
            assert (told.exit_code, "the file body is not what the run has sent any more" in told.err) == (5, True)
