"""`bulk tables` and `bulk sql` over a real run: what they give, and what they refuse."""

import contextlib
import json
import signal
import sqlite3
import sys

import duckdb
import pytest

from tests.e2e.support.platform import Home, served

JOBS = {
    "hooks": {"operation": "webhook.list", "items": [{"org": "acme-ops"}, {"org": "acme-eng"}]},
    "readmes": {"operation": "readme.get", "items": [{"owner": "acme-eng", "repo": "hello-world"}]},
    "owners": {
        "operation": "contents.get",
        "missing": "ok",
        "items": [{"owner": "acme-eng", "repo": "hello-world", "path": path} for path in ("CODEOWNERS", "docs")],
    },
}

TABLES = "contents_get, items, readme_get, runs, schema_drift, webhook_list"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a finished run of reads, `night`."""
    folder = tmp_path_factory.mktemp("tables")
    home = Home(folder)
    with served(folder / "sandbox") as sandbox:
        manifest = home.manifest(sandbox.base_url, JOBS)
        assert home.run("run", str(manifest), "--run-dir", "night").exit_code == 0
    return home


def asked(home, query):
    """The rows of an answer as objects."""
    ran = home.run("sql", "night", query, "--json")
    assert (ran.exit_code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


def test_a_run_is_asked_in_sql(home):
    """Each operation has a table: the envelope, the item's fields, and the typed result; lists are unnested."""
    hooks = asked(home, "SELECT org, h.id, h.config.url AS url FROM (SELECT org, unnest(result) h FROM webhook_list)")
    assert {row["org"] for row in hooks} == {"acme-ops"}
    assert all(row["url"].startswith("http") for row in hooks)
    (readme,) = asked(home, "SELECT run, job, idx, repo, missing, result.sha, observed_at FROM readme_get")
    assert (readme["run"], readme["job"], readme["idx"], readme["missing"]) == ("night", "readmes", 0, False)
    assert len(readme["sha"]) == 40
    owners = asked(home, "SELECT path, missing, len(result.entries) AS entries FROM contents_get ORDER BY idx")
    assert owners[0] == {"path": "CODEOWNERS", "missing": True, "entries": None}
    assert owners[1]["entries"] > 0
    (run,) = asked(home, "SELECT items, failed, state, units FROM runs")
    assert (run["items"], run["failed"], run["state"]) == (5, 0, "complete")
    assert asked(home, "SELECT ITEMS FROM RUNS") == [{"items": 5}]  # names have no case in SQL


def test_a_question_may_take_a_quarter_of_the_memory(home):
    """What does not fit into the memory of a question goes through the disk, so it gets more than a night has."""
    with duckdb.connect(config={"memory_limit": "25%"}) as connection:
        ((quarter,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    assert asked(home, "SELECT current_setting('memory_limit') AS most") == [{"most": quarter}]


def test_no_table_holds_content_or_signed_addresses(home):
    """Content and `download_url` are in no table, in no form."""
    assert asked(home, "SELECT * FROM schema_drift WHERE field LIKE '%download_url' OR field LIKE '%.content'") == []
    for kind, out in (("parquet", "files"), ("duckdb", "all.duckdb"), ("sqlite", "all.sqlite")):
        assert home.run("tables", "night", "--to", kind, "--out", out).exit_code == 0
    texts = [path.read_bytes() for path in (home.folder / "files").iterdir()]
    texts += [(home.folder / name).read_bytes() for name in ("all.duckdb", "all.sqlite")]
    assert all(b"download_url" not in text and b"downloads/" not in text for text in texts)


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "sqlite"])
def test_a_place_that_can_not_be_written_is_a_wrong_option(home, kind):
    """It is exit 2, as of every option that names what comes out, before a line is read; no traceback is made."""
    home.write("plain.txt", "")
    for out in ("plain.txt/tables", "/proc/tables"):
        ran = home.run("tables", "night", "--to", kind, "--out", out)
        assert (ran.exit_code, f"--out {out}: can't be written: " in ran.err) == (2, True), ran.err


