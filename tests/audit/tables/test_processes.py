"""A process that holds DuckDB does one task after the other, and each begins with nothing of the one before."""

import pytest

from bulk.audit.tables import processes
from bulk.audit.tables.asking import QueryFlaw, ask, run
from bulk.audit.tables.child import Query, Task


def rows(sql, *statements):
    """What a SELECT answers after these statements."""
    task = Task(statements=statements, queries=(Query(name="q", sql=sql),))
    return [line["row"] for line in ask(task) if "row" in line]


def test_a_process_is_used_again_and_remembers_nothing(tmp_path):
    """Neither the tables nor the locks of a task are there for the next one, which the same process does."""
    assert rows("SELECT * FROM t", "CREATE TABLE t AS SELECT 1 AS a") == [[1]]
    process = processes.take()
    processes.give_back(process)
    run(Task(database=str(tmp_path / "new.duckdb"), statements=("CREATE TABLE u AS SELECT 2 AS a",)))
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
