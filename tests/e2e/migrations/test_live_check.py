"""`bulk verify RUN --live`: what the run has left is still there, or the items are named that somebody has changed."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.migrations.test_live_plan import FILES, files, writes
from tests.e2e.migrations.test_undo import put
from tests.e2e.support.migrating import PATIENCE_S, command, rehearsal
from tests.e2e.support.platform import Home, served

FLEET = {"organization": "acme-fleet", "count": 60, "readme_bytes": 200}
QUIET = ("--progress", "none")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for a manifest."""
    return Home(tmp_path / "home")


def test_what_somebody_changed_is_named(tmp_path: Path, home: Home) -> None:
    """Reads alone; all as it was left: exit 0; a file that was changed: exit 1, and it is named; a broken directory is
    not looked at any further."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        files(sandbox, home)
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        written = len(writes(sandbox))
        told = home.run("verify", "run", "--live")
        assert (told.exit_code, f"live: {2 * FILES} as left, 0 moved;" in told.out) == (0, True), told.out + told.err
        put(sandbox, "acme-fleet/repo-00003/contents/README.md", b"theirs\n")
        told = home.run("verify", "run", "--live", "--json")
        live = json.loads(told.out)["live"]
        assert (told.exit_code, live["equal"], live["unseen"]) == (1, 2 * FILES - 1, 0)
        (moved,) = live["moved"]
        assert (moved["job"], moved["index"], moved["verdict"]) == ("readmes", 3, "change")
        assert len(writes(sandbox)) == written + 1

        results = home.folder / "run" / "results.jsonl"
        results.write_bytes(results.read_bytes().replace(b"succeeded", b"unchanged", 1))
        sent = len(sandbox.requests())
        assert home.run("verify", "run", "--live").exit_code == 5
        assert len(sandbox.requests()) == sent


@pytest.mark.soak
def test_a_migration_is_as_it_was_left(tmp_path: Path) -> None:
    """The example migration: what was created and what was made from results too; snapshots and attachments, which tell
    nothing of themselves, count as unseen."""
    with rehearsal(tmp_path) as (home, sandbox):
        assert home.run(*command("run"), timeout_s=PATIENCE_S).exit_code == 0
        told = home.run("verify", "run", "--live", timeout_s=PATIENCE_S)
        assert told.exit_code == 0, told.out
        assert "live: 701 as left, 0 moved, 100 that can't be looked at" in told.out
        assert len({line["method"] for line in sandbox.journal()[-600:]} - {"GET"}) == 0


def test_what_the_run_changed_again_is_no_difference(tmp_path: Path, home: Home) -> None:
    """Webhooks, configurations, settings, teams and renamed organizations are as they were left, also where their
    secrets can't be read; what somebody changes then is named, and so it is after an undo."""
    hook, configuration = {"org": "acme-ops", "hook_id": 4001}, {"org": "acme-eng", "configuration_id": 2002}
    team = {"enterprise": "acme", "enterprise-team": "ent:platform", "org": "acme-ops"}
    setting = "secret_scanning_enabled_for_new_repositories"
    file = {"owner": "acme-labs", "repo": "tools", "path": "a", "branch": "main", "message": "m", "content": "eA=="}
    home.variables["HOOK_SECRET"] = "a-secret-of-a-hook"
    config = {"url": "https://u.example.com/y", "content_type": "form", "secret": "env:HOOK_SECRET"}

    def job(operation: str, item: object, *needs: str) -> dict[str, object]:
        return {"operation": operation, "needs": needs, "items": [item]}

    jobs = {
        "assigned": job("team-organization.assign", team),
        "unassigned": job("team-organization.unassign", team, "assigned"),
        "described": job("organization-configuration.update", {**configuration, "description": "one"}),
        "again": job("organization-configuration.update", {**configuration, "description": "two"}, "described"),
        "on": job("enterprise-security.update", {"enterprise": "acme", setting: True, "wait": True}),
        "off": job("enterprise-security.update", {"enterprise": "acme", setting: False, "wait": True}, "on"),
        "hook": job("webhook.update", {**hook, "config": config, "events": ["push", "issues"]}),
        "moved-hook": job(
            "webhook.update-config", {**hook, "url": "https://u.example.com/z", "drop_secret": True}, "hook"
        ),
        "file": job("contents.put", file),
        "renamed": job("organization.rename", {"org": "acme-labs", "login": "labs", "wait": True}, "file"),
    }
    labs = {"repositories": [{"organization": "acme-labs", "name": "tools"}]}
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed=labs) as sandbox:
        home.folder.mkdir()
        home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        told = home.run("verify", "run", "--live")
        assert (told.exit_code, "0 moved, 5 written over by the run itself" in told.out) == (0, True), told.out

        state = sandbox.folder / "state" / "state.db"
        with closing(sqlite3.connect(state, isolation_level=None)) as database:
            database.execute("UPDATE configurations SET description = 'theirs' WHERE id = 2002")
        told = home.run("verify", "run", "--live", "--json")
        assert (told.exit_code, [each["job"] for each in json.loads(told.out)["live"]["moved"]]) == (1, ["again"])
        with closing(sqlite3.connect(state, isolation_level=None)) as database:
            database.execute("UPDATE configurations SET description = 'two' WHERE id = 2002")

        assert home.run("undo", "run", "-o", "undo.yaml", *QUIET).exit_code == 0
        assert home.run("run", "undo.yaml", "--run-dir", "undoing", *QUIET).exit_code == 0
        told = home.run("verify", "undoing", "--live")
        assert (told.exit_code, " 0 moved; " in told.out) == (0, True), told.out


def test_a_list_that_was_edited_since_is_named(tmp_path: Path, home: Home) -> None:
    """What the run has written can't be looked at by another list of items, and whoever edited it hears which one."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        listed = home.write("repos.csv", "owner,repo\nacme-fleet,repo-00000\n")
        job = {
            "operation": "contents.put",
            "with": {"path": "a", "message": "m", "content": "eA=="},
            "items": "repos.csv",
        }
        home.manifest(sandbox.base_url, {"files": job})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        home.write("repos.csv", "owner,repo\nacme-fleet,repo-00001\n")
        told = home.run("verify", "run", "--live")
        assert (told.exit_code, f"{listed} was edited since the run in run began" in told.err) == (5, True), told.err
