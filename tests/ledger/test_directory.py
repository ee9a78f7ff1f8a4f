import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from bulk.errors import RunDirectoryError, RunStopped
from bulk.ledger.directory import BEFORE_LEDGER, Claim, read_holder, unusable
from bulk.ledger.view import LedgerView
from tests.ledger.samples import opened, record, start_child

HOLD = """
with opened(run_dir) as ledger:
    ledger.commit([record(0)])
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holding(tmp_path):
    """A real process that has the run `tmp_path/run` open."""
    child = start_child(tmp_path / "run", HOLD)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n", child.communicate()
    yield child
    child.kill()
    child.communicate()


def modes(folder: Path) -> dict[str, str]:
    """The modes of a directory and of what is in it, by name."""
    return {path.name: f"{stat.S_IMODE(path.lstat().st_mode):04o}" for path in (folder, *folder.iterdir())}


def test_a_second_process_is_kept_out_and_told_who_is_in(holding, tmp_path):
    """While a process holds a run, opening it is refused with its pid and host, and nothing is changed
    (failures.md row 45)."""
    before = (tmp_path / "run" / "results.jsonl").read_bytes()
    with pytest.raises(RunDirectoryError) as refused:
        opened(tmp_path / "run")
    assert f"in use by process {holding.pid} on {socket.gethostname()}" in str(refused.value)
    assert refused.value.exit_code == 5
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == before


def test_what_a_killed_process_was_writing_goes(tmp_path):
    """Parts of files that it had not finished; nobody else writes in a directory that is held."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(0)])
    whole = {path.name for path in (tmp_path / "run").iterdir()}
    for name in ("index.db.part", "report.json.part", "digests.json.part"):
        (tmp_path / "run" / name).write_text("half")
    (tmp_path / "run" / "own.part").mkdir()
    with Claim.take(tmp_path / "run"):
        assert {path.name for path in (tmp_path / "run").iterdir()} == whole | {"own.part"}


def test_a_killed_process_lets_go(holding, tmp_path):
    """After SIGKILL the next process gets in, and what was committed is there."""
    view = LedgerView(tmp_path / "run")
    holder = view.holder()
    assert holder is not None
    assert holder.pid == holding.pid
    holding.send_signal(signal.SIGKILL)
    holding.wait()
    with opened(tmp_path / "run") as ledger:
        assert ledger.epoch == 2
        assert ledger.counts() == {0: {"succeeded": 1}}
    assert view.holder() is None


def test_a_stale_process_can_not_write(holding, tmp_path):
    """A process whose run was taken over (its lock file was deleted) commits nothing more and touches no file of it."""
    (tmp_path / "run" / "run.lock").unlink()
    with opened(tmp_path / "run") as stale:
        stale.commit([record(1)])
        (tmp_path / "run" / "run.lock").unlink()
        with opened(tmp_path / "run") as owner:
            before = (tmp_path / "run" / "results.jsonl").read_bytes()
            for call in (lambda: stale.commit([record(2)]), lambda: stale.commit([]), lambda: stale.reopen(set())):
                with pytest.raises(RunDirectoryError, match=r"taken over .*epoch 3, this one had 2"):
                    call()
            assert (tmp_path / "run" / "results.jsonl").read_bytes() == before
            owner.commit([record(2)])
            assert owner.counts() == {0: {"succeeded": 3}}


def test_everything_is_private_whatever_the_umask(tmp_path):
    """All files of a run are 0600 and its directory 0700, under umask 0 and 0777 (failures.md row 64)."""
    for umask in (0, 0o777):
        run_dir = tmp_path / f"{umask}"
        before = os.umask(umask)
        try:
            with opened(run_dir) as ledger:
                ledger.commit([record(0, save=("a/b", b"x"))])
                open_modes = modes(run_dir)
        finally:
            os.umask(before)
        assert set(open_modes) >= {"ledger.db", "ledger.db-wal", "ledger.db-shm", "results.jsonl", "run.lock"}
        expected = {name: "0700" if name in (run_dir.name, "saved") else "0600" for name in open_modes}
        assert open_modes == expected


def test_open_files_are_closed_to_others_again(tmp_path):
    """A run directory that was opened to others (copied, say) is closed when it is opened."""
    opened(tmp_path / "run").close()
    (tmp_path / "run" / "report.json").write_text("{}")
    for path in (tmp_path / "run", *(tmp_path / "run").iterdir()):
        path.chmod(0o755)
    with opened(tmp_path / "run"):
        assert set(modes(tmp_path / "run").values()) == {"0700", "0600"}


def test_a_directory_of_somebody_else_is_refused(tmp_path):
    """A directory with files and no ledger is refused, and stays as it was."""
    (tmp_path / "thesis.tex").write_text("mine")
    mode = tmp_path.stat().st_mode
    with pytest.raises(RunDirectoryError, match=r"'thesis.tex' and no ledger.db.*--run-dir"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert tmp_path.stat().st_mode == mode


def test_a_run_that_was_stopped_before_its_ledger_begins_again(tmp_path):
    """What a run makes before its ledger exists does not stand in its way, nor does a half-made ledger."""
    names = [
        "manifest.yaml",
        "index.db",
        "index.db-wal",
        "check.json",
        "copies.db",
        "stdin-readmes.jsonl",
        "items-files.jsonl",
        "ledger.db.new",
        "run.lock",
        "origin.json",
        "control.sock",
    ]
    assert len(names) > len(BEFORE_LEDGER) - 1
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    with opened(tmp_path) as ledger:
        assert ledger.epoch == 1


@pytest.mark.parametrize("name", ["ledger.db", "run.lock", "results.jsonl", "saved"])
def test_a_link_among_its_files_is_refused(tmp_path, name: str):
    """A symbolic link in place of a file of the run is not followed; its target stays as it is."""
    opened(tmp_path / "run").close()
    target = tmp_path / "target"
    (tmp_path / "run" / name).unlink(missing_ok=True)
    target.write_bytes(b"mine")
    (tmp_path / "run" / name).symlink_to(target)
    with pytest.raises(RunDirectoryError, match="symbolic link"):
        opened(tmp_path / "run")
    assert target.read_bytes() == b"mine"
    assert read_holder(tmp_path / "run") is None


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_can_not_be_a_directory_is_refused(tmp_path, place: str):
    """A run directory that is a file, or below one, is refused with the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match=r"can't be used.*--run-dir"):
        Claim.take(tmp_path / place)


def test_a_full_disk_is_a_stop_and_not_a_bad_directory(tmp_path):
    """No space left when a run is opened exits 3 and can be resumed; other errors exit 5."""
    assert isinstance(unusable(tmp_path, OSError(28, "No space left on device")), RunStopped)
    assert isinstance(unusable(tmp_path, OSError(13, "Permission denied")), RunDirectoryError)
    for opened_as in ("run.lock", f"{tmp_path}/run.lock"):
        assert f"{tmp_path}/run.lock can't" in str(unusable(tmp_path, OSError(13, "Permission denied", opened_as)))


def test_a_claim_is_handed_over(tmp_path):
    """A directory that is held before its ledger is opened stays held without a gap, until the ledger closes."""
    claim = Claim.take(tmp_path / "run")
    ledger = opened(tmp_path / "run", claim=claim)
    with pytest.raises(RunDirectoryError, match="in use"):
        Claim.take(tmp_path / "run")
    ledger.close()
    with Claim.take(tmp_path / "run"):
        claim.release()
