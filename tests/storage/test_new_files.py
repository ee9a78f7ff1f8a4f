"""Files that arrive in a user's folder: all of them or none, wherever the process is killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bulk.cli.app import main
from bulk.storage.new_files import arriving
from tests.browser.runs import write_small

KILLED = """
import os, signal, sys
from pathlib import Path
from bulk.storage.new_files import arriving

left = int(sys.argv[2])

def count(event, _):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
with arriving(Path(sys.argv[1])) as part:
    for name in ("a.txt", "new/b.txt", "there/c.txt"):
        (part / name).parent.mkdir(exist_ok=True)
        (part / name).write_text(name)
"""
FILES = {"a.txt", "new/b.txt", "there/c.txt"}


def files(folder: Path) -> set[str]:
    """All files in it, by their places."""
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("moment", range(2, 30, 3))
def test_killed_at_any_moment_all_arrive_or_none(tmp_path: Path, moment: int) -> None:
    """The next call finds all of them or none, and nothing else; what was there before stays."""
    folder = tmp_path / "folder"
    (folder / "there").mkdir(parents=True)
    (folder / "there" / "own.txt").touch()
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(moment)], capture_output=True, check=False)
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr
    with arriving(folder) as part:
        (part / "next.txt").touch()
    assert files(folder) - {"there/own.txt", "next.txt"} in (set(), FILES)
    assert {each.name for each in folder.iterdir()} <= {"there", "a.txt", "new", "next.txt"}
    if done.returncode == 0:
        assert files(folder) > FILES


def test_a_folder_that_a_process_fills_is_left_alone(tmp_path: Path) -> None:
    """Two at once do not take each other's files; a link is not followed."""
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "own.txt").touch()
    (tmp_path / ".arriving-link").symlink_to("else")
    with arriving(tmp_path) as first:
        (first / "first.txt").touch()
        with arriving(tmp_path) as second:
            (second / "second.txt").touch()
        assert (first / "first.txt").exists()
    assert {"first.txt", "second.txt", "else/own.txt"} <= files(tmp_path)
    with pytest.raises(FileExistsError), arriving(tmp_path) as third:
        any((third / name).write_text("other") == 0 for name in ("third.txt", "first.txt"))
    assert not (tmp_path / "third.txt").exists()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("init", "contents.put"), "manifest.yaml"),
        (("examples", "."), "readmes.yaml"),
        (("tables", "../run", "--to", "sqlite", "-o", "out.db"), "out.db"),
    ],
    ids=["init", "examples", "tables"],
)
def test_whoever_looks_before_finds_what_was_killed_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    name: str,
) -> None:
    """A command that was killed while its files moved is refused as one that has ended: all of them are there. One that
    was killed before is given again."""
    write_small(tmp_path / "run")
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".arriving-0").mkdir()
    assert main(command) == 0
    capsys.readouterr()
    moving = folder / ".arrived-0"
    moving.mkdir()
    (folder / name).rename(moving / name)
    assert main(command) == 2
    assert "already" in capsys.readouterr().err
    assert (folder / name).stat().st_size
    assert not list(folder.glob(".arriv*"))
