"""Where `bulk undo` writes, and with what it reads: nothing of another undo is lost, and credentials are the run's."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.e2e.support.platform import ADMIN, Home, served
from tests.e2e.support.state_dump import dump

QUIET = ("--progress", "none")
SAME = hashlib.sha1(b"blob 5\0same\n", usedforsecurity=False).hexdigest()
PLACE = {"owner": "acme-eng", "repo": "hello-world", "branch": "main", "message": "m"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for manifests."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    return home


def write(path: str, content: str = "eA==", **more: Any) -> dict[str, Any]:
    """A job that writes one file."""
    return {"operation": "contents.put", "items": [{**PLACE, "path": path, "content": content}], **more}


def test_what_another_undo_has_written_stays(tmp_path: Path, home: Home) -> None:
    """Two undo manifests whose names differ in their ends alone would share a folder; a name of what belongs to the
    manifest is none for itself; where there is nothing to take back, nothing is left."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        for run, path in (("one", "README.md"), ("two", "docs/guide.md")):
            home.manifest(sandbox.base_url, {"files": write(path)}, f"{run}.yaml")
            assert home.run("run", f"{run}.yaml", "--run-dir", run, *QUIET).exit_code == 0
        assert home.run("undo", "one", "-o", "undo.yaml", *QUIET).exit_code == 0
        before = {path: path.read_bytes() for path in home.folder.glob("undo*/*") if path.is_file()}
        told = home.run("undo", "two", "-o", "undo.yml", *QUIET)
        assert (told.exit_code, "undo.d exists already" in told.err) == (2, True), told.out + told.err
        for name in ("other.txt", "other.d"):
            told = home.run("undo", "two", "-o", name, *QUIET)
            assert (told.exit_code, "name it other.yaml" in told.err) == (2, True), told.out + told.err
        again = home.run("run", "one.yaml", "--run-dir", "again", *QUIET)  # all of it is unchanged
        assert (again.exit_code, home.run("undo", "again", "-o", "nothing.yaml", *QUIET).exit_code) == (0, 0)
        assert not (home.folder / "nothing.d").exists()
        assert {path: path.read_bytes() for path in before} == before
        assert home.run("run", "undo.yaml", "--run-dir", "undoing", *QUIET).exit_code == 0
        assert [line["item"]["path"] for line in home.results("undoing")] == ["README.md"]


def test_a_call_that_was_killed_at_its_very_beginning_is_made_up_for(tmp_path: Path, home: Home) -> None:
    """It leaves an empty folder and a part of a file; the same command goes on. A link to a folder is not its own."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, {"files": write("README.md")}, "one.yaml")
        assert home.run("run", "one.yaml", "--run-dir", "one", *QUIET).exit_code == 0
        (home.folder / "empty").mkdir()
        (home.folder / "linked.d").symlink_to("empty")
        told = home.run("undo", "one", "-o", "linked.yaml", *QUIET)
        assert (told.exit_code, "linked.d exists already" in told.err) == (2, True), told.err
        (home.folder / "undo.d").mkdir()
        (home.folder / "undo.yaml.part").write_text("version")
        told = home.run("undo", "one", "-o", "undo.yaml", *QUIET)
        assert (told.exit_code, "undo: 1 item in 1 job" in told.out) == (0, True), told.err
        assert home.run("check", "undo.yaml").exit_code == 0
        assert not (home.folder / "undo.yaml.part").exists()


def test_credentials_and_limits_of_an_undo_are_those_of_its_run(tmp_path: Path, home: Home) -> None:
    """Also where a credential is a map, or a command with what looks like a variable that reads what lies beside the
    manifest, and whatever the environment says; of the limits those that are for the platform and for others."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.write("token", ADMIN).chmod(0o600)
        credentials = {
            "named": {"token": "file:token", "identity": "robot"},
            "printed": "command:sh -c 'cat $${ELSE:-token}'",
            "several": {"pool": ["named", "printed"], "writes": True},
        }
        jobs = {name: write(f"docs/{name}", credential=name) for name in credentials}
        jobs["old"] = write("README.md", credential="printed")
        platform = {"base_url": sandbox.base_url, "credentials": credentials}
        limits = {"concurrency": 9, "reserve": "5%", "hours": {"08:00-18:00 UTC": {"reserve": 50}}, "failures": 1}
        made = {"version": 1, "platform": platform, "limits": limits, "jobs": jobs}
        home.write("manifest.yaml", json.dumps(made))
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--concurrency", "3", *QUIET)
        assert ran.exit_code == 0, ran.err
        home.variables |= {"BULK_BASE_URL": "http://127.0.0.1:9/api/v3", "BULK_TOKEN": "of-another-platform"}
        told = home.run("undo", "run", "-o", "${else}/undo.yaml", *QUIET)
        assert (told.exit_code, "undo: 4 items in 4 jobs" in told.out) == (0, True), told.err
        limits = {"concurrency": 3, "reserve": "5%", "hours": {"08:00-18:00 UTC": {"reserve": 50}}}
        for name in ("undo.yaml", "undo.d/reads.yaml"):  # the bytes of files are read as gently
            written = (home.folder / "${else}" / name).read_text()
            assert ADMIN not in written
            assert YAML().load(written)["limits"] == limits
        del home.variables["BULK_BASE_URL"]
        ran = home.run("run", "${else}/undo.yaml", "--run-dir", "undoing", *QUIET)
        assert ran.exit_code == 0, ran.out + ran.err
        assert [line["outcome"] for line in home.results("undoing")] == ["succeeded"] * 4
        (home.folder / "token").unlink()  # what every test has written is searched for tokens


