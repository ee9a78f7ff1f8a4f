"""A run directory belongs to one manifest and to one process at a time."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bulk.clock import Clock
from tests.e2e.support.platform import Home, Served, served, wait_for

FLEET = {"organization": "acme-fleet", "count": 200, "readme_bytes": 100}
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")


def readmes(count: int) -> dict[str, Any]:
    """A job of `count` reads, from a file."""
    return {"readmes": {"operation": "readme.get", "items": f"{count}.jsonl"}}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform whose answers take a while."""
    folder = tmp_path_factory.mktemp("sandbox")
    with served(folder, "--latency", "50", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path, sandbox: Served) -> Home:
    """A folder with a manifest of ten items."""
    home = Home(tmp_path)
    for count in (10, 200):
        home.lines(f"{count}.jsonl", [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count)])
    home.manifest(sandbox.base_url, readmes(10))
    return home


def test_a_second_process_is_refused(home: Home, sandbox: Served) -> None:
    """While a run is going on, a second process on its directory exits 5 and names the first (failures.md row 45)."""
    home.manifest(sandbox.base_url, readmes(200), limits={"concurrency": 1})
    before = len(sandbox.requests())
    with home.running(*COMMAND) as first:
        wait_for(lambda: len(sandbox.requests()) >= before + 5, first)
        for command in (COMMAND, ("retry", "run")):
            second = home.run(*command)
            assert second.exit_code == 5
            assert f"process {first.pid} on {os.uname().nodename}" in second.err
        status = home.run("status", "run")
        assert status.exit_code == 0, status.err
        assert "readmes" in status.out
        first.send_signal(signal.SIGTERM)
        _, err = first.communicate(timeout=60)
    assert first.returncode == 143, err
    third = home.run(*COMMAND, "--concurrency", "64")
    assert third.exit_code == 0, third.err
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(200))
    assert len(sandbox.requests()) == before + 200


def test_what_a_run_is_made_of_may_not_change(home: Home, sandbox: Served) -> None:
    """An edited manifest, or another content of its items, is refused with exit 5, unsent (failures.md row 55)."""
    assert home.run(*COMMAND, "--limit", "3").exit_code == 0
    before = len(sandbox.journal())
    home.manifest(sandbox.base_url, {"readmes": {**readmes(10)["readmes"], "with": {"ref": "main"}}})
    edited = home.run(*COMMAND)
    home.manifest(sandbox.base_url, readmes(10))
    items = (home.folder / "10.jsonl").read_text()
    home.write("10.jsonl", items.replace("repo-00009", "repo-00019"))
    changed = home.run(*COMMAND)
    assert (edited.exit_code, changed.exit_code) == (5, 5), edited.err + changed.err
    assert "run" in edited.err
    assert "10.jsonl" in changed.err
    assert len(sandbox.journal()) == before
    elsewhere = home.run("run", "manifest.yaml", "--run-dir", "other")
    assert elsewhere.exit_code == 0, elsewhere.err
    home.write("10.jsonl", items)
    same_again = home.run(*COMMAND)
    assert same_again.exit_code == 0, same_again.err
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(10))


def test_what_the_check_has_made_may_not_be_edited(home: Home, sandbox: Served) -> None:
    """An edited check.json (an item less) or result line is refused with exit 5; deleted, it is made again (row 46)."""
    assert home.run(*COMMAND, "--limit", "3").exit_code == 0
    assert home.run(*COMMAND, "--max-duration", "0.01s").exit_code == 3
    ended = Clock.now()  # what the run gave up then may be answered later
    check, results = (home.folder / "run" / name for name in ("check.json", "results.jsonl"))
    good, lines = check.read_bytes(), results.read_bytes()
    check.write_bytes(good.replace(b'"items":10', b'"items":9'))
    edited = home.run(*COMMAND)
    assert edited.exit_code == 5, edited.err
    assert "check.json is not what this run has made" in edited.err
    assert "delete it" in edited.err
    check.unlink()
    results.write_bytes(lines.replace(b'"succeeded"', b'"unchanged"', 1))
    for command in (COMMAND, ("report", "run")):
        ran = home.run(*command)
        assert ran.exit_code == 5, ran.err
        assert "results.jsonl was edited" in ran.err
    assert [line for line in sandbox.journal() if datetime.fromisoformat(line["at"]).timestamp() > ended] == []
    results.write_bytes(lines)
    ran = home.run(*COMMAND)
    assert ran.exit_code == 0, ran.err
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(10))


