"""What a run prints as the next command is executed as it is printed: from a terminal, a text, a page or JSON."""

import html
import json
import re
import shlex
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bulk.ledger.directory import Claim
from tests.e2e.support.judging import effects
from tests.e2e.support.platform import Home, Ran, Served, served, wait_for

FLEET = {"organization": "acme-fleet", "count": 200, "readme_bytes": 100}
PLACE = "my run; rm -rf"
"""A name of a run directory that a shell must not take apart."""
TOKEN_AT = "OTHER_TOKEN"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform whose answers take a while."""
    folder = tmp_path_factory.mktemp("sandbox")
    with served(folder, "--latency", "20", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path, sandbox: Served) -> Home:
    """A folder whose manifest names another platform and another token than the command line."""
    home = Home(tmp_path)
    home.variables[TOKEN_AT] = home.token
    home.token = "no-token-of-the-platform"
    return home


def files(names: list[str]) -> dict[str, Any]:
    """A job of a write in each of these repositories."""
    items = [{"owner": "acme-fleet", "repo": name, "path": "steered.txt", "content": "QQ=="} for name in names]
    return {"files": {"operation": "contents.put", "items": items, "with": {"message": "Add a file"}}}


def fleet(first: int, last: int) -> list[str]:
    """Names of repositories that are there."""
    return [f"repo-{number:05d}" for number in range(first, last)]


def started_with(sandbox: Served) -> tuple[str, ...]:
    """A command line that the manifest alone does not replace."""
    options = ("--base-url", sandbox.base_url, "--credential", f"env:{TOKEN_AT}", "--concurrency", "2")
    return ("run", "manifest.yaml", "--run-dir", PLACE, *options)


def shell(home: Home, command: str) -> Ran:
    """What a shell makes of a line that begins with `bulk`."""
    assert command.startswith("bulk "), command
    return home.run_typed(command, home.environment())


def told_everywhere(home: Home) -> set[str]:
    """The next command as text, as JSON and as a page say it, by `bulk report` and `bulk status`."""
    report, status = (home.run(name, PLACE).out for name in ("report", "status"))
    said = [re.search(r"Go on: +(bulk .*)", text) for text in (report, status)]
    page = home.run("report", PLACE, "--format", "html").out
    shown = re.search(r"<code>(bulk (?:re|approve)[^<]*)</code>", page)
    jsons = [json.loads(home.run(name, PLACE, "--json").out)["next_command"] for name in ("report", "status")]
    assert all(said)
    assert shown
    return {*(found[1] for found in said if found), html.unescape(shown[1]), *jsons}


def once_each(sandbox: Served, names: list[str]) -> None:
    """Every repository has its one commit."""
    done = Counter(effects(sandbox.requests()))
    assert {name: done[f"commit acme-fleet/{name} steered.txt"] for name in names} == dict.fromkeys(names, 1)


def test_a_stopped_run(home: Home, sandbox: Served) -> None:
    """After a signal the last line on standard error goes on, with the platform and the token of before."""
    names = fleet(0, 60)
    home.manifest("https://code.example.com/api/v3", files(names))
    before = len(sandbox.requests())
    with home.running(*started_with(sandbox)) as process:
        wait_for(lambda: len(sandbox.requests()) >= before + 10, process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    printed = err.splitlines()[-1]
    assert told_everywhere(home) == {printed}
    ran = shell(home, printed)
    assert ran.exit_code == 0, ran.err
    once_each(sandbox, names)
    assert told_limits(home) == {"concurrency": "2"}


def told_limits(home: Home) -> dict[str, str]:
    """The limits that the run directory remembers."""
    limits: dict[str, str] = json.loads((home.folder / PLACE / "origin.json").read_text())["limits"]
    return limits


def test_a_killed_run(home: Home, sandbox: Served) -> None:
    """After kill -9 `bulk status` and `bulk report` name the command that goes on, and no report that isn't there."""
    names = fleet(60, 120)
    home.manifest("https://code.example.com/api/v3", files(names), limits={"settle": "1s"})
    before = len(sandbox.requests())
    with home.running(*started_with(sandbox)) as process:
        wait_for(lambda: len(sandbox.requests()) >= before + 10, process)
        process.kill()
        process.wait(60)
    assert "Report:" not in home.run("report", PLACE).out
    (command,) = told_everywhere(home)
    ran = shell(home, command)
    assert ran.exit_code == 0, ran.err
    assert "Report:" in ran.out
    once_each(sandbox, names)


