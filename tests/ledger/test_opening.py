"""Whose ledger it is, and whose turn: what opening decides, what rows hold and give back."""

import contextlib
import sqlite3
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bulk.errors import RunDirectoryError
from bulk.ledger.opening import begin_epoch, refuse_changed
from bulk.ledger.records import Intent
from bulk.ledger.rows import intent_from_row, intent_rows, outcome_rows, read_counts, read_identity, read_words
from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from tests.ledger.samples import NOW, STATUS, identity, opened, record

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@pytest.fixture
def database(tmp_path):
    """A ledger's database with two ended items, on its own connection."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(0), record(1, OutcomeKind.FAILED), record(0, job=1)])
        ledger.finish(0, "complete", STATUS)
    connection = sqlite3.connect(tmp_path / "run" / "ledger.db", isolation_level=None)
    with contextlib.closing(connection):
        yield connection


def test_what_was_written_is_what_is_asked_for(database, tmp_path):
    """The run's identity and its counts come back as they were."""
    assert read_identity(database) == identity()
    assert read_counts(database) == {0: {"succeeded": 1, "failed": 1}, 1: {"succeeded": 1}}
    assert refuse_changed(tmp_path / "run" / "ledger.db", identity())[1] > 0


CHANGES: dict[str, dict[str, Any]] = {
    "the manifest": {"manifest_digest": "c" * 64},
    "the content of its items files": {"items_digest": "c" * 64},
    r"the platform's address \(it was http://127.0.0.1:8000/api/v3\)": {"base_url": "http://127.0.0.1:8001/api/v3"},
    r"the vendor \(it was service\)": {"vendor": "github"},
    "the list of jobs": {"jobs": (("readmes", "readme.get", 1000), ("codeowners", "contents.get", 1000))},
}


@pytest.mark.parametrize(("says", "changes"), [*CHANGES.items(), ("the manifest", {"name": "other"})])
def test_each_change_is_named_alone(database, tmp_path, says: str, changes: dict[str, Any]):
    """failures.md rows 55, 80: what changed is named, and nothing else; how many items there are may change."""
    path = tmp_path / "run" / "ledger.db"
    with pytest.raises(RunDirectoryError, match=f"belongs to another run: {says} changed since it began"):
        refuse_changed(path, identity(**changes))
    refuse_changed(path, identity(jobs=(("readmes", "readme.get", 5), ("codeowners", "contents.put", 7))))


def test_all_changes_are_named(database, tmp_path):
    """Whoever changed several things is told once."""
    changes = {key: value for change in CHANGES.values() for key, value in change.items()}
    with pytest.raises(RunDirectoryError, match=" and ".join(CHANGES)):
        refuse_changed(tmp_path / "run" / "ledger.db", identity(**changes))


def test_damage_is_looked_for_only_where_nobody_said_goodbye(tmp_path):
    """failures.md row 46: a killed run's ledger is examined, an ended one's is not: that takes time."""
    run = tmp_path / "run"
    with opened(run) as ledger:
        ledger.commit([record(index) for index in range(900)])
        ledger.finish(0, "complete", STATUS)
    path = run / "ledger.db"
    # the count of free pages lies in the header: nothing that a read of three rows would notice
    content = bytearray(path.read_bytes())
    content[36:40] = (9_999).to_bytes(4, "big")
    path.write_bytes(content)
    refuse_changed(path, identity())
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE epochs SET ended_at = NULL")
    with pytest.raises(RunDirectoryError, match="damage"):
        refuse_changed(path, identity())


def test_each_epoch_has_the_next_number_and_its_process(database):
    """Counted from the last; pid, host and start are its own; new numbers of items are taken over."""
    jobs = (("readmes", "readme.get", 5), ("codeowners", "contents.put", 7))
    assert [
        begin_epoch(database, identity(jobs=jobs), NOW + 5),
        begin_epoch(database, identity(jobs=jobs), NOW + 6),
    ] == [2, 3]
    rows = database.execute("SELECT number, started_at, ended_at FROM epochs ORDER BY number").fetchall()
    assert rows[1:] == [(2, NOW + 5, None), (3, NOW + 6, None)]
    assert read_identity(database).jobs == jobs
    assert not database.in_transaction


