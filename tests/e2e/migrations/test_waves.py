"""Waves against a real sandbox: a mistake touches one item, a gate stays closed, and a kill goes on in its wave."""

import base64
import itertools
import json
import random
import re
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bulk.clock import Clock
from bulk.ledger.view import LedgerView
from bulk.report.timeline import read_minutes
from tests.e2e.support.platform import Home, Ran, Served, served, wait_for

FLEET = {"organization": "acme-fleet", "count": 200, "readme_bytes": 100}
CONTENT = base64.b64encode(b"ours\n").decode()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for a manifest."""
    return Home(tmp_path / "home")


def items(count: int, wrong: set[int]) -> list[dict[str, Any]]:
    """New files, four in each repository; wrong ones name a branch that is not there, which only the platform knows."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        item = {
            "owner": "acme-fleet",
            "repo": f"repo-{number // 4 % 200:05d}",
            "path": f"f{number}.txt",
            "message": "m",
        }
        made.append({**item, "content": CONTENT, "branch": "nowhere" if number in wrong else "main"})
    return made


def manifest(home: Home, sandbox: Served, count: int, wrong: set[int] = frozenset(), **limits: Any) -> None:  # type: ignore[assignment]
    """One job over `items`."""
    home.folder.mkdir(exist_ok=True)
    home.lines("items.jsonl", items(count, wrong))
    limits = {"waves": [1, "5%", "25%", "rest"], "settle": "1s", **limits}
    jobs = {"files": {"operation": "contents.put", "items": "items.jsonl"}}
    home.manifest(sandbox.base_url, jobs, limits=limits)


RUN = ("run", "manifest.yaml", "--run-dir", "run", "--progress", "none")


def said(ran: Ran) -> str:
    """What a command printed, on one line."""
    return " ".join((ran.out + ran.err).split())


def puts(sandbox: Served) -> list[int]:
    """Which files were written, in order."""
    lines = [line for line in sandbox.journal() if line["method"] == "PUT" and line["status"] < 300]
    return [int(line["path"].rpartition("/f")[2].partition(".")[0]) for line in lines]


def test_a_mistake_touches_one_item(tmp_path: Path, home: Home) -> None:
    """A wrong value in every item: one was tried; in 3% of them: stopped in the second wave, and it goes on where that
    is accepted."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        manifest(home, sandbox, 400, set(range(400)), errors={"not_found": 0})
        ran = home.run(*RUN)
        assert (ran.exit_code, len(home.results("run"))) == (3, 1), ran.err
        assert "wave 1 of 4 of files stopped: 1 not_found of 1 items, 0 allowed" in said(ran)
        assert home.run(*RUN).exit_code == 3
        assert len(home.results("run")) == 1

        mistakes = set(range(5, 400, 33))  # in 3% of the items
        manifest(home, sandbox, 400, mistakes, errors={"not_found": "2%"})
        few = (*RUN[:3], "few", *RUN[4:])
        ran = home.run(*few)
        assert (ran.exit_code, "wave 2 of 4" in said(ran)) == (3, True), ran.err
        assert max(puts(sandbox)) < 21
        for command in (few, ("resume", "few")):
            ran = home.run(*command, "--accept-wave", "2", "--accept-wave", "5")
            refused = (ran.exit_code, "the run has 4 at most" in ran.err, max(puts(sandbox)) < 21)
            assert refused == (2, True, True), ran.err
            assert not (home.folder / "few" / "gates.json").exists()
        accepted = [word for wave in "234" for word in ("--accept-wave", wave)]
        ran = home.run(*few, *accepted)
        assert (ran.exit_code, len(home.results("few"))) == (1, 400), ran.err
        journal = puts(sandbox)
        assert sorted(journal) == sorted(set(range(400)) - mistakes)
        bounds = [1, 21, 121, 400]
        places = {number: place for place, number in enumerate(journal)}
        for first, second in itertools.pairwise(bounds):
            before, after = (n for n in places if n < first), (n for n in places if first <= n < second)
            assert max(map(places.__getitem__, before)) < min(map(places.__getitem__, after))


def test_a_gate_is_opened_by_hand(tmp_path: Path, home: Home) -> None:
    """Nothing of the second wave is sent before it is approved, also when the command is given again."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        manifest(home, sandbox, 40, gate="manual", waves=[2, 10])
        assert "looked at 40 items" in home.run("plan", "manifest.yaml", "--live").out
        for _ in range(2):
            ran = home.run(*RUN)
            assert (ran.exit_code, "bulk approve run --wave 2" in said(ran)) == (3, True), ran.err
            assert sorted(puts(sandbox)) == [0, 1]
            for shown in (ran.out, home.run("status", "run").out):
                assert re.search(r"^Go on: +bulk approve run --wave 2$", shown, re.MULTILINE), shown
        assert home.run("approve", "run", "--wave", "2").exit_code == 0
        assert re.search(r"^Go on: +bulk resume run$", home.run("status", "run").out, re.MULTILINE)
        assert (home.run(*RUN).exit_code, sorted(puts(sandbox))) == (3, list(range(12)))
        assert home.run("approve", "run", "--wave", "3").exit_code == 0
        assert (home.run("resume", "run", "--progress", "none").exit_code, len(puts(sandbox))) == (0, 40)
        actions = [(each["verb"], each["args"], each["who"]) for each in home.report("run")["actions"]]
        approved = [(args["wave"], "(cli)" in who) for verb, args, who in actions if verb == "approve"]
        assert approved == [("2", True), ("3", True)]
        assert home.run("verify", "run").exit_code == 0


