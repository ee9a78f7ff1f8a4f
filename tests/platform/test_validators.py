"""Answers kept from one run to the next: found again, confirmed by a 304, never another credential's."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from bulk.clock import Clock
from bulk.model import Effect, Media, Reply, Request
from bulk.platform.bodies import Unreadable
from bulk.platform.secrets import Secret
from bulk.platform.validators import BODY_BYTES, BUFFER_BYTES, UNUSED_S, ValidatorStore

BASE = "https://code.example.com/api/v3"
RAW = b'{"name": "README.md", "size": 3}'
BODY = {"name": "README.md", "size": 3}
GET = Request(method="GET", path="/repos/acme/api/readme")


class SetClock(Clock):
    """Shows the wall time that a test sets."""

    def __init__(self, at: float = 1_800_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


def store(directory: Path, token: str = "tok_of_alice", **changes: Any) -> ValidatorStore:
    """A store in `directory`."""
    given: dict[str, Any] = {"base_url": BASE, "vendor": "service", "api_version": None, "clock": SetClock(), **changes}
    return ValidatorStore(directory, secret=Secret(token), **given)


def reply(headers: Mapping[str, str] | None = None, **changes: Any) -> Reply:
    """A 200 with a validator."""
    given: dict[str, Any] = {
        "status": 200,
        "headers": {"etag": '"e1"'} if headers is None else headers,
        "body": BODY,
        **changes,
    }
    return Reply(**given)


def kept(directory: Path, request: Request = GET, answered: Reply | None = None, raw: bytes = RAW) -> bool:
    """Whether another run finds this answer."""
    first = store(directory)
    first.keep(request, answered or reply(), raw)
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
    one.keep(GET, reply(headers), RAW)
    if is_flushed:
        one.flush()
    found = one.find(GET)
    assert found is not None
    assert (found.etag, found.last_modified, found.status, found.body) == (
        'W/"weak"',
        "Sat, 21 Nov 2026 08:00:00 GMT",
        200,
        RAW,
    )
    one.close()
    assert one.find(GET) is None


def test_a_304_becomes_the_kept_answer(tmp_path):
    """A confirmed answer is a 200 with the kept body, unchanged, with the headers of the 304 and the kept link."""
    one = store(tmp_path)
    one.keep(GET, reply({"etag": '"e1"', "link": '<x>; rel="next"', "content-type": "application/json"}), RAW)
    found = one.find(GET)
    assert found is not None
    confirmed = one.reply_from(found, Reply(status=304, headers={"ETag": '"e1"', "date": "now"}, request_id="7"))
    assert (confirmed.status, confirmed.body, confirmed.is_unchanged, confirmed.request_id) == (200, BODY, True, "7")
    assert confirmed.headers == {
        "etag": '"e1"',
        "date": "now",
        "link": '<x>; rel="next"',
        "content-type": "application/json",
    }
    raw_request = Request(method="GET", path="/x", media=Media.RAW)
    one.keep(raw_request, reply(body=b"\x00\xff"), b"\x00\xff")
    found_raw = one.find(raw_request)
    assert found_raw is not None
    assert one.reply_from(found_raw, Reply(status=304, headers={})).body == b"\x00\xff"
    one.close()


def test_a_kept_body_that_cant_be_read_is_forgotten(tmp_path):
    """failures.md row 13: a 304 whose kept body is damaged: told as such, and the next request has no conditions."""
    one = store(tmp_path)
    one.keep(GET, reply(), b"{damaged")
    one.flush()
    found = one.find(GET)
    assert found is not None
    assert isinstance(one.reply_from(found, Reply(status=304, headers={})).body, Unreadable)
    assert one.find(GET) is None
    one.keep(GET, reply(), RAW)
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
    one.keep(GET, reply(), RAW)
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
    one.keep(GET, reply(), RAW)
    one.close()
    other = store(tmp_path, **changes)
    assert other.find(GET) is None
    other.close()
    assert len(list(tmp_path.glob("*.db"))) == 2


def test_nothing_of_the_token_is_on_disk(tmp_path):
    """failures.md row 62: neither names nor contents of the files hold the token."""
    one = store(tmp_path, "tok_0123456789abcdef")
    one.keep(GET, reply(), RAW)
    one.flush()
    for path in tmp_path.iterdir():
        assert "tok_" not in path.name
        assert b"tok_0123456789abcdef" not in path.read_bytes()
    one.close()


NOT_KEPT = {
    "a write": (Request(method="PUT", path="/x", effect=Effect.SET), reply(), RAW),
    "a fresh read": (Request(method="GET", path="/x", is_fresh=True), reply(), RAW),
    "no validator": (GET, reply({}), RAW),
    "not 200": (GET, reply(status=203), RAW),
    "a 404": (GET, reply(status=404), RAW),
    "broken off": (GET, reply(is_truncated=True), b""),
    "unreadable": (GET, reply(body=Unreadable("no JSON")), b"x"),
    "from the store": (GET, reply(is_unchanged=True), b""),
    "not to be stored": (GET, reply({"etag": '"e"', "cache-control": "private, No-Store"}), RAW),
    "too long": (GET, reply(), b"x" * (BODY_BYTES + 1)),
}


@pytest.mark.parametrize(("request_", "answered", "raw"), NOT_KEPT.values(), ids=NOT_KEPT.keys())
def test_what_is_not_worth_keeping_is_not_kept(tmp_path, request_, answered, raw):
    """Only whole, usable 200 answers to ordinary reads with a validator are kept, up to 8 MiB."""
    assert kept(tmp_path)
    fresh = tmp_path / "other"
    assert not kept(fresh, request_, answered, raw)


def test_either_validator_is_enough(tmp_path):
    """An answer with only a Last-Modified is kept, too, and a body of exactly 8 MiB."""
    assert kept(tmp_path / "a", GET, reply({"last-modified": "Sat, 21 Nov 2026 08:00:00 GMT"}))
    assert kept(tmp_path / "b", Request(method="GET", path="/x", media=Media.RAW), reply(), b"x" * BODY_BYTES)


def test_a_fresh_request_is_never_answered_from_the_store(tmp_path):
    """Read-backs are asked anew, without conditions."""
    one = store(tmp_path)
    one.keep(GET, reply(), RAW)
    assert one.find(Request(method="GET", path=GET.path, is_fresh=True)) is None
    one.close()


def test_a_newer_answer_replaces_the_older(tmp_path):
    """The last answer is the one that is found."""
    for number in range(3):
        one = store(tmp_path)
        one.keep(GET, reply({"etag": f'"e{number}"'}), RAW)
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
    one.keep(GET, reply(), RAW)
    one.keep(other, reply(), RAW)
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
        one.keep(request, reply(), raw)
    assert [one.find(request) is not None for request in requests[-4:]] == [True, False, False, False]
    one.flush()
    one.keep(requests[-1], reply(), raw)
    assert one.find(requests[-1]) is not None
    one.close()


def test_files_are_closed_to_others_under_any_umask(tmp_path):
    """failures.md row 64: the directory is made 0700, the files 0600, also where they were wider before."""
    directory = tmp_path / "deep" / "cache"
    before = os.umask(0)
    try:
        for _ in range(2):
            one = store(directory)
            one.keep(GET, reply(), RAW)
            one.flush()
            assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
            one.close()
            for path in directory.iterdir():
                path.chmod(0o666)
    finally:
        os.umask(before)


def is_given_up(caplog: pytest.LogCaptureFixture, one: ValidatorStore) -> bool:
    """Whether a store works no more, does no harm, and has said so exactly once."""
    one.keep(GET, reply(), RAW)
    one.flush()
    assert one.find(GET) is None
    one.flush()
    one.close()
    warnings = [record for record in caplog.records if record.name == "bulk.platform.validators"]
    assert len(warnings) == 1
    assert warnings[0].levelname == "WARNING"
    assert "read anew" in warnings[0].getMessage()
    return not one.is_open


def file_of(directory: Path) -> Path:
    """The file of the usual store, which now exists."""
    store(directory).close()
    return next(directory.glob("*.db"))


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_file_is_no_store(tmp_path, caplog, content):
    """A file that is no database: one warning, everything is read anew, nothing is overwritten."""
    path = file_of(tmp_path)
    path.write_bytes(content)
    assert is_given_up(caplog, store(tmp_path))
    assert path.read_bytes() == content


def test_a_file_of_another_version_is_no_store(tmp_path, caplog):
    """A file that a later version of Bulk wrote is left alone."""
    with sqlite3.connect(file_of(tmp_path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert is_given_up(caplog, store(tmp_path))


def test_a_place_that_cant_be_written_is_no_store(tmp_path, caplog):
    """A file where the directory should be, or a link where the file should be: one warning, no error."""
    (tmp_path / "file").write_bytes(b"")
    assert is_given_up(caplog, store(tmp_path / "file" / "cache"))
    caplog.clear()
    path = file_of(tmp_path / "links")
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert is_given_up(caplog, store(tmp_path / "links"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("mode", "is_used"), [(0o755, True), (0o770, False), (0o1777, False)])
def test_a_directory_that_others_write_into_is_not_used(tmp_path, caplog, mode, is_used):
    """failures.md row 64: a shared directory is left as it is, and not used where others may exchange files in it."""
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(mode)
    one = store(directory)
    assert one.is_open is is_used
    assert is_used or is_given_up(caplog, one)
    one.close()
    assert stat.S_IMODE(directory.stat().st_mode) == mode


def test_a_file_that_breaks_while_in_use_is_given_up(tmp_path, caplog):
    """A store whose file turns to garbage under it stops with one warning, while reading or while writing."""
    for is_reading in (True, False):
        caplog.clear()
        directory = tmp_path / str(is_reading)
        one = store(directory)
        for number in range(200):
            one.keep(Request(method="GET", path=f"/{number}"), reply(), RAW * 100)
        one.flush()
        connection = sqlite3.connect(next(directory.glob("*.db")))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        path = next(directory.glob("*.db"))
        path.write_bytes(path.read_bytes()[:4096] + b"\xa5" * (path.stat().st_size - 4096))
        if is_reading:
            found = [one.find(Request(method="GET", path=f"/{number}")) for number in range(200)]
            assert None in found
        assert is_given_up(caplog, one)


def test_a_locked_file_is_given_up(tmp_path, caplog, monkeypatch):
    """A file that another process holds locked for too long: one warning, and no store."""
    monkeypatch.setattr("bulk.platform.validators.LOCKED_S", 0.05)
    one = store(tmp_path)
    other = sqlite3.connect(next(tmp_path.glob("*.db")), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert is_given_up(caplog, one)
    other.close()


async def test_finding_goes_on_while_another_thread_writes(tmp_path):
    """`find` in the event loop and `flush` in a thread, at the same time and for long: no error, nothing lost."""
    one = store(tmp_path)
    requests = [Request(method="GET", path=f"/{number}") for number in range(2_000)]
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            one.flush()

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, write)
        for number, request in enumerate(requests):
            one.keep(request, reply(), RAW)
            one.find(requests[number // 2])
            if number % 50 == 0:
                await anyio.lowlevel.checkpoint()
        is_over.set()
    one.flush()
    assert one.is_open
    assert all(one.find(request) is not None for request in requests)
    one.close()


OTHER_PROCESS = """
import sys
from pathlib import Path
from bulk.model import Reply, Request
from bulk.platform.secrets import Secret
from bulk.platform.validators import ValidatorStore
store = ValidatorStore(Path(sys.argv[1]), "https://code.example.com/api/v3", "service", None, Secret("tok_of_alice"))
for number in range(300):
    request = Request(method="GET", path=f"/{sys.argv[2]}/{number}")
    store.keep(request, Reply(status=200, headers={"etag": '"e"'}, body={}), b"{}")
    store.find(request)
    if number % 10 == 0:
        store.flush()
store.close()
assert store.is_open is False
"""


def test_two_processes_share_a_file(tmp_path):
    """Two processes that write at the same time lose nothing and are not in each other's way."""
    command = [sys.executable, "-W", "error", "-c", OTHER_PROCESS, str(tmp_path)]
    both = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in ("a", "b")]
    assert [process.communicate()[1] for process in both] == [b"", b""]
    one = store(tmp_path, clock=Clock())
    for name in ("a", "b"):
        assert all(one.find(Request(method="GET", path=f"/{name}/{number}")) for number in range(300))
    one.close()
