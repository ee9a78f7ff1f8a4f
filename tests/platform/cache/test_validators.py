"""Answers kept from one run to the next: found again, confirmed by a 304, never another credential's."""

import os
import sqlite3
import stat
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bulk.model import Effect, Media, Reply, Request
from bulk.platform.bodies.body_values import Unreadable
from bulk.platform.cache import validators
from bulk.platform.cache.cache_table import VIEW_FINDS
from bulk.platform.cache.validators import (
    BODY_BYTES,
    BUFFER_BYTES,
    GROUP_BYTES,
    GROUP_ROWS,
    GROUP_S,
    UNUSED_S,
    ValidatorStore,
)
from tests.platform.cache.kept_answers import BODY, GET, RAW, SetClock, reply, store


def kept(directory: Path, request: Request = GET, answered: Reply | None = None) -> bool:
    """Whether another run finds this answer."""
    first = store(directory)
    first.keep(request, answered or reply())
    first.close()
    second = store(directory)
    try:
        return second.find(request) is not None
    finally:
        second.close()


@pytest.mark.parametrize("is_flushed", [True, False])
def test_a_kept_answer_is_found_again(tmp_path, is_flushed):
    """What was kept is found, before and after it is written, with its validators and bytes as they came."""
    headers = {
        "etag": 'W/"weak"',
        "last-modified": "Sat, 21 Nov 2026 08:00:00 GMT",
        "content-type": "application/json",
        "link": '<x>; rel="next"',
    }
    one = store(tmp_path / "cache")
    one.keep(GET, reply(headers))
    if is_flushed:
        one.flush()
    found = one.find(GET)
    assert found is not None
    assert (found.etag, found.last_modified, found.content_type, found.link, found.body) == (*headers.values(), RAW)
    one.close()
    assert one.find(GET) is None


def test_a_304_becomes_the_kept_answer(tmp_path):
    """A confirmed answer is a 200 with the kept body, unchanged, with the headers of the 304 and the kept link."""
    one = store(tmp_path)
    one.keep(GET, reply({"etag": '"e1"', "link": '<x>; rel="next"', "content-type": "application/json"}))
    found = one.find(GET)
    assert found is not None
    confirmed = one.reply_from(found, Reply(status=304, headers={"ETag": '"e1"', "date": "now"}, request_id="7"))
    assert (confirmed.status, confirmed.body, confirmed.is_unchanged, confirmed.request_id) == (200, BODY, True, "7")
    assert {name.lower(): value for name, value in confirmed.headers.items()} == {
        "etag": '"e1"',
        "date": "now",
        "link": '<x>; rel="next"',
        "content-type": "application/json",
    }
    raw_request = Request(method="GET", path="/x", media=Media.RAW)
    one.keep(raw_request, reply(body=b"\x00\xff", raw=b"\x00\xff"))
    found_raw = one.find(raw_request)
    assert found_raw is not None
    assert one.reply_from(found_raw, Reply(status=304, headers={})).body == b"\x00\xff"
    one.close()


def test_a_kept_body_that_cant_be_read_is_forgotten(tmp_path):
    """failures.md row 13: a 304 whose kept body is damaged: told as such, and the next request has no conditions."""
    one = store(tmp_path)
    one.keep(GET, reply(raw=b"{damaged"))
    one.flush()
    found = one.find(GET)
    assert found is not None
    assert isinstance(one.reply_from(found, Reply(status=304, headers={})).body, Unreadable)
    assert one.find(GET) is None
    one.keep(GET, reply())
    assert one.find(GET) is not None
    one.close()


OTHERS = [
    Request(method="GET", path="/repos/acme/api/readme", query="ref=dev"),
    Request(method="GET", path="/repos/acme/API/readme"),
    Request(method="GET", path="/repos/acme/api/readme", media=Media.RAW),
    Request(method="GET", path="/repos/acme/api/read", query="me"),
]


@pytest.mark.parametrize("other", OTHERS, ids=["query", "path", "media", "boundary"])
def test_another_request_is_another_answer(tmp_path, other):
    """Path, query and media tell answers apart."""
    one = store(tmp_path)
    one.keep(GET, reply())
    assert one.find(other) is None
    one.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "tok_of_bobby"},
        {"base_url": "https://other.example.com/api/v3"},
        {"vendor": "github"},
        {"api_version": "2026-03-10"},
    ],
)
def test_another_credential_or_platform_never_sees_it(tmp_path, changes):
    """failures.md row 37: a rotated token, another platform, vendor or version has a store of its own."""
    one = store(tmp_path)
    one.keep(GET, reply())
    one.close()
    other = store(tmp_path, **changes)
    assert other.find(GET) is None
    other.close()
    assert len(list(tmp_path.glob("*.db"))) == 2


