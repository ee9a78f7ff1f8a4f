import contextlib
import shutil
import sqlite3
from typing import Any

import msgspec
import pytest

from bulk.errors import RunDirectoryError, RunStopped
from bulk.ledger import database
from bulk.ledger.ledger import Ledger
from bulk.ledger.seal import read_seal, write_seal
from bulk.ledger.view import LedgerView
from bulk.model import UNSEEN
from tests.ledger.samples import NOW, STATUS, as_killed, identity, keys, opened, record, run_child

CURRENT = database.VERSION


@pytest.fixture
def run_dir(tmp_path):
    """A run with 400 items that ended cleanly."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(index, result={"n": index}) for index in range(400)])
        ledger.finish(0, "", STATUS)
    return tmp_path / "run"


def change(run_dir, sql: str) -> None:
    """Do something to a ledger from outside."""
    with contextlib.closing(sqlite3.connect(run_dir / "ledger.db")) as connection:
        connection.executescript(sql)


def flip_bits(run_dir) -> None:
    """Change the number of entries in the first page of the outcomes."""
    path = run_dir / "ledger.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'outcomes'").fetchone()
    data = bytearray(path.read_bytes())
    data[(root - 1) * 4096 + 3] ^= 0x40
    path.write_bytes(data)


def refused(run_dir, match: str, **more: Any) -> None:
    """Opening it is refused with these words, and changes nothing."""
    before = {path.name: path.read_bytes() for path in run_dir.iterdir() if path.name != "run.lock"}
    with pytest.raises(RunDirectoryError, match=match):
        opened(run_dir, **more)
    assert {path.name: path.read_bytes() for path in run_dir.iterdir() if path.name != "run.lock"} == before


def test_a_finished_run_is_one_plain_file(run_dir):
    """After a clean end no log is left beside the ledger, and reading leaves none either."""
    names = {"ledger.db", "results.jsonl", "run.lock", "run.seal", "digests.json"}
    assert {path.name for path in run_dir.iterdir()} == names
    view = LedgerView(run_dir)
    assert len(keys(run_dir)) == 400
    assert view.counts() == {0: {"succeeded": 400}}
    assert {path.name for path in run_dir.iterdir()} == names


def test_it_says_whose_it_is(run_dir):
    """The file carries the mark of Bulk and the version of its schema, for `file` and for other programs."""
    header = (run_dir / "ledger.db").read_bytes()[:100]
    assert header[68:72] == b"BULK"
    assert int.from_bytes(header[60:64], "big") == database.VERSION


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "cut short"),
        (b"SQLite format 3\x00", "cut short"),
        (b"hello", "not a ledger of Bulk"),
        (b"\x00" * 8192, "not a ledger of Bulk"),
    ],
)
def test_a_foreign_file_is_refused(run_dir, content: bytes, match: str):
    """A `ledger.db` that is not a database, or cut within its first bytes, is refused and stays as it is
    (failures.md row 46)."""
    (run_dir / "ledger.db").write_bytes(content)
    refused(run_dir, match)
    with pytest.raises(RunDirectoryError, match=match):
        LedgerView(run_dir)


def test_another_programs_database_is_refused(run_dir):
    """An SQLite file without our mark is refused and stays as it is (failures.md row 46)."""
    (run_dir / "ledger.db").unlink()
    change(run_dir, "CREATE TABLE recipes (name TEXT)")
    refused(run_dir, "not a ledger of Bulk")


def test_a_newer_ledger_is_refused(run_dir):
    """A ledger of a newer version is refused with a message that says so (failures.md row 46)."""
    change(run_dir, f"PRAGMA user_version = {CURRENT + 1}")
    match = rf"newer Bulk \(ledger version {CURRENT + 1}, this one knows {CURRENT}\)"
    refused(run_dir, match)
    with pytest.raises(RunDirectoryError, match=match):
        LedgerView(run_dir)


def test_a_ledger_without_a_version_is_refused(run_dir):
    """A ledger that never got its version is damaged."""
    change(run_dir, "PRAGMA user_version = 0")
    refused(run_dir, "damaged")


def test_an_older_ledger_is_migrated_step_by_step(run_dir):
    """Each step is one transaction: what is complete stays, what fails changes nothing, and it goes on from there."""
    path = run_dir / "ledger.db"
    good = "ALTER TABLE jobs ADD COLUMN note TEXT DEFAULT 'two'"
    steps = {CURRENT: good, CURRENT + 1: "ALTER TABLE jobs ADD COLUMN x; SELECT broken"}
    with pytest.raises(sqlite3.OperationalError):
        database.migrate(path, version=CURRENT + 2, migrations=steps)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (CURRENT + 1,)
        assert connection.execute("SELECT note FROM jobs").fetchall() == [("two",), ("two",)]
    database.migrate(
        path, version=CURRENT + 2, migrations={CURRENT: "broken", CURRENT + 1: "UPDATE jobs SET note = 'three'"}
    )
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT note FROM jobs").fetchall() == [("three",), ("three",)]
    with pytest.raises(RunDirectoryError, match="newer"):
        database.migrate(path, version=CURRENT + 1)


def test_the_before_images_of_version_1_are_taken_over(run_dir):
    """A sha, ids, nothing, what a creation saw, and what says nothing: each is what it was."""
    kept = {0: '{"before":"3d21"}', 1: '{"before":[7]}', 2: '{"before":null}', 3: '{"preflight":404}', 4: "{}", 5: None}
    change(run_dir, "ALTER TABLE intents RENAME COLUMN before TO memo; PRAGMA user_version = 1")
    with contextlib.closing(sqlite3.connect(run_dir / "ledger.db")) as connection, connection:
        rows = [(1_000 + index, memo and memo.encode()) for index, memo in kept.items()]
        connection.executemany("INSERT INTO intents VALUES (0, ?, 'PUT', '/x', ?, 'set', 1.0)", rows)
    with opened(run_dir) as ledger:
        befores = [sent.before for sent in ledger.open_intents().values()]
    assert befores == ["3d21", [7], None, None, UNSEEN, UNSEEN]


def test_the_digests_of_version_2_are_let_go(run_dir):
    """They were those of bytes, not of lines: what was written before has none then, and what comes has its own."""
    change(
        run_dir,
        "DROP TABLE line_chunks; CREATE TABLE chunks (start INTEGER PRIMARY KEY, size INTEGER, digest BLOB);"
        "INSERT INTO chunks SELECT 0, results_bytes, zeroblob(32) FROM meta; PRAGMA user_version = 2",
    )
    LedgerView(run_dir).refuse_edited()
    with opened(run_dir) as ledger:
        ledger.commit([record(999)])
    path = run_dir / "results.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"index":999', b'"index":998'))
    refused(run_dir, "was edited")


def test_a_truncated_ledger_is_refused(run_dir):
    """A ledger that lost its end is refused, also after a clean end, and stays as it is (failures.md row 46)."""
    data = (run_dir / "ledger.db").read_bytes()
    (run_dir / "ledger.db").write_bytes(data[: len(data) // 2])
    refused(run_dir, "damaged")


def test_damage_is_looked_for_after_an_unclean_stop(run_dir):
    """Flipped bits are found when the last process did not end its epoch; the file stays as it is
    (failures.md row 46)."""
    opened(run_dir).close()
    flip_bits(run_dir)
    refused(run_dir, "damaged")


def test_a_damaged_ledger_is_not_migrated(run_dir):
    """An older ledger is examined before its first step is taken."""
    flip_bits(run_dir)
    before = (run_dir / "ledger.db").read_bytes()
    with pytest.raises(RunDirectoryError, match="damaged"):
        database.migrate(run_dir / "ledger.db", version=CURRENT + 1, migrations={CURRENT: "DELETE FROM jobs"})
    assert (run_dir / "ledger.db").read_bytes() == before


def test_results_that_lost_lines_are_refused(run_dir):
    """A `results.jsonl` shorter than the ledger knows, or gone, is refused."""
    data = (run_dir / "results.jsonl").read_bytes()
    (run_dir / "results.jsonl").write_bytes(data[:-1])
    refused(run_dir, "results.jsonl is damaged")
    (run_dir / "results.jsonl").unlink()
    refused(run_dir, "results.jsonl")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"manifest_digest": "c" * 64}, "the manifest changed"),
        ({"name": "other"}, "the manifest changed"),
        ({"items_digest": "c" * 64}, "the content of its items files changed"),
        ({"base_url": "http://other/api/v3"}, r"address \(it was http://127.0.0.1:8000/api/v3\) changed"),
        ({"vendor": "github"}, r"vendor \(it was service\) changed"),
        ({"jobs": (("readmes", "readme.get", 1000),)}, "the list of jobs changed"),
        ({"jobs": (("readmes", "contents.get", 1000), ("codeowners", "contents.put", 1000))}, "list of jobs changed"),
        ({"vendor": "github", "items_digest": "c" * 64}, "items files and the vendor"),
    ],
)
def test_another_run_is_refused(run_dir, changes: dict, match: str):
    """Resuming with another manifest, items, platform or jobs says what changed and the way out
    (failures.md rows 55, 80)."""
    before = (run_dir / "ledger.db").read_bytes()
    with pytest.raises(RunDirectoryError, match=match) as refusal:
        opened(run_dir, identity=identity(**changes))
    assert "--run-dir" in str(refusal.value)
    assert (run_dir / "ledger.db").read_bytes() == before


def test_a_run_that_was_cut_goes_on(run_dir):
    """Other numbers of items with the same digests (`--limit` given or taken away) are the same run."""
    jobs = (("readmes", "readme.get", 5000), ("codeowners", "contents.put", 1000))
    opened(run_dir, identity=identity(jobs=jobs)).close()
    assert LedgerView(run_dir).identity().jobs == jobs


def test_reading_recovers_what_a_killed_close_left(tmp_path):
    """A process killed while SQLite wrote the main file leaves a journal; reading works all the same."""
    opened(tmp_path / "run").close()
    change(
        tmp_path / "run", "CREATE TABLE filler AS SELECT zeroblob(1000) AS x FROM (VALUES (1),(2),(3),(4),(5),(6),(7))"
    )
    code = """
        import sqlite3
        connection = sqlite3.connect(run_dir / "ledger.db", isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE meta SET name = 'torn'")
        connection.execute("UPDATE filler SET x = zeroblob(2000)")
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("CREATE TABLE more AS SELECT * FROM filler, filler AS b")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run_child(tmp_path / "run", code)[0] == -9
    assert (tmp_path / "run" / "ledger.db-journal").stat().st_size > 0
    assert LedgerView(tmp_path / "run").identity() == identity()


def test_every_cut_of_the_log_is_a_state_that_was(tmp_path):
    """Power loss: with the log cut at every frame, a whole number of groups is there, and they are right; where the
    seal knows that there were more, that is refused (failures.md rows 46, 48)."""
    run_dir = tmp_path / "run"
    groups = 6
    with opened(run_dir) as ledger:
        for group in range(groups):
            ledger.commit([record(group * 20 + at, result={"n": group * 20 + at}) for at in range(20)])
        as_killed(run_dir, tmp_path / "killed")
    log = (tmp_path / "killed" / "ledger.db-wal").read_bytes()
    found = set()
    for end in range(32, len(log) + 1, 4096 + 24):
        for cut in (end, end - 10):
            copy = as_killed(tmp_path / "killed", tmp_path / "cut")
            (copy / "ledger.db-wal").write_bytes(log[:cut])
            (copy / "ledger.db-shm").unlink()
            seal = read_seal(copy)
            assert seal is not None
            if cut < len(log):
                with pytest.raises(RunDirectoryError, match=r"ledger\.db is older than the rest"):
                    opened(copy)
            write_seal(copy, msgspec.structs.replace(seal, commits=1))  # no more of it need have reached the disk
            if not LedgerView(copy).epochs():
                (copy / "run.seal").unlink()  # it is made once the epoch has begun
            with opened(copy) as ledger:
                done = sum(ledger.counts().get(0, {}).values())
                ledger.finish(3, "", STATUS)
            lines = list(LedgerView(copy).finished())
            assert [(line["index"], line["result"]["n"]) for line in lines] == [(n, n) for n in range(done)]
            assert (copy / "results.jsonl").read_bytes().count(b"\n") == done
            found.add(done)
            shutil.rmtree(copy)
    assert found == {group * 20 for group in range(groups + 1)}


def test_errors_of_the_database_have_a_meaning(tmp_path):
    """A full disk or an I/O error stops the run (exit 3), damage and a bad place refuse the directory (exit 5)."""
    path = tmp_path / "ledger.db"

    def error(code: int) -> sqlite3.Error:
        made = sqlite3.OperationalError("said so")
        made.sqlite_errorcode = code
        return made

    for code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY):
        assert isinstance(database.refusal(error(code), path), RunStopped)
    for code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CORRUPT_INDEX, sqlite3.SQLITE_NOTADB):
        assert isinstance(database.refusal(error(code), path), RunDirectoryError)
    assert isinstance(database.refusal(error(sqlite3.SQLITE_CANTOPEN), path, is_opening=True), RunDirectoryError)
    for code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE):  # the second one where `ledger.db-shm` has no room
        stopped = database.refusal(error(code), path, is_opening=True)
        assert isinstance(stopped, RunStopped)
        assert "free some space" in str(stopped)


def test_a_run_is_opened_once_in_a_process_too(run_dir):
    """The lock holds against the same process as well."""
    with opened(run_dir), pytest.raises(RunDirectoryError, match="in use"):
        Ledger.open(run_dir, identity(), now=NOW)


def test_what_is_refused_is_not_migrated(run_dir):
    """An older ledger of another run, or with results that were edited or cut short, is refused before its first step:
    nothing in the directory changes, not even the torn tail that a killed process left."""
    change(run_dir, "ALTER TABLE intents RENAME COLUMN before TO memo; PRAGMA user_version = 1")
    results = run_dir / "results.jsonl"
    lines = results.read_bytes()
    results.write_bytes(lines + b'{"job":"readmes","ind')
    refused(run_dir, "the vendor", identity=identity(vendor="github"))
    results.write_bytes(lines.replace(b'"n":7}', b'"n":8}') + b'{"job":"readmes","ind')
    refused(run_dir, "was edited")
    results.write_bytes(lines[:-1])
    refused(run_dir, "is damaged")
    results.write_bytes(lines)
    opened(run_dir).close()
    with database.open_reader(run_dir / "ledger.db") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (CURRENT,)