def test_a_wave_is_opened_while_the_one_before_goes_on(tmp_path: Path, home: Home) -> None:
    """The process that drives the run goes on with it, and what is told is which waves are open now."""
    with served(
        tmp_path / "sandbox", "--latency", "400", "--rate-limit", "off", seed={"repositories": FLEET}
    ) as sandbox:
        manifest(home, sandbox, 5, gate="manual", waves=[2, 1, 1])
        with home.running(*RUN) as process:
            wait_for(lambda: puts(sandbox) == [0], process)
            told = home.run("approve", "run", "--wave", "3")
            assert told.out == "waves up to 3 of run are open: it goes through 2 of them without a stop\n"
            assert "The process that drives run goes on" in told.err
            assert home.run("approve", "run", "--wave", "2").out == "waves up to 3 of run are open already\n"
            out, _ = process.communicate(timeout=60)
        assert (process.returncode, "bulk approve run --wave 4" in out, puts(sandbox)) == (3, True, [0, 1, 2, 3])
        assert [(each["verb"], each["args"]) for each in home.report("run")["actions"]] == [("approve", {"wave": "3"})]


@pytest.mark.parametrize("gate", [{"after": "1h"}, "manual"])
def test_no_end_is_shown_before_the_gates_ahead_are_open(tmp_path: Path, home: Home, gate: Any) -> None:
    """Where they open by themselves the end lies behind them, and where a person opens them nobody knows it."""

    def has_status(kind: str, requests: int) -> bool:
        status.update(json.loads(home.run("status", "run", "--json").out).get("status") or {})
        return status.get("requests", 0) >= requests and kind in (wait["kind"] for wait in status["waits"])

    status: dict[str, Any] = {}
    options = ("--latency", "400", "--rate-limit", "core=5000/60")
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        manifest(home, sandbox, 6, gate=gate, waves=[3, 1, 1])
        with home.running(*RUN) as process:
            wait_for(lambda: puts(sandbox) == [0], process)
            wait_for(lambda: has_status("lane", 3), process)
            if gate == "manual":
                assert status["finish_at"] is None
                return
            for kind in ("lane", "gate"):
                wait_for(lambda kind=kind: has_status(kind, 3) and status["finish_at"], process)  # type: ignore[misc]
                left_s = datetime.fromisoformat(status["finish_at"]).timestamp() - Clock().now()
                assert 3 * 3_600 - 60 < left_s < 3 * 3_600 + 60


