import threading

import pytest

from bulk.errors import RunStopped
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from tests.ledger.samples import STATUS, intent, keys, opened, record, run_child, start_child

REFUSE_AT = """
    import resource

    def limit(bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, resource.RLIM_INFINITY))

    where, margin = sys.argv[2], int(sys.argv[3])
    with opened(run_dir) as ledger:
        ledger.commit([record(index, result="x" * 500) for index in range(20)])
        if where == "saved":
            limit(0)
        elif where == "results":
            ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            limit((run_dir / "results.jsonl").stat().st_size + margin)
        else:
            limit((run_dir / "ledger.db-wal").stat().st_size + margin)
        group = [intent(5), *(record(index, save=("a", b"xx")) for index in range(20, 40))]
        for attempt in range(3):
            try:
                ledger.commit(group)
                print("committed")
            except RunStopped as stopped:
                print(str(stopped))
        assert not (run_dir / ".saving").exists(), "half a file takes room that is needed"
        limit(resource.RLIM_INFINITY)
        ledger.commit(group)
        ledger.finish(0, "", STATUS)
"""


@pytest.mark.parametrize(
    ("where", "margin", "name"),
    [
        ("saved", 0, "saved"),
        ("results", 0, "results.jsonl"),
        ("results", 1500, "results.jsonl"),
        ("log", 0, "ledger.db"),
    ],
)
def test_a_disk_that_refuses_stops_the_run_and_keeps_the_group(tmp_path, where: str, margin: int, name: str):
    """When a file can't grow (a real EFBIG), the run stops with its name; later the same group goes in
    (failures.md row 47)."""
    code, out = run_child(tmp_path / "run", REFUSE_AT, where, str(margin))
    assert code == 0
    refusals = out.splitlines()
    assert len(refusals) == 3
    assert all(str(tmp_path / "run" / name) in line and "same command again" in line for line in refusals)
    assert [index for _, index in keys(tmp_path / "run")] == list(range(40))
    lines = (tmp_path / "run" / "results.jsonl").read_bytes()
    assert lines.count(b"\n") == 40
    with opened(tmp_path / "run") as ledger:
        assert set(ledger.open_intents()) == {(1, 5)}


def test_a_full_database_stops_the_run_and_takes_the_group_later(tmp_path):
    """SQLITE_FULL: nothing of the group is there, also not for another process; later all of it is
    (failures.md row 47)."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(index) for index in range(100)])
        group = [record(index) for index in range(100, 5000)]
        (pages,) = ledger._connection.execute("PRAGMA page_count").fetchone()
        ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
        sizes = set()
        for _ in range(3):
            with pytest.raises(RunStopped, match=r"full; free some space") as stopped:
                ledger.commit(group)
            sizes.add((tmp_path / "run" / "results.jsonl").stat().st_size)
        assert stopped.value.exit_code == 3
        assert len(sizes) == 1, "trying again takes no more room"
        assert len(keys(tmp_path / "run")) == ledger.counts()[0]["succeeded"] == 100
        ledger._connection.execute("PRAGMA max_page_count = 1000000")
        ledger.commit(group)
        ledger.finish(0, "", STATUS)
    assert len(keys(tmp_path / "run")) == 5000
    assert (tmp_path / "run" / "results.jsonl").read_bytes().count(b"\n") == 5000


def test_a_disk_without_room_for_a_second_copy_does_not_lose_the_first(tmp_path):
    """When the results can't be rewritten, a complete run stops resumably, a stopped one ends all the same."""
    code = """
        import resource
        with opened(run_dir) as ledger:
            ledger.commit([record(index, OutcomeKind.FAILED, result="x" * 5000) for index in range(100)])
            ledger.reopen({OutcomeKind.FAILED})
            ledger.commit([record(index, result="x" * 5000) for index in range(100)])
            ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
            try:
                ledger.finish(0, "", STATUS)
            except RunStopped as stopped:
                print(str(stopped))
            ledger.finish(3, "disk full", STATUS)
    """
    exit_code, out = run_child(tmp_path / "run", code)
    assert exit_code == 0
    assert "results.jsonl" in out
    view = LedgerView(tmp_path / "run")
    assert [index for _, index in keys(tmp_path / "run")] == list(range(100))
    assert view.epochs()[0].exit_code == 3
    assert not (tmp_path / "run" / "results.jsonl.1").exists()
    with opened(tmp_path / "run") as ledger:
        ledger.finish(0, "", STATUS)
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == b"".join(view.lines())


def test_a_writer_of_somebody_else_stops_the_run(tmp_path):
    """A ledger that another program keeps locked stops the run with the reason; the group goes in afterwards."""
    with opened(tmp_path / "run") as ledger:
        ledger._connection.execute("PRAGMA busy_timeout = 20")
        code = """
            import sqlite3
            connection = sqlite3.connect(run_dir / "ledger.db", isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
            print("locked", flush=True)
            sys.stdin.read()
        """
        child = start_child(tmp_path / "run", code)
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        with pytest.raises(RunStopped, match="database is locked; correct that"):
            ledger.commit([record(0)])
        child.communicate()
        ledger.commit([record(0)])
    assert len(keys(tmp_path / "run")) == 1


def test_readers_do_not_hold_up_the_writer(tmp_path):
    """While a reader is in the middle of its stream, groups go in, and the log does not grow without end."""
    with opened(tmp_path / "run") as ledger:
        ledger.commit([record(index) for index in range(6000)])
        stream = LedgerView(tmp_path / "run").lines()
        next(stream)
        for start in range(6000, 60_000, 1000):
            ledger.commit([record(index) for index in range(start, start + 1000)])
        ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert (tmp_path / "run" / "ledger.db-wal").stat().st_size == 0
        assert sum(1 for _ in stream) >= 5999


def test_it_may_be_called_from_any_thread(tmp_path):
    """Commits from several threads are done one after the other, each as a whole."""
    with opened(tmp_path / "run") as ledger:

        def commit(first: int) -> None:
            for index in range(first, first + 50):
                ledger.commit([record(index, OutcomeKind.FAILED), intent(index)])

        threads = [threading.Thread(target=commit, args=(first,)) for first in range(0, 200, 50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.counts() == {0: {"failed": 200}}
    assert len(keys(tmp_path / "run")) == 200
