"""A folder that this user may not open: a message that names it, and an exit code that is not a bug's."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bulk.audit.history import NAME, VERSION
from bulk.cli import main
from bulk.clock import Clock
from bulk.exit_codes import ExitCode
from bulk.serve.audits.histories import Histories
from tests.e2e.support.platform import ADMIN, served
from tests.permissions import closed

RUN = ("status", "resume", "report", "verify", "retry", "watch", "pause", "stop")


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A platform."""
    fleet = {"organization": "acme", "count": 1, "readme_bytes": 100}
    with served(tmp_path_factory.mktemp("sandbox"), seed={"repositories": fleet}) as sandbox:
        yield sandbox.base_url


@pytest.fixture
def here(base_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `closed` with a manifest and a run in it, and both beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BULK_TOKEN", ADMIN)
    jobs = {"a": {"operation": "readme.get", "items": [{"owner": "acme", "repo": "repo-00000"}]}}
    Path("m.yaml").write_text(json.dumps({"version": 1, "platform": {"base_url": base_url}, "jobs": jobs}))
    assert main(["run", "m.yaml", "--run-dir", "run", "--progress", "none", "--no-cache"]) == ExitCode.DONE
    shutil.copytree("run", "closed/run")
    shutil.copy("m.yaml", "closed")
    return tmp_path


def test_a_run_in_a_closed_folder_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command that reads a run ends with 5, and so does a run that would live there."""
    commands: list[Sequence[str]] = [(each, "closed/run") for each in RUN]
    commands += [
        ("diff", "closed/run", "run"),
        ("sql", "closed/run", "select 1"),
        ("undo", "closed/run", "-o", "undo.yaml"),
        ("run", "m.yaml", "--run-dir", "closed/new"),
    ]
    for command in commands:
        capsys.readouterr()
        with closed(here / "closed"):
            assert main(list(command)) == ExitCode.RUN_DIRECTORY, command
        printed = capsys.readouterr().err
        assert "closed/" in printed
        assert "Permission denied" in printed


def test_a_run_directory_that_is_closed_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That of another user, say: ends with 5, whatever is to be done with it, and so does a list of what is there."""
    commands: list[Sequence[str]] = [(each, "run") for each in (*RUN, "runs")]
    commands += [
        ("diff", "run", "run"),
        ("sql", "run", "select 1"),
        ("undo", "run", "-o", "undo.yaml"),
        ("set", "run", "concurrency=1"),
        ("tables", "run", "--to", "sqlite", "--out", "tables.sqlite"),
        ("run", "m.yaml", "--run-dir", "run"),
        ("audit", "test", "m.yaml", "run"),
        ("audit", "m.yaml", "--history", "run"),
        ("approve", "run", "--wave", "1"),
    ]
    for command in commands:
        capsys.readouterr()
        with closed(here / "run"):
            assert main(list(command)) == ExitCode.RUN_DIRECTORY, command
        printed = capsys.readouterr().err
        assert ("run" in printed, "Permission denied" in printed) == (True, True), printed


def test_a_manifest_in_a_closed_folder_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever reads a manifest, or would write one there, ends with 2."""
    commands = [(each, "closed/m.yaml") for each in ("check", "plan", "run", "rehearse")]
    for command in (*commands, ("undo", "run", "-o", "closed/undo.yaml")):
        capsys.readouterr()
        with closed(here / "closed"):
            assert main(list(command)) == ExitCode.UNUSABLE, command
        assert "Permission denied" in capsys.readouterr().err


def test_a_folder_that_takes_no_new_files_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message has the folder as it was given, and not what would have been made in it for a moment."""
    for command in (("init", "readme.get", "-o", "closed"), ("examples", "closed/new")):
        with closed(here / "closed", 0o500):
            assert main(list(command)) == ExitCode.UNUSABLE, command
        printed = capsys.readouterr().err
        assert f"{command[-1]}: can't be written: Permission denied; name another folder" in printed


def test_the_folder_that_can_not_be_made_is_named(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one in it, which nobody has named: where the current folder takes no new files."""
    monkeypatch.chdir(here / "closed")
    for command, folder in ((("run", "m.yaml"), "runs"), (("audit", "m.yaml"), "audits")):
        with closed(here / "closed", 0o500):
            assert main(list(command)) == ExitCode.RUN_DIRECTORY, command
        assert capsys.readouterr().err.startswith(f"bulk: {folder} can't be used: Permission denied")


def test_a_closed_folder_among_the_runs_is_listed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There may be a run in it, of another user say: it is said, and hides none of the others (failures.md row 110)."""
    with closed(here / "closed" / "run"):
        assert main(["runs", "closed"]) == ExitCode.DONE
        printed = capsys.readouterr()
        assert "closed/run is damaged: it can't be read: Permission denied" in printed.err
        assert main(["runs", ".", "--json"]) == ExitCode.DONE
        states = {run["run_dir"]: run["state"] for run in json.loads(capsys.readouterr().out)}
    assert states == {"run": "complete"}
    with closed(here / "closed"):
        assert main(["runs", ".", "--json"]) == ExitCode.DONE
        states = {run["run_dir"]: run["state"] for run in json.loads(capsys.readouterr().out)}
    assert states == {"run": "complete", "closed": "damaged"}


def test_a_closed_folder_among_the_audits_is_listed(here: Path) -> None:
    """With the reason, and so is the folder of all of them (failures.md row 110)."""
    for name in ("fleet", "theirs"):
        folder = here / "audits" / name
        folder.mkdir(parents=True)
        (folder / NAME).write_text(json.dumps({"version": VERSION, "name": name}))
    with closed(here / "audits" / "theirs"):
        found = {audit.name: audit.why for audit in Histories((here / "audits",), Clock()).all()}
    assert (sorted(found), found["fleet"]) == (["fleet", "theirs"], "")
    assert found["theirs"].endswith("theirs can't be read: Permission denied")
    with closed(here / "audits"):
        (audit,) = Histories((here / "audits",), Clock()).all()
    assert (audit.name, audit.why.endswith("audits can't be read: Permission denied")) == ("audits", True)
