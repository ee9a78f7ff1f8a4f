"""An audit that is killed, or whose disk is full, at each step of a night."""

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.audit.nights import FILES, POLICY, Nights
from tests.e2e.support.platform import BULK, Home, served

STEPS = ("_run", "_tables", "compare_night", "write_rows", "judge", "write_rows 2", "_keep")
"""What a night does before it counts, in order; the second `write_rows` is that of violations."""

FULL = ("_tables", "compare_night", "write_rows", "write_rows 2", "_keep", "commit")
"""Those that fill the disk, each in another way."""

BROKEN = """
import faulthandler, json, os, resource, signal, sys
import bulk.cli.commands.audits.audit, bulk.engine.commands, bulk.manifest.reading, jinja2, ruamel.yaml, uvloop
from bulk.audit import audit
from bulk.cli import main
from bulk.engine import execution

def broken(how, step):
    name, _, wanted = step.partition(" ")
    owner, calls = audit.History if name == "commit" else execution if name == "report" else audit, 0
    plain = getattr(owner, name)

    def breaking(*given, **named):
        nonlocal calls
        calls += 1
        is_now = calls == int(wanted or 1)
        if is_now and how == "killed before":
            os.kill(os.getpid(), signal.SIGKILL)
        if is_now and how == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        found = plain(*given, **named)
        if is_now and how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, breaking)

ended = []
for how, step in json.loads(sys.argv[1]):
    said, out = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(out, 1), os.dup2(out, 2)
        faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
        broken(how, step)
        os._exit(main(["audit", "files.yaml", "--progress", "none"]))
    os.close(out)
    ended.append((open(said).read(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
print(json.dumps(ended))
"""
"""Runs the audit once for each pair, in a process of its own: killed when the step is done, or from the step on without
room for a byte in any file. One that stands still says where, and ends."""

MOST_S = 240.0
"""What one start of them may take; all of a night, so much for each (seconds)."""

SAME = """
SELECT json_object('idx', idx, 'missing', missing, 'sha', result.sha) AS found FROM contents_get
UNION ALL SELECT json_object('kind', kind, 'field', field, 'old', old, 'new', new) FROM changes
UNION ALL SELECT json_object('policy', policy, 'message', message, 'status', status) FROM violations ORDER BY ALL
"""


@pytest.fixture
def nights(tmp_path):
    """An audit of files with a policy, and somebody to tell."""
    with served(tmp_path / "sandbox") as sandbox:
        found = Nights(Home(tmp_path), sandbox)
        found.home.write("policies/owners.sql", POLICY)
        found.home.write("broken.py", BROKEN)
        found.write(policies=["policies/*.sql"], notify=[{"command": ["sh", "-c", "cat >> told.jsonl"]}])
        yield found


def broken(nights, pairs):
    """What each start said, and its exit code."""
    command = [sys.executable, str(nights.folder / "broken.py"), json.dumps(pairs), str(MOST_S)]
    ran = nights.home.run_any(command, timeout_s=(len(pairs) + 1) * MOST_S)
    return json.loads(ran.out)


def tables(nights, history):
    """What the tables of a history hold, but names of runs and moments."""
    return nights.home.run("sql", history, SAME, "--json").out


def told(folder: Path):
    """Names of the runs that somebody was told of."""
    return [json.loads(line)["run"] for line in (folder / "told.jsonl").read_text().splitlines()]


def a_broken_night(nights, pairs, text):
    """One night that breaks off as often as there are pairs, and is ended by the same command."""
    nights.put(FILES[0], text)
    ended = broken(nights, pairs)
    asked = len(nights.sandbox.requests())
    for (how, _), (said, code) in zip(pairs, ended, strict=True):
        assert code == (-signal.SIGKILL if how == "killed" else 5), said
        assert "Traceback" not in said
        if how == "full":
            assert "File too large" in said
            assert "the same command goes on with this night and asks nothing again" in said
            assert "{" not in said
    ran = nights.audit()
    assert ran.exit_code == 7, ran.err
    assert len(nights.sandbox.requests()) == asked
    run = nights.history().nights[-1].run
    assert told(nights.folder).count(run) == 1
    assert list(nights.folder.glob("audits/files/**/*.part*")) == []
    assert nights.audit("--history", "audits/twin", "--no-notify").exit_code == 7
    found = tables(nights, "audits/files")
    assert found.count("result.sha") >= 1
    assert found == tables(nights, "audits/twin")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_night_that_was_killed_before_the_reports_of_its_run_gets_them(nights, is_there):
    """The run had read everything: the next start writes its reports and asks nothing, also where the platform is out
    of reach. The night counts once, and somebody is told once."""
    assert nights.audit().exit_code == 0
    nights.put(FILES[0], "Changed in the night.\n")
    assert broken(nights, [("killed before", "report")]) == [["", -signal.SIGKILL]]
    (run_dir,) = nights.history().pending()
    assert not (run_dir / "report.html").exists()
    asked = len(nights.sandbox.journal())
    if not is_there:
        nights.sandbox.process.send_signal(signal.SIGSTOP)
    try:
        assert nights.audit().exit_code == 7
    finally:
        nights.sandbox.process.send_signal(signal.SIGCONT)
    assert len(nights.sandbox.journal()) == asked
    assert [night.run for night in nights.history().nights][1:] == [run_dir.name]
    assert told(nights.folder).count(run_dir.name) == 1
    assert all((run_dir / name).is_file() for name in ("report.html", "report.json", "digests.json"))
    assert "report and files agree" in nights.home.run("verify", str(run_dir)).out