def test_no_wave_is_opened_that_is_none(tmp_path: Path, home: Home) -> None:
    """A wave that the run does not have, one that it has passed, a run without waves or with gates that open by
    themselves, and one that is complete: exit 2, with the reason, and nothing is opened."""

    def refused(run: str, wave: int) -> str:
        before = opened.read_bytes() if opened.exists() else b""
        told = home.run("approve", run, "--wave", str(wave))
        assert (told.exit_code, told.out, opened.read_bytes() if opened.exists() else b"") == (2, "", before), told.err
        return " ".join(told.err.split())

    opened = home.folder / "run" / "gates.json"
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        manifest(home, sandbox, 20, gate="manual", waves=[2, 10])
        assert home.run(*RUN).exit_code == 3
        assert "run has 3 waves; there is no wave 9" in refused("run", 9)
        assert "run has passed wave 1; it waits at wave 2 of 3: bulk approve run --wave 2" in refused("run", 1)
        assert "0 is not in the range" in refused("run", 0)
        told = home.run("approve", "run", "--wave", "3")
        assert (told.exit_code, "it goes through 2 of them without a stop" in told.out) == (0, True), told.err
        assert home.run(*RUN).exit_code == 0
        assert "run is complete: it has no wave left to open" in refused("run", 3)
        manifest(home, sandbox, 3)
        assert home.run("run", "manifest.yaml", "--run-dir", "auto", "--progress", "none").exit_code == 0
        home.manifest(sandbox.base_url, {"files": {"operation": "contents.put", "items": "items.jsonl"}})
        assert home.run("run", "manifest.yaml", "--run-dir", "none", "--progress", "none").exit_code == 0
        assert "none has no waves" in refused("none", 2)
        assert "the waves of auto begin by themselves" in refused("auto", 2)


def test_a_gate_that_opens_by_itself(tmp_path: Path, home: Home) -> None:
    """It keeps its time, stopped and killed meanwhile as well; a stop ends the wait, and the status says what is
    waited for, and how many items do."""

    def is_waiting() -> bool:
        found = home.run("status", "run")
        return found.exit_code == 0 and "(2 items)" in found.out.partition("waiting: gate of the next wave until ")[2]

    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        manifest(home, sandbox, 3, gate={"after": "10s"}, waves=[1, "rest"])
        with home.running(*RUN) as process:
            wait_for(is_waiting, process)
            assert "waits for\n" not in home.run("status", "run").out
            assert home.run("stop", "run").exit_code == 0
            process.communicate(timeout=60)
            assert (process.returncode, puts(sandbox)) == (3, [0])
        with home.running(*RUN) as process:
            wait_for(is_waiting, process)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        assert (home.run(*RUN).exit_code, sorted(puts(sandbox))) == (0, [0, 1, 2])
        sent = [datetime.fromisoformat(line["at"]) for line in sandbox.journal() if line["method"] == "PUT"]
        assert (sent[1] - sent[0]).total_seconds() >= 9.5


def test_a_report_counts_every_wave(tmp_path: Path, home: Home) -> None:
    """Requests and what was spent of a budget are those of all waves, and the plots have the outcomes of each."""
    with served(tmp_path / "sandbox", "--rate-limit", "core=5000/600", seed={"repositories": FLEET}) as sandbox:
        manifest(home, sandbox, 8, waves=[1, 2, "rest"])
        assert home.run(*RUN).exit_code == 0
        sent = len(sandbox.requests())
        report = home.report("run")
        assert (report["requests"], report["epochs"][0]["requests"]) == (sent, sent)
        assert [bucket["used"] for bucket in report["buckets"]] == [sent]
    samples = read_minutes(LedgerView(home.folder / "run").timeline())
    assert sum(sum(counts) for sample in samples for counts in sample.outcomes.values()) == 8


def test_a_killed_wave_goes_on(tmp_path: Path, home: Home) -> None:
    """Killed in each of three waves: the next one begins only after it; each file once."""
    with served(
        tmp_path / "sandbox", "--rate-limit", "off", "--latency", "10", seed={"repositories": FLEET}
    ) as sandbox:
        manifest(home, sandbox, 200, waves=[20, 60])
        for wanted in (10, 45, 120):
            with home.running(*RUN) as process:
                wait_for(lambda wanted=wanted: len(puts(sandbox)) >= wanted, process)  # type: ignore[misc]
                process.send_signal(signal.SIGKILL)
                process.communicate(timeout=60)
        assert home.run(*RUN).exit_code == 0
        journal = puts(sandbox)
        assert (sorted(journal), set(journal[:20])) == (list(range(200)), set(range(20)))
        assert set(journal[:80]) == set(range(80))


