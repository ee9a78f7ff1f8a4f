"""Answers read ahead of who asks for them: quicker in the order of the file, right in any."""

import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bulk.model import Reply, Request
from bulk.platform import validators
from bulk.platform.keeping import SCHEMA, Keeping, Row
from bulk.platform.kept import AHEAD_BYTES, NEAR_ROWS, WAITING_MOST, KeptAnswers
from tests.platform.kept_answers import answers, store

ITEMS = 400


@pytest.fixture
def file():
    """A store's file with `ITEMS` answers of 1,000 bytes."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(SCHEMA)
    Keeping(connection, 0).write([_row(number) for number in range(ITEMS)], (), is_last=True)
    yield connection
    connection.close()


def _key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def _row(number: int) -> Row:
    return _key(number), '"e"', None, 200, None, None, b"%d" % number + b"x" * 1_000, 1_800_000_000


def _kept(file: sqlite3.Connection) -> KeptAnswers:
    return KeptAnswers(file, lambda _: None)


def looks(file: sqlite3.Connection, numbers: list[int]) -> int:
    """How often the file is asked for these, each of which is found."""
    kept, asked = _kept(file), []
    file.set_trace_callback(lambda text: asked.append(text) if text.startswith("SELECT") else None)
    for number in numbers:
        row = kept.find(_key(number))
        assert row is not None
        assert row[7].startswith(b"%dx" % number)
    return len(asked)


def test_neighbours_are_read_together(file):
    """In the order in which they were kept, or nearly, a second run looks for one answer in ten."""
    nearly = [number ^ 5 for number in range(ITEMS)]
    assert looks(file, list(range(ITEMS))) < ITEMS / 10
    assert looks(file, nearly) < ITEMS / 10
    assert looks(file, [*range(ITEMS), *range(ITEMS)]) < 2 * ITEMS / 10


@pytest.mark.parametrize("late", [3, 100, NEAR_ROWS + 50])
def test_what_was_kept_late_is_not_read_twice(file, late):
    """One answer in ten came so much later than its neighbours: those are read together all the same."""
    order = sorted(range(ITEMS), key=lambda number: number - (late if number % 10 == 0 else 0))
    assert looks(file, order) < ITEMS / 10 + (ITEMS / 10 if late > NEAR_ROWS else 0)


@pytest.mark.parametrize("step", [10, 60])
def test_what_nobody_asks_for_is_let_go(file, step):
    """Of a work that is a part of the one before, only so much waits to be asked for; nothing is looked at twice."""
    kept = _kept(file)
    for number in range(0, ITEMS, step):
        assert kept.find(_key(number)) is not None
        assert kept.ahead <= WAITING_MOST
    assert looks(file, list(range(0, ITEMS, step))) <= 2 * ITEMS / step


def test_another_order_reads_nothing_ahead(file):
    """Asked for in an order far from that of the file, each answer is one look."""
    far = [number * (NEAR_ROWS + 3) % ITEMS for number in range(ITEMS)]
    assert looks(file, far) == ITEMS


def test_little_is_read_ahead_of_long_answers(file):
    """What is read ahead at once ends with the body that brings it to a MiB."""
    file.execute("UPDATE answer SET body = zeroblob(?)", (AHEAD_BYTES // 2,))
    kept = _kept(file)
    for number in range(20):
        assert kept.find(_key(number)) is not None
        assert kept.ahead <= 3


def test_a_wrong_place_never_gives_another_answer(file):
    """Where the index is wrong, nothing is found, or what is right: the body of another request never is."""
    found = KeptAnswers(file, lambda _: 6).find(_key(3))
    assert found is not None
    assert found[1] == _key(3)
    file.execute("UPDATE place SET number = 6 WHERE key = ?", (_key(3),))
    assert _kept(file).find(_key(3)) is None


ACTIONS = ["find", "find", "find", "keep", "flush", "some", "killed"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 11)), max_size=60))
def test_the_newest_answer_is_found(tmp_path_factory, monkeypatch, actions):
    """Whatever was read ahead or waits for its place, what is found is what was kept last, also after a kill."""
    monkeypatch.setattr(validators, "GROUP_ROWS", 1)
    newest: dict[int, bytes] = {}
    directory = tmp_path_factory.mktemp("cache")
    one, killed = store(directory), []
    requests = [Request(method="GET", path=f"/repos/acme/api-{number}/readme") for number in range(12)]
    for number in range(8):
        _keep(one, requests[number], newest, number, 0)
    one.flush()
    written = dict(newest)
    for turn, (action, number) in enumerate(actions, 1):
        if action == "keep":
            _keep(one, requests[number], newest, number, turn)
        elif action == "killed":
            killed.append(one)
            one, newest = store(directory), dict(written)
        elif action == "find":
            found = one.find(requests[number])
            assert (found.body if found is not None else None) == newest.get(number)
        else:
            one.flush() if action == "flush" else one.flush_some()
            written = dict(newest)
    one.close()
    assert answers(directory) == len(written | newest)
    for each in killed:
        each.close()


def _keep(one, request, newest, number, turn):
    newest[number] = b'{"size":%d}' % turn
    one.keep(request, Reply(status=200, headers={"etag": f'"{turn}"'}, body={}), newest[number])
