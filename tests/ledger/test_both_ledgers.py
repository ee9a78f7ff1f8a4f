"""What every ledger promises, whoever keeps it: SQLite in a run directory, and PostgreSQL in a store."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from bulk.ledger.protocol import RunLedger
from bulk.ledger.records import Action, Minute, Record
from bulk.ledger.view import LedgerView
from bulk.model import Effect, ErrorCode, OutcomeKind
from tests.canaries import HOOK_SECRET
from tests.ledger.samples import NOW, STATUS, DirectoryPlace, finished, intent, record
from tests.store.places import StorePlace

RETRIED = {OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN}
Place: TypeAlias = DirectoryPlace | StorePlace


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A run that nobody has opened yet."""
    if request.param == "sqlite":
        made: Place = DirectoryPlace(tmp_path)
    else:
        made = StorePlace(request.getfixturevalue("shared_store"), tmp_path)
    yield made
    made.close()


@pytest.fixture
def ledger(place):
    """A ledger that is open."""
    with place.opened() as made:
        yield made


def keys(ledger: RunLedger) -> list[tuple[str, int]]:
    """Job and index of every current line, in the order of the view."""
    return [(line["job"], line["index"]) for line in ledger.view().finished()]


def is_done(bits: bytearray, index: int) -> bool:
    """Whether the item has an outcome."""
    return bool(bits[index >> 3] & (1 << (index & 7)))


def test_what_was_committed_is_there_for_the_next(place):
    """Outcomes and intents of a process that is gone are all found by the next one; what it began with stays."""
    sent = intent(7, before={"sha": "3d21ec5", "ids": [1, 2], "branch": None}, sent_at=NOW + 0.25)
    with place.opened() as ledger:
        began_at, planned = ledger.began_at, ledger.planned_from(NOW + 3)
        ledger.commit([record(0), sent], STATUS)
        with place.taken_over() as following:
            assert following.open_intents() == {(1, 7): sent}
            assert following.counts() == {0: {"succeeded": 1}}
            assert (following.began_at, following.planned_from(NOW + 9)) == (began_at, planned) == (began_at, NOW + 3)
            assert keys(following) == [("readmes", 0)]


def test_a_before_image_is_kept_without_secrets(place):
    """failures.md row 62: of a password in a URL, and of a token in its query, nothing is on disk."""
    url = f"https://ci:{HOOK_SECRET}@h.example.com/a?b=1&access_token={HOOK_SECRET}&c=2"
    kept = {"url": "https://ci:***@h.example.com/a?b=1&access_token=***&c=2"}
    with place.opened() as ledger:
        ledger.commit([intent(0, before={"url": url})])
        assert ledger.open_intents()[1, 0].before == kept
        ledger.commit([Record(1, finished(0, job=1), before={"url": url})])
    assert LedgerView(place.run_directory()).befores(1, 0, 9) == {0: kept}


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


def test_an_unknown_outcome_keeps_its_intent_for_the_retry(place):
    """An unknown item is done; made to-do again its intent is there, to be settled before anything is sent."""
    with place.opened() as ledger:
        ledger.commit([intent(0), intent(1)])
        ledger.commit([record(0, OutcomeKind.UNKNOWN, job=1), record(1, job=1)])
        assert ledger.open_intents() == {}
        ledger.finish(6, "", STATUS)
    with place.opened() as ledger:
        assert ledger.open_intents() == {}
        assert ledger.reopen(RETRIED) == 1
        assert ledger.open_intents() == {(1, 0): intent(0)}
        ledger.commit([record(0, job=1)])
        assert ledger.open_intents() == {}


def test_a_write_that_may_arrive_twice_keeps_its_intent(place):
    """Its item has ended and needs no settling; the next process still hears of what may be on its way."""
    with place.opened() as ledger:
        ledger.commit([intent(0), intent(1), intent(2)])
        late = replace(record(0, job=1), may_arrive_late=True)
        ledger.commit([late, record(1, job=1), record(2, OutcomeKind.UNKNOWN, job=1)])
    with place.opened() as ledger:
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


def test_an_item_ends_once(ledger):
    """A second outcome for an item is refused; nothing of its group is kept, and the next group is."""
    ledger.commit([record(0), record(1)])
    with pytest.raises(ValueError, match="outcome already"):
        ledger.commit([record(2), record(1, OutcomeKind.FAILED), intent(5)])
    ledger.commit([record(3)])
    assert keys(ledger) == [("readmes", 0), ("readmes", 1), ("readmes", 3)]
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


