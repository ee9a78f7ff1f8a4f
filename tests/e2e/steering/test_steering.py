"""A run is looked at, paused, changed and stopped from another terminal, through its control socket."""

import json
import re
import signal
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.judging import arrived, effects
from tests.e2e.support.platform import Home, Process, Served, has_ended, served, wait_for

FLEET = {"organization": "acme-fleet", "count": 900, "readme_bytes": 100}
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
ON_THEIR_WAY_S = 0.1
"""What left before the run was paused arrives within this time (seconds)."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform whose answers take a while."""
    folder = tmp_path_factory.mktemp("sandbox")
    options = ("--latency", "60", "--rate-limit", "core=200000/3600")
    with served(folder, *options, seed={"repositories": FLEET}) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty folder."""
    return Home(tmp_path)


def files(first: int, last: int) -> dict[str, Any]:
    """A job of a write in each of these repositories; each takes several requests."""
    items = [
        {"owner": "acme-fleet", "repo": f"repo-{n:05d}", "path": "s.txt", "content": "QQ=="} for n in range(first, last)
    ]
    return {"files": {"operation": "contents.put", "items": items, "with": {"message": "Add a file"}}}


@contextmanager
def running(home: Home, sandbox: Served, first: int, last: int, **limits: Any) -> Iterator[Process]:
    """A run of these writes that has begun to send."""
    home.manifest(sandbox.base_url, files(first, last), limits={"concurrency": 4, "settle": "1s", **limits})
    before = len(sandbox.requests())
    with home.running(*COMMAND) as process:
        wait_for(lambda: len(sandbox.requests()) >= before + 10, process)
        yield process


def state(home: Home) -> str:
    """What `bulk status` and `bulk runs` say."""
    said: dict[str, Any] = json.loads(home.run("status", "run", "--json").out)
    (listed,) = json.loads(home.run("runs", "run", "--json").out)
    assert listed["state"] == said["state"]
    return str(said["state"])


def now() -> float:
    """The time of the sandbox's journal."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def once_each(sandbox: Served, first: int, last: int) -> None:
    """Every repository has its one commit."""
    done = Counter(effects(sandbox.requests()))
    wanted = [f"commit acme-fleet/repo-{number:05d} s.txt" for number in range(first, last)]
    assert {name: done[name] for name in wanted} == dict.fromkeys(wanted, 1)


def test_a_paused_run_sends_nothing_until_it_is_resumed(home: Home, sandbox: Served, figure) -> None:
    """`bulk pause` holds also who waits for a permit; what was in flight has ended; `bulk resume` goes on."""
    with running(home, sandbox, 0, 80) as process:
        asked = now()
        paused = home.run("pause", "run")
        at = now()
        assert paused.exit_code == 0, paused.err
        assert "bulk resume run" in paused.err
        assert not has_ended(process, 1.0)
        late = [line for line in sandbox.requests() if arrived(line) > at + ON_THEIR_WAY_S]
        assert (state(home), late) == ("paused", [])
        shown = home.run("status", "run").out
        assert "bulk resume run" in shown
        again = home.run("pause", "run")
        assert again.exit_code == 0, again.err
        resumed = home.run("resume", "run")
        assert resumed.exit_code == 0, resumed.err
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    once_each(sandbox, 0, 80)
    actions = home.report("run")["actions"]
    assert [(action["verb"], action["result"]) for action in actions][-1] == ("resume", "running")
    assert {action["verb"] for action in actions} == {"pause", "resume"}
    assert "Steered:" in home.run("report", "run").out
    figure(f"paused {at - asked:.2f} s after the command was started, one request taking 0.06 s")


def test_a_resume_with_options_is_refused_where_a_process_drives_the_run(home: Home, sandbox: Served) -> None:
    """They would not reach that process: exit 2 with the command that does, and the run stays paused; what only shows
    the run may be given."""
    with running(home, sandbox, 640, 680) as process:
        assert home.run("pause", "run").exit_code == 0
        for options, said in (
            (("--concurrency", "1"), "--concurrency does not reach it; give it with: bulk set run concurrency=1"),
            (("--failures", "5%", "--max-duration", "2h"), "bulk set run failures=5% max_duration=2h"),
            (("--limit", "1", "--reserve", "9"), "--limit does not reach it; give it to `bulk resume run` after: bulk"),
            (("--accept-wave", "1", "--no-cache"), "--accept-wave and --no-cache do not reach it"),
        ):
            refused = home.run("resume", "run", *options)
            assert (refused.exit_code, said in refused.err) == (2, True), refused.err
            assert state(home) in ("pausing", "paused")
        resumed = home.run("resume", "run", "--progress", "none")
        assert resumed.exit_code == 0, resumed.err
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_a_pause_settles_what_was_lost(tmp_path: Path) -> None:
    """Answers that were lost when the run was paused are settled by reading, and nothing is left in doubt."""
    home = Home(tmp_path)
    options = ("--rate-limit", "off", "--latency", "30", "--fault", "drop-after=0.3", "--fault-seed", "7")
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        with running(home, sandbox, 0, 40) as process:
            assert home.run("pause", "run").exit_code == 0
            at = now()
            assert not has_ended(process, 1.5)
            assert [line for line in sandbox.requests() if arrived(line) > at + ON_THEIR_WAY_S] == []
            assert home.run("stop", "run").exit_code == 0
            process.communicate(timeout=60)
            assert process.returncode == 3
        assert home.run("resume", "run").exit_code == 0
        once_each(sandbox, 0, 40)