@pytest.mark.soak
@pytest.mark.timeout(500)
def test_a_mistake_among_a_hundred_thousand(tmp_path: Path, home: Home, figure: Callable[[str], None]) -> None:
    """In every item: one is touched, and it ends with 3 within 2 s of the first request; in 3%: in the second or third
    wave."""
    count, waves = 100_000, [1, "1%", "10%", "rest"]
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        manifest(home, sandbox, count, set(range(count)), waves=waves, errors={"not_found": 0})
        ran = home.run(*RUN, timeout_s=200)
        ended = Clock().now()
        assert (ran.exit_code, len(home.results("run"))) == (3, 1), ran.err
        sent = [line for line in sandbox.journal() if line["path"].rpartition("/")[2] == "f0.txt"]
        took_s = ended - datetime.fromisoformat(sent[0]["at"]).timestamp()
        figure(f"wrong in all {count:,} items: 1 touched, exit 3 after {took_s:.2f} s")
        touched = {line["path"] for line in sandbox.journal() if "/contents/" in line["path"]}
        assert (len(touched), took_s < 2.0) == (1, True)

        mistakes = set(random.Random(3).sample(range(count), count * 3 // 100))
        manifest(home, sandbox, count, mistakes, waves=waves, errors={"not_found": "2%"})
        ran = home.run(*RUN[:3], "few", *RUN[4:], timeout_s=200)
        figure(
            f"wrong in 3% of {count:,}: {said(ran).partition('wave ')[2][:90]}; {len(home.results('few')):,} touched"
        )
        assert (ran.exit_code, "wave 2 of 4" in said(ran) or "wave 3 of 4" in said(ran)) == (3, True), ran.err


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"waves": []}, "limits.waves: expected a list"),
        ({"waves": ["rest", 1]}, "rest comes last"),
        ({"waves": [0]}, "at least one item"),
        ({"gate": "later"}, "expected auto, manual, or {after: 10m}"),
        ({"errors": {"not_fond": 0}}, "did you mean not_found?"),
        ({"errors": {"not_found": "many"}}, "expected a count"),
        ({"stale": -1}, "limits.stale"),
    ],
)
def test_wrong_words_are_named(home: Home, limits: dict[str, Any], words: str) -> None:
    """With the field and what was expected."""
    home.folder.mkdir()
    home.write("items.jsonl", json.dumps(items(1, set())[0]) + "\n")
    jobs = {"files": {"operation": "contents.put", "items": "items.jsonl"}}
    home.manifest("http://127.0.0.1:9/api/v3", jobs, limits=limits)
    checked = home.run("check", "manifest.yaml")
    assert (checked.exit_code, words in checked.err) == (2, True), checked.err


def test_what_is_made_from_results_goes_in_waves(tmp_path: Path, home: Home) -> None:
    """Its waves follow each other in one process, its budgets hold from its first item on and after a resume, and a
    manual gate names it."""
    made = {"from": "files", "each": "item", "map": {"owner": "item.owner", "repo": "item.repo", "path": "item.id"}}
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:

        def run(name: str, branch: str, *commands: tuple[str, ...], **limits: Any) -> list[tuple[int, int, str]]:
            home.folder.mkdir(exist_ok=True)
            files = [{**item, "id": f"{name}-{number}"} for number, item in enumerate(items(6, set()))]
            then = {"operation": "contents.put", "with": {"branch": branch, "message": "m", "content": CONTENT}}
            jobs = {"files": {"operation": "contents.put", "items": files}, "then": {**then, "items": made}}
            home.manifest(sandbox.base_url, jobs, f"{name}.yaml", limits={"waves": [1, 2], "settle": "1s", **limits})
            found: list[tuple[int, int, str]] = []
            for command in (("run", f"{name}.yaml", "--run-dir", name), *commands):
                ran = home.run(*command)
                ended = sum(line["job"] == "then" for line in home.results(name))
                found.append((ran.exit_code, ended, said(ran)))
            return found

        assert [each[:2] for each in run("auto", "main")] == [(0, 6)]

        resume = ("resume", "wrong")
        accepted = (*resume, "--accept-wave", "1")
        stopped = run("wrong", "nowhere", resume, accepted, errors={"not_found": 0})
        assert [each[:2] for each in stopped] == [(3, 1), (3, 1), (3, 2)]
        assert "wave 1 of 3 of then stopped: 1 not_found of 1 items" in stopped[1][2]
        assert "wave 2 of 3 of then stopped" in stopped[2][2]

        by_hand = [("approve", "hand", "--wave", "2"), ("resume", "hand"), ("approve", "hand", "--wave", "3")]
        opened = run("hand", "main", *by_hand, ("resume", "hand"), gate="manual")
        assert [each[:2] for each in opened] == [(3, 0), (0, 0), (3, 0), (0, 0), (0, 6)]
