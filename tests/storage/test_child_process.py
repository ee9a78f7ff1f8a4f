"""Tests of how processes of our own are started."""

import subprocess
from pathlib import Path

import bulk
from bulk.storage.child_process import python

SOURCE = Path(bulk.__file__).parent


def test_a_module_in_the_current_folder_is_not_taken_for_one_of_ours(tmp_path: Path) -> None:
    """A folder in which somebody has put a `bulk.py`, or one named as a module of Python, gets none of it run.

    failures.md row 105
    """
    for name in ("bulk", "json", "queue", "calendar"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the folder\\'s own was run')")
    done = subprocess.run(python("bulk", "--version"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"bulk {bulk.__version__} ")


def test_no_process_of_python_is_started_in_another_way() -> None:
    """One place names the interpreter, so that what holds there holds for every process of ours."""
    naming = {path.name for path in SOURCE.rglob("*.py") if "sys.executable" in path.read_text()}
    assert naming == {"child_process.py"}