@pytest.mark.parametrize(
    ("says", "options"),
    [("the vendor", ("--vendor", "github")), ("the platform's address", ("--base-url", "http://127.0.0.1:9/api/v3"))],
)
def test_a_refusal_changes_nothing(home: Home, sandbox: Served, says: str, options: tuple[str, ...]) -> None:
    """The run of another platform is refused with exit 5 before its items are checked again, and other items are where
    check.json is gone: the run directory stays as it was, and intact (failures.md row 55)."""

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (home.folder / "run").iterdir() if path.name != "run.lock"}

    assert home.run(*COMMAND, "--limit", "1").exit_code == 0
    before = files()
    ran = home.run(*COMMAND, *options)
    assert (ran.exit_code, says in ran.err, files() == before) == (5, True, True), ran.err
    verified = home.run("verify", "run")
    assert verified.exit_code == 0, verified.out + verified.err

    (home.folder / "run" / "check.json").unlink()
    home.write("10.jsonl", (home.folder / "10.jsonl").read_text().replace("repo-00009", "repo-00019"))
    before = files()
    ran = home.run(*COMMAND)
    assert (ran.exit_code, "its items files" in ran.err, files() == before) == (5, True, True), ran.err


AUDITED = """
import os, sys
def hook(event, args):
    if event == "open" and str(args[0]).endswith("10.jsonl"):
        os.write(told, b".")
told = os.open("opened", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
sys.addaudithook(hook)
from bulk.cli.app import main
main()
"""


@pytest.mark.parametrize("is_touched", [False, True])
def test_items_are_hashed_once(home: Home, is_touched: bool) -> None:
    """To check a run's items again, with another limit, with another time of their file or with both, it takes no more
    readings of the file than at first."""

    def opened(*options: str) -> int:
        ran = home.run_any([sys.executable, "-c", AUDITED, *COMMAND, *options])
        assert ran.exit_code == 0, ran.err
        return len((home.folder / "opened").read_bytes())

    first = opened("--limit", "3")
    if is_touched:
        os.utime(home.folder / "10.jsonl", (1.0, 1.0))
        assert opened("--limit", "3") <= first
        os.utime(home.folder / "10.jsonl", (2.0, 2.0))
    assert opened() <= first


def test_limits_may_change_from_one_resume_to_the_next(home: Home, sandbox: Served) -> None:
    """`limits` is not part of what a run is, neither in the file nor on the command line (failures.md row 55)."""
    assert home.run(*COMMAND, "--limit", "3").exit_code == 0
    home.manifest(sandbox.base_url, readmes(10), limits={"concurrency": 3, "failures": 1})
    ran = home.run(*COMMAND, "--reserve", "10%", "--concurrency", "5")
    assert ran.exit_code == 0, ran.err
    assert len(home.results("run")) == 10


def test_a_foreign_directory_is_left_alone(home: Home, sandbox: Served) -> None:
    """A directory that holds something else is refused with exit 5, and stays as it is."""
    home.write("run/thesis.txt", "mine")
    before = len(sandbox.journal())
    ran = home.run(*COMMAND)
    assert ran.exit_code == 5
    assert "thesis.txt" in ran.err
    assert [path.name for path in (home.folder / "run").iterdir()] == ["thesis.txt"]
    assert len(sandbox.journal()) == before


