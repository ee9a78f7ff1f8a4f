"""`bulk audit`, night after night: what is news, what is none, and what survives a kill."""

import contextlib
import json
import os
import signal
import sqlite3
import sys
from xml.etree import ElementTree

import msgspec
import pytest

from bulk.audit.tables.asking import run
from bulk.audit.tables.child import Task
from bulk.audit.tables.statements import copy
from bulk.clock import Clock, iso_utc
from tests.audit.nights import ABSENT, FILES, POLICY, VAULT, Nights
from tests.e2e.support.platform import Home, served, wait_for

SEED = {
    "repositories": [
        {"organization": "acme-eng", "name": "vault", "private": True, "files": {"README.md": "x", "docs/a.md": "y"}},
        {"organization": "acme-fleet", "count": 400},
    ]
}


@pytest.fixture
def nights(tmp_path):
    """An audit of three files."""
    with served(tmp_path / "sandbox", seed=SEED) as sandbox:
        found = Nights(Home(tmp_path), sandbox)
        found.write()
        yield found


def test_only_what_changed_is_news(nights):
    """Without change: exit 0, no unit, no row. A changed file: exit 7, its fields, when it was as before."""
    code, first = nights.result()
    assert (code, first["drift"]["is_first"], first["night"]["units"] > 0) == (0, True, True)
    code, quiet = nights.result()
    assert (code, quiet["night"]["units"], quiet["changes"]) == (0, 0, [])
    nights.put(FILES[0], "Changed in the night.\n")
    code, found = nights.result()
    assert (code, found["night"]["verdict"], found["drift"]["items"]) == (7, ["drift"], 1)
    assert {change["field"] for change in found["changes"]} == {"result.sha", "result.size"}
    rows = nights.sql("SELECT field, before_at, first_seen, last_seen FROM changes WHERE field = 'result.sha'")
    assert [row["before_at"] < row["first_seen"] for row in rows] == [True]
    assert rows[0]["last_seen"] is None
    nights.put(FILES[0], "And again.\n")
    assert nights.result()[0] == 7
    rows = nights.sql("SELECT first_seen, last_seen FROM changes WHERE field = 'result.sha' ORDER BY first_seen")
    assert (rows[0]["last_seen"] >= rows[0]["first_seen"], rows[1]["last_seen"]) == (True, None)
    page = (nights.folder / "audits/files/pages" / f"{nights.history().nights[-1].run}.html").read_text()
    assert "result.sha" in page
    assert "acme-eng/hello-world" in page


def test_what_can_not_be_read_is_no_drift_and_is_compared_when_it_can(nights):
    """Without permission all is out of sight and nothing missing; seen again, it is compared with its last read."""
    nights.items = [{**VAULT, "path": path} for path in ("README.md", "docs/a.md", "CODEOWNERS")]
    nights.write()
    assert nights.result()[0] == 0
    token = nights.home.token
    nights.home.token = "sbx-read-only"
    code, blind = nights.result("--no-cache")
    drift = blind["drift"]
    assert (code, drift["items"], drift["removed"]) == (1, 0, 0), blind
    assert drift["lost_sight"] == 3
    assert nights.sql("SELECT count(*) AS n FROM contents_get WHERE missing AND outcome != 'failed'")[0]["n"] == 1
    nights.home.token = token
    nights.put(nights.items[1], "Changed while nobody could see it.\n")
    code, back = nights.result()
    assert (code, back["drift"]["items"], back["drift"]["in_sight_again"]) == (7, 1, 3)


def test_policies_are_judged_night_by_night(nights):
    """New, then known, then waived and then fixed; the outputs for programs say the same."""
    nights.items = [*FILES, ABSENT]
    nights.home.write("policies/#1 for all/owners.sql", POLICY)
    nights.write(policies=["policies/*/*.sql"])
    code, first = nights.result()
    assert (code, [each["status"] for each in first["judgement"]["violations"]]) == (7, ["new"])
    code, second = nights.result("--format", "sarif")
    (result,) = second["runs"][0]["results"]
    assert (code, result["baselineState"], result["ruleId"]) == (7, "unchanged", "owners")
    assert result["message"]["text"] == "acme-eng/hello-world has no CODEOWNERS"
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "policies/%231%20for%20all/owners.sql"
    waiver = {
        "policy": "owners",
        "key": {"repo": "hello-world"},
        "reason": "Soon.",
        "by": "ops",
        "expires": "2027-01-31",
    }
    nights.home.write("waivers.yaml", json.dumps([waiver]))
    nights.write(policies=["policies/*/*.sql"], waivers="waivers.yaml")
    ran = nights.audit("--format", "junit", "--out", "junit.xml")
    assert (ran.exit_code, "1 waived" in ran.out) == (0, True)
    suite = ElementTree.parse(nights.folder / "junit.xml").getroot().attrib  # what readers of this form insist on
    assert suite == {"name": "files", "tests": "1", "failures": "0", "errors": "0", "skipped": "0"}
    nights.put(ABSENT, "* @acme-eng/owners\n")
    code, fixed = nights.result()
    assert (code, [each["status"] for each in fixed["judgement"]["violations"]]) == (7, ["fixed"])
    assert fixed["night"]["verdict"] == ["drift"]
    run = f"audits/files/runs/{nights.history().nights[0].run}"
    tested = nights.home.run("audit", "test", "files.yaml", run, "--format", "json")
    assert (tested.exit_code, json.loads(tested.out)["night"]["waived"]) == (0, 0)