def test_words_keep_their_numbers_and_new_ones_are_added(database):
    """A ledger of a version that had fewer outcomes and codes: what it had stays, what it lacks follows."""
    before = read_words(database)
    assert set(before) == {*OutcomeKind, *ErrorCode}
    database.execute("DELETE FROM words WHERE word IN ('superseded', 'conflict')")
    left = read_words(database)
    begin_epoch(database, identity(), NOW)
    after = read_words(database)
    assert {word: after[word] for word in left} == left
    added = sorted(after[word] for word in ("conflict", "superseded"))
    assert added == [max(left.values()) + 1, max(left.values()) + 2]


def test_an_epoch_that_can_not_begin_leaves_nothing(database):
    """The disk refuses in the middle: all or nothing, and the connection can be used again."""
    database.execute("CREATE TRIGGER refuse BEFORE INSERT ON epochs BEGIN SELECT raise(ABORT, 'no'); END")
    with pytest.raises(sqlite3.Error, match="no"):
        begin_epoch(database, identity(jobs=(("readmes", "readme.get", 1),)), NOW)
    assert not database.in_transaction
    assert database.execute("SELECT epoch FROM meta").fetchone() == (1,)
    assert read_identity(database) == identity()


def test_a_lost_transaction_is_not_rolled_back_twice(database):
    """SQLite ends a transaction itself where the disk is full: the reason is told, not that there is none to end."""
    database.execute("CREATE TRIGGER refuse BEFORE INSERT ON epochs BEGIN SELECT raise(ROLLBACK, 'gone'); END")
    with pytest.raises(sqlite3.Error, match="gone"):
        begin_epoch(database, identity(), NOW)
    assert not database.in_transaction


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    job=st.integers(0, 9), index=st.integers(0, 2**40), method=st.sampled_from(["PUT", "POST"]),
    path=st.text(max_size=9),
    before=st.just(UNSEEN) | st.none() | st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    effect=st.sampled_from([each for each in Effect if each is not Effect.READ]), sent_at=st.floats(0, 2e9),
)  # fmt: skip
def test_an_intent_is_read_back_as_it_was(**fields):
    """Whatever it holds: what was not looked at is not what was not there, and the effect is a word of ours."""
    before = Intent(**fields)
    after = intent_from_row(intent_rows([before])[0])
    assert after == before
    assert isinstance(after.effect, Effect)


@given(
    kinds=st.lists(st.sampled_from(OutcomeKind), max_size=20),
    sizes=st.lists(st.integers(1, 90), min_size=20, max_size=20),
    position=st.integers(0, 2**40),
)
def test_rows_point_at_their_lines(kinds, sizes, position):
    """Each row knows where its line stands; what is counted is the sum of the rows, by job, outcome and code."""
    words = {word: number for number, word in enumerate((*OutcomeKind, *ErrorCode), 1)}
    records = [record(place, kind, job=place % 2) for place, kind in enumerate(kinds)]
    lengths = sizes[: len(kinds)]
    rows, counts = outcome_rows(records, lengths, position, words)
    assert len(rows) == len(records)
    at = position
    for each, length, row in zip(records, lengths, rows, strict=True):
        code = 0 if each.finished.error is None else words[each.finished.error.code]
        assert row == (each.job, each.finished.index, words[each.finished.outcome], code, 200, 1, at, length)
        at += length
    for job, outcome, code, items, size in counts:
        mine = [row for row in rows if row[:1] + row[2:4] == (job, outcome, code)]
        assert (len(mine), sum(row[7] for row in mine)) == (items, size)
    assert sum(each[3] for each in counts) == len(rows)


def test_a_line_for_each_record():
    """A record without a line is a bug that is noticed."""
    with pytest.raises(ValueError, match="zip"):
        outcome_rows([record(0)], [], 0, {"succeeded": 1})
