"""Steering from the page: the same control socket as the commands have, with who and when, and children that retry."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bulk.clock import Clock
from bulk.ledger.directory import is_held
from bulk.serve.server import Served
from bulk.serve.steer import NotDone, Steer
from tests.browser.runs import write_small
from tests.e2e.support.judging import effects
from tests.e2e.support.platform import Home
from tests.e2e.support.platform import Served as Sandbox
from tests.e2e.support.platform import served as sandboxed
from tests.serve.conftest import Asker

FLEET = {"organization": "acme-fleet", "count": 200, "readme_bytes": 100}
ITEMS, MISSING = 40, 7


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A platform whose answers take a while."""
    options = ("--latency", "30", "--rate-limit", "core=200000/3600")
    with sandboxed(tmp_path_factory.mktemp("sandbox"), *options, seed={"repositories": FLEET}) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path, sandbox: Sandbox) -> Home:
    """A manifest that writes a file into each of many repositories, and reads some that are not there."""
    home = Home(tmp_path)
    items = [{"owner": "acme-fleet", "repo": f"repo-{n:05d}", "path": f"{tmp_path.name}.txt"} for n in range(ITEMS)]
    writes = {"operation": "contents.put", "with": {"message": "Add", "content": "QQ=="}, "items": items}
    gone = [{"owner": "acme-fleet", "repo": f"gone-{n}"} for n in range(MISSING)]
    reads = {"operation": "readme.get", "items": gone}
    home.manifest(sandbox.base_url, {"files": writes, "readmes": reads}, limits={"concurrency": 4, "settle": "1s"})
    return home


@contextmanager
def serving(home: Home, *options: str) -> Iterator[Asker]:
    """`bulk serve`, as a user starts it."""
    with home.running("serve", "--runs", ".", "--port", "0", *options) as process:
        assert process.stdout is not None
        url, _, key = process.stdout.readline().strip().partition("/#key=")
        yield Asker(Served(url, key, ""))


def until(asker: Asker, is_so: Callable[[dict[str, Any]], object], seconds: float = 120.0) -> dict[str, Any]:
    """Ask for the run until it is so; what it says then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = asker.get("/runs/run")
        if answer.status == 200 and is_so(answer.data):
            return dict(answer.data)
        threading.Event().wait(0.05)
    raise AssertionError(f"it never was: {answer.body!r}")


def done(page: dict[str, Any]) -> int:
    """Items that have ended."""
    return sum(page["run"]["outcomes"].values())


def actions(home: Home) -> list[tuple[str, str, dict[str, Any]]]:
    """Verb, program and arguments of what the report says was done."""
    return [
        (each["verb"], each["who"].rpartition("(")[2].rstrip(")"), each["args"])
        for each in home.report("run")["actions"]
    ]


def test_a_run_is_paused_set_and_resumed_from_the_page(home: Home, sandbox: Sandbox) -> None:
    """Paused, nothing is sent; what is set is in force; resumed, it ends with every effect once. The report says who it
    was.
    """
    with serving(home) as asker, home.running("run", "manifest.yaml", "--run-dir", "run") as process:
        until(asker, lambda page: done(page) >= 5)
        assert asker.post("/runs/run/pause", {}).data["state"] in ("pausing", "paused")
        until(asker, lambda page: page["run"]["state"] == "paused")  # where all items had ended, none waits
        sent = len(sandbox.requests())
        limits = asker.post("/runs/run/set", {"concurrency": "3"}).data["in_force"]
        assert limits["concurrency"] == 3
        assert until(asker, lambda page: page["limits"].get("concurrency") == 3)["run"]["state"] == "paused"
        wrong = asker.post("/runs/run/set", {"concurrency": "5000"})
        assert (wrong.status, "started with 4" in wrong.data["error"]) == (409, True)
        assert asker.post("/runs/run/set", {"base_url": "http://evil.example"}).status == 409
        assert len(sandbox.requests()) == sent
        assert asker.post("/runs/run/resume", {}).data["state"] == "running"
        ended = until(asker, lambda page: page["run"]["state"] == "complete")
        process.wait(60)
    assert (ended["run"]["exit_code"], done(ended)) == (1, ITEMS + MISSING)
    made = [effect for effect in effects(sandbox.requests()) if home.folder.name in effect]
    assert len(made) == len(set(made)) == ITEMS
    assert actions(home)[0] == ("pause", "web", {})
    assert ("set", "web", {"concurrency": "3"}) in actions(home)
    assert actions(home)[-1] == ("resume", "web", {})


def test_a_run_is_stopped_resumed_and_retried_from_the_page(home: Home, sandbox: Sandbox) -> None:
    """Stopped, its process ends with 3; resumed, a child of the page goes on; a retry takes what was filtered, and no
    more.
    """
    with serving(home) as asker:
        with home.running("run", "manifest.yaml", "--run-dir", "run") as process:
            until(asker, lambda page: done(page) >= 5)
            assert asker.post("/runs/run/stop", {}).status == 200
            assert process.wait(60) == 3
        stopped = until(asker, lambda page: page["run"]["state"] == "stopped")
        assert stopped["run"]["next_command"] == "bulk resume run"
        nobody = asker.post("/runs/run/pause", {})
        assert (nobody.status, nobody.data["command"]) == (409, "bulk resume run")
        assert asker.post("/runs/run/resume", {}).status == 200
        until(asker, lambda page: page["run"]["state"] == "complete")
        before = len(sandbox.requests())
        nothing = asker.post("/runs/run/retry", {"job": "readmes", "code": "conflict"})
        assert (nothing.status, "nothing to retry" in nothing.data["error"]) == (409, True)
        assert len(sandbox.requests()) == before, "no item had that code"
        assert asker.post("/runs/run/retry", {"job": "readmes", "code": "not_found"}).status == 200
        until(asker, lambda page: len(page["actions"]) == 3 and not is_held(home.folder / "run"))
    again = sandbox.requests()[before:]
    assert len({line["path"] for line in again}) == MISSING
    assert [(verb, who) for verb, who, _ in actions(home)] == [
        ("stop", "web"),
        ("resume", "web"),
        ("retry", "web"),
    ]
    assert actions(home)[-1][2] == {"job": "readmes", "code": "not_found"}
    made = [effect for effect in effects(sandbox.requests()) if home.folder.name in effect]
    assert len(made) == len(set(made)) == ITEMS


def test_a_child_that_cannot_start_says_why(home: Home) -> None:
    """Where the token is gone, a resume is refused with what the command said, and the command that goes on."""
    with home.running("run", "manifest.yaml", "--run-dir", "run", "--failures", "0") as process:
        process.wait(60)
    home.token = ""
    with serving(home) as asker:
        refused = asker.post("/runs/run/resume", {})
    assert refused.status == 409
    assert "BULK_TOKEN" in refused.data["error"]
    assert refused.data["command"] == "bulk resume run"


def test_what_no_command_line_can_hold_is_refused(home: Home) -> None:
    """A job whose name no argument can be is not a job, and a child that the system does not start says why."""
    write_small(home.folder / "run")
    with serving(home) as asker:
        refused = asker.post("/runs/run/retry", {"job": "a\0b"})
        assert (refused.status, refused.data["error"]) == (409, "there is no such job"), refused.body
    with pytest.raises(NotDone, match="can't be started: No such file or directory") as unstarted:
        Steer(lambda _: None, (str(home.folder / "gone"),)).do(home.folder / "run", "retry", {}, 0.0)
    assert unstarted.value.command == f"bulk resume {home.folder / 'run'}"


def test_a_child_that_is_stopped_before_anyone_looks_has_gone_on(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wave that is opened, and is over its budget at once, was opened all the same; the page says where it stands."""
    home, run_dir = Home(tmp_path), tmp_path / "run"
    items = [
        {"owner": "acme-fleet", "repo": repo, "path": f"{tmp_path.name}.txt"}
        for repo in ("repo-00001", "gone", "repo-00002")
    ]
    writes = {"operation": "contents.put", "with": {"message": "Add", "content": "QQ=="}, "items": items}
    limits = {"waves": [1, 1, "rest"], "gate": "manual", "errors": {"not_found": 0}, "settle": "1s"}
    home.manifest(sandbox.base_url, {"files": writes}, limits=limits)
    assert home.run("run", "manifest.yaml", "--run-dir", "run").exit_code == 3
    monkeypatch.setenv("BULK_TOKEN", home.token)
    looks, pause = list[float](), threading.Event().wait

    def until_it_has_ended(seconds: float) -> None:
        for is_waited_for in (True, False) if not looks else ():
            while is_held(run_dir) is not is_waited_for:
                pause(0.01)
        looks.append(seconds)
        pause(seconds)

    done = Steer(until_it_has_ended).do(run_dir, "gate", {"wave": 2}, Clock().now())
    assert (done.state, len(home.results("run")), len(looks) >= 1) == ("stopped", 2, True)
    with pytest.raises(NotDone, match="does not wait for that wave any more"):
        Steer(pause).do(run_dir, "gate", {"wave": 3}, Clock().now())


