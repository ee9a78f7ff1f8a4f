"""The files of a run directory belong together: what is older, edited or gone is refused, and nothing is sent twice."""

import itertools
import shutil
from pathlib import Path

import msgspec
import pytest

from bulk.errors import RunDirectoryError
from bulk.ledger import companion_files, seal
from bulk.ledger.digests.verification import verify
from bulk.ledger.seal import Seal, read_seal, write_seal
from bulk.ledger.view import LedgerView
from tests.ledger.samples import JOBS, NOW, STATUS, as_killed, finished, intent, opened, record

WRITES = (JOBS[1],)
LEDGER = ("ledger.db", "ledger.db-wal", "ledger.db-shm")
FILES = {"the ledger": LEDGER, "the results": ("results.jsonl",), "the seal": ("run.seal",)}


def at_work(folder: Path, *, is_checkpointed: bool) -> list[Path]:
    """What is on disk after each of some writes, each in a directory of its own; the last is the newest."""
    moments = []
    with opened(folder / "run", writes=WRITES) as ledger:
        for index in range(6):
            ledger.commit([intent(index)])
            ledger.commit([record(index, job=1)])
            if is_checkpointed:
                ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            moments.append(as_killed(folder / "run", folder / f"moment-{index}"))
    return moments


@pytest.mark.parametrize("is_checkpointed", [False, True], ids=["in the log", "in the file"])
def test_older_copies_of_any_part_are_refused(tmp_path: Path, is_checkpointed: bool) -> None:
    """failures.md row 46: whichever files are older copies: refused, or every write that was sent is still known."""
    *older, newest = at_work(tmp_path, is_checkpointed=is_checkpointed)
    refused = 0
    for old in older:
        for count in (1, 2):
            for names in itertools.combinations(FILES, count):
                mixed = as_killed(newest, tmp_path / "mixed")
                for name in itertools.chain.from_iterable(FILES[each] for each in names):
                    (mixed / name).unlink(missing_ok=True)
                    if (old / name).exists():
                        shutil.copy(old / name, mixed / name)
                try:
                    with opened(mixed, writes=WRITES) as ledger:
                        assert ledger.counts() == {1: {"succeeded": 6}}, f"{names} of {old.name}"
                except RunDirectoryError:
                    refused += 1
                shutil.rmtree(mixed)
    assert refused >= 5 * len(older), "all but an older seal alone"


def test_a_lost_log_is_refused(tmp_path: Path) -> None:
    """failures.md row 43: killed, then the write-ahead log is gone: what was sent is not known, so nothing is sent."""
    newest = at_work(tmp_path, is_checkpointed=False)[-1]
    (newest / "ledger.db-wal").unlink()
    (newest / "ledger.db-shm").unlink()
    before = {path.name: path.read_bytes() for path in newest.iterdir()}
    with pytest.raises(RunDirectoryError, match=r"ledger\.db-wal was lost.*or begin another run: "):
        opened(newest, writes=WRITES)
    del before["run.lock"]
    assert {name: (newest / name).read_bytes() for name in before} == before


def test_a_lost_log_is_refused_where_the_seal_is_behind(tmp_path: Path) -> None:
    """failures.md row 43: the power failed before the seal was on disk, and the log is gone: that is damage."""
    newest = at_work(tmp_path, is_checkpointed=True)[-1]
    (newest / "ledger.db-wal").unlink()
    (newest / "ledger.db-shm").unlink()
    seal = read_seal(newest)
    assert seal is not None
    with opened(as_killed(newest, tmp_path / "nothing-lost"), writes=WRITES) as ledger:
        assert ledger.counts() == {1: {"succeeded": 6}}
    write_seal(newest, msgspec.structs.replace(seal, commits=seal.commits - 3))
    with pytest.raises(RunDirectoryError, match=r"its write-ahead log ledger\.db-wal is gone"):
        opened(newest, writes=WRITES)


def test_what_a_killed_process_leaves_is_not_refused(tmp_path: Path) -> None:
    """failures.md row 42: lines without their commit, and a seal that is behind or missing, are no sign of damage."""
    newest = at_work(tmp_path, is_checkpointed=False)[-1]
    with opened(newest, writes=WRITES) as ledger:
        ledger.commit([intent(6)])
        ledger._append(
            bytearray(msgspec.json.encode({"job": JOBS[1], "index": 6, "outcome": "succeeded", "attempts": 1}) + b"\n")
        )
        as_killed(newest, tmp_path / "killed")
    with opened(tmp_path / "killed", writes=WRITES) as ledger:
        assert list(ledger.open_intents()) == [(1, 6)]
    for _ in range(3):  # killed again and again before the first seal is there
        with opened(tmp_path / "new", writes=WRITES):
            killed = as_killed(tmp_path / "new", tmp_path / "unsealed")
        shutil.rmtree(tmp_path / "new")
        (killed / "run.seal").unlink()
        killed.rename(tmp_path / "new")
    opened(tmp_path / "new", writes=WRITES).close()


