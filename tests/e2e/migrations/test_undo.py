"""The example migration is killed at a random moment and taken back: what a dump of the sandbox shows is as before, but
for what was listed, and what somebody else has changed since stays."""

import base64
import json
import random
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.migrating import LOGINS, PATIENCE_S, kill_after, rehearsal, rows
from tests.e2e.support.platform import ADMIN, Home, Served, served
from tests.e2e.support.state_dump import Key, dump, without

FILES, TEAMS = rows("files"), rows("teams")
WHOLE = 1_250
"""More requests than the migration has up to its last write (count)."""


def keys_of(job: str, index: int) -> list[Key]:
    """What an item of the example changes."""
    match job:
        case "configuration":
            return [("configuration", "Borealis baseline"), ("attached",)]
        case "teams":
            return [("assignment", TEAMS[index]["org"], TEAMS[index]["enterprise-team"])]
        case "files":
            return [("file", f"{FILES[index]['owner']}/{FILES[index]['repo']}", FILES[index]["path"])]
        case "organizations":  # the importer's repositories come with it
            seeds = [("file", f"{LOGINS[index]}/{repo}", "README.md") for repo in ("api", "web")]
            return [("organization", LOGINS[index]), ("file", f"{LOGINS[index]}/api", "package-lock.json"), *seeds]
        case "webhooks":
            return [("hook", LOGINS[index])]
        case "rulesets":
            return [("ruleset", LOGINS[index])]
        case "attach":
            return [("attached", LOGINS[index])]
    return [("snapshot", LOGINS[index])]


def listed(home: Home) -> set[Key]:
    """What `undo.txt` names."""
    path = home.folder / "undo.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [re.match(r"  (\S+) #(\d+) ", line) for line in lines]
    return {key for match in found if match for key in keys_of(match[1], int(match[2]))}


def put(sandbox: Served, place: str, content: bytes) -> None:
    """Somebody else changes a file."""
    url = f"{sandbox.base_url}/repos/{place}"
    headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        sha = json.load(answer)["sha"]
    body = {"message": "Mine", "content": base64.b64encode(content).decode(), "sha": sha, "branch": "main"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="PUT")
    urllib.request.urlopen(request, timeout=60).close()


def take_back(home: Home) -> list[dict[str, Any]]:
    """`bulk undo`, then its manifest as any other; its results."""
    written = home.run("undo", "run", "-o", "undo.yaml", "--progress", "none", timeout_s=PATIENCE_S)
    assert (written.exit_code, written.out.startswith("undo: ")) == (0, True), written.err
    if not (home.folder / "undo.yaml").exists():
        return []
    again = home.run("undo", "run", "-o", "undo.yaml")
    assert (again.exit_code, "exists already" in again.err) == (2, True)
    ran = home.run("run", "undo.yaml", "--run-dir", "undoing", "--progress", "none", timeout_s=PATIENCE_S)
    assert ran.exit_code in (0, 1), ran.err
    return home.results("undoing")


def test_what_a_killed_migration_did_is_taken_back(tmp_path: Path) -> None:
    """Files that the example overwrites come back with their bytes; one that somebody has changed since is refused."""
    with rehearsal(tmp_path) as (home, sandbox):
        state = sandbox.folder / "state"
        before = dump(state)
        kill_after(home, sandbox, 1_000)
        first = FILES[0]
        theirs = ("file", f"{first['owner']}/{first['repo']}", first["path"])
        put(sandbox, f"{first['owner']}/{first['repo']}/contents/{first['path']}", b"theirs\n")
        changed = dump(state)
        results = take_back(home)
        lost = listed(home)
        failed = [line for line in results if line["outcome"] == "failed"]
        assert [(line["error"]["code"], line["item"]["path"]) for line in failed] == [("conflict", first["path"])]
        after = dump(state)
        assert after.pop(theirs) == changed[theirs]
        assert without(after, lost) == without(before, lost)
        assert len(without(changed, lost)) > len(without(before, lost)) + 100