def test_the_page_may_die_at_any_time(home: Home, sandbox: Sandbox) -> None:
    """A run goes on as if nobody had looked when the page's process is killed in the middle of everything."""
    with home.running("run", "manifest.yaml", "--run-dir", "run") as process:
        for _ in range(3):
            with serving(home) as asker:
                until(asker, lambda page: page["run"]["status"])
                asker.get("/runs/run/items?q=acme")
                asker.get("/runs/run/plots")
        assert process.wait(60) == 1
    made = [effect for effect in effects(sandbox.requests()) if home.folder.name in effect]
    assert len(made) == len(set(made)) == ITEMS


def test_what_cannot_be_served_is_said(home: Home) -> None:
    """A folder that is none, a port that is taken and a file without a key are errors with a way out, exit 2."""
    (home.folder / "short.txt").write_text("short\n")
    with serving(home) as asker:
        for options, words in (
            (("--runs", "nothing"), "nothing is not a folder; name one that is there, or leave --runs out for runs"),
            (("--port", str(asker.port)), "--port 0 takes any free one"),
            (("--metrics-key", "short.txt"), "holds no key"),
        ):
            ran = home.run("serve", *options)
            assert (ran.exit_code, words in ran.err) == (2, True), ran.err


def test_the_same_can_be_retried_from_the_command_line(home: Home, sandbox: Sandbox) -> None:
    """`bulk retry --only --code --job` takes those items alone; what names nothing is refused, and nothing is sent."""
    home.run("run", "manifest.yaml", "--run-dir", "run")
    before = len(sandbox.requests())
    for options, words in (
        (("--only", "succeeded"), "can't be run again"),
        (("--code", "not_fond"), "did you mean not_found?"),
        (("--job", "nothing"), "it has files, readmes"),
    ):
        ran = home.run("retry", "run", *options)
        assert (ran.exit_code, words in ran.err) == (2, True), ran.err
    assert home.run("retry", "run", "--only", "unknown,skipped").exit_code == 1
    assert len(sandbox.requests()) == before
    assert json.loads(home.run("status", "run", "--json").out)["state"] == "complete"
