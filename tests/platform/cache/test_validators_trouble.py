"""A store of validators that does not work, or is shared: it is never in the way."""

import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from bulk.clock import Clock
from bulk.model import Request
from bulk.platform.cache.validators import ValidatorStore
from tests.platform.cache.kept_answers import GET, RAW, reply, store


def is_given_up(caplog: pytest.LogCaptureFixture, one: ValidatorStore) -> bool:
    """Whether a store works no more, does no harm, and has said so exactly once."""
    one.keep(GET, reply())
    one.flush()
    assert one.find(GET) is None
    one.flush()
    one.close()
    warnings = [record for record in caplog.records if record.name == "bulk.platform.cache.validators"]
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
    """A file that is not a database: one warning, everything is read anew, nothing is overwritten."""
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


def test_a_file_of_an_earlier_version_begins_anew(tmp_path, caplog):
    """What an earlier version of Bulk kept is forgotten, not converted: the file is used from now on."""
    with sqlite3.connect(file_of(tmp_path)) as connection:
        connection.executescript(
            "DROP TABLE answer; CREATE TABLE answer (key BLOB PRIMARY KEY); PRAGMA user_version = 1;"
        )
    connection.close()
    one, two = store(tmp_path), store(tmp_path)
    one.keep(GET, reply())
    one.close()
    two.close()
    one = store(tmp_path)
    assert one.find(GET) is not None
    one.close()
    assert not caplog.records


def test_a_damaged_schema_is_no_store(tmp_path, caplog):
    """A file whose schema is neither SQL nor text, so that SQLite can't even say what is wrong: one warning."""
    path = file_of(tmp_path)
    data = path.read_bytes().replace(b"CREATE INDEX", b"CREATX INDEX")
    path.write_bytes(data.replace(b"answer_used", b"answer_\xff\xfe\xfd\xfc"))
    assert is_given_up(caplog, store(tmp_path))


def test_a_validator_that_is_no_text_is_not_kept(tmp_path, caplog):
    """A header with bytes that are not UTF-8 can't be written: that answer is not kept, all others are."""
    other = Request(method="GET", path="/other")
    one = store(tmp_path)
    one.keep(GET, reply({"etag": b'"caf\xe9"'.decode("utf-8", "surrogateescape")}))
    one.keep(other, reply({"etag": '"café"'}))
    one.flush()
    assert (one.find(GET), one.find(other) is not None) == (None, True)
    one.close()
    assert not caplog.records


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
            one.keep(Request(method="GET", path=f"/{number}"), reply(raw=RAW * 100))
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


def test_a_store_that_gives_up_holds_up_nobody(tmp_path, caplog):
    """A write that fails half way lets go of the file at once: another process can write, this one's run goes on."""
    one = store(tmp_path)
    one.keep(GET, reply())
    other = sqlite3.connect(next(tmp_path.glob("*.db")), isolation_level=None, timeout=0.0)
    other.execute("DROP TABLE answer")
    one.flush()
    assert not one.is_open
    other.execute("BEGIN IMMEDIATE")
    other.close()
    assert is_given_up(caplog, one)


def test_a_locked_file_is_given_up(tmp_path, caplog, monkeypatch):
    """A file that another process holds locked for too long: one warning, and no store."""
    monkeypatch.setattr("bulk.platform.cache.validators.LOCKED_S", 0.05)
    one = store(tmp_path)
    other = sqlite3.connect(next(tmp_path.glob("*.db")), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert is_given_up(caplog, one)
    other.close()


def test_a_new_file_is_waited_for(tmp_path, caplog):
    """A file that another process is making at this moment: the store opens as soon as that one is done."""
    path = file_of(tmp_path)
    path.unlink()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    later = threading.Timer(0.2, other.close)
    later.start()
    one = store(tmp_path)
    later.join()
    assert one.is_open
    one.close()
    assert not caplog.records


def test_many_open_a_new_file_at_once(tmp_path, caplog):
    """Stores that open the same new file at the same moment all work."""
    for attempt in range(40):
        start, opened = threading.Barrier(8), list[bool]()

        def open_one(directory: Path, start: threading.Barrier, opened: list[bool]) -> None:
            start.wait()
            one = store(directory)
            opened.append(one.is_open)
            one.close()

        directory = tmp_path / str(attempt)
        threads = [threading.Thread(target=open_one, args=(directory, start, opened)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert opened == [True] * 8
    assert not caplog.records


def test_two_stores_of_one_process_and_one_of_another_share_a_file(tmp_path):
    """A second store in one process, and another process that comes and goes: what the first keeps afterwards stays."""
    one, two = store(tmp_path), store(tmp_path)
    subprocess.run([sys.executable, "-c", OTHER_PROCESS, str(tmp_path), "a"], check=True)
    one.keep(GET, reply())
    one.flush()
    count = (
        "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM answer').fetchone()[0])"
    )
    path = str(next(tmp_path.glob("*.db")))
    seen = subprocess.run([sys.executable, "-c", count, path], check=True, capture_output=True, text=True).stdout
    assert int(seen) == 300 + 1
    one.close()
    two.close()


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
            one.keep(request, reply())
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
from bulk.manifest.manifest import Platform
from bulk.model import Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.cache.validators import ValidatorStore
store = ValidatorStore(Path(sys.argv[1]), Platform("https://code.example.com/api/v3"), Secret("tok_of_alice"))
for number in range(300):
    request = Request(method="GET", path=f"/{sys.argv[2]}/{number}")
    store.keep(request, Reply(status=200, headers={"etag": '"e"'}, body={}, raw=b"{}"))
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
