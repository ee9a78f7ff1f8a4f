import contextlib
import os
import threading

import pytest

from bulk.errors import RunDirectoryError, RunStopped
from bulk.ledger.records import Point
from bulk.ledger.results import lines_at
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from tests.ledger.samples import STATUS, keys, opened, record, run_child

RETRY = """
    def die(point):
        if point == sys.argv[2]:
            os.kill(os.getpid(), signal.SIGKILL)

    with opened(run_dir, reached=die) as ledger:
        ledger.reopen({OutcomeKind.FAILED})
        ledger.commit([record(index, result="new", save=(f"{index}", b"new")) for index in range(0, 300, 2)])
        ledger.finish(0, "", STATUS)
"""

IN_COMMIT = (Point.SAVED, Point.APPENDED, Point.COMMITTED)


@pytest.fixture
def run_dir(tmp_path):
    """A complete run in which every second of 300 items failed."""
    with opened(tmp_path / "run") as ledger:
        kinds = (OutcomeKind.FAILED, OutcomeKind.SUCCEEDED)
        ledger.commit([record(index, kinds[index % 2], result="old") for index in reversed(range(300))])
        ledger.finish(1, "", STATUS)
    return tmp_path / "run"


@pytest.mark.parametrize("point", Point)
def test_killed_at_any_point_nothing_is_lost_or_doubled(run_dir, point: Point):
    """A retry killed with SIGKILL at each named point: everybody finds each item as it was or as it is now, never both.

    Completed, the file holds each item once (failures.md rows 42, 43).
    """
    assert run_child(run_dir, RETRY, point)[0] == -9
    reached_ledger = point not in (Point.SAVED, Point.APPENDED)
    expected = [index for index in range(300) if index % 2 or reached_ledger]
    assert [index for _, index in keys(run_dir)] == expected
    for _ in range(2):  # a process that dies during recovery leaves no less
        opened(run_dir).close()
    with opened(run_dir) as ledger:
        assert [index for _, index in keys(run_dir)] == expected
        again = [index for index in range(300) if index not in set(expected)]
        ledger.commit([record(index, result="new", save=(f"{index}", b"new")) for index in again])
        ledger.finish(0, "", STATUS)
    lines = list(LedgerView(run_dir).finished())
    assert [line["index"] for line in lines] == list(range(300))
    assert {line["result"] for line in lines[::2]} == {"new"}
    assert {line["result"] for line in lines[1::2]} == {"old"}
    assert (run_dir / "results.jsonl").read_bytes() == b"".join(LedgerView(run_dir).lines())
    assert sorted(int(path.name) for path in (run_dir / "saved").iterdir()) == list(range(0, 300, 2))
    names = {path.name for path in run_dir.iterdir()}
    assert names == {"ledger.db", "results.jsonl", "run.lock", "run.seal", "saved", "digests.json"}


def test_a_half_written_file_is_thrown_away(run_dir):
    """A new results file that the ledger does not point to is removed, whatever is in it."""
    (run_dir / "results.jsonl.1").write_bytes(b"half a li")
    before = (run_dir / "results.jsonl").read_bytes()
    opened(run_dir).close()
    assert not (run_dir / "results.jsonl.1").exists()
    assert (run_dir / "results.jsonl").read_bytes() == before


def test_lines_written_after_a_failed_renaming_are_kept(run_dir):
    """When the new file can't get its name, the run stops, and what is committed after that is found all the same."""
    with opened(run_dir) as ledger:
        ledger.reopen({OutcomeKind.FAILED})
        results = run_dir / "results.jsonl"
        results.rename(run_dir / "aside")
        results.mkdir()
        with pytest.raises(RunStopped, match=r"results\.jsonl"):
            ledger.finish(1, "", STATUS)
        ledger.commit([record(0)])
        assert [index for _, index in keys(run_dir)] == [0, *range(1, 300, 2)]
        ledger.finish(3, "stopped", STATUS)
    results.rmdir()
    opened(run_dir).close()
    assert [index for _, index in keys(run_dir)] == [0, *range(1, 300, 2)]


def test_a_rewrite_refuses_to_copy_damage(run_dir):
    """Where the old file does not hold the lines that the ledger knows, it is not replaced."""
    data = bytearray((run_dir / "results.jsonl").read_bytes())
    data[-1] = 0x20  # the newline of item 0
    with opened(run_dir) as ledger:
        ledger._connection.execute("UPDATE counts SET bytes = bytes - 1")
        (run_dir / "results.jsonl").write_bytes(data)
        with pytest.raises(RunDirectoryError, match="damaged"):
            ledger.finish(1, "", STATUS)
    assert (run_dir / "results.jsonl").read_bytes() == data
    assert not (run_dir / "results.jsonl.1").exists()


def test_a_stream_goes_on_over_a_rewrite(run_dir, monkeypatch):
    """A reader in the middle of a stream, while the results are rewritten by a retry, gets each item once."""
    monkeypatch.setattr("bulk.ledger.view.PAGE_ROWS", 7)
    stream = LedgerView(run_dir).finished()
    found = [next(stream)["index"] for _ in range(100)]
    with opened(run_dir) as ledger:
        ledger.reopen({OutcomeKind.FAILED})
        found += [next(stream)["index"] for _ in range(10)]
        ledger.commit([record(index, result="x" * index) for index in range(0, 300, 2)])
        ledger.finish(0, "", STATUS)
        found += [line["index"] for line in stream]
    assert sorted(set(found)) == sorted(found)
    assert set(found) >= set(range(1, 300, 2))


def test_readers_never_see_a_wrong_line_while_runs_are_rewritten(run_dir):
    """Ten retries in a row, a reader beside them all the time: every line that it gets is of the item it stands for."""
    done = threading.Event()

    def retry() -> None:
        try:
            for turn in range(10):
                with opened(run_dir) as ledger:
                    ledger.reopen({OutcomeKind.FAILED})
                    kind = OutcomeKind.SUCCEEDED if turn == 9 else OutcomeKind.FAILED
                    todo = [
                        index for index in range(300) if not ledger.done_bits(0, 300)[index >> 3] >> (index & 7) & 1
                    ]
                    ledger.commit([record(index, kind, result="y" * (turn * index % 97)) for index in todo])
                    ledger.finish(1, "", STATUS)
        finally:
            done.set()

    writer = threading.Thread(target=retry)
    writer.start()
    streams = 0
    while not done.is_set() or streams == 0:
        indexes = [line["index"] for line in LedgerView(run_dir).finished()]
        assert indexes == sorted(set(indexes))
        assert set(indexes) >= set(range(1, 300, 2))
        streams += 1
    writer.join()
    assert LedgerView(run_dir).counts() == {0: {"succeeded": 300}}
    path = run_dir / "results.jsonl"
    with contextlib.closing(path.open("rb")) as file:
        assert len(list(lines_at(file.fileno(), [(0, os.fstat(file.fileno()).st_size)], path))) == 1