def test_a_run_that_was_killed_while_it_was_checked(home: Home, sandbox: Served) -> None:
    """Killed before it had a ledger, a run goes on from its directory all the same."""
    names = fleet(120, 123)
    home.lines("items.jsonl", files(names + ["not-wanted"] * 200_000)["files"]["items"])
    job = {"operation": "contents.put", "with": {"message": "Add a file"}, "items": "items.jsonl"}
    home.manifest("https://code.example.com/api/v3", {"files": {**job, "allow_overwrites": True}})
    with home.running(*started_with(sandbox), "--limit", "3") as process:
        wait_for((home.folder / PLACE / "origin.json").exists, process)
        process.kill()
        process.wait(60)
    assert not (home.folder / PLACE / "ledger.db").exists()
    ran = home.run("resume", PLACE)
    assert ran.exit_code == 0, ran.err
    once_each(sandbox, names)


def test_items_that_were_not_read_to_their_end(home: Home, sandbox: Served) -> None:
    """Killed while it read standard input, a run says which command wants its items, and does not end without them."""
    home.manifest("https://code.example.com/api/v3", {"files": {**files([])["files"], "items": "-"}})
    with home.start(*started_with(sandbox), stdin=subprocess.PIPE) as process:
        wait_for((home.folder / PLACE / "stdin-files.jsonl.part").exists, process)
        process.kill()
        process.wait(60)
    ran = home.run("resume", PLACE)
    assert ran.exit_code == 5
    command = re.search("`(bulk run .*)`", ran.err)
    assert command
    assert shlex.split(command[1])[-2:] == ["--run-dir", PLACE]


def test_a_run_with_failures(home: Home, sandbox: Served) -> None:
    """A complete run with failures names the retry, which runs them again with the same platform and token."""
    names = ["no-such-repo", *fleet(130, 132)]
    home.manifest("https://code.example.com/api/v3", files(names))
    assert home.run(*started_with(sandbox)).exit_code == 1
    (command,) = told_everywhere(home)
    assert command.startswith("bulk retry ")
    again = shell(home, command)
    assert again.exit_code == 1, again.err
    once_each(sandbox, names[1:])


@pytest.mark.parametrize("is_over", [True, False], ids=["over a budget", "to be opened"])
def test_a_wave_that_stops(home: Home, sandbox: Served, is_over: bool) -> None:
    """What is printed goes past the wave that has stopped the run, and is the same everywhere."""
    names = fleet(150, 170)
    limits: dict[str, Any] = {"waves": [2, "rest"], "errors": {"not_found": 0}} if is_over else {}
    limits = limits or {"waves": [2, "rest"], "gate": "manual"}
    wanted = ["no-such-repository", *names] if is_over else names
    home.manifest("https://code.example.com/api/v3", files(wanted), limits=limits)
    ran = home.run(*started_with(sandbox))
    assert ran.exit_code == 3, ran
    printed = ran.err.splitlines()[-1]
    assert told_everywhere(home) == {printed}
    went_on = shell(home, printed)
    if not is_over:
        assert went_on.exit_code == 0, went_on
        went_on = shell(home, went_on.err.splitlines()[-1].removeprefix("Next: "))
    assert went_on.exit_code == (1 if is_over else 0), went_on
    once_each(sandbox, names)


def test_the_manifest_is_in_the_run_directory(home: Home, sandbox: Served) -> None:
    """`bulk resume` goes on also where the manifest was deleted."""
    names = fleet(140, 150)
    home.manifest("https://code.example.com/api/v3", files(names))
    assert home.run(*started_with(sandbox), "--max-duration", "0.05s").exit_code == 3
    (home.folder / "manifest.yaml").unlink()
    ran = home.run("resume", PLACE)
    assert ran.exit_code == 0, ran.err
    once_each(sandbox, names)


def test_nothing_to_do_is_said(home: Home, sandbox: Served) -> None:
    """`bulk retry` and `bulk resume` of a run that succeeded say that nothing is left, and leave the report alone."""
    home.manifest("https://code.example.com/api/v3", files(fleet(150, 152)))
    assert home.run(*started_with(sandbox)).exit_code == 0
    before = {path.name: path.stat().st_mtime_ns for path in (home.folder / PLACE).iterdir()}
    retried, resumed = home.run("retry", PLACE), home.run("resume", PLACE)
    assert (retried.exit_code, resumed.exit_code) == (0, 0)
    assert "nothing to retry" in retried.err
    assert "no item is left" in resumed.err
    assert {path.name: path.stat().st_mtime_ns for path in (home.folder / PLACE).iterdir()} == before