@pytest.mark.soak
def test_a_night_that_breaks_off_loses_nothing(nights):
    """Killed after each step, and with a full disk in each: a clear error with exit 5, nothing is asked again, and the
    tables and messages are those of a night that nothing happened to."""
    for history in ("audits/files", "audits/twin"):
        assert nights.audit("--history", history, "--no-notify").exit_code == 0
    pairs = [*(("killed", step) for step in STEPS), *(("full", step) for step in FULL)]
    a_broken_night(nights, pairs, "Changed in the night.\n")


@pytest.mark.soak
@pytest.mark.timeout(3_600)  # 226 to more than 600 s where others want the cores; each command in it has its own end
def test_twenty_nights_that_break_off_at_each_step(nights):
    """The same, twenty times, each step in a night of its own as well; killed when it counts, a night stays untold."""
    for history in ("audits/files", "audits/twin"):
        assert nights.audit("--history", history, "--no-notify").exit_code == 0
    for number in range(20):
        a_broken_night(nights, [("killed", step) for step in STEPS], f"Changed for the {number}th time.\n")
    for step in STEPS:
        a_broken_night(nights, [("killed", step)], f"Changed, and killed after {step}.\n")
    nights.put(FILES[0], "The last change.\n")
    assert broken(nights, [("killed", "commit")]) == [["", -signal.SIGKILL]]
    run = nights.history().nights[-1].run
    assert nights.audit().exit_code == 0
    assert run not in told(nights.folder)
    assert nights.home.run("audit", "notify", f"audits/files/runs/{run}").exit_code == 0
    assert told(nights.folder).count(run) == 1


@pytest.mark.soak
def test_a_disk_that_is_full_when_people_are_told_changes_no_outcome(nights):
    """The night counts and its exit code stays; nobody is told without a mark, and it can be made up for."""
    assert nights.audit().exit_code == 0
    nights.put(FILES[0], "Changed.\n")
    nights.home.write("broken.py", BROKEN.replace("from bulk.audit import audit", SENDING))
    ((said, code),) = broken(nights, [("full", "notify")])
    assert code == 7, said
    assert "was not told:" in said
    assert "File too large" in said
    assert not (nights.folder / "told.jsonl").exists()
    run = nights.history().nights[-1].run
    assert nights.home.run("audit", "notify", f"audits/files/runs/{run}").exit_code == 0
    assert told(nights.folder) == [run]


SENDING = "from bulk.audit import audit as _\nfrom bulk.audit.notify import sending as audit"


def test_a_message_that_was_begun_is_not_sent_again(nights):
    """Killed while it sends, nobody knows whether somebody was told: it is not told again, and said to be unknown."""
    nights.home.write("told.sh", "cat >> told.jsonl; kill -9 $PPID")
    nights.write(notify=[{"command": ["sh", "told.sh"]}])
    assert nights.audit("--no-notify").exit_code == 0
    nights.put(FILES[0], "Changed.\n")
    killed = nights.home.run_any([*BULK, "audit", "files.yaml", "--progress", "none"])
    assert killed.exit_code == -signal.SIGKILL
    run = nights.history().nights[-1].run
    ran = nights.home.run("audit", "notify", f"audits/files/runs/{run}")
    assert "nobody knows whether" in ran.err
    assert told(nights.folder) == [run]
    nights.home.write("told.sh", "cat >> told.jsonl")
    said = [nights.audit().err.count(f"nobody knows whether {run}-") for _ in range(2)]
    assert said == [1, 0]  # in the next night, as what was killed could say nothing; the command is in the message
