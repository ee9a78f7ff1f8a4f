"""Scratch folders: nothing of a killed process stays, and nothing of one that lives is touched."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bulk.clock import Clock
from bulk.storage.scratch import NEW_S, PREFIX, held_folder, scratch_folder, sweep

HOLDING = """
import sys
from bulk.storage.scratch import scratch_folder
with scratch_folder("test") as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the system."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def age(folder: Path) -> None:
    """Make a folder older than one that a process may be about to lock."""
    os.utime(folder, (Clock().now() - 2 * NEW_S,) * 2)


def test_what_a_killed_process_leaves_goes_with_the_next(place: Path) -> None:
    """Its folder stays as long as it lives, however old that is, and is deleted by the next process when it is dead."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDING], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        held = Path(process.stdout.readline().strip())
        assert held.parent == place
        age(held)
        with scratch_folder("other") as other:
            assert (held / "file").exists()
        assert not other.exists()
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    age(held)
    with scratch_folder("other"):
        assert not held.exists()
    assert list(place.iterdir()) == []


def test_nothing_else_is_swept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No new one, no link, no other user's, none that others may write, nothing of another name."""
    for name in ("dead", "new", "open"):
        (place / f"{PREFIX}{name}").mkdir(mode=0o700)
        (place / f"{PREFIX}{name}" / "file").touch()
    (place / "other").mkdir(mode=0o700)
    (place / f"{PREFIX}link").symlink_to(place / "other")
    (place / f"{PREFIX}file").touch()
    (place / f"{PREFIX}open").chmod(0o770)
    for name in (f"{PREFIX}dead", f"{PREFIX}open", "other"):
        age(place / name)
    now, own = Clock().now(), os.geteuid()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "geteuid", lambda: own + 1)
        assert sweep(place, PREFIX, now) == 0
    assert sweep(place, PREFIX, now) == 1
    assert {each.name.removeprefix(PREFIX) for each in place.iterdir()} == {"new", "open", "link", "file", "other"}


def test_what_stays_goes_with_the_next_of_its_name(place: Path) -> None:
    """The folder of a demo, which holds its reports, stays when it has ended, and is deleted by the next demo alone."""
    with held_folder("bulk-demo-", swept="bulk-demo-") as first:
        (first / "report.html").touch()
    age(first)
    with scratch_folder("other"):
        assert first.exists()
    with held_folder("bulk-demo-", swept="bulk-demo-") as second:
        assert list(place.iterdir()) == [second]
