import errno
import signal
import stat

import orjson
import pytest

from bulk.errors import RunDirectoryError
from bulk.ledger import results
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from tests.ledger.samples import STATUS, as_killed, finished, intent, keys, opened, record, run_child, start_child


@pytest.fixture
def run_dir(tmp_path):
    """A run with items of both jobs and all outcomes, committed out of order, that ended cleanly."""
    with opened(tmp_path / "run") as ledger:
        for index in (4, 2, 0, 3, 1):
            kind = list(OutcomeKind)[index]
            ledger.commit([record(index, kind, job=1), record(index, kind)])
        ledger.finish(6, "", STATUS)
    return tmp_path / "run"


def test_lines_come_in_order_as_they_were_written(run_dir):
    """All current lines, in the order of jobs and items, byte for byte as `encode` made them."""
    expected = [
        results.encode(finished(index, kind, job=job)) for job in (0, 1) for index, kind in enumerate(OutcomeKind)
    ]
    assert list(LedgerView(run_dir).lines()) == expected
    assert list(LedgerView(run_dir).finished()) == [orjson.loads(line) for line in expected]


def test_lines_can_be_chosen(run_dir):
    """Only lines of some outcomes, of one job, of both; of none there are none."""
    view = LedgerView(run_dir)
    bad = {OutcomeKind.FAILED, OutcomeKind.UNKNOWN}
    assert [line["outcome"] for line in view.finished(kinds=bad)] == ["failed", "unknown"] * 2
    assert [line["job"] for line in view.finished(job="codeowners")] == ["codeowners"] * 5
    assert [line["index"] for line in view.finished(kinds={OutcomeKind.SKIPPED}, job="readmes")] == [3]
    assert list(view.finished(kinds=set())) == list(view.finished(job="no such job")) == []


def test_the_newest_lines_come_as_they_were_written(run_dir):
    """Whole lines within so many bytes, the last one last; of a retried item the line that was replaced, too."""
    view = LedgerView(run_dir)
    order = [(index, job) for index in (4, 2, 0, 3, 1) for job in (1, 0)]
    lines = [results.encode(finished(index, list(OutcomeKind)[index], job=job)) for index, job in order]
    whole = [line.rstrip(b"\n") for line in lines]
    size = sum(map(len, lines))
    assert view.newest_lines(size) == view.newest_lines(10 * size) == whole
    assert view.newest_lines(size - 1) == whole[1:]
    assert view.newest_lines(len(lines[-1])) == []
    assert view.newest_lines(len(lines[-1]) + 1) == whole[-1:]
    with opened(run_dir) as ledger:
        assert ledger.reopen({OutcomeKind.FAILED}) == 2
        ledger.commit([record(2, OutcomeKind.UNCHANGED)])
    newest = view.newest_lines(10 * size)
    assert (newest[:-1], orjson.loads(newest[-1])["outcome"]) == (whole, "unchanged")


def test_newest_lines_that_can_not_be_read(run_dir, monkeypatch):
    """An error of the disk is said with the file's name."""

    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("os.pread", refuse)
    with pytest.raises(RunDirectoryError, match=r"results.jsonl can't be read: Input/output error"):
        LedgerView(run_dir).newest_lines(100)


def test_long_streams_are_paged(run_dir, monkeypatch):
    """Pages join without a gap and without a double, also where a page ends between two jobs."""
    monkeypatch.setattr("bulk.ledger.view.PAGE_ROWS", 5)
    whole = keys(run_dir)
    for size in (1, 2, 3):
        monkeypatch.setattr("bulk.ledger.view.PAGE_ROWS", size)
        assert keys(run_dir) == whole


def test_reading_works_beside_a_writing_process(tmp_path):
    """What another process has committed is seen at once, also after that is killed, and reading changes nothing."""
    code = """
        with opened(run_dir) as ledger:
            for index in range(1000):
                ledger.commit([record(index), intent(index)])
                print(index, flush=True)
                sys.stdin.readline()
    """
    child = start_child(tmp_path / "run", code)
    assert child.stdout is not None
    assert child.stdin is not None
    for index in range(5):
        assert child.stdout.readline() == f"{index}\n"
        assert len(keys(tmp_path / "run")) == index + 1
        child.stdin.write("\n")
        child.stdin.flush()
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    names = {path.name: path.stat().st_size for path in (tmp_path / "run").iterdir()}
    assert len(keys(tmp_path / "run")) == 6
    assert {path.name: path.stat().st_size for path in (tmp_path / "run").iterdir()} == names


def test_reading_a_run_that_nobody_may_change(run_dir):
    """A finished run is read from files and a directory without write permission; none appears, none changes."""
    for path in run_dir.iterdir():
        path.chmod(0o400)
    run_dir.chmod(0o500)
    before = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in run_dir.iterdir()}
    view = LedgerView(run_dir)
    assert len(keys(run_dir)) == 10
    assert view.epochs()[0].exit_code == 6
    assert {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in run_dir.iterdir()} == before
    assert stat.S_IMODE(run_dir.stat().st_mode) == 0o500


def test_a_torn_tail_is_not_read(run_dir, tmp_path):
    """Bytes behind what the ledger knows mean nothing to a reader."""
    with (run_dir / "results.jsonl").open("ab") as file:
        file.write(b'{"job":"readmes","index":77')
    assert len(keys(run_dir)) == 10


@pytest.mark.parametrize("make", ["nothing", "directory", "file"])
def test_what_is_no_run_is_refused(tmp_path, make: str):
    """A place without a ledger is not a run directory; nothing is made there."""
    place = tmp_path / "run"
    if make == "directory":
        place.mkdir()
    elif make == "file":
        place.write_text("x")
    before = list(tmp_path.rglob("*"))
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        LedgerView(place)
    assert list(tmp_path.rglob("*")) == before


def test_damaged_results_are_refused(run_dir):
    """A line that is not where the ledger has it, or is not JSON, ends the stream with an error."""
    data = (run_dir / "results.jsonl").read_bytes()
    (run_dir / "results.jsonl").write_bytes(data[:-20])
    with pytest.raises(RunDirectoryError, match="damaged"):
        keys(run_dir)
    (run_dir / "results.jsonl").write_bytes(data.replace(b'"index":3', b'"index"?3'))
    with pytest.raises(RunDirectoryError, match="not JSON"):
        keys(run_dir)
    (run_dir / "results.jsonl").unlink()
    with pytest.raises(RunDirectoryError, match="can't be read"):
        keys(run_dir)


def test_a_status_before_the_first_is_none(tmp_path):
    """A run that has just begun has no status, no counts, no lines."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([intent(0)])
        view = LedgerView(tmp_path / "run")
        assert (view.status(), view.counts(), view.error_counts(), list(view.lines())) == (None, {}, [], [])


def test_no_process_is_needed_to_read_a_killed_run(tmp_path):
    """A copy of a run made while it was open reads like the run itself."""
    code, _ = run_child(tmp_path / "run", "ledger = opened(run_dir); ledger.commit([record(0)]); os._exit(9)")
    assert code == 9
    assert keys(as_killed(tmp_path / "run", tmp_path / "copy")) == keys(tmp_path / "run") == [("readmes", 0)]
