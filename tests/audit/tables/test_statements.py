"""Lines become rows by the types that their operation declares, whatever they hold."""

import json
from typing import Any

import pytest

from bulk.audit.tables.asking import ask
from bulk.audit.tables.child import Query, Task
from bulk.audit.tables.columns import table_of
from bulk.audit.tables.statements import Lines
from bulk.errors import RunDirectoryError
from bulk.operation import find

HOOK: dict[str, Any] = {
    "id": 7,
    "name": "web",
    "active": True,
    "config": {"url": "https://x.example.com", "insecure_ssl": 0},
}


def line(job, index, result, **item):
    """One line of `results.jsonl`."""
    rest = {"id": None, "outcome": "succeeded", "http_status": 200, "attempts": 1, "elapsed_ms": 1.0, "error": None}
    at = "2026-11-25T02:00:00.000Z"
    return json.dumps({"job": job, "index": index, "item": item, "started_at": at, "result": result, **rest})


def rows(folder, lines, operation, sql):
    """What a SELECT over the table of `operation` answers; its lines are those of the job `own`."""
    path = folder / "results.jsonl"
    path.write_text("".join(f"{each}\n" for each in lines))
    table = table_of(find(operation))
    read = Lines(str(path), max(map(len, lines)))
    made = f"CREATE VIEW {table.name} AS {read.of_operation(table, ['own'], 'night')}"
    task = Task(statements=(read.view(), made), allowed=(str(path),), queries=(Query(name="q", sql=sql),))
    return [row for each in ask(task) for row in each.get("rows", ())]


def test_a_value_of_another_type_is_null_and_all_else_stays(tmp_path):
    """A text where a number is declared, an object where a list is, and lines of other jobs stop nothing."""
    given = [
        line("own", 0, [HOOK, {**HOOK, "id": "seven", "active": 1.5, "config": "none"}], org="o0"),
        line("other", 0, {"sha": "x"}, owner="a", repo=["b"]),
        line("own", 1, {"message": "no list"}, org=5),
        line("own", 2, None, org="o2"),
        line("own", 3, [{**HOOK, "unknown": {"deep": [1]}}], org=None),
    ]
    query = "SELECT idx, org, result IS NULL, [h.id for h in result], [h.config.url for h in result] FROM webhook_list"
    url = HOOK["config"]["url"]
    assert rows(tmp_path, given, "webhook.list", f"{query} ORDER BY idx") == [
        [0, "o0", False, [7, None], [url, None]],
        [1, "5", True, None, None],
        [2, "o2", True, None, None],
        [3, None, False, [7], [url]],
    ]


@pytest.mark.parametrize("damaged", ['{"job":"own","index":1,', "\x00\x00", "[]"])
def test_a_line_that_is_no_json_is_refused_and_never_a_row(tmp_path, damaged):
    """A damaged file is not a table with a few rows less."""
    given = [line("own", 0, [HOOK], org="o"), damaged, line("own", 2, [HOOK], org="o")]
    with pytest.raises(RunDirectoryError, match=r"results\.jsonl is damaged, a line of it is not JSON: restore it"):
        rows(tmp_path, given, "webhook.list", "SELECT count(*) FROM webhook_list")
