"""Where `bulk undo` writes, and with what it reads: nothing of another undo is lost, and credentials are the run's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.platform import ADMIN, Home, served

QUIET = ("--progress", "none")
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


def test_the_credentials_of_an_undo_are_those_of_its_run(tmp_path: Path, home: Home) -> None:
    """Also where one is a map, or a command with what looks like a variable that reads what lies beside the manifest,
    and whatever the environment says."""
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
        home.write("manifest.yaml", json.dumps({"version": 1, "platform": platform, "jobs": jobs}))
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET)
        assert ran.exit_code == 0, ran.err
        home.variables |= {"BULK_BASE_URL": "http://127.0.0.1:9/api/v3", "BULK_TOKEN": "of-another-platform"}
        told = home.run("undo", "run", "-o", "${else}/undo.yaml", *QUIET)
        assert (told.exit_code, "undo: 4 items in 4 jobs" in told.out) == (0, True), told.err
        assert ADMIN not in (home.folder / "${else}" / "undo.yaml").read_text()
        del home.variables["BULK_BASE_URL"]
        ran = home.run("run", "${else}/undo.yaml", "--run-dir", "undoing", *QUIET)
        assert ran.exit_code == 0, ran.out + ran.err
        assert [line["outcome"] for line in home.results("undoing")] == ["succeeded"] * 4
        (home.folder / "token").unlink()  # what every test has written is searched for tokens


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