def test_a_run_is_taken_back_without_the_files_that_it_was_made_of(tmp_path: Path, home: Home) -> None:
    """What it has done stands in its run directory: manifest, items and the files that these name may be gone."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        before = dump(sandbox.folder / "state")
        home.write("new.txt", "new")
        home.lines("files.jsonl", [{**PLACE, "path": path, "content_file": "new.txt"} for path in ("README.md", "new")])
        home.manifest(sandbox.base_url, {"files": {"operation": "contents.put", "items": "files.jsonl"}}, "one.yaml")
        assert home.run("run", "one.yaml", "--run-dir", "one", *QUIET).exit_code == 0
        for name in ("new.txt", "files.jsonl", "one.yaml"):
            (home.folder / name).unlink()
        told = home.run("undo", "one", "-o", "undo.yaml", *QUIET)
        assert (told.exit_code, "undo: 2 items in 2 jobs" in told.out) == (0, True), told.err
        assert home.run("run", "undo.yaml", "--run-dir", "undoing", *QUIET).exit_code == 0
        assert dump(sandbox.folder / "state") == before


def test_what_a_run_did_is_not_looked_for_on_another_platform(tmp_path: Path, home: Home) -> None:
    """A run is undone and looked at where it was done, as it is gone on with only there; the same address in other
    letters is the same platform."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, {"files": write("README.md")}, "one.yaml")
        assert home.run("run", "one.yaml", "--run-dir", "one", *QUIET).exit_code == 0
        same = sandbox.base_url.replace("http:", "HTTP:") + "/"
        commands = (("undo", "one", "-o", "undo.yaml", *QUIET), ("verify", "one", "--live"))
        for command in commands:
            for option, other, used in (
                ("--base-url", "http://127.0.0.1:9/api/v3", sandbox.base_url),
                ("--vendor", "github", "service"),
            ):
                told = home.run(*command, option, other)
                assert (told.exit_code, f"the run was done with {option} {used}" in told.err) == (2, True), told.err
        assert not list(home.folder.glob("undo*"))
        for command in commands:
            assert home.run(*command, "--base-url", same).exit_code == 0
        refused = home.run("run", "one.yaml", "--run-dir", "one", "--base-url", "http://127.0.0.1:9/api/v3", *QUIET)
        assert (refused.exit_code, "the platform's address" in refused.err) == (5, True), refused.err


