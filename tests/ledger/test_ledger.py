import contextlib
import shutil

import msgspec
import pytest

from bulk.errors import RunDirectoryError
from bulk.ledger.view import LedgerView
from bulk.model import ErrorCode, OutcomeKind
from bulk.status import BucketStatus, JobStatus, RunStatus, Wait
from tests.ledger.samples import NOW, STATUS, as_killed, identity, intent, keys, opened, record

RETRIED = {OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN}


@pytest.fixture
def ledger(tmp_path):
    """A ledger that is open."""
    with opened(tmp_path / "run") as made:
        yield made


def is_done(bits: bytearray, index: int) -> bool:
    """Whether the item has an outcome."""
    return bool(bits[index >> 3] & (1 << (index & 7)))


def test_what_was_committed_is_there_at_the_next_open(tmp_path):
    """Outcomes, intents and the status of a process that was killed are all found by the next one."""
    status = RunStatus(
        name="run",
        state="running",
        at=NOW,
        started_at=NOW,
        pid=1,
        jobs=(JobStatus(name="readmes", operation="readme.get", items=2, outcomes={"succeeded": 1}),),
        buckets=(BucketStatus(credential="default", category="core", limit=1000, remaining=3, reset_at=NOW + 9),),
        waits=(Wait("bucket core", NOW + 9, 2),),
    )
    sent = intent(7, before={"sha": "3d21ec5", "ids": [1, 2], "branch": None}, sent_at=NOW + 0.25)
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(0), sent], status)
        killed = as_killed(tmp_path / "run", tmp_path / "killed")
    with opened(killed, now=NOW + 5) as ledger:
        assert ledger.epoch == 2
        assert ledger.open_intents() == {(1, 7): sent}
        assert ledger.counts() == {0: {"succeeded": 1}}
        view = LedgerView(killed)
        assert view.status() == status
        assert [(epoch.started_at, epoch.ended_at) for epoch in view.epochs()] == [(NOW, None), (NOW + 5, None)]


def test_after_a_retry_each_item_has_one_line(tmp_path):
    """At the end of a retry `results.jsonl` holds every item once, with its new outcome, in order of jobs and items."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(1, job=1), record(2, OutcomeKind.FAILED, result="old"), record(0), record(1)])
        ledger.finish(1, "", STATUS)
    with opened(tmp_path / "run") as ledger:
        ledger.reopen(RETRIED)
        ledger.commit([record(2, result="new"), record(3)])
        ledger.finish(0, "", STATUS)
    lines = (tmp_path / "run" / "results.jsonl").read_bytes().splitlines(keepends=True)
    assert lines == list(LedgerView(tmp_path / "run").lines())
    ended = [(line["job"], line["index"], line["result"]) for line in map(msgspec.json.decode, lines)]
    expected = [("readmes", 0, None), ("readmes", 1, None), ("readmes", 2, "new"), ("readmes", 3, None)]
    assert ended == [*expected, ("codeowners", 1, None)]


def test_without_a_retry_the_results_are_not_rewritten(tmp_path):
    """A run whose lines are all current keeps its file as it grew."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(1), record(0)])
        before = (tmp_path / "run" / "results.jsonl").stat().st_ino
        ledger.finish(0, "", STATUS)
        assert (tmp_path / "run" / "results.jsonl").stat().st_ino == before
        assert b'"index":1' in (tmp_path / "run" / "results.jsonl").read_bytes().splitlines()[0]


@pytest.mark.parametrize(("exit_code", "lines"), [(3, 1), (130, 2)])
def test_a_stopped_retry_has_no_old_lines_to_show(tmp_path, exit_code: int, lines: int):
    """What a stopped retry did not reach has no line for readers; only an interrupt leaves the rewriting for later."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(0), record(1, OutcomeKind.FAILED)])
        ledger.reopen(RETRIED)
        ledger.finish(exit_code, "stopped", STATUS)
    assert (tmp_path / "run" / "results.jsonl").read_bytes().count(b"\n") == lines
    assert keys(tmp_path / "run") == [("readmes", 0)]
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(1)])
        ledger.finish(0, "", STATUS)
    assert (tmp_path / "run" / "results.jsonl").read_bytes().count(b"\n") == 2


def test_an_epoch_tells_how_it_ended(tmp_path):
    """Each process leaves when it began and ended, its exit code and reason, and where the run stood."""
    stopped = msgspec.structs.replace(STATUS, state="stopped", why="disk \ud800 full")
    with opened(tmp_path / "run", now=NOW) as ledger:
        ledger.finish(3, "disk \ud800 full", stopped)
    opened(tmp_path / "run", now=NOW + 100).close()
    first, second = LedgerView(tmp_path / "run").epochs()
    assert (first.number, first.started_at, first.ended_at, first.exit_code) == (1, NOW, STATUS.at, 3)
    assert first.why == "disk ? full"
    assert (
        first.status
        == msgspec.structs.replace(stopped, why="disk \ufffd full")
        == LedgerView(tmp_path / "run").status()
    )
    assert (second.number, second.ended_at, second.exit_code, second.why, second.status) == (2, None, None, "", None)


def test_words_that_a_ledger_lacks_are_added(tmp_path):
    """An error code of a later version gets a number of its own in an older ledger; the others keep theirs."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(0, OutcomeKind.FAILED, code=ErrorCode.CONFLICT)])
        ledger._connection.execute("DELETE FROM words WHERE word = 'timeout'")
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(1, OutcomeKind.FAILED, code=ErrorCode.TIMEOUT)])
        codes = LedgerView(tmp_path / "run").error_counts()
    assert codes == [("readmes", "conflict", 1), ("readmes", "timeout", 1)]


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_run_directory_that_vanishes_is_noticed(ledger, tmp_path, how: str):
    """Nothing more is reported durable once the run directory was moved or deleted."""
    if how == "moved":
        (tmp_path / "run").rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="moved or deleted"):
        ledger.commit([intent(0)])


def test_closing_twice_is_harmless(tmp_path):
    """`close` may come again, as in a `with` block after it."""
    with opened(tmp_path / "run") as ledger:
        ledger.close()
    with opened(tmp_path / "run"):
        ledger.close()
        with pytest.raises(RunDirectoryError), contextlib.closing(opened(tmp_path / "run")):
            pass


def test_identity_is_kept(ledger, tmp_path):
    """A reader learns whose run it is."""
    assert LedgerView(tmp_path / "run").identity() == identity()
