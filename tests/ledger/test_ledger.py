import contextlib
import shutil
import sqlite3
from dataclasses import replace

import msgspec
import pytest

from bulk.errors import RunDirectoryError
from bulk.ledger.view import LedgerView
from bulk.model import Effect, ErrorCode, OutcomeKind
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


def test_an_outcome_closes_the_intent_of_its_item(ledger):
    """Succeeded, unchanged, failed and skipped items need no settling any more; others stay open."""
    ledger.commit([intent(index) for index in range(6)])
    kinds = [kind for kind in OutcomeKind if kind is not OutcomeKind.UNKNOWN]
    ledger.commit([record(index, kind, job=1) for index, kind in enumerate(kinds)])
    assert set(ledger.open_intents()) == {(1, 4), (1, 5)}


def test_an_intent_and_its_outcome_may_come_in_one_group(ledger):
    """An outcome in the same group closes the intent, whatever their order in it."""
    ledger.commit([record(0, job=1), intent(0), intent(1), record(1, job=1)])
    assert ledger.open_intents() == {}
    assert ledger.reopen({OutcomeKind.SUCCEEDED}) == 2
    assert ledger.open_intents() == {}


def test_an_unknown_outcome_keeps_its_intent_for_the_retry(tmp_path):
    """An unknown item is done; made to-do again its intent is there, to be settled before anything is sent."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([intent(0), intent(1)])
        ledger.commit([record(0, OutcomeKind.UNKNOWN, job=1), record(1, job=1)])
        assert ledger.open_intents() == {}
        ledger.finish(6, "", STATUS)
    with opened(tmp_path / "run") as ledger:
        assert ledger.open_intents() == {}
        assert ledger.reopen(RETRIED) == 1
        assert ledger.open_intents() == {(1, 0): intent(0)}
        ledger.commit([record(0, job=1)])
        assert ledger.open_intents() == {}


def test_a_write_that_may_arrive_twice_keeps_its_intent(tmp_path):
    """Its item has ended and needs no settling; the next process still hears of what may be on its way."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([intent(0), intent(1), intent(2)])
        late = replace(record(0, job=1), may_arrive_late=True)
        ledger.commit([late, record(1, job=1), record(2, OutcomeKind.UNKNOWN, job=1)])
    with opened(tmp_path / "run") as ledger:
        assert ledger.open_intents() == {}
        assert ledger.late_writes() == {(1, 0): intent(0)}
        assert ledger.reopen({OutcomeKind.SUCCEEDED}) == 2
        assert (ledger.open_intents(), ledger.late_writes()) == ({(1, 0): intent(0)}, {})


def test_a_later_intent_replaces_the_earlier_one(ledger):
    """An item has one open intent: that of the request that was sent last."""
    ledger.commit([intent(0, before={"n": 1})])
    later = msgspec.structs.replace(intent(0, before={"n": 2}, sent_at=NOW + 9), effect=Effect.CREATE, method="POST")
    ledger.commit([later])
    assert ledger.open_intents() == {(1, 0): later}


def test_an_item_ends_once(ledger, tmp_path):
    """A second outcome for an item is refused; nothing of its group is kept, and the next group is."""
    ledger.commit([record(0), record(1)])
    with pytest.raises(ValueError, match="outcome already"):
        ledger.commit([record(2), record(1, OutcomeKind.FAILED), intent(5)])
    ledger.commit([record(3)])
    assert keys(tmp_path / "run") == [("readmes", 0), ("readmes", 1), ("readmes", 3)]
    assert ledger.open_intents() == {}
    assert ledger.counts() == {0: {"succeeded": 3}}


def test_bits_say_what_is_done(ledger):
    """One bit for each item, also where whole blocks are done, none is, or the job was cut by a limit."""
    done = {*range(65_536), 65_537, 70_001, 131_072, 140_000}
    ledger.commit([record(index) for index in done])
    bits = ledger.done_bits(0, 140_001)
    assert len(bits) == 17_501
    assert {index for index in range(140_001) if is_done(bits, index)} == done
    short = ledger.done_bits(0, 70_001)
    assert len(short) == 8_751
    assert {index for index in range(70_001) if is_done(short, index)} == {index for index in done if index < 70_001}
    assert ledger.done_bits(1, 9) == bytearray(2)
    assert ledger.done_bits(0, 0) == bytearray()


def test_counts_are_by_job_outcome_and_code(ledger, tmp_path):
    """The sums that are kept are those of the rows, for the writer and for readers."""
    ledger.commit([record(0), record(1), record(2, OutcomeKind.FAILED), record(0, job=1)])
    ledger.commit([record(3, OutcomeKind.FAILED, code=ErrorCode.CONFLICT), record(4, OutcomeKind.FAILED), record(5)])
    view = LedgerView(tmp_path / "run")
    assert ledger.counts() == view.counts() == {0: {"succeeded": 3, "failed": 3}, 1: {"succeeded": 1}}
    assert view.error_counts() == [("readmes", "not_found", 2), ("readmes", "conflict", 1)]


def test_a_retry_makes_to_do_what_did_not_succeed(ledger, tmp_path):
    """Failed, skipped and unknown items are to-do again, superseded ones are not, and their lines are gone at once."""
    ledger.commit([record(index, kind) for index, kind in enumerate(OutcomeKind)])
    ledger.commit([record(9, OutcomeKind.SKIPPED, code=ErrorCode.SUPERSEDED)])
    assert ledger.reopen(RETRIED) == 3
    assert ledger.reopen(RETRIED) == 0
    assert ledger.counts() == {0: {"succeeded": 1, "unchanged": 1, "skipped": 1}}
    bits = ledger.done_bits(0, 10)
    assert [index for index in range(10) if is_done(bits, index)] == [0, 1, 9]
    assert [index for _, index in keys(tmp_path / "run")] == [0, 1, 9]
    assert LedgerView(tmp_path / "run").error_counts() == [("readmes", "superseded", 1)]


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


def test_saved_files_come_with_their_outcome(ledger, tmp_path):
    """`save` puts the bytes below `saved/`, whatever the name says."""
    ledger.commit([record(0, save=("acme/api.md", b"# api")), record(1, save=("../../escape", b"x"))])
    saved = tmp_path / "run" / "saved"
    assert (saved / "acme" / "api.md").read_bytes() == b"# api"
    assert (saved / "%2E%2E" / "%2E%2E" / "escape").read_bytes() == b"x"
    assert not (tmp_path / "escape").exists()


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


def test_a_call_after_the_end_is_a_bug(tmp_path):
    """A group that comes after `close` is an error of the program, not a disk that refuses."""
    ledger = opened(tmp_path / "run")
    ledger.close()
    for call in (lambda: ledger.commit([record(0)]), lambda: ledger.commit([intent(0)]), ledger.counts):
        with pytest.raises(sqlite3.ProgrammingError):
            call()


def test_identity_is_kept(ledger, tmp_path):
    """A reader learns whose run it is."""
    assert LedgerView(tmp_path / "run").identity() == identity()
