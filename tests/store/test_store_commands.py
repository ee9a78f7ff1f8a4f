"""`bulk store`, `bulk export`, `bulk forget`, `bulk runs --store`, `bulk status --store`: what people see."""

import io
import json
import subprocess
import sys

import jsonschema
import pytest

from bulk.cli.app import main
from bulk.cli.catalog import json_schemas
from bulk.cli.progress import work
from bulk.manifest.manifest import Limits
from bulk.model import OutcomeKind
from bulk.quantities import Share
from bulk.store.leases import Ended, Lease
from bulk.store.schema import VERSION
from tests.canaries import STORE_PASSWORD
from tests.ledger.samples import record
from tests.store.places import StorePlace, ranges
from tests.store.postgres import new_database

PLAIN = """
import sys
sys.modules["psycopg"] = None
from bulk.cli.app import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def place(shared_store, tmp_path):
    """A run of ten items in two shards, of which a worker has done some."""
    made = StorePlace(shared_store, tmp_path, shards=ranges(((0, 0, 6), (1, 0, 4))))
    ledger = made.opened(0)
    ledger.commit([record(0), record(1, OutcomeKind.FAILED), record(2)])
    yield made
    made.close()


def keeps_to(name: str, text: str):
    """The JSON, which keeps to its schema."""
    found = json.loads(text)
    jsonschema.validate(found, json_schemas.schema(name))
    return found


def test_a_store_is_made_and_upgraded(postgres, capsys):
    """Both say what there is; before, each command says what to do."""
    text = new_database(postgres)
    for command in (["runs"], ["status", "x"], ["export", "x"], ["forget", "x"]):
        assert main([*command, "--store", text]) == 5
        assert f"bulk store init {text}" in capsys.readouterr().err
    assert main(["store", "upgrade", text]) == 5
    assert main(["store", "init", text]) == 0
    assert main(["store", "upgrade", text]) == 0
    assert f"has schema {VERSION}" in capsys.readouterr().err
    assert main(["runs", "--store", text]) == 0
    assert "there is no run in" in capsys.readouterr().err


def test_what_can_not_be_is_told_with_its_exit_code(place, capsys):
    """Exit 2 for an address, a password, a name; 3 for a store out of reach; nothing repeats the password."""
    secret = f"postgresql://bulk:{STORE_PASSWORD}@127.0.0.1/bulk"
    for command in (["store", "init", secret], ["runs", "--store", secret], ["status", "x", "--store", secret]):
        assert main(command) == 2
        shown = capsys.readouterr().err
        assert "PGPASSFILE" in shown
        assert STORE_PASSWORD not in shown
    assert main(["runs", "--store", "here"]) == 2
    assert main(["runs", "--store", "postgresql://127.0.0.1:1/bulk"]) == 3
    assert "can't be reached" in capsys.readouterr().err
    assert main(["runs", "runs", "--store", place.text]) == 2
    assert main(["runs", "--store", place.text, "--store", "postgresql://127.0.0.1:1/bulk"]) == 2
    assert "--store is given 2 times" in capsys.readouterr().err
    assert main(["stop", place.name, "--store", place.text, "--now"]) == 2
    assert "--now is for run directories" in capsys.readouterr().err
    assert main(["status", place.name[:-1] + "_", "--store", place.text]) == 2
    assert "did you mean run-" in capsys.readouterr().err


def test_runs_and_status_of_a_store(place, capsys):
    """Both tell where a run stands, for people and for programs."""
    assert main(["runs", "--store", place.text]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{place.name} ")]
    assert "running" in line
    assert "3/" in line
    assert main(["runs", "--store", place.text, "--json"]) == 0
    (listed,) = [run for run in keeps_to("runs", capsys.readouterr().out) if run["run_dir"] == place.name]
    assert (listed["state"], listed["outcomes"]) == ("running", {"succeeded": 2, "failed": 1})
    assert main(["status", place.name, "--store", place.text]) == 0
    shown = capsys.readouterr().out
    assert f"{place.name} running" in shown
    assert "0 of 2 shards done" in shown
    assert "readmes     3 of 1,000 items: 2 succeeded, 1 failed" in shown
    assert "worker worker has 1 shards" in shown
    assert main(["status", place.name, "--store", place.text, "--json"]) == 0
    told = keeps_to("stored-status", capsys.readouterr().out)
    assert (told["shards"], told["shards_done"], told["workers"][0]["shards"]) == (2, 0, 1)
    place.let_lapse()
    assert main(["status", place.name, "--store", place.text]) == 0
    assert (
        f"no worker is at work on it\n\nbulk worker --store {place.text} --base-url {place.identity.base_url}"
    ) in capsys.readouterr().out.replace("'", "")


def test_what_is_paused_or_stopped_without_workers_is_so_at_once(shared_store, tmp_path, capsys):
    """Nobody has to come and say so: whoever waits for such a run is told, and it goes on when it is resumed."""
    made = StorePlace(shared_store, tmp_path)
    told = (made.name, "--store", made.text)
    for verb, state in (("pause", "paused"), ("stop", "stopped")):
        assert main([verb, *told]) == 0
        assert main(["watch", *told, "--progress", "none"]) == 3
        assert f"{made.name} is {state}: it was {state} by `bulk {verb}`" in capsys.readouterr().err
        assert main(["resume", *told, "--concurrency", "1"]) == 2
        assert f"bulk set {made.name} --store {made.text} concurrency=1" in capsys.readouterr().err.replace("'", "")
        assert main(["resume", *told, "--reserve", "9"]) == 2
        assert "--reserve does not reach them" in capsys.readouterr().err
        assert main(["status", *told]) == 0
        assert f"{made.name} {state}" in capsys.readouterr().out
        assert main(["resume", *told]) == 0
    made.opened().commit([record(0)])
    assert main(["stop", *told]) == 0
    assert main(["status", *told]) == 0
    assert f"{made.name} stopping" in capsys.readouterr().out, "a worker holds a part of it"
    made.let_lapse()
    assert main(["status", *told]) == 0
    assert f"{made.name} stopped" in capsys.readouterr().out
    made.close()


def test_a_place_that_can_not_be_is_refused_before_a_run_is_submitted(shared_store, tmp_path, capsys):
    """`bulk run --store` would have nowhere to take the results home: exit 5, and the store knows no such run."""
    manifest = tmp_path / "homeless.yaml"
    platform = "platform: {base_url: 'https://code.example.com/api/v3'}"
    jobs = "jobs: {reads: {operation: readme.get, items: [{owner: a, repo: homeless}]}}"
    manifest.write_text(f"version: 1\n{platform}\n{jobs}\n")
    (tmp_path / "file").touch()
    for run_dir in (tmp_path / ("x" * 252), tmp_path / "file" / "run"):
        assert main(["run", str(manifest), "--store", shared_store, "--run-dir", str(run_dir)]) == 5
        assert "name another --run-dir" in capsys.readouterr().err
    assert main(["runs", "--store", shared_store]) == 0
    assert "homeless" not in capsys.readouterr().out


def test_a_manifest_that_was_submitted_before_says_so(shared_store, tmp_path, capsys):
    """Its name comes on standard output as ever; beside it how the run stands, and that its limits stay."""
    manifest = tmp_path / "m.yaml"
    platform = "platform: {base_url: 'https://code.example.com/api/v3'}"
    jobs = "jobs: {reads: {operation: readme.get, items: [{owner: a, repo: submitted-before}]}}"
    manifest.write_text(f"version: 1\n{platform}\n{jobs}\n")
    submit = ("submit", str(manifest), "--store", shared_store)
    assert main([*submit]) == 0
    first = capsys.readouterr()
    assert first.err == ""
    assert main([*submit, "--concurrency", "3"]) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert "was submitted before and is running, with the limits that it has there" in again.err
    assert main(["stop", first.out.strip(), "--store", shared_store]) == 0
    assert main([*submit]) == 0
    assert f"bulk resume {first.out.strip()} --store" in capsys.readouterr().err


def exit_shown(place, capsys):
    """What `bulk runs` says of its exit code, to programs and to people."""
    assert main(["runs", "--store", place.text, "--json"]) == 0
    (listed,) = [run for run in keeps_to("runs", capsys.readouterr().out) if run["run_dir"] == place.name]
    assert main(["runs", "--store", place.text]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{place.name} ")]
    return listed["exit_code"], line.split()[-1]


def test_runs_of_a_store_say_what_they_ended_with(place, capsys):
    """The exit code is that of a command that waited for the end: none while it goes on, then 4, 3, and 1 or 0."""
    assert exit_shown(place, capsys) == (None, "-")
    place.sql("UPDATE run SET state = 'paused' WHERE id = %s", place.run)
    assert exit_shown(place, capsys) == (3, "3")
    place.sql("UPDATE participant SET exit_code = 4 WHERE run = %s", place.run)
    assert exit_shown(place, capsys) == (4, "4")
    leases = place.leases()
    ledger = place.opened(leases=leases)
    ledger.commit([record(3), record(4), record(5), *(record(index, job=1) for index in range(4))])
    for no in (0, 1):
        assert leases.finish(Lease(place.run, no, ledger.holding.epoch_of(no))) is Ended.DONE
    assert exit_shown(place, capsys) == (1, "1")
    skipped = "(SELECT number FROM word WHERE word = 'skipped'), (SELECT number FROM word WHERE word = 'superseded')"
    place.sql(f"UPDATE count SET (outcome, code) = (SELECT {skipped}) WHERE run = %s AND code <> 0", place.run)
    assert exit_shown(place, capsys) == (0, "0")


def test_an_export_says_what_it_does(place, tmp_path, monkeypatch):
    """Where it takes longer than a command may be silent: on a terminal, until it is there."""
    monkeypatch.setattr(work, "FIRST_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", shown)
    assert main(["export", place.name, "--store", place.text, "--run-dir", str(tmp_path / "run")]) == 0
    assert "writing /" in shown.getvalue()  # a long path is cut at the width of the terminal
    assert shown.getvalue().endswith("\r\x1b[J")


def test_an_export_is_a_run_directory_and_a_forgotten_run_is_gone(place, tmp_path, capsys, monkeypatch):
    """What was exported is reported on without a store; what is not complete is forgotten only on purpose."""
    monkeypatch.chdir(tmp_path)
    assert main(["export", place.name, "--store", place.text]) == 0
    assert capsys.readouterr().out == f"runs/{place.name}\n"
    run_dir = tmp_path / "runs" / place.name
    assert (run_dir / "report.html").is_file()
    assert main(["report", str(run_dir)]) == 0
    assert "2 succeeded" in capsys.readouterr().out
    assert main(["status", str(run_dir)]) == 0
    assert "stopped" in capsys.readouterr().out
    (run_dir / "report.html").unlink()
    assert main(["export", place.name, "--store", place.text]) == 5
    assert "is there already" in capsys.readouterr().err, "the run has gone on since"
    assert main(["forget", place.name, "--store", place.text]) == 2
    assert main(["forget", place.name, "--store", place.text, "--yes"]) == 5
    assert "workers are at work on it" in capsys.readouterr().err
    place.let_lapse()
    assert main(["forget", place.name, "--store", place.text, "--yes"]) == 0
    assert main(["status", place.name, "--store", place.text]) == 2


def test_limits_of_a_run_are_set(shared_store, tmp_path, capsys):
    """All that are given or none, and who did is kept; what can't be set is exit 2, and a complete run exit 5."""
    made = StorePlace(shared_store, tmp_path, limits=Limits(concurrency=8, failures=Share(fraction=0.05)))
    set_ = ("set", made.name, "--store", made.text)
    for changes, words in (
        (("concurrency=9",), "the run was started with 8"),
        (("concurrency=2", "failures=many"), "failures: expected a count"),
        (("concurrency=2", "priority.readmes=1"), "in their order"),
        (("concurrency=2", "reserve=10%"), "share the budgets of a token"),
        (("base_url=x",), "can't be set"),
    ):
        assert main([*set_, *changes]) == 2
        assert words in capsys.readouterr().err
    assert main([*set_, "concurrency=2", "max_duration=2h"]) == 0
    assert main([*set_, "concurrency=8", "failures=none", "--json"]) == 0
    shown = capsys.readouterr().out
    assert "max_duration  7200.0" in shown
    found = keeps_to("set", shown[shown.index("{") :])
    assert found == {
        "concurrency": 8,
        "reserve": 0,
        "failures": None,
        "max_duration": 7200.0,
        "priority": {},
    }
    actions = made.sql("SELECT verb, args FROM action WHERE run = %s ORDER BY at", made.run)
    assert actions[1] == ("set", '{"concurrency":"8","failures":"none"}')
    assert len(actions) == 2, "what was refused is none"
    made.sql("UPDATE run SET state = 'complete' WHERE id = %s", made.run)
    assert main([*set_, "concurrency=2"]) == 5
    assert "is complete" in capsys.readouterr().err
    made.close()