def test_nothing_of_the_token_is_on_disk(tmp_path):
    """failures.md row 62: neither names nor contents of the files hold the token."""
    one = store(tmp_path, "tok_0123456789abcdef")
    one.keep(GET, reply())
    one.flush()
    for path in tmp_path.iterdir():
        assert "tok_" not in path.name
        assert b"tok_0123456789abcdef" not in path.read_bytes()
    one.close()


NOT_KEPT = {
    "a write": (Request(method="PUT", path="/x", effect=Effect.SET), reply()),
    "a fresh read": (Request(method="GET", path="/x", is_fresh=True), reply()),
    "no validator": (GET, reply({})),
    "not 200": (GET, reply(status=203)),
    "a 404": (GET, reply(status=404)),
    "broken off": (GET, reply(is_truncated=True, raw=b"")),
    "unreadable": (GET, reply(body=Unreadable("no JSON"), raw=b"x")),
    "from the store": (GET, reply(is_unchanged=True, raw=b"")),
    "not to be stored": (GET, reply({"etag": '"e"', "cache-control": "private, No-Store"})),
    "too long": (GET, reply(raw=b"x" * (BODY_BYTES + 1))),
    "with a header of two lines": (GET, reply({"etag": '"e"', "link": "<x>\n<y>"})),
}


@pytest.mark.parametrize(("request_", "answered"), NOT_KEPT.values(), ids=NOT_KEPT.keys())
def test_what_is_not_worth_keeping_is_not_kept(tmp_path, request_, answered):
    """Only whole, usable 200 answers to ordinary reads with a validator are kept, up to 8 MiB."""
    assert kept(tmp_path)
    fresh = tmp_path / "other"
    assert not kept(fresh, request_, answered)


def test_either_validator_is_enough(tmp_path):
    """An answer with only a Last-Modified is kept, too, and a body of exactly 8 MiB."""
    assert kept(tmp_path / "a", GET, reply({"last-modified": "Sat, 21 Nov 2026 08:00:00 GMT"}))
    assert kept(tmp_path / "b", Request(method="GET", path="/x", media=Media.RAW), reply(raw=b"x" * BODY_BYTES))


def test_a_fresh_request_is_never_answered_from_the_store(tmp_path):
    """Read-backs are asked anew, without conditions."""
    one = store(tmp_path)
    one.keep(GET, reply())
    assert one.find(Request(method="GET", path=GET.path, is_fresh=True)) is None
    one.close()


def test_a_newer_answer_replaces_the_older(tmp_path):
    """The last answer is the one that is found."""
    for number in range(3):
        one = store(tmp_path)
        one.keep(GET, reply({"etag": f'"e{number}"'}))
        one.close()
    one = store(tmp_path)
    found = one.find(GET)
    assert found is not None
    assert found.etag == '"e2"'
    one.close()


def test_what_nobody_used_for_long_is_dropped(tmp_path):
    """After 90 days without use an answer is dropped when the store is opened; use keeps it."""
    other = Request(method="GET", path="/used")
    clock = SetClock()
    one = store(tmp_path, clock=clock)
    one.keep(GET, reply())
    one.keep(other, reply())
    one.close()
    clock.at += UNUSED_S - 86_400
    one = store(tmp_path, clock=clock)
    assert one.find(other) is not None
    one.close()
    clock.at += 2 * 86_400
    one = store(tmp_path, clock=clock)
    assert one.find(GET) is None
    assert one.find(other) is not None
    one.close()


