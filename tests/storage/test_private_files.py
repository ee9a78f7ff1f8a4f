"""A file of the run directory is there as a whole or not at all (failures.md row 49), and only files are read."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bulk.bundle.item_files import read_inside
from bulk.capabilities import FileError
from bulk.engine.agreement.gates import decide
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source
from bulk.ledger.database import refuse_foreign
from bulk.platform.cache.store_files import secret_of
from bulk.report.wave_gates import Gates, read_gates
from bulk.storage.private_files import NoSecret, NotRegular, kept_content, open_regular, read_secret, replacing

ROOT = Path(__file__).parents[2]
OTHERS = {
    "bulk/platform/cache/store_files.py": "it may not open the file of a database that is in use",
    "bulk/sandbox/files.py": "the sandbox imports nothing of the rest",
    "bulk/store/server/shared_server.py": "its pipe is meant to be one",
    "bulk/storage/private_files.py": "the one home",
}

KILLED = """
import os, signal, sys
from pathlib import Path
from bulk.storage.private_files import kept_content

def make():
    if sys.argv[2] == "make":
        os.kill(os.getpid(), signal.SIGKILL)
    return b"made"

def hook(event, _):
    if event == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
kept_content(Path(sys.argv[1]), make)
"""


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    """What was there stays until the block ends; what a killed process left goes; the new file is its owner's alone."""
    path, left = tmp_path / "report.json", tmp_path / "report.json.part"
    path.write_bytes(b"old")
    left.write_bytes(b"torn by a killed process")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_many_that_write_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each takes its turn: the file is one of theirs as a whole at every moment, and no part of one is left."""
    path = tmp_path / "F.plan"
    path.write_bytes(b"0" * 9)
    seen: set[bytes] = set()

    def write(number: int) -> None:
        for _ in range(20):
            with replacing(path) as file:
                for _ in range(9):
                    file.write(b"%d" % number)
                    file.flush()
            seen.add(path.read_bytes())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert seen <= {b"%d" % number * 9 for number in range(4)}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("moment", ["make", "os.rename"])
def test_a_secret_that_is_kept_is_whole_or_not_there(tmp_path: Path, moment: str) -> None:
    """Wherever a process is killed that makes it; all processes have the same one then."""
    path = tmp_path / "secret"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), moment], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not path.exists()
    with ThreadPoolExecutor(4) as threads:
        kept = set(threads.map(lambda number: kept_content(path, lambda: b"%d" % number), range(8)))
    assert kept == {path.read_bytes()}
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_no_decision_about_a_wave_is_lost(tmp_path: Path) -> None:
    """People and the run itself decide at the same time: all of it holds."""
    waves = [*range(2, 40)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda wave: decide(tmp_path, opened=wave, accepted=frozenset((wave,))), waves))
    assert read_gates(tmp_path) == Gates(opened=39, accepted=frozenset(waves), opens_at=read_gates(tmp_path).opens_at)


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    """An error within the block leaves the old file, and nothing half-written beside it."""
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"new", "no bytes"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("what", ["fifo", "folder", "/dev/zero"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, what: str) -> None:
    """failures.md row 59: whoever reads a file, for whatever: nothing waits for a FIFO, and no device is read."""
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "folder").mkdir()
    (tmp_path / "secret").symlink_to(tmp_path / what)
    place = tmp_path / what
    for refuses in (open_regular, refuse_foreign):
        with pytest.raises(NotRegular):
            refuses(place)
    with pytest.raises(NotRegular):
        secret_of(tmp_path)
    with pytest.raises(NoSecret, match="not a regular file"):
        read_secret(place, 100)
    with pytest.raises(SourceFlaw, match="is a folder" if what == "folder" else "not a regular file"):
        open_source(place)
    with pytest.raises(FileError, match="not a regular file"):
        read_inside(place.parent, place.name)


def test_it_is_looked_for_in_one_place() -> None:
    """No other module opens without waiting, or asks whether what it has opened is a file."""
    looks = re.compile(r"O_NONBLOCK|S_ISREG")
    paths = [path for folder in ("bulk", "jobs") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in paths if looks.search(path.read_text(encoding="utf-8"))}
    assert found == set(OTHERS)