def test_where_an_undo_can_not_be_written_is_said(tmp_path: Path) -> None:
    """A folder is not a file; of a run directory without its copy of the manifest only that copy is named."""
    home = Home(tmp_path / "home")
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        item = {"owner": "acme-eng", "repo": "hello-world", "path": "a", "message": "m", "content": "eA=="}
        home.manifest(sandbox.base_url, {"files": {"operation": "contents.put", "items": [item]}})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", "--progress", "none").exit_code == 0
        for folder in (".", "..", "run"):
            told = home.run("undo", "run", "-o", folder)
            assert (told.exit_code, f"{folder} is a folder" in told.err) == (2, True), told.err
        (home.folder / "run" / "manifest.yaml").unlink()
        told = home.run("undo", "run", "-o", "undo.yaml")
        assert (told.exit_code, "run/manifest.yaml: there is no such file" in told.err) == (2, True), told.err


def test_what_a_run_has_made_and_removed_does_not_come_back(tmp_path: Path) -> None:
    """A webhook that was made, changed and deleted was not there before; one that was there and was deleted comes."""
    home = Home(tmp_path / "home")
    config = {"url": "https://u.example.com/y", "content_type": "json"}
    place = {"org": "item.org", "hook_id": "result.id"}
    change = {"operation": "webhook.update", "with": {"drop_secret": True, "events": ["issues"]}}
    jobs = {
        "made": {"operation": "webhook.create", "items": [{"org": "acme-eng", "config": config}]},
        "changed": {**change, "items": {"from": "made", "map": place}},
        "gone": {"operation": "webhook.delete", "needs": ["changed"], "items": {"from": "made", "map": place}},
        "old": {"operation": "webhook.delete", "items": [{"org": "acme-ops", "hook_id": 4001}]},
    }
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        before = dump(sandbox.folder / "state")
        home.folder.mkdir()
        home.manifest(sandbox.base_url, jobs)
        assert home.run("run", "manifest.yaml", "--run-dir", "run", "--progress", "none").exit_code == 0
        (taken,) = take_back(home)
        assert (taken["job"], taken["outcome"]) == ("undo-old", "succeeded")
        assert "changed" not in (home.folder / "undo.txt").read_text()
        assert dump(sandbox.folder / "state") == before


@pytest.mark.soak
@pytest.mark.timeout(7_000)
def test_fifty_random_moments(tmp_path: Path) -> None:
    """Killed at fifty random moments, some with lost answers, then taken back: what is listed is all that is left."""
    dice = random.Random(31)
    for number in range(50):
        options = ("--fault", "drop-after=0.02", "--fault-seed", str(number)) if number % 2 else ()
        with rehearsal(tmp_path / str(number), *options) as (home, sandbox):
            state = sandbox.folder / "state"
            before = dump(state)
            kill_after(home, sandbox, dice.randint(10, WHOLE))
            results = take_back(home)
            assert {line["outcome"] for line in results} <= {"succeeded", "unchanged"}
            lost = listed(home)
            assert without(dump(state), lost) == without(before, lost), f"moment {number}"


def test_that_nothing_is_taken_back_is_said(tmp_path: Path) -> None:
    """A run that has changed nothing is fine (exit 0); of one that nothing takes back the list says why (exit 1)."""
    home = Home(tmp_path / "home")
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.folder.mkdir()
        for name, operation, item in (
            ("reads", "readme.get", {"owner": "acme-eng", "repo": "hello-world"}),
            ("made", "organization.create", {"login": "acme-new", "admin": "octoadmin"}),
        ):
            home.manifest(sandbox.base_url, {name: {"operation": operation, "items": [item]}})
            assert home.run("run", "manifest.yaml", "--run-dir", name, "--progress", "none", "--yes").exit_code == 0
        told = home.run("undo", "reads", "-o", "undo.yaml")
        assert (told.exit_code, told.out) == (0, "undo: nothing to take back, and undo.yaml was not written\n")
        told = home.run("undo", "made", "-o", "undo.yaml")
        assert (told.exit_code, told.err) == (1, "")
        assert told.out.startswith("undo: nothing that can be taken back, and undo.yaml was not written · cannot be")
        assert not (home.folder / "undo.yaml").exists()
