"""A folder that this user may not open: a message that names it, and an exit code that is not a bug's."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bulk.cli import main
from bulk.exit_codes import ExitCode
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


def test_a_manifest_in_a_closed_folder_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever reads a manifest, or would write one there, ends with 2."""
    commands = [(each, "closed/m.yaml") for each in ("check", "plan", "run", "rehearse")]
    for command in (*commands, ("undo", "run", "-o", "closed/undo.yaml")):
        capsys.readouterr()
        with closed(here / "closed"):
            assert main(list(command)) == ExitCode.UNUSABLE, command
        assert "Permission denied" in capsys.readouterr().err
