"""A process that holds DuckDB does one task after the other, and each begins with nothing of the one before."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from bulk.audit.tables import asking, processes
from bulk.audit.tables.asking import QueryFlaw, ask, run
from bulk.audit.tables.child import Query, Task
from bulk.errors import RunDirectoryError, RunStopped

ENDLESS = "SELECT count(*) FROM range(1000000000000) t(a) WHERE a % 7 = 3"
OWNER = f"""
import sys
import tempfile
from bulk.audit.tables.asking import ask
from bulk.audit.tables.child import Query, Task
queries = Query(name="first", sql="SELECT 1"), Query(name="second", sql={ENDLESS!r})
for line in ask(Task(database=sys.argv[1], queries=queries)):
    print(line, flush=True)
"""


def rows(sql, *statements):
    """What a SELECT answers after these statements."""
    task = Task(statements=statements, queries=(Query(name="q", sql=sql),))
    return [row for line in ask(task) for row in line.get("rows", ())]


def test_a_process_is_used_again_and_remembers_nothing(tmp_path):
    """Neither the tables nor the locks of a task are there for the next one, which the same process does."""
    assert rows("SELECT * FROM t", "CREATE TABLE t AS SELECT 1 AS a") == [[1]]
    process = processes.take()
    processes.give_back(process)
    run(Task(database=str(tmp_path / "new.duckdb"), statements=("CREATE TABLE u AS SELECT 2 AS a",)), tmp_path)
    assert (tmp_path / "new.duckdb").exists()
    assert processes.take() is process
    processes.give_back(process)
    with pytest.raises(QueryFlaw, match="t does not exist"):
        rows("SELECT * FROM t")


def test_a_process_that_ended_or_failed_is_not_used_again():
    """After an error, after an answer that nobody read to its end, and after its end another one is started."""
    for spoil in ("error", "left", "ended"):
        rows("SELECT 1")
        process = processes.take()
        processes.give_back(process)
        if spoil == "error":
            with pytest.raises(QueryFlaw):
                rows("SELECT nothing")
        elif spoil == "left":
            lines = ask(Task(queries=(Query(name="q", sql="SELECT * FROM range(100000)"),)))
            next(lines)
            lines.close()  # type: ignore[attr-defined]
        else:
            process.end()
        assert rows("SELECT 3") == [[3]]
        other = processes.take()
        processes.give_back(other)
        assert other is not process


def test_values_that_json_does_not_have_are_answered():
    """Numbers beyond 64 bits, not-a-number, dates, bytes, maps: each has an answer, and none ends the process. A
    decimal is a number where that keeps all of its digits."""
    huge, long = 170141183460469231731687303715884105727, "0.1234567890123456789"
    sql = (
        f"SELECT {huge}::HUGEINT, [{huge}::HUGEINT], {{'a': {huge}::HUGEINT}}, 'nan'::DOUBLE, 1.50::DECIMAL(5,2), 0.5, "
        f"{long}::DECIMAL(25,19), [0.5, {long}], "
        "INTERVAL 1 DAY, DATE '2026-11-25', TIMESTAMP '2026-11-25 08:00:00', TIMESTAMPTZ '2026-11-25 10:00:00+02', "
        "TIME '10:30:00', '\\xAA'::BLOB, MAP {1: 'x'}, NULL, true"
    )
    told = str(huge)
    moment = "2026-11-25T08:00:00.000Z"
    dates = ["1 day, 0:00:00", "2026-11-25", moment, moment, "10:30:00"]
    assert rows(sql) == [
        [told, [told], {"a": told}, None, 1.5, 0.5, long, [0.5, long], *dates, "aa", {"1": "x"}, None, True]
    ]


def test_a_process_that_fails_says_why():
    """What it could not do is the last line on its standard error, and it ends with 1 instead of being aborted."""
    process = processes.TableProcess()
    assert process.tell(b"no task").read() == b""
    code, said = process.end()
    assert (code, said.startswith("msgspec.DecodeError")) == (1, True), said


def test_a_process_ends_with_its_owner_in_the_middle_of_a_task(tmp_path):
    """The owner is killed: nothing holds the file any more that it was writing, and the same can be begun again."""
    place = tmp_path / "tables.duckdb"
    with subprocess.Popen([sys.executable, "-c", OWNER, str(place)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert b"first" in owner.stdout.readline()
        again = Task(database=str(place), statements=("CREATE OR REPLACE TABLE t AS SELECT 1 AS a",))
        with pytest.raises(RunDirectoryError):
            run(again, tmp_path)
        owner.kill()
    until = time.monotonic() + 20
    while True:
        try:
            return run(again, tmp_path)
        except RunDirectoryError:
            assert time.monotonic() < until, "the task goes on without its owner"


def test_what_takes_too_long_is_given_up(tmp_path):
    """A question and a table have a time each; the next task has a process again. The time grows with the lines."""
    with pytest.raises(QueryFlaw, match=r"took longer than 0 s, and was ended"):
        list(ask(Task(queries=(Query(name="q", sql=ENDLESS),)), seconds=0.3))
    with pytest.raises(RunStopped, match=r"the tables took longer than 0 s, and were given up"):
        list(ask(Task(statements=(ENDLESS,)), seconds=0.3))
    assert rows("SELECT 3") == [[3]]
    few, many = tmp_path / "few", tmp_path / "many"
    few.touch()
    with many.open("wb") as file:
        file.truncate(10**9)
    assert (asking.limit_s(few), asking.limit_s(many)) == (300.0, 1_000.0)


def test_what_does_not_fit_into_memory_goes_where_nobody_else_reads_and_is_gone_with_the_answer(tmp_path, monkeypatch):
    """It goes to a private folder below the system's one for temporary files, however the answer ends; where there is
    no such place, what needs more than memory is told.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "system"))
    (tmp_path / "system").mkdir()
    large = "SELECT repeat(CAST(range AS VARCHAR), 40) AS s FROM range(600000) ORDER BY s"
    task = Task(statements=("SET memory_limit = '100MB'",), queries=(Query(name="q", sql=large),))
    for is_left in (False, True):
        seen, lines = set[str](), ask(task)
        for line in lines:
            (folder,) = (tmp_path / "system").iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
            seen.update(path.name for path in folder.iterdir())
            if is_left and "rows" in line:
                break
        lines.close()  # type: ignore[attr-defined]
        assert seen
        assert list((tmp_path / "system").iterdir()) == []
    with pytest.raises(QueryFlaw, match="took longer"):
        list(ask(Task(queries=(Query(name="q", sql=ENDLESS),)), seconds=0.3))
    assert list((tmp_path / "system").iterdir()) == []
    (tmp_path / "system").rmdir()
    assert rows("SELECT 1") == [[1]]
    with pytest.raises(RunStopped, match="not enough memory"):
        list(ask(task))
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_is_ended_in_the_middle_of_a_line_took_too_long():
    """Half a row is neither an answer nor an error of its own."""
    assert rows("SELECT 1") == [[1]]
    process = processes.take()
    processes.give_back(process)
    long = Query(name="long", sql="SELECT repeat('x', 2_000) FROM range(100_000_000)")
    answer = ask(Task(queries=(long,)), seconds=2.0)
    next(answer)
    until = time.monotonic() + 0.5
    while time.monotonic() < until:  # it fills the pipe, and waits within a line
        json.dumps(long.name)
    os.kill(process._process.pid, signal.SIGSTOP)  # a machine that has stood still
    with pytest.raises(QueryFlaw, match="took longer than 2 s, and was ended"):
        assert all(line["rows"] for line in answer)


def test_whoever_reads_an_answer_takes_his_time():
    """A pager that nobody moves on, or a slow disk, is not what the question takes."""
    assert rows("SELECT 1") == [[1]]  # a process waits
    answer, found = ask(Task(queries=(Query(name="q", sql="SELECT * FROM range(200_000)"),)), seconds=8.0), 0
    for number, line in enumerate(answer):
        if number == 1:
            threading.Event().wait(8.5)
        found += len(line.get("rows", ()))
    assert found == 200_000
