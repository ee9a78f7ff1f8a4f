"""What a run and its undo meet: two jobs on one file, writes that name a blob, plans that were edited."""

import base64
import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.migrations.test_live_plan import writes
from tests.e2e.migrations.test_undo import put
from tests.e2e.support.platform import ADMIN, Home, Served, served

FLEET = {"organization": "acme-fleet", "count": 8, "readme_bytes": 100}
QUIET = ("--progress", "none")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for a manifest."""
    return Home(tmp_path / "home")


def items(path: str, content: str, **more: Any) -> list[dict[str, Any]]:
    """A write of this file in each repository."""
    content = base64.b64encode(content.encode()).decode()
    repos = [f"repo-{number:05d}" for number in range(FLEET["count"])]  # type: ignore[call-overload]
    return [
        {"owner": "acme-fleet", "repo": repo, "path": path, "message": "m", "content": content, **more}
        for repo in repos
    ]


def two_jobs(home: Home, sandbox: Served) -> None:
    """Two jobs write one file, and a third one overwrites another; the second needs the first."""
    home.folder.mkdir(exist_ok=True)
    first = {"operation": "contents.put", "items": items("two.txt", "one")}
    second = {"operation": "contents.put", "items": items("two.txt", "two"), "needs": ["first"]}
    readmes = {"operation": "contents.put", "items": items("README.md", "ours")}
    jobs = {"first": first, "second": second, "readmes": readmes}
    home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})


def test_two_jobs_on_one_file(tmp_path: Path, home: Home) -> None:
    """A plan can look at them, what the second one wrote over is not a difference, and they are taken back in turn."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        two_jobs(home, sandbox)
        planned = home.run("plan", "manifest.yaml", "--live")
        assert (planned.exit_code, "looked at 24 items" in planned.out) == (0, True), planned.err
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        told = home.run("verify", "run", "--live")
        assert (told.exit_code, "live: 16 as left, 0 moved, 8 written over by the run itself" in told.out) == (0, True)
        assert home.run("undo", "run", "-o", "undo.yaml", *QUIET).exit_code == 0
        assert home.run("run", "undo.yaml", "--run-dir", "undoing", *QUIET).exit_code == 0
        again = home.run("plan", "manifest.yaml", "--live")
        assert again.out.partition("\n")[2] == planned.out.partition("\n")[2]  # but for how many answers were free


def test_an_undo_can_be_looked_at(tmp_path: Path, home: Home) -> None:
    """Its plan names what somebody has changed, deleted or done already; a conflict is left alone, also where the
    change is gone when the plan is run; and what it has left can be verified."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        home.folder.mkdir(exist_ok=True)
        jobs = {
            "new": {"operation": "contents.put", "items": items("NEW.md", "ours", mode="create")},
            "readmes": {"operation": "contents.put", "items": items("README.md", "ours")},
        }
        home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        told = home.run("verify", "run", "--live")
        assert (told.exit_code, "live: 16 as left, 0 moved;" in told.out) == (0, True), told.out
        assert home.run("undo", "run", "-o", "undo.yaml", *QUIET).exit_code == 0
        for place in ("repo-00001/contents/README.md", "repo-00002/contents/NEW.md"):
            put(sandbox, f"acme-fleet/{place}", b"theirs\n")
        sent = len(writes(sandbox))
        planned = home.run("plan", "undo.yaml", "--live", "-o", "undo.plan")
        assert planned.exit_code == 0, planned.err
        assert len(writes(sandbox)) == sent
        plan = json.loads((home.folder / "undo.plan").read_bytes())
        counts = {job["name"]: job["counts"] for job in plan["jobs"]}
        assert counts == {
            "undo-readmes": {"change": 7, "conflict": 1},
            "undo-new": {"change": 7, "conflict": 1},
        }, counts
        assert "README.md is the blob" in planned.out
        put(sandbox, "acme-fleet/repo-00001/contents/README.md", b"ours")
        put(sandbox, "acme-fleet/repo-00003/contents/README.md", b"theirs\n")
        assert home.run("approve", "undo.plan").exit_code == 0
        ran = home.run("run", "undo.plan", "--run-dir", "undoing", *QUIET)
        assert ran.exit_code == 1, ran.err
        bad = {
            (line["job"], line["item"]["repo"], line["error"]["code"])
            for line in home.results("undoing")
            if line["outcome"] != "succeeded"
        }
        assert bad == {
            ("undo-readmes", "repo-00001", "stale"),
            ("undo-readmes", "repo-00003", "stale"),
            ("undo-new", "repo-00002", "stale"),
        }
        told = home.run("verify", "undoing", "--live")
        assert (told.exit_code, "live: 13 as left, 0 moved;" in told.out) == (0, True), told.out


def test_what_was_edited_or_is_missing_is_named(tmp_path: Path, home: Home) -> None:
    """A plan that an editor has saved anew is a plan all the same (exit 5); without `digests.json` `verify` says that
    it has not compared the files; its advice can be run as it stands."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        two_jobs(home, sandbox)
        assert home.run("plan", "manifest.yaml", "--live", "-o", "F.plan").exit_code == 0
        raw = (home.folder / "F.plan").read_bytes()
        compact = json.dumps(json.loads(raw)).encode()
        for edited in (raw.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + raw, compact, b"\n" + raw, raw[:70]):
            (home.folder / "F.plan").write_bytes(edited)
            ran = home.run("run", "F.plan", *QUIET)
            assert (ran.exit_code, "F.plan" in ran.err, (home.folder / "runs").exists()) == (5, True, False), ran.err

        assert home.run("run", "manifest.yaml", "--run-dir", "a run", *QUIET).exit_code == 0
        (home.folder / "a run" / "digests.json").unlink()
        told = home.run("verify", "a run")
        assert (told.exit_code, "its files were not compared" in told.out) == (0, True), told.out
        results = home.folder / "a run" / "results.jsonl"
        results.write_bytes(results.read_bytes().replace(b'"succeeded"', b'"unchanged"'))
        told = home.run("verify", "a run")
        assert (told.exit_code, "more: bulk verify 'a run' --all" in told.out) == (5, True), told.out