def test_counts_are_by_job_outcome_and_code(ledger):
    """The sums that are kept are those of the rows, for the writer and for readers."""
    ledger.commit([record(0), record(1), record(2, OutcomeKind.FAILED), record(0, job=1)])
    ledger.commit([record(3, OutcomeKind.FAILED, code=ErrorCode.CONFLICT), record(4, OutcomeKind.FAILED), record(5)])
    view = ledger.view()
    assert ledger.counts() == view.counts() == {0: {"succeeded": 3, "failed": 3}, 1: {"succeeded": 1}}
    assert view.error_counts() == [("readmes", "not_found", 2), ("readmes", "conflict", 1)]


def test_a_retry_makes_to_do_what_did_not_succeed(ledger):
    """Failed, skipped and unknown items are to-do again, superseded ones are not, and their lines are gone at once."""
    ledger.commit([record(index, kind) for index, kind in enumerate(OutcomeKind)])
    ledger.commit([record(9, OutcomeKind.SKIPPED, code=ErrorCode.SUPERSEDED)])
    assert ledger.reopen(RETRIED) == 3
    assert ledger.reopen(RETRIED) == 0
    assert ledger.counts() == {0: {"succeeded": 1, "unchanged": 1, "skipped": 1}}
    bits = ledger.done_bits(0, 10)
    assert [index for index in range(10) if is_done(bits, index)] == [0, 1, 9]
    assert [index for _, index in keys(ledger)] == [0, 1, 9]
    assert ledger.view().error_counts() == [("readmes", "superseded", 1)]


def test_lines_are_found_by_page_by_item_and_from_the_end(ledger):
    """A view gives lines as they were written: in order, those of some items, those of some kinds, and the newest."""
    ledger.commit([record(4, OutcomeKind.FAILED, result="x" * 100), record(1)])
    ledger.commit([record(2, job=1), record(0, OutcomeKind.FAILED, job=1)])
    view = ledger.view()
    found = [(line["job"], line["index"]) for line in view.finished()]
    assert found == [("readmes", 1), ("readmes", 4), ("codeowners", 0), ("codeowners", 2)]
    assert [line["index"] for line in view.finished(kinds={OutcomeKind.FAILED})] == [4, 0]
    assert [line["index"] for line in view.finished(job="codeowners")] == [0, 2]
    assert list(view.finished(job="nobody")) == []
    lines = view.lines_of(0, [4, 1, 9], 1_000_000)
    assert {index: msgspec.json.decode(line)["index"] for index, line in lines.items()} == {4: 4, 1: 1}
    assert list(view.lines_of(0, [4, 1], 1)) == [4]
    newest = [msgspec.json.decode(line)["index"] for line in view.newest_lines(1_000_000)]
    assert newest == [4, 1, 2, 0]
    assert [msgspec.json.decode(line)["index"] for line in view.newest_lines(700)] == [2, 0]


def test_figures_of_a_minute_come_with_the_status(ledger):
    """The newest figures of a minute replace the older ones; actions may come with nothing else."""
    ledger.commit([record(0)], STATUS, minute=Minute(7, b"a"))
    ledger.commit([], STATUS, minute=Minute(7, b"b"))
    paused = Action(at=NOW, who="me", verb="pause", args={}, result="")
    ledger.commit([], STATUS, minute=Minute(8, b"c"), actions=[paused])
    assert ledger.view().timeline() == [Minute(7, b"b"), Minute(8, b"c")]
    assert ledger.view().timeline(newest=True) == [Minute(8, b"c")]


def test_values_that_databases_hate_are_kept(ledger):
    """NUL, lone surrogates and huge results come back as SQLite's ledger has them."""
    awkward = "a\0b\ud800" + "x" * 100_000
    ledger.commit([record(0, result=awkward), intent(1, before={"n": "a\0b", "s": "\ud800"})])
    (line,) = ledger.view().finished()
    assert line["result"] == "a\0b\ufffd" + "x" * 100_000
    (sent,) = ledger.open_intents().values()
    assert sent.before == {"n": "a\0b", "s": "\ufffd"}


def test_saved_files_come_with_their_outcome(place, ledger):
    """`save` puts the bytes below `saved/` of the run directory, whatever the name says, before the outcome is kept; of
    a store it is that of the exported run."""
    ledger.commit([record(0, save=("acme/api.md", b"# api")), record(1, save=("../../escape", b"x"))])
    saved = place.run_directory() / "saved"
    assert (saved / "acme" / "api.md").read_bytes() == b"# api"
    assert (saved / "%2E%2E" / "%2E%2E" / "escape").read_bytes() == b"x"


def test_a_call_after_the_end_is_a_bug(place):
    """A group that comes after `close` is an error of the program, not a store that refuses."""
    ledger = place.opened()
    ledger.close()
    ledger.close()
    for call in (lambda: ledger.commit([record(0)]), lambda: ledger.commit([intent(0)]), ledger.counts):
        with pytest.raises((sqlite3.ProgrammingError, ValueError)):
            call()