def test_a_stopped_run_ends_with_3_and_is_resumed(home: Home, sandbox: Served) -> None:
    """`bulk stop` lets what is in flight end; the run exits 3 and says how to go on; `--now` does not wait."""
    for first, options in ((100, ()), (200, ("--now",))):
        with running(home, sandbox, first, first + 60) as process:
            stopped = home.run("stop", "run", *options)
            _, err = process.communicate(timeout=60)
        assert (stopped.exit_code, process.returncode) == (0, 3), stopped.err + err
        assert stopped.err.splitlines()[-1] == err.splitlines()[-1] == "bulk resume run"
        assert state(home) == "stopped"
        assert home.run("resume", "run").exit_code == 0
        once_each(sandbox, first, first + 60)
        for name in (home.folder / "run").iterdir():
            assert name.name != "control.sock"
        (home.folder / "run").rename(home.folder / f"run-{first}")


def status_of(home: Home) -> dict[str, Any]:
    """What the run has said of itself last, which may be of a moment before."""
    return dict(json.loads(home.run("status", "run", "--json").out)["status"])


def test_limits_are_changed(home: Home, sandbox: Served) -> None:
    """`bulk set` changes limits at once, all or none, within their ranges, and prints what is in force."""
    with running(home, sandbox, 300, 400, concurrency=16) as process:
        done = home.run("set", "run", "concurrency=2", "reserve=10%", "failures=7", "max_duration=1h", "--json")
        assert done.exit_code == 0, done.err
        limits = {"concurrency": 2, "reserve": "10%", "failures": 7, "max_duration": 3600.0}
        in_force = {**limits, "priority": {"files": 0}}
        assert json.loads(done.out) == in_force
        wait_for(lambda: (seen := status_of(home))["concurrency"] == 2 and seen["in_flight"] <= 2, process)
        status = status_of(home)
        assert [bucket["reserve"] for bucket in status["buckets"]] == [20_000]
        for change, said in (
            ("concurrency=17", "from 1 to 16"),
            ("concurrency=0", "from 1 to 16"),
            ("reserve=200000", "it would leave nothing of core"),
            ("reserve=100%", "below 100%"),
            ("failures=x", "expected a count such as 50 or a share such as 5%"),
            ("failures=none%", "expected a count"),
            ("concurency=3", "did you mean concurrency?"),
            ("concurrency", "write NAME=VALUE"),
        ):
            refused = home.run("set", "run", "max_duration=9h", change)
            assert refused.exit_code == 2, refused.err
            assert said in refused.err, refused.err
        unchanged = home.run("set", "run", "concurrency=16", "--json")
        assert json.loads(unchanged.out) == {**in_force, "concurrency": 16}
        assert home.run("set", "run", "max_duration=0.01s").exit_code == 0
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "max_duration of 0.01 s" in err
    results = {
        action["result"] for action in home.report("run")["actions"] if action["args"].get("max_duration") == "9h"
    }
    assert any("nothing of core" in result for result in results)


def test_a_job_is_put_before_the_others(home: Home, sandbox: Served) -> None:
    """`bulk set RUN priority.JOB=N` sends what is left of that job before anything of the others."""
    jobs = {"last.one": files(850, 880)["files"], "one": files(800, 850)["files"]}
    home.manifest(sandbox.base_url, jobs, limits={"concurrency": 2})
    before = len(sandbox.requests())
    with home.running(*COMMAND) as process:
        wait_for(lambda: len(sandbox.requests()) >= before + 10, process)
        refused = home.run("set", "run", "priority.last-one=3", "concurrency=1")
        assert refused.exit_code == 2
        assert "priority.last-one: unknown job; did you mean last.one?" in refused.err
        assert home.run("set", "run", "priority.one=high").exit_code == 2
        done = home.run("set", "run", "priority.last.one=-3", "priority.one=5")
        assert done.exit_code == 0, done.err
        assert [line.split() for line in done.out.splitlines()][-2:] == [
            ["priority.last.one", "-3"],
            ["priority.one", "5"],
        ]
        set_at = len(effects(sandbox.requests(), "commit"))
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    order = [int(name.split("repo-")[1][:5]) >= 850 for name in effects(sandbox.requests(), "commit")[set_at:]]
    assert sum(order) > 5
    assert True not in order[4 : order.count(False) - 4]
    once_each(sandbox, 800, 880)


