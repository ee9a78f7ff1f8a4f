"""Answers read ahead of who asks for them: quicker in the order of the file, right in any."""

import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bulk.model import Reply, Request
from bulk.platform.cache.cache_table import (
    AHEAD_BYTES,
    NEAR_ROWS,
    SCHEMA,
    WAITING_MOST,
    CacheTable,
    Row,
    drop_unused,
    hash_of,
    write_answers,
)
from tests.platform.cache.kept_answers import store

ITEMS = 400


@pytest.fixture
def file():
    """A store's file with `ITEMS` answers of 1,000 bytes."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in SCHEMA:
        connection.execute(statement)
    write_answers(connection, [_row(number) for number in range(ITEMS)], {})
    yield connection
    connection.close()


def _key(number: int) -> bytes:
    return number.to_bytes(8, "big") * 2


def _row(number: int, used_at: int = 1_800_000_000) -> Row:
    body = b"%d" % number + b"x" * 1_000
    return hash_of(_key(number)), _key(number), '"e"\n\n\n', body, used_at


def looks(file: sqlite3.Connection, numbers: list[int]) -> int:
    """How often the file is asked for these, each of which is found."""
    kept, asked = CacheTable(file), []
    file.set_trace_callback(lambda text: asked.append(text) if text.startswith("SELECT") else None)
    for number in numbers:
        row = kept.find(_key(number))
        assert row is not None
        assert row[3].startswith(b"%dx" % number)
    return len(asked)


def held(file: sqlite3.Connection) -> list[int]:
    """How many answers and places the file has, and how many of these lead to an answer (count)."""
    joined = "SELECT count(*) FROM place JOIN answer USING (number)"
    queries = ("SELECT count(*) FROM answer", "SELECT count(*) FROM place", joined)
    return [file.execute(query).fetchone()[0] for query in queries]


def test_what_is_kept_anew_takes_the_place_of_the_old(file):
    """Nothing of the old answers stays, whatever the order, also of one that shares its hash with another key."""
    write_answers(file, [_row(number) for number in range(ITEMS - 1, -1, -3)], {})
    assert held(file) == [ITEMS, ITEMS, ITEMS]
    write_answers(file, [(hash_of(_key(7)), b"with the same hash", "\nnow\n\n", b"", 0)], {})
    assert held(file) == [ITEMS, ITEMS, ITEMS]
    assert CacheTable(file).find(_key(7)) is None


def test_what_nobody_used_is_dropped_with_its_place(file):
    """What was used since, or kept since, stays."""
    now = 1_800_000_001
    write_answers(file, [_row(number, now) for number in range(ITEMS, ITEMS + 20)], {_key(3): now, _key(9_999): now})
    drop_unused(file, now)
    assert held(file) == [21, 21, 21]
    assert CacheTable(file).find(_key(3)) is not None
    assert looks(file, list(range(ITEMS, ITEMS + 20))) <= 20


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
    kept = CacheTable(file)
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
    kept = CacheTable(file)
    for number in range(20):
        assert kept.find(_key(number)) is not None
        assert kept.ahead <= 3


def test_a_shared_hash_is_no_answer(file):
    """Two keys with one hash: the answer to one of them is never taken for that to the other."""
    other = _key(7)[:8] + b"\xff" * 8
    assert hash_of(other) == hash_of(_key(7))
    assert CacheTable(file).find(other) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["find", "find", "find", "keep", "flush"]), st.integers(0, 11)), max_size=60))
def test_the_newest_answer_is_found(tmp_path_factory, actions):
    """Whatever was read ahead, what is found is what was kept last."""
    newest: dict[int, bytes] = {}
    one = store(tmp_path_factory.mktemp("cache"))
    requests = [Request(method="GET", path=f"/repos/acme/api-{number}/readme") for number in range(12)]
    for number in range(8):
        _keep(one, requests[number], newest, number, 0)
    one.flush()
    for turn, (action, number) in enumerate(actions, 1):
        if action == "keep":
            _keep(one, requests[number], newest, number, turn)
        elif action == "flush":
            one.flush()
        else:
            found = one.find(requests[number])
            assert (found.body if found is not None else None) == newest.get(number)
    one.close()


def _keep(one, request, newest, number, turn):
    newest[number] = b'{"size":%d}' % turn
    one.keep(request, Reply(status=200, headers={"etag": f'"{turn}"'}, body={}, raw=newest[number]))