def test_nothing_goes_on_without_its_plan(tmp_path: Path, home: Home) -> None:
    """A run of a plan that has work left, and whose plan is gone from its directory, is refused (exit 5), so that what
    somebody has made since stays; the plan's file brings it back. A run that was begun without it does not go on with a
    plan. What is left of two runs in one directory is not taken back."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        home.folder.mkdir(exist_ok=True)
        limits = {"waves": [3, "rest"], "gate": "manual"}
        jobs = {"new": {"operation": "contents.put", "items": items("NEW.md", "ours")}}
        home.manifest(sandbox.base_url, jobs, limits=limits)
        assert home.run("plan", "manifest.yaml", "--live", "-o", "F.plan").exit_code == 0
        assert home.run("approve", "F.plan").exit_code == 0
        begun = home.run("run", "F.plan", "--run-dir", "run", *QUIET)
        assert begun.exit_code == 3, begun.err
        place = "acme-fleet/repo-00005/contents/NEW.md"
        put_new(sandbox, place, b"theirs\n")
        assert home.run("approve", "run", "--wave", "2").exit_code == 0
        (home.folder / "run" / "plan.json").unlink()
        for command in (("resume", "run"), ("run", "manifest.yaml", "--run-dir", "run")):
            ran = home.run(*command, *QUIET)
            assert (ran.exit_code, "plan.json is gone" in ran.err) == (5, True), ran.err
        ran = home.run("run", "F.plan", "--run-dir", "run", *QUIET)
        assert ran.exit_code == 1, ran.err
        (left,) = (line for line in home.results("run") if line["outcome"] != "succeeded")
        assert (left["item"]["repo"], left["error"]["code"]) == ("repo-00005", "stale")

        home.manifest(sandbox.base_url, {"other": {"operation": "contents.put", "items": items("OTHER.md", "x")}})
        assert home.run("run", "manifest.yaml", "--run-dir", "other", "--limit", "1", *QUIET).exit_code == 0
        assert home.run("plan", "manifest.yaml", "--live", "-o", "other.plan").exit_code == 0
        sent = len(writes(sandbox))
        for place, words in (("other", "was begun without a plan"), ("run", "is the run of another plan")):
            ran = home.run("run", "other.plan", "--run-dir", place, *QUIET)  # which nobody has approved
            assert (ran.exit_code, words in ran.err, len(writes(sandbox))) == (5, True, sent), ran.err
        assert home.run("run", "manifest.yaml", "--run-dir", "other", *QUIET).exit_code == 0
        for name in ("ledger.db", "results.jsonl"):
            shutil.copy(home.folder / "other" / name, home.folder / "run" / name)
        told = home.run("undo", "run", "-o", "undo.yaml", *QUIET)
        assert (told.exit_code, "are of two runs" in told.err, (home.folder / "undo.yaml").exists()) == (5, True, False)


def test_what_was_made_is_as_it_was_left(tmp_path: Path, home: Home) -> None:
    """Organizations, hooks, rulesets, configurations and new names are not a conflict because they are there; one that
    somebody has deleted or renamed since is named."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.folder.mkdir(exist_ok=True)
        conditions = {
            "ref_name": {"include": ["~ALL"], "exclude": []},
            "repository_name": {"include": [], "exclude": []},
        }
        rule = {"org": "acme-eng", "name": "p", "target": "branch", "enforcement": "active", "conditions": conditions}
        hooks = [{"org": "acme-eng", "config": {"url": f"https://h.example/{n}"}, "events": ["push"]} for n in range(2)]
        made = {
            "organization.create": [{"login": "new", "admin": "octoadmin"}],
            "organization.rename": [{"org": "acme-ops", "login": "acme-run", "wait": True}],
            "webhook.create": hooks,
            "organization-ruleset.create": [{**rule, "rules": [{"type": "deletion"}]}],
            "enterprise-configuration.create": [{"enterprise": "acme", "name": "c", "description": "d"}],
        }
        jobs = {name.replace(".", "-"): {"operation": name, "items": lines} for name, lines in made.items()}
        home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--yes", *QUIET)
        assert ran.exit_code == 0, ran.out
        told = home.run("verify", "run", "--live")
        assert (told.exit_code, "live: 6 as left, 0 moved;" in told.out) == (0, True), told.out
        number = next(line["result"]["id"] for line in home.results("run") if line["job"] == "webhook-create")
        ask(sandbox, "DELETE", f"orgs/acme-eng/hooks/{number}")
        told = home.run("verify", "run", "--live")
        assert (told.exit_code, "live: 5 as left, 1 moved;" in told.out) == (1, True), told.out


def ask(sandbox: Served, method: str, path: str, body: dict[str, Any] | None = None) -> None:
    """Somebody else asks the platform for something."""
    headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{sandbox.base_url}/{path}", data, headers, method=method)
    urllib.request.urlopen(request, timeout=60).close()


def put_new(sandbox: Served, place: str, content: bytes) -> None:
    """Somebody else makes a file."""
    body = {"message": "Mine", "content": base64.b64encode(content).decode(), "branch": "main"}
    ask(sandbox, "PUT", f"repos/{place}", body)