def test_watching_from_another_terminal(home: Home, sandbox: Served) -> None:
    """`bulk watch` shows what the run's own display shows, ends with it and its exit code; Ctrl-C only detaches."""
    with running(home, sandbox, 420, 520) as process:
        with home.running("watch", "run", "--progress", "json") as detached:
            assert detached.stderr is not None
            first = json.loads(detached.stderr.readline())
            detached.send_signal(signal.SIGINT)
            detached.communicate(timeout=60)
        assert (detached.returncode, first["type"], first["state"]) == (0, "status", "running")
        watched = home.run("watch", "run", "--progress", "plain")
        _, err = process.communicate(timeout=60)
    assert (process.returncode, watched.exit_code) == (0, 0), err
    assert "100/100 items" in watched.err
    ended = home.run("watch", "run", "--progress", "plain")
    assert ended.exit_code == 0
    assert "complete" in ended.err


def test_nobody_drives_it(home: Home, sandbox: Served) -> None:
    """Who asks a run that has ended, was killed, or is none, is told so and what to do, with exit 5."""
    with running(home, sandbox, 540, 640) as process:
        mode = (home.folder / "run" / "control.sock").stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
        process.kill()
        process.wait(60)
    assert state(home) == "lost"
    for command in (("pause", "run"), ("stop", "run"), ("set", "run", "concurrency=2")):
        asked = home.run(*command)
        assert asked.exit_code == 5
        assert "bulk resume run" in asked.err, asked.err
    assert home.run("watch", "run", "--progress", "none").exit_code == 3
    assert home.run("resume", "run").exit_code == 0
    once_each(sandbox, 540, 640)
    asked = home.run("pause", "run")
    assert asked.exit_code == 5
    assert "it is complete, so there is nothing to pause" in asked.err
    (home.folder / "empty").mkdir()
    for command in (("pause", "empty"), ("watch", "empty"), ("stop", "nowhere")):
        asked = home.run(*command)
        assert asked.exit_code == 5
        assert "is not a run directory" in asked.err


def test_runs_are_listed_whatever_else_is_there(home: Home, sandbox: Served) -> None:
    """`bulk runs` lists what is a run, says of a damaged one why, and passes by what is none."""
    home.manifest(sandbox.base_url, files(700, 702))
    assert "no run" in home.run("runs").err
    assert home.run("run", "manifest.yaml").exit_code == 0
    home.write("runs/broken/ledger.db", b"SQLite format 3\0 and then nothing")
    home.write("runs/other/thesis.txt", "mine")
    home.write("runs/a-file", "")
    (home.folder / "runs" / "loop").symlink_to("loop")
    home.write("runs/begun/origin.json", "{}")
    home.write("runs/gone/origin.json", "{}")
    home.write("runs/gone/run.seal", "{}")
    listed = home.run("runs")
    assert listed.exit_code == 0, listed.err
    assert len(listed.out.splitlines()) == 5
    by_name = {Path(run["run_dir"]).name: run for run in json.loads(home.run("runs", "runs", "--json").out)}
    assert {name: run["state"] for name, run in by_name.items() if "manifest" not in name} == {
        "broken": "damaged",
        "begun": "lost",
        "gone": "damaged",
    }
    assert "ledger.db is gone; restore the whole run directory" in by_name["gone"]["why"]
    (whole,) = (run for name, run in by_name.items() if "manifest" in name)
    assert (whole["state"], whole["items"], whole["exit_code"]) == ("complete", 2, 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", whole["ended_at"])
    assert home.run("runs", "nowhere").exit_code == 2


def test_a_run_directory_with_a_long_path(home: Home, sandbox: Served) -> None:
    """Where the path of the socket is longer than a socket's may be, the run is steered all the same."""
    place = "/".join(["a" * 60, "b" * 60])
    home.manifest(sandbox.base_url, files(720, 800), limits={"concurrency": 4})
    before = len(sandbox.requests())
    with home.running("run", "manifest.yaml", "--run-dir", place) as process:
        wait_for(lambda: len(sandbox.requests()) >= before + 10, process)
        assert home.run("stop", place).exit_code == 0
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert (home.folder / place / "report.json").is_file()