def test_a_retry_of_what_is_not_there_changes_nothing(home: Home, sandbox: Served) -> None:
    """Where no item fits, that is said, with the exit code of the run; no process of it is added."""
    good, bad = ({"owner": "acme-fleet", "repo": name} for name in (*fleet(150, 151), "no-such-repository"))
    jobs = {
        name: {"operation": "readme.get", "items": items} for name, items in (("good", [good]), ("bad", [good, bad]))
    }
    home.manifest("https://code.example.com/api/v3", jobs)
    assert home.run(*started_with(sandbox)).exit_code == 1
    before = {path.name: path.read_bytes() for path in (home.folder / PLACE).iterdir() if path.is_file()}
    for options in (
        ("--job", "good"),
        ("--only", "unknown"),
        ("--job", "bad", "--code", "forbidden"),
        ("--job", "bad", "--limit", "1"),
        ("--code", "superseded"),
    ):
        retried = home.run("retry", PLACE, *options)
        assert (retried.exit_code, "nothing to retry" in retried.err) == (1, True), (options, retried)
        assert {path.name: path.read_bytes() for path in (home.folder / PLACE).iterdir() if path.is_file()} == before
    assert home.run("retry", PLACE, "--job", "nothing").exit_code == 2
    assert "nothing to retry" not in home.run("retry", PLACE, "--job", "bad").err


def test_resume_of_what_is_no_run(home: Home) -> None:
    """A folder that holds no run is refused with exit 5."""
    (home.folder / "empty").mkdir()
    for place in ("empty", "nowhere"):
        ran = home.run("resume", place)
        assert ran.exit_code == 5
        assert "is not a run directory" in ran.err


def test_a_run_that_has_not_begun_says_so(home: Home, sandbox: Served) -> None:
    """A process that is killed while it checks leaves its manifest and its origin: every command says what begins the
    run, and that does. While the check goes on, the way out is to watch it."""
    home.manifest("https://code.example.com/api/v3", files(fleet(152, 154)))
    assert home.run(*started_with(sandbox)).exit_code == 0
    early = home.folder / "early"
    early.mkdir(mode=0o700)
    for name in ("manifest.yaml", "origin.json", "run.lock"):
        shutil.copy(home.folder / PLACE / name, early)
    commands = (
        *((command, "early") for command in ("status", "report", "retry", "verify", "watch", "pause", "stop")),
        ("undo", "early", "-o", "undo.yaml"),
        ("diff", PLACE, "early"),
        ("rehearse", "manifest.yaml", "--from", "early"),
    )
    for command in commands:
        ran = home.run(*command)
        told = "early has not begun: it ended while it was checked; to begin it: bulk resume " in ran.err
        assert (ran.exit_code, told) == (5, True), (command, ran.err)
    claim = Claim.take(early)
    try:
        for verb in ("status", "report", "retry"):
            ran = home.run(verb, "early")
            told = "early has not begun: its items are being checked; `bulk watch " in ran.err
            assert (ran.exit_code, told) == (5, True), (verb, ran.err)
    finally:
        claim.release()
    assert home.run("resume", "early").exit_code == 0
    assert home.run("status", "early").exit_code == 0


def test_the_root_folder_is_no_run(home: Home) -> None:
    """Every command about a run refuses the root folder, beside which no folder can lie, with exit 5."""
    orders = ("status", "watch", "pause", "resume", "stop", "report", "retry", "verify")
    for command in (
        *((order, "/") for order in orders),
        ("set", "/", "concurrency=2"),
        ("approve", "/", "--wave", "2"),
    ):
        ran = home.run(*command)
        assert (ran.exit_code, "/ is not a run directory" in ran.err) == (5, True), (command, ran.err)


@pytest.mark.parametrize("command", ["run", "resume", "audit"])
def test_a_run_without_a_budget(tmp_path: Path, command: str) -> None:
    """Where `--reserve` leaves nothing for a run, which is exit 2, the last line goes on all the same: of an audit, the
    same command; a command that is refused before its run goes on ends with what is wrong."""
    home, last = Home(tmp_path), "bulk resume run"
    with served(tmp_path / "sandbox", "--rate-limit", "core=100/60") as sandbox:
        items = [{"owner": "acme-eng", "repo": "hello-world"}]
        home.manifest(sandbox.base_url, {"reads": {"operation": "readme.get", "items": items}})
        line = ["run", "manifest.yaml", "--run-dir", "run"]
        if command == "resume":
            assert home.run(*line, "--max-duration", "0.001s").exit_code == 3
            line = ["resume", "run"]
        elif command == "audit":
            line, last = ["audit", "manifest.yaml"], "bulk audit manifest.yaml --reserve 500"
        ran = home.run(*line, "--reserve", "500")
        assert (ran.exit_code, ran.err.splitlines()[-1]) == (2, last), ran.err
        refused = home.run(*line, "--reserve", "5x")
        assert (refused.exit_code, refused.err) == (
            2,
            "bulk: --reserve: expected a count such as 50 or a share such as 5%, got '5x'\n",
        )
        assert sandbox.requests() == []