def test_limits_of_an_older_run_stay(place, capsys):
    """A run whose row does not have them says so, exit 5."""
    assert main(["set", place.name, "concurrency=2", "--store", place.text]) == 5
    assert "older version" in capsys.readouterr().err


def test_a_part_of_a_run_is_done_again(place, capsys):
    """`bulk retry --only --code --job` takes those items alone; what names nothing is exit 2."""
    place.let_lapse()
    retry = ("retry", place.name, "--store", place.text)
    for options, words in (
        (("--only", "succeeded"), "can't be run again"),
        (("--code", "not_fond"), "did you mean not_found?"),
        (("--job", "nothing"), "the run has no job 'nothing'; it has readmes"),
        (("--overwrite",), "--overwrite is for run directories"),
    ):
        assert main([*retry, *options]) == 2
        assert words in capsys.readouterr().err
    for options in (("--only", "unknown"), ("--code", "forbidden"), ("--job", "codeowners")):
        assert main([*retry, *options]) == 0
        assert "There is nothing to retry" in capsys.readouterr().err
    assert main([*retry, "--only", "failed,skipped", "--code", "not_found", "--job", "readmes"]) == 0
    assert f"1 item of {place.name} is done again" in capsys.readouterr().err
    (action,) = place.sql("SELECT verb, args FROM action WHERE run = %s", place.run)
    assert action == ("retry", '{"job":"readmes","only":"failed,skipped","code":"not_found"}')


def test_without_its_client_everything_else_works():
    """Plain Bulk has no client of PostgreSQL: `--store` says what to install, and nothing else asks for it."""
    plain = [sys.executable, "-c", PLAIN]
    done = subprocess.run([*plain, "runs", "--store", "service=x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'bulkops[cluster]'" in done.stderr
    done = subprocess.run([*plain, "store", "init", "service=x"], capture_output=True, text=True, check=False)
    assert (done.returncode, "pip install" in done.stderr) == (2, True)
    assert subprocess.run([*plain, "runs", "."], capture_output=True, check=False).returncode == 0


def test_the_store_of_a_run_that_is_at_home_is_told_from_a_mistyped_address(tmp_path, capsys):
    """The store beside a run directory ends with the run: whoever names it then is led to the directory."""
    gone = tmp_path / "runs" / "migration.store"
    for command in (["runs"], ["status", "migration"], ["export", "migration"]):
        assert main([*command, "--store", str(gone)]) == 2
        told = capsys.readouterr().err
        assert f"there is no folder {gone}" in told
        assert f"bulk status {tmp_path}/runs/migration" in told
    assert main(["runs", "--store", "postgresql://u:p@h/x.store"]) == 2
    assert "there is no folder" not in capsys.readouterr().err