def test_why_bytes_could_not_be_read_is_told(tmp_path: Path, home: Home) -> None:
    """The credential may not see the repository any more, or it bears another name: the bytes may still be there."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        item = {**PLACE, "repo": "private-notes", "path": "README.md", "content": "eA=="}
        home.manifest(sandbox.base_url, {"files": {"operation": "contents.put", "items": [item]}}, "one.yaml")
        assert home.run("run", "one.yaml", "--run-dir", "one", *QUIET).exit_code == 0
        home.token = "sbx-read-only"
        told = home.run("undo", "one", "-o", "undo.yaml", *QUIET)
        assert told.exit_code == 1, told.err
        listed = (home.folder / "undo.txt").read_text()
        assert "its bytes could not be read: Not Found" in listed


def test_what_a_run_has_changed_and_then_removed_is_listed(tmp_path: Path, home: Home) -> None:
    """A configuration that is deleted does not come back, so that nothing of it is promised; others are taken back."""
    update, place = "organization-configuration.update", {"org": "acme-eng", "configuration_id": 2002}
    jobs = {
        "described": {"operation": update, "items": [{**place, "description": "ours"}]},
        "other": {"operation": update, "items": [{**place, "configuration_id": 2001, "description": "ours"}]},
        "deleted": {
            "operation": "organization-configuration.delete",
            "needs": ["described"],
            "items": [{**place, "org": "Acme-Eng"}],
        },
    }
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--yes", *QUIET)
        assert ran.exit_code == 0, ran.err
        told = home.run("undo", "run", "-o", "undo.yaml", *QUIET)
        assert told.out == "undo: 1 item in 1 job · cannot be undone 2, listed in undo.txt\n"
        lines = (home.folder / "undo.txt").read_text().splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["deleted", "described"]
        assert lines[-1].endswith(": a later item removed it, and it does not come back")
        assert home.run("run", "undo.yaml", "--run-dir", "undoing", *QUIET).exit_code == 0


def without_history(repository: Path) -> None:
    """Somebody else begins the branch of a repository anew, with the files that it has."""

    def git(*arguments: str) -> str:
        name = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        return subprocess.run(
            ("git", "-C", repository, *name, *arguments), check=True, capture_output=True, text=True
        ).stdout

    git("update-ref", "refs/heads/main", git("commit-tree", "main^{tree}", "-m", "Anew").strip())
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "--quiet", "--prune=now")


def test_bytes_that_one_file_has_lost_come_from_another(tmp_path: Path, home: Home) -> None:
    """Of files that were equal one is read; where its history is gone, the others are. What no file has any more is
    listed."""
    names = ["one", "two", "three"]
    repositories = [
        {"organization": "acme-labs", "name": name, "files": {"same": "same\n", "own": f"{name}\n"}} for name in names
    ]
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": repositories}) as sandbox:
        place = {"owner": "acme-labs", "branch": "main", "message": "m", "content": "eA=="}
        items = [{**place, "repo": name, "path": path} for name in names for path in ("same", "own")]
        home.manifest(sandbox.base_url, {"files": {"operation": "contents.put", "items": items}})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 0
        for name in names[1:]:
            without_history(sandbox.folder / "state" / "repositories" / "acme-labs" / f"{name}.git")
        told = home.run("undo", "run", "-o", "undo.yaml", *QUIET)
        assert told.out == "undo: 4 items in 1 job · cannot be undone 2, listed in undo.txt\n"
        listed = (home.folder / "undo.txt").read_text()
        assert ["acme-labs/two own" in listed, "acme-labs/three own" in listed, "same" in listed] == [True, True, False]
        assert home.run("run", "undo.yaml", "--run-dir", "undoing", *QUIET).exit_code == 0
        after = dump(sandbox.folder / "state")
        assert {after["file", f"acme-labs/{name}", "same"] for name in names} == {SAME}


def test_a_plan_holds_no_secret_that_a_command_holds(tmp_path: Path, home: Home) -> None:
    """It can be run all the same, because the manifest says how its credential is found."""
    token = "ghp_" + "S3cretNeve" * 4
    command = f"command:sh -c 'test -n {token} && echo {ADMIN}'"
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        platform = {"base_url": sandbox.base_url, "credentials": {"printed": command}}
        jobs = {"files": write("README.md", credential="printed")}
        home.write("manifest.yaml", json.dumps({"version": 1, "platform": platform, "jobs": jobs}))
        assert home.run("plan", "manifest.yaml", "--live", "-o", "F.plan").exit_code == 0
        assert home.run("approve", "F.plan").exit_code == 0
        ran = home.run("run", "F.plan", "--run-dir", "run", *QUIET)
        assert ran.exit_code == 0, ran.err
        written = [path for path in home.folder.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
        assert written == [home.folder / "manifest.yaml"]
        (home.folder / "manifest.yaml").unlink()