def test_parts_of_two_runs_are_refused(tmp_path: Path) -> None:
    """failures.md row 46: another run of the same manifest has another ledger: neither it nor a lost seal is taken."""
    one = at_work(tmp_path / "one", is_checkpointed=False)[-1]
    other = at_work(tmp_path / "other", is_checkpointed=False)[-1]
    shutil.copy(other / "run.seal", one / "run.seal")
    with pytest.raises(RunDirectoryError, match="of two runs"):
        opened(one, writes=WRITES)
    (one / "run.seal").unlink()
    with pytest.raises(RunDirectoryError, match=r"has lost its run\.seal"):
        opened(one, writes=WRITES)
    (one / "run.seal").write_bytes(b"{")
    with pytest.raises(RunDirectoryError, match=r"run\.seal is damaged"):
        opened(one, writes=WRITES)


@pytest.mark.parametrize("chunk_bytes", [300, seal.CHUNK_BYTES])
def test_an_edited_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int) -> None:
    """failures.md row 46: any line of the results that was edited in place, when resumed and when reported on."""
    monkeypatch.setattr(seal, "CHUNK_BYTES", chunk_bytes)
    with opened(tmp_path / "run") as ledger:
        for index in range(8):
            ledger.commit([record(index)])
        ledger.reopen({finished(0).outcome})
        ledger.commit([record(index, result="again") for index in range(8)])
        ledger.finish(0, "", STATUS)
    path = tmp_path / "run" / "results.jsonl"
    good = path.read_bytes()
    for at, line in enumerate(good.splitlines(keepends=True)):
        start = good.index(line)
        path.write_bytes(good[:start] + line.replace(b"again", b"agaim") + good[start + len(line) :])
        with pytest.raises(RunDirectoryError, match=r"results\.jsonl was edited"):
            opened(tmp_path / "run")
        with pytest.raises(RunDirectoryError, match=r"results\.jsonl was edited"):
            LedgerView(tmp_path / "run").refuse_edited()
        assert at < 8
    path.write_bytes(good)
    LedgerView(tmp_path / "run").refuse_edited()
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(9)])
    opened(tmp_path / "run").close()


@pytest.mark.parametrize("read_bytes", [1, 7, 40, seal._READ_BYTES])
def test_digests_do_not_depend_on_how_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    """Lines of any length, in pieces of any size, after a line that the ledger did not take: each byte is covered."""
    monkeypatch.setattr(seal, "_READ_BYTES", read_bytes)
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(0), record(1, result="x" * 100)])
        ledger._file.append(b"{}\n")
        ledger.commit([record(2)])
        ledger.finish(1, "", STATUS)
    LedgerView(tmp_path / "run").refuse_edited()
    path = tmp_path / "run" / "results.jsonl"
    good = path.read_bytes()
    for at in range(0, len(good), 5):
        path.write_bytes(good[:at] + bytes((good[at] ^ 1,)) + good[at + 1 :])
        with pytest.raises(RunDirectoryError, match=r"results\.jsonl was edited"):
            LedgerView(tmp_path / "run").refuse_edited()
        assert verify(tmp_path / "run").flaws


@pytest.mark.parametrize(
    "name", ["check.json", "index.db", "items-a.jsonl", "stdin-a.jsonl", "origin.json", "manifest.yaml"]
)
def test_an_edited_part_is_refused_and_a_missing_one_is_not(tmp_path: Path, name: str) -> None:
    """failures.md row 46: what the check has made may be made again, by a process that says so, and not be edited."""
    run_dir = tmp_path / "run"
    with opened(run_dir) as ledger:
        (run_dir / name).write_text("40 items")
        ledger.bind_parts()
    assert companion_files.refuse_changed_parts(run_dir) is False
    (run_dir / name).write_text("39 items")
    with pytest.raises(RunDirectoryError, match=f"{name} is not what this run has made"):
        companion_files.refuse_changed_parts(run_dir)
    companion_files.note_making(run_dir, is_checking=True, is_naming=True)
    assert companion_files.refuse_changed_parts(run_dir) is True
    with opened(run_dir) as ledger:
        ledger.bind_parts()
    assert companion_files.refuse_changed_parts(run_dir) is False
    (run_dir / name).unlink()
    assert companion_files.refuse_changed_parts(run_dir) is False


def test_the_moment_that_a_run_began_is_fixed_once(tmp_path: Path) -> None:
    """What a write holds of that moment is the same in a resume, whatever the clocks say then (failures.md row 33)."""
    with opened(tmp_path / "run") as ledger:
        assert ledger.planned_from(NOW + 7.5) == NOW + 7.5
        assert ledger.planned_from(NOW + 9.0) == NOW + 7.5
        ledger.commit([intent(0)])
        killed = as_killed(tmp_path / "run", tmp_path / "killed")
    with opened(killed) as ledger:
        assert ledger.planned_from(NOW + 500.0) == NOW + 7.5


def test_a_seal_is_written_whole(tmp_path: Path) -> None:
    """failures.md row 49: what is read is what was written; where there is none, there is none."""
    assert read_seal(tmp_path) is None
    seal = Seal(run="0" * 32, commits=10**9, is_checking=True, is_naming=True)
    write_seal(tmp_path, seal)
    assert read_seal(tmp_path) == seal
    assert [path.name for path in tmp_path.iterdir()] == ["run.seal"]