def test_tables_of_all_kinds_hold_the_same(home):
    """Parquet, DuckDB and SQLite: the same rows; what is there already is never overwritten."""
    for kind, out in (("parquet", "p"), ("duckdb", "d.duckdb"), ("sqlite", "s.sqlite")):
        assert home.run("tables", "night", "--to", kind, "--out", out).exit_code == 0
        again = home.run("tables", "night", "--to", kind, "--out", out)
        assert (again.exit_code, "is there already" in again.err) == (2, True)
    query = "SELECT repo, path, missing FROM {} ORDER BY idx"
    parquet = duckdb.execute(query.format(f"'{home.folder}/p/contents_get.parquet'")).fetchall()
    with duckdb.connect(home.folder / "d.duckdb", read_only=True) as connection:
        assert connection.execute(query.format("contents_get")).fetchall() == parquet
        assert connection.execute("SELECT count(*) FROM items").fetchall() == [(5,)]
    with contextlib.closing(sqlite3.connect(home.folder / "s.sqlite")) as rows:
        assert rows.execute(query.format("contents_get")).fetchall() == [(*row[:2], int(row[2])) for row in parquet]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT 1; SELECT 2", "expected one SELECT, got 2 statements"),
        ("COPY (SELECT 1) TO 'out.csv'", "expected a SELECT, got COPY"),
        ("ATTACH 'out.db'", "expected a SELECT, got ATTACH"),
        ("SET memory_limit = '9GB'", "expected a SELECT, got SET"),
        ("CREATE TABLE t AS SELECT 1", "expected a SELECT, got CREATE"),
        ("WITH t AS (COPY (SELECT 1) TO '{results}' (USE_TMP_FILE false)) SELECT * FROM t", "reads and no more"),
        ("(WITH t AS (COPY (SELECT 1) TO '.tmp/x') SELECT 1) UNION ALL SELECT 1", "reads and no more"),
        ("WITH t AS (DELETE FROM runs RETURNING *) SELECT * FROM t", "reads and no more"),
        ("SELECT * FROM read_text('/etc/hostname')", "Permission Error"),
        ("SELECT * FROM read_text('.tmp/x')", "Permission Error"),
        ("SELECT * FROM glob('/etc/*')", "Permission Error"),
        ("SELECT * FROM read_csv('https://127.0.0.1:9/x')", "Permission Error"),
        ("SELECT * FROM enable_logging(storage = 'file', storage_path = 'log')", "has been locked"),
        ("SELECT getenv('BULK_TOKEN')", "getenv does not exist"),
        ("INSTALL httpfs", "expected a SELECT, got LOAD"),
        ("LOAD httpfs", "expected a SELECT, got LOAD"),
        ("PRAGMA enable_profiling", "expected a SELECT, got PRAGMA"),
        ("SELECT * FROM read_csv('manifest.yaml')", "Permission Error"),
        ("SELECT frm webhook_list", "Binder Error"),
        ("SELECT urll FROM webhook_list", "LINE 1: SELECT urll FROM webhook_list\nbulk:                ^"),
        ("SELECT * FROM webhook_lists", f"webhook_lists does not exist! These are there: {TABLES}.\nbulk: LINE 1: SEL"),
        ("SELEC 1", "Parser Error"),
        (" ", "expected one SELECT, got 0 statements"),
    ],
)
def test_nothing_but_one_select_is_answered(home, query, says):
    """Whatever else is asked is refused with exit 2, says why, and writes nothing."""
    (home.folder / ".tmp").mkdir(exist_ok=True)
    (home.folder / ".tmp/x").write_text("not to be read")
    before = contents(home)
    ran = home.run("sql", "night", query.replace("{results}", str(home.folder / "night/results.jsonl")))
    assert (ran.exit_code, ran.out) == (2, ""), ran.err
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert contents(home) == before


def contents(home):
    """What every file below the home holds; what changes by itself aside."""
    return {
        path: path.read_bytes()
        for path in home.folder.rglob("*")
        if path.is_file() and "sandbox" not in path.parts and not path.name.endswith((".lock", "-wal", "-shm"))
    }


def test_a_table_and_csv_are_for_people_and_sheets(home):
    """Without an option aligned columns, with `--csv` a header and rows."""
    query = "SELECT job, count(*) AS items FROM items GROUP BY job ORDER BY job"
    assert home.run("sql", "night", query).out.splitlines()[:2] == ["job      items", "hooks    2"]
    assert home.run("sql", "night", query, "--csv").out.splitlines() == [
        "job,items",
        "hooks,2",
        "owners,2",
        "readmes,1",
    ]


def test_csv_has_nothing_that_a_spreadsheet_runs_or_a_terminal_obeys(home):
    """The cells of an answer are those of `bulk report --format csv`; so are the names of its columns."""
    query = (
        """SELECT '=1+1' AS "=a", '@SUM(A1)' AS b, chr(27) || '[31mred' AS c, -5 AS d, ['x', NULL] AS e, true AS f"""
    )
    answer = home.run("sql", "night", query + ", NULL AS g", "--csv").out
    assert answer.splitlines() == ["'=a,b,c,d,e,f,g", """'=1+1,'@SUM(A1),red,-5,"[""x"",null]",true,"""]


def test_columns_of_one_name_are_all_in_an_answer(home):
    """In an object the second has a name of its own, that no other column has; in CSV they stay as they are."""
    query = "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a"
    assert asked(home, query) == [{"a": 1, "a_3": 2, "a_2": 3, "a_4": 4}]
    assert home.run("sql", "night", query, "--csv").out.splitlines()[0] == "a,a,a_2,a"


def test_two_forms_at_once_are_refused(home):
    """`--json` and `--csv` together are exit 2."""
    ran = home.run("sql", "night", "SELECT 1", "--json", "--csv")
    assert (ran.exit_code, "name one of them" in ran.err) == (2, True)


def test_a_path_that_is_a_pattern_is_refused(home):
    """A folder whose name DuckDB would take for a pattern is refused before anything is made."""
    ran = home.run("tables", "night", "--to", "parquet", "--out", "a[1]")
    assert (ran.exit_code, "where a path holds [ or ]" in ran.err) == (2, True)
    assert not (home.folder / "a[1]").exists()


KILLED = """
import os, signal, sys
from bulk.audit.tables import asking, sqlite_tables

def killing(real):
    def run(*args):
        real(*args)
        os.kill(os.getpid(), signal.SIGKILL)
    return run

sqlite_tables._write = killing(sqlite_tables._write)
asking.run = killing(asking.run)
from bulk.cli.app import main
main(["tables", "night", "--to", sys.argv[1], "--out", sys.argv[2]])
"""


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["parquet", "duckdb", "sqlite"])
def test_tables_of_a_killed_process_are_not_there(home, kind):
    """Nothing stands in their place that could be taken for all of them, and the same command writes them."""
    out = f"killed/{kind}.tables"
    ran = home.run_any([sys.executable, "-c", KILLED, kind, out])
    assert ran.exit_code == -signal.SIGKILL, ran.err
    assert not (home.folder / out).exists()
    again = home.run("tables", "night", "--to", kind, "--out", out)
    assert again.exit_code == 0, again.err
    assert [path.name for path in (home.folder / "killed").iterdir() if path.name.startswith(".")] == []
    assert str(home.folder / out).rpartition("/")[2] in again.out