def test_a_complete_run_sends_nothing_more(home: Home, sandbox: Served) -> None:
    """The same command after the end of a run: exit code and report as before, nothing but `/rate_limit` sent."""
    assert home.run(*COMMAND).exit_code == 0
    before, results = len(sandbox.requests()), home.results("run")
    again = home.run(*COMMAND)
    assert again.exit_code == 0, again.err
    assert len(sandbox.requests()) == before
    assert home.results("run") == results


def test_without_a_run_dir_each_run_has_its_own(home: Home, sandbox: Served) -> None:
    """Without `--run-dir` a run lives in `runs/NAME-TIME`, and what goes on with it is named."""
    names = set()
    for _ in range(2):
        ran = home.run("run", "manifest.yaml", "--max-duration", "0.01s")
        assert ran.exit_code == 3, ran.err
        last = ran.err.splitlines()[-1]
        assert last.startswith("bulk resume runs/manifest-")
        names.add(last.split()[2])
        assert home.run(*last.split()[1:], "--max-duration", "1h").exit_code == 0
    assert {str(path.relative_to(home.folder)) for path in (home.folder / "runs").iterdir()} == names
    assert len(names) == 2


def test_two_runs_that_begin_in_the_same_second(home: Home, sandbox: Served) -> None:
    """Runs of one manifest that are started together have directories of their own, and both go to their ends."""
    started = [home.start("run", "manifest.yaml") for _ in range(3)]
    ended = [(process.communicate(timeout=60), process.returncode) for process in started]
    assert [exit_code for _, exit_code in ended] == [0, 0, 0], ended
    runs = sorted((home.folder / "runs").iterdir())
    assert len(runs) == 3
    assert [len(home.results(str(run))) for run in runs] == [10, 10, 10]


def test_a_failed_check_leaves_no_run_directory(home: Home, sandbox: Served) -> None:
    """What can't be run leaves nothing behind, whether its directory was named or not; one that was there stays."""
    home.write("10.jsonl", '{"owner": "acme-fleet"}\n')
    home.write("mine/.keep", "")
    (home.folder / "mine" / ".keep").unlink()
    for options in ((), ("--run-dir", "run"), ("--run-dir", "mine")):
        ran = home.run("run", "manifest.yaml", *options)
        assert ran.exit_code == 2, ran.err
        assert "repo" in ran.err
    assert not (home.folder / "runs").exists()
    assert not (home.folder / "run").exists()
    assert list((home.folder / "mine").iterdir()) == []


def test_what_was_deleted_is_named_with_the_way_out(home: Home, sandbox: Served) -> None:
    """A command without the manifest says which one makes `origin.json` again, and that does; of the results, which
    nothing else holds, that a copy has to be there. Nothing is sent."""
    assert home.run(*COMMAND).exit_code == 0
    asked = len(sandbox.requests())
    origin, results = home.folder / "run" / "origin.json", home.folder / "run" / "results.jsonl"
    kept, lines = origin.read_bytes(), results.read_bytes()
    origin.unlink()
    for command in (("undo", "run", "-o", "undo.yaml"), ("audit", "notify", "run")):
        refused = home.run(*command)
        assert refused.exit_code == 5, refused.err
        assert "origin.json is not there; this makes it again: bulk run MANIFEST --run-dir run\n" in refused.err
    assert home.run(*COMMAND).exit_code == 0
    assert origin.read_bytes() == kept
    results.unlink()
    refused = home.run(*COMMAND)
    assert (refused.exit_code, "results.jsonl is gone, and nothing else holds its lines; restore" in refused.err) == (
        5,
        True,
    ), refused.err
    for verb in ("report", "resume"):
        refused = home.run(verb, "run")
        assert (refused.exit_code, "correct that, or restore it from a copy" in refused.err) == (5, True), refused.err
    results.write_bytes(lines[:-1])
    cut = home.run("resume", "run")
    assert (cut.exit_code, "results.jsonl was edited, or is an older copy" in cut.err) == (5, True), cut.err
    results.write_bytes(lines)
    assert home.run(*COMMAND).exit_code == 0
    assert len(sandbox.requests()) == asked