def test_memory_is_bounded_where_nothing_is_written(tmp_path):
    """More than the buffer holds is not kept, and does no harm; after a flush there is room again."""
    one = store(tmp_path)
    raw = b"x" * (4 << 20)
    requests = [
        Request(method="GET", path=f"/{number}", media=Media.RAW) for number in range(BUFFER_BYTES // len(raw) + 3)
    ]
    for request in requests:
        one.keep(request, reply(raw=raw))
    assert [one.find(request) is not None for request in requests[-4:]] == [True, False, False, False]
    one.flush()
    one.keep(requests[-1], reply(raw=raw))
    assert one.find(requests[-1]) is not None
    one.close()


def test_what_is_being_written_takes_room_as_well(tmp_path):
    """While a flush waits for another process, its answers are still in memory: no more are taken in beside them."""
    one = store(tmp_path)
    raw = b"x" * (4 << 20)
    requests = [Request(method="GET", path=f"/{number}", media=Media.RAW) for number in range(BUFFER_BYTES // len(raw))]
    for request in requests:
        one.keep(request, reply(raw=raw))
    (path,) = tmp_path.glob("*.db")
    late = Request(method="GET", path="/late", media=Media.RAW)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        flush = threading.Thread(target=one.flush)
        flush.start()
        while one.find(requests[0]) is not None:  # it neither waits any more nor is on disk
            flush.join(0.001)
        assert not one.keep(late, reply(raw=raw))
        other.execute("ROLLBACK")
        flush.join()
    assert one.keep(late, reply(raw=raw))
    one.close()


def written(directory: Path) -> int:
    """Answers in the file (count)."""
    (path,) = directory.glob("*.db")
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM answer").fetchone()
        return int(count)


@pytest.mark.parametrize("why", ["rows", "bytes", "time"])
def test_answers_are_written_many_together(tmp_path, why):
    """`flush_some` writes when many have come together, or long ones, or after a while; not before."""
    clock = SetClock()
    one = store(tmp_path, clock=clock)
    few, raw = (1, b"\x01" * (GROUP_BYTES // 2)) if why == "bytes" else (GROUP_ROWS - 1, RAW)
    for number in range(few):
        one.keep(asked(number), reply(raw=raw))
    one.flush_some()
    assert written(tmp_path) == 0
    if why == "time":
        clock.at += GROUP_S
    else:
        one.keep(asked(few), reply(raw=raw))
    one.flush_some()
    assert written(tmp_path) == (few if why == "time" else few + 1)
    one.close()


def test_a_store_that_began_empty_looks_for_nothing_in_vain(tmp_path):
    """What nobody has kept is not looked for in the file; what was kept is found there, also what others kept."""
    statements: list[str] = []
    with closing(store(tmp_path)) as other, closing(store(tmp_path)) as one:
        assert one._kept is not None
        one._kept._connection.set_trace_callback(statements.append)
        fill(one, range(200))
        assert statements == []
        assert all(one.find(asked(number)) is not None for number in range(200))
        other.keep(asked(200), reply())
        other.flush()
        assert one.find(asked(200)) is None
        one.flush()
        assert one.find(asked(200)) is not None
        assert one.find(asked(201)) is None
    with closing(store(tmp_path)) as again:
        assert again.find(asked(0)) is not None


def test_a_view_of_the_file_ends(tmp_path):
    """What another process keeps is found after a few looks at most, also by a store that writes nothing."""
    with closing(store(tmp_path)) as other:
        fill(other, range(100))
        with closing(store(tmp_path)) as one:
            assert one.find(asked(0)) is not None
            other.keep(asked(100), reply())
            other.flush()
            for _ in range(VIEW_FINDS):
                one.find(asked(0))
            assert one.find(asked(100)) is not None


def test_files_are_closed_to_others_under_any_umask(tmp_path):
    """failures.md row 64: the directory is made 0700, the files 0600, also where they were wider before."""
    directory = tmp_path / "deep" / "cache"
    before = os.umask(0)
    try:
        for _ in range(2):
            one = store(directory)
            one.keep(GET, reply())
            one.flush()
            assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
            one.close()
            for path in directory.iterdir():
                path.chmod(0o666)
    finally:
        os.umask(before)


LOG_ROWS = 1_000


@pytest.fixture
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is emptied after fewer answers than usual."""
    monkeypatch.setattr(validators, "LOG_ROWS", LOG_ROWS)


def asked(number: int) -> Request:
    """One of many requests."""
    return replace(GET, path=f"/repos/acme/api-{number}/readme")


def fill(one: ValidatorStore, numbers: range) -> None:
    """Look for each, in vain, and keep it; written a hundred at a time, as a run does."""
    for number in numbers:
        assert one.find(asked(number)) is None
        one.keep(asked(number), reply({"etag": f'"{number}"'}))
        if number % 100 == 99:
            one.flush()


@pytest.mark.usefixtures("small_log")
def test_the_log_does_not_grow_with_the_answers(tmp_path):
    """SQLite's write-ahead log of a store begins anew, though the run looks for answers all the time."""
    with closing(store(tmp_path)) as one:
        (log,) = tmp_path.glob("*.db-wal")
        fill(one, range(LOG_ROWS))
        first = log.stat().st_size
        fill(one, range(LOG_ROWS, 4 * LOG_ROWS))
        assert log.stat().st_size < 4 * first
        for number in range(0, 4 * LOG_ROWS, 177):
            found = one.find(asked(number))
            assert found is not None
            assert found.etag == f'"{number}"'


@pytest.mark.usefixtures("small_log")
def test_the_log_begins_anew_when_nobody_else_reads_any_more(tmp_path):
    """While another process has a view of the file it must grow; then no longer."""
    with closing(store(tmp_path)) as one, closing(store(tmp_path)) as other:
        (log,) = tmp_path.glob("*.db-wal")
        fill(one, range(LOG_ROWS // 2))
        other.flush()
        assert other.find(asked(0)) is not None
        fill(one, range(LOG_ROWS // 2, 3 * LOG_ROWS))
        grown = log.stat().st_size
        other.close()
        fill(one, range(3 * LOG_ROWS, 5 * LOG_ROWS))
        assert log.stat().st_size < 1.7 * grown
