"""A run is paused, killed, resumed, changed and stopped in random order: every effect once, exit codes as promised."""

import json
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.judging import arrived, effects
from tests.e2e.support.platform import Home, Process, Served, has_ended, served, wait_for

SEED = 20261125
VERBS = ("pause", "pause", "resume", "resume", "set", "set", "kill", "stop")
NOBODY_THERE = ("pause", "resume", "set", "stop")
"""What may be asked where nobody drives the run."""
RESUMED = 0.7
"""How often a run that nobody drives is resumed at once, so that most actions reach a process (share)."""
NOBODY = ", nobody there"
MOST = 4
"""Requests in flight that the run is started with (count)."""
ON_THEIR_WAY_S = 0.15
"""What left before the run was paused arrives within this time (seconds)."""


@dataclass
class Steered:
    """A run, what drives it now, and what is expected of it.

    Attributes:
        done: how often which verb was used. quiet_since: when it was paused (epoch seconds); 0.0: it is not.
    """

    home: Home
    sandbox: Served
    dice: random.Random
    stack: ExitStack
    process: "Process | None" = None
    quiet_since: float = 0.0
    done: Counter[str] = field(default_factory=Counter)

    def start(self, *command: str) -> None:
        """Have a new process drive it, and wait until it does."""
        process = self.stack.enter_context(self.home.running(*command))
        wait_for(lambda: self.state() == "running", process, 120.0)
        self.process, self.quiet_since = process, 0.0

    def state(self) -> str:
        """What `bulk status` says; empty where there is no run yet."""
        ran = self.home.run("status", "run", "--json")
        return "" if ran.exit_code else str(json.loads(ran.out)["state"])

    def expect(self, *command: str) -> None:
        """Ask the run: exit 0 where a process drives it, otherwise 5, with the command that goes on."""
        ran = self.home.run(*command)
        if self.process is not None and ran.exit_code == 5 and "it is complete" in ran.err:
            self.ended(0)  # a moment before it was asked
            return
        assert ran.exit_code == (5 if self.process is None else 0), (command, ran)
        assert self.process is not None or "bulk resume run" in ran.err, ran.err

    def act(self, verb: str) -> None:
        """Do it, and look whether it had the effect that it promises."""
        self.done[verb if self.process is not None else f"{verb}{NOBODY}"] += 1
        self.be_quiet()
        match verb:
            case "pause":
                self.expect("pause", "run")
                if self.process is not None:
                    self.quiet_since = time.clock_gettime(time.CLOCK_REALTIME)
            case "resume" if self.process is None:
                self.start("resume", "run")
            case "resume":
                self.expect("resume", "run")
                self.quiet_since = 0.0
            case "set":
                priority = self.dice.randint(-9, 9)
                self.expect("set", "run", f"concurrency={self.dice.randint(1, MOST)}", f"priority.files={priority}")
            case "stop":
                self.expect("stop", "run", *(("--now",) if self.dice.random() < 0.3 else ()))
                self.ended(3)
            case "kill" if self.process is not None:
                self.process.kill()
                self.ended(-9)

    def next_verb(self) -> str:
        """What is done next."""
        if self.process is not None:
            return self.dice.choice(VERBS)
        return "resume" if self.dice.random() < RESUMED else self.dice.choice(NOBODY_THERE)

    @property
    def reached(self) -> float:
        """Actions that a process was there for, or that began one (share)."""
        vain = sum(count for name, count in self.done.items() if name.endswith(NOBODY) and name != f"resume{NOBODY}")
        return 1.0 - vain / self.done.total()

    def ended(self, exit_code: int) -> None:
        """The process is gone."""
        if self.process is not None:
            _, err = self.process.communicate(timeout=60)
            assert self.process.returncode == exit_code, err
        self.process, self.quiet_since = None, 0.0

    def be_quiet(self) -> None:
        """Since the pause nothing has arrived."""
        if self.quiet_since:
            since = self.quiet_since + ON_THEIR_WAY_S
            assert [line for line in self.sandbox.requests() if arrived(line) > since] == []


def steer(folder: Path, seed: int, writes: int, actions: int, latency_ms: int) -> Steered:
    """Steer a run of `writes` with `actions`, bring it to its end, and judge it by the journal."""
    home = Home(folder)
    seeded: dict[str, Any] = {"repositories": {"organization": "acme-fleet", "count": writes, "readme_bytes": 10}}
    options = ("--rate-limit", "off", "--latency", str(latency_ms))
    with served(folder / "sandbox", *options, seed=seeded) as sandbox, ExitStack() as stack:
        items = [
            {"owner": "acme-fleet", "repo": f"repo-{n:05d}", "path": "s.txt", "content": "QQ=="} for n in range(writes)
        ]
        jobs = {"files": {"operation": "contents.put", "items": items, "with": {"message": "Add a file"}}}
        home.manifest(sandbox.base_url, jobs, limits={"concurrency": MOST, "settle": "1s"})
        steered = Steered(home, sandbox, random.Random(seed), stack)
        steered.start("run", "manifest.yaml", "--run-dir", "run", "--no-cache")
        while steered.done.total() < actions:
            if steered.process is not None and has_ended(steered.process, steered.dice.random() * 0.3):
                break
            steered.act(steered.next_verb())
        if steered.process is not None:
            steered.act("stop")
        last = home.run("resume", "run", timeout_s=600)
        assert last.exit_code == 0, last.err
        commits = Counter(effects(sandbox.requests(), "commit"))
    assert commits == {f"commit acme-fleet/repo-{n:05d} s.txt": 1 for n in range(writes)}
    results = home.results("run")
    assert Counter(line["index"] for line in results) == Counter(range(writes))
    assert {line["outcome"] for line in results} == {"succeeded"}
    assert "control.sock" not in {path.name for path in (folder / "run").iterdir()}
    return steered


def told(steered: Steered) -> str:
    """A line for people."""
    starts = steered.home.report("run")["epochs"][-1]["number"]
    verbs = ", ".join(f"{count} {verb}" for verb, count in sorted(steered.done.items()))
    requests = len(steered.sandbox.requests())
    reached = f"{steered.reached:.0%} of them reached a process or began one"
    return (
        f"{steered.done.total()} actions ({verbs}), {reached}, {starts} processes, {requests:,} requests, "
        "every effect once"
    )


def test_twelve_actions_in_random_order(tmp_path: Path, figure) -> None:
    """Pause, kill -9, resume, set and stop in random order over 150 writes: every effect once, exit codes right."""
    steered = steer(tmp_path, SEED, writes=150, actions=12, latency_ms=40)
    figure(told(steered))
    assert steered.done.total() >= 12


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_two_hundred_actions_in_random_order(tmp_path: Path, figure) -> None:
    """The same 200 times over 2,000 writes."""
    steered = steer(tmp_path, SEED + 1, writes=2_000, actions=200, latency_ms=200)
    figure(told(steered))
    assert steered.done.total() >= 200
    assert steered.reached >= 0.8