def test_the_first_line_agrees_with_the_rest(nights):
    """A warning is violated: the first line does not say that nothing is; a test of policies names no page, for it
    writes none, and knows of no night before."""
    nights.home.write("policies/owners.sql", POLICY.replace("severity: error", "severity: warning"))
    nights.items = [ABSENT]
    nights.write(policies=["policies/*.sql"])
    ran = nights.audit()
    assert ran.exit_code == 0
    assert ran.out.partition("\n")[0].endswith(": nothing changed, no policy of severity error is violated")
    assert "FAIL owners (warning): 1 new" in ran.out
    run = f"audits/files/runs/{nights.history().nights[0].run}"
    tested = nights.home.run("audit", "test", "files.yaml", run)
    assert (tested.exit_code, "FAIL owners" in tested.out) == (0, True)
    assert tested.out.partition("\n")[0].endswith(": no policy of severity error is violated")
    assert ("Page" in tested.out, "first night" in tested.out) == (False, False)


def test_an_audit_that_was_killed_goes_on(nights):
    """Killed while it reads, the next start goes on with the same run, and asks nothing twice."""
    nights.items = [{"owner": "acme-fleet", "repo": f"repo-{number:05}", "path": "README.md"} for number in range(400)]
    nights.write()
    process = nights.home.start("audit", "files.yaml", "--progress", "none", "--concurrency", "4")
    wait_for(lambda: len(nights.sandbox.requests(path="contents")) > 60, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (pending,) = nights.folder.glob("audits/files/runs/*")
    assert not (nights.folder / "audits/files/audit.json").exists()
    ran = nights.audit()
    assert ran.exit_code == 0, ran.err
    (night,) = nights.history().nights
    assert (night.run, night.items) == (pending.name, 400)
    with contextlib.closing(sqlite3.connect(pending / "ledger.db")) as ledger:
        assert ledger.execute("SELECT count(*) FROM epochs").fetchone()[0] == 2


@pytest.mark.parametrize("step", ["_tables", "compare_night", "judge", "_keep"])
def test_a_kill_between_steps_loses_nothing(nights, step, tmp_path):
    """Killed after any step, the same command ends the same night, with the tables that it would have had."""
    nights.home.write("killed.py", KILLED.format(step=step))
    killed = nights.home.run_any([sys.executable, str(tmp_path / "killed.py")])
    assert killed.exit_code == -signal.SIGKILL, killed.err
    asked = len(nights.sandbox.requests())
    assert nights.audit().exit_code == 0
    assert len(nights.sandbox.requests()) == asked
    (night,) = nights.history().nights
    assert [row["n"] for row in nights.sql("SELECT count(*) AS n FROM contents_get")] == [3]
    assert night.is_good


KILLED = """
import os, signal, sys
from bulk.audit import audit
from bulk.cli import main

step = getattr(audit, "{step}")

def killing(*given, **named):
    step(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)

audit.{step} = killing
main(["audit", "files.yaml", "--progress", "none"])
"""


def test_audits_do_not_overlap(nights):
    """While one runs, another is refused with exit 5, or passes it by with exit 0, and sends nothing."""
    nights.items = [{"owner": "acme-fleet", "repo": f"repo-{number:05}", "path": "README.md"} for number in range(300)]
    nights.write()
    process = nights.home.start("audit", "files.yaml", "--progress", "none", "--concurrency", "2")
    wait_for(lambda: len(nights.sandbox.requests(path="contents")) > 10, process)
    refused, skipped = nights.audit(), nights.audit("--overlap", "skip")
    assert (refused.exit_code, skipped.exit_code) == (5, 0), refused.err
    assert "another audit runs there" in refused.err
    assert "this one is skipped" in skipped.err
    process.communicate()
    assert process.returncode == 0
    assert len(list(nights.folder.glob("audits/files/runs/*"))) == 1


def test_people_are_told_once(nights):
    """A command gets the message as JSON, without values; a target that can't be reached warns and changes no exit."""
    tell = {"command": ["sh", "-c", "cat >> told.jsonl"], "on": ["drift", "recovery"]}
    dead = {"to": "env:NOWHERE"}
    nights.home.variables["NOWHERE"] = "json://user:canary-password@127.0.0.1:9/secret-path"
    nights.write(notify=[tell, dead])
    assert nights.result()[0] == 0
    nights.put(FILES[0], "Changed.\n")
    ran = nights.audit()
    assert ran.exit_code == 7
    assert "env:NOWHERE was not told: json://" in ran.err
    assert "canary-password" not in ran.err + ran.out
    assert "secret-path" not in ran.err
    run = nights.history().nights[-1].run
    again = nights.home.run("audit", "notify", f"audits/files/runs/{run}")
    assert again.exit_code == 0, again.err
    (told,) = map(json.loads, (nights.folder / "told.jsonl").read_text().splitlines())
    assert (told["events"], told["exit_code"], told["counts"]["changed"]) == (["drift"], 7, 1)
    assert (told["details"], "result.sha" in told["changed"][0]) == ([], True)
    assert "nobody is left to tell" in again.err
    again = nights.home.run("audit", "notify", f"audits/files/runs/{run}", "--again")
    assert again.exit_code == 1
    assert "sh was told: drift" in again.err
    assert len((nights.folder / "told.jsonl").read_text().splitlines()) == 2
    nights.audit()
    last = json.loads((nights.folder / "told.jsonl").read_text().splitlines()[-1])
    assert last["events"] == ["recovery"]


@pytest.mark.parametrize(
    ("audit", "says"),
    [
        (
            {"policies": ["policies/none.sql"]},
            "files.yaml:1: audit.policies: 'policies/none.sql': no file fits this pattern",
        ),
        ({"waivers": "none.yaml"}, "files.yaml:1: audit.waivers: "),
        ({"policies": ["wrong.sql"]}, "wrong.sql:4"),
        ({"policies": ["column.sql"]}, "column.sql:4: Binder Error"),
        ({"policies": ["copy.sql"]}, "expected a SELECT, got COPY"),
        ({"policies": ["within.sql"]}, "within.sql:1: expected a SELECT that reads and no more"),
        ({"policies": ["head.sql"]}, "head.sql:2: severity: expected error or warning or note"),
        ({"fail_on": ["drfit"]}, "expected a list of some of drift"),
        ({"fail_on": ["none", "drift"]}, "expected none alone"),
        ({"notify": [{"to": "https://x.example.com/secret"}]}, "expected env:NAME or file:PATH"),
        ({"polices": []}, "did you mean policies?"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_sent(nights, audit, says):
    """A bad policy, waiver or setting is exit 2 with its file and line, offline as well."""
    head = "-- key: owner\n-- message: {owner}\n-- severity: error\n"
    nights.home.write("wrong.sql", f"{head}SELEC owner FROM contents_get")
    nights.home.write("column.sql", f"{head}SELECT ownr FROM contents_get")
    nights.home.write("copy.sql", f"{head}COPY (SELECT 1) TO 'out.csv'")
    within = "WITH x AS (COPY (SELECT 1) TO 'out.csv' (USE_TMP_FILE false)) SELECT owner FROM contents_get, x"
    nights.home.write("within.sql", head + within)
    nights.home.write("head.sql", "-- key: owner\n-- severity: bad\nSELECT owner FROM contents_get")
    nights.write(**audit)
    for command in ("check", "audit"):
        ran = nights.home.run(command, "files.yaml")
        assert ran.exit_code == 2, ran.out
        assert says in ran.err
        assert "Traceback" not in ran.err
    assert nights.sandbox.requests() == []
    assert not (nights.folder / "out.csv").exists()
    assert not (nights.folder / "audits" / "files" / "runs").exists()


def test_a_list_that_was_cut_short_is_refused(nights):
    """`min_items` compares with the last good night; an audit that writes is refused as well."""
    nights.write(min_items="90%")
    assert nights.result()[0] == 0
    nights.items = FILES[:1]
    nights.write(min_items="90%")
    ran = nights.audit()
    assert (ran.exit_code, "audit.min_items wants 3 at least" in ran.err) == (2, True), ran.err
    assert len(list(nights.folder.glob("audits/files/runs/*"))) == 1
    item = {**FILES[0], "message": "x", "content": "eA=="}
    nights.home.manifest(nights.sandbox.base_url, {"w": {"operation": "contents.put", "items": [item]}}, "files.yaml")
    ran = nights.audit()
    assert (ran.exit_code, "an audit only reads" in ran.err) == (2, True)


def test_places_that_can_not_be_written_are_refused_before_a_night_is_spent(nights):
    """`--out` into nowhere is exit 2, a history in a file exit 5, each with its own option; nothing is sent."""
    for out in ("nowhere/out.json", "audits"):
        (nights.folder / "audits").mkdir(exist_ok=True)
        ran = nights.audit("--format", "json", "--out", out)
        assert (ran.exit_code, f"--out {out}: " in ran.err) == (2, True), ran.err
    ran = nights.audit("--history", "files.yaml")
    assert (ran.exit_code, "name another --history" in ran.err) == (5, True), ran.err
    assert nights.sandbox.requests() == []


def test_a_policy_that_fails_over_the_rows_costs_no_night(nights):
    """It is exit 2 with its line, after everything was read; corrected, the same night is judged and nothing asked."""
    head = "-- policy: sizes\n-- key: path\n"
    nights.home.write("policies/sizes.sql", f"{head}SELECT path FROM contents_get WHERE CAST(path AS INTEGER) > 1")
    nights.write(policies=["policies/*.sql"])
    assert nights.home.run("check", "files.yaml").exit_code == 0
    ran = nights.audit()
    assert (ran.exit_code, "sizes.sql:3: Conversion Error" in ran.err) == (2, True), ran.err
    assert "everything was read, and the same command goes on with this night" in ran.err
    asked = len(nights.sandbox.requests())
    nights.home.write("policies/sizes.sql", f"{head}SELECT path FROM contents_get WHERE result.size < 0")
    assert nights.audit().exit_code == 0
    assert (len(nights.sandbox.requests()), len(nights.history().nights)) == (asked, 1)


def test_old_nights_go(nights):
    """Run directories beyond `keep.runs` go, their tables stay; the last good night is never removed."""
    nights.write(keep={"runs": 1, "tables": "400d"})
    for _ in range(3):
        assert nights.result()[0] == 0
    assert len(list(nights.folder.glob("audits/files/runs/*"))) == 1
    assert len(nights.sql("SELECT DISTINCT run FROM items")) == 3


def test_a_clock_that_is_wrong_for_a_night_takes_no_tables_away(nights):
    """What is old is told by the newest nights together: they go when all of them are more than `keep.tables` later."""
    keep_s, year_s = 400 * 86_400.0, 366 * 86_400.0
    nights.write()
    for _ in range(3):
        assert nights.result()[0] == 0
    history = nights.history()
    now = Clock().now()
    history.prune(30, keep_s, now + 2 * year_s)
    assert len(nights.sql("SELECT DISTINCT run FROM items")) == 3
    first, *others = history.nights
    # Names of a day of their own: nights of one second are told apart by the numbers at the end of their names.
    names = [f"files-20990101T000000-{number}" for number in range(2, 6)]
    later = [msgspec.structs.replace(first, run=name, at=iso_utc(now + 2 * year_s)) for name in names]
    history.nights = (first, *others, *later)
    history.prune(30, keep_s, now + 2 * year_s)
    assert [night.run for night in history.nights] == [night.run for night in later]


def test_tables_of_other_versions_are_read_and_damaged_ones_named(nights):
    """A column that an older night lacks is NULL, one that another version had stays; a damaged file is exit 5."""
    for _ in range(2):
        assert nights.result()[0] == 0
    older, newer = sorted(nights.folder.glob("audits/files/tables/contents_get/*.parquet"))
    query = f"SELECT * EXCLUDE (observed_at), 5 AS more FROM '{newer}'"
    run(Task(statements=(copy(query, str(older)),)), newer)
    rows = nights.sql("SELECT count(*) AS n, count(observed_at) AS dated, sum(more) AS more FROM contents_get")
    assert rows == [{"n": 6, "dated": 3, "more": 15}]
    good = newer.read_bytes()
    within = good[:200] + b"\x55" * 400 + good[600:]  # its footer is whole: only who reads the rows sees it
    for data, says in (
        (good[:-50], f"{older.name} is damaged: restore it from a copy"),
        (b"", f"{older.name} is damaged: restore it from a copy"),
        (good[:-300] + b"\x55" * 292 + good[-8:], "a Parquet file that is read is damaged"),
        (within, "damaged"),
    ):
        older.write_bytes(data)
        ran = nights.home.run("sql", "audits/files", "SELECT max(contents_get) FROM contents_get")
        assert (ran.exit_code, ran.out) == (5, ""), ran.err
        assert says in ran.err


def test_an_answer_that_nobody_reads_to_its_end_is_no_error(nights):
    """`bulk sql … | head -1` ends quietly with 0, whatever the form of the answer."""
    nights.audit()
    for form in ((), ("--csv",), ("--json",)):
        words = " ".join(["sql", "audits/files", "'SELECT * FROM range(20000)'", *form])
        command = f"set -o pipefail; {sys.executable} -m bulk {words} | head -1"
        ran = nights.home.run_any(["bash", "-c", command])
        assert (ran.exit_code, ran.err) == (0, ""), form
