"""One campaign: a run that is killed again and again, at named points and at random, until its work is done."""

import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import points, work
from tests.crash.launcher import KILLED, Launcher
from tests.crash.work import Work
from tests.e2e.support.platform import TICK_S, Home, Served, has_ended, served

RUN = ("run", "manifest.yaml", "--run-dir", "run", "--progress", "none")
RETRY = ("retry", "run", "--progress", "none")
LIMITS = {"settle": "1s", "concurrency": 8}
FAULTS = ("--fault", "drop-after=0.1", "--fault", "error-after=0.05")
EARLY, EARLY_S = 0.25, 0.6
"""Share of the random kills that hit so soon after the start (seconds) that little or nothing was sent."""
REQUESTS_MOST = 20
"""Another random kill comes after at most this many requests."""
DENSE = frozenset(("about to send", "first byte sent", "request sent", "status seen", "outcome known"))
"""Points passed once for each write; the others once for each group, or less often."""


@dataclass(slots=True)
class Killed:
    """What came of a campaign.

    Attributes:
        at: kills by point, "at random" among them (count).
        requests, lost, refused: requests in the journal; those whose answer was dropped; those answered 502 after
            their effect (count).
        took_s: how long it took (seconds).
    """

    at: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    lost: int = 0
    refused: int = 0
    took_s: float = 0.0

    @property
    def kills(self) -> int:
        """Of every kind (count)."""
        return sum(self.at.values())


def _plan(dice: random.Random, rounds: int, at_random: int) -> list[str]:
    """Kills while work is left. A point of a recovery comes right after a kill that leaves something to recover."""
    plan = [name for name in points.WHILE_WORKING for _ in range(rounds)] + ["at random"] * at_random
    dice.shuffle(plan)
    recoveries = [name for name in points.WHILE_RECOVERING for _ in range(rounds)]
    behind = [place for place, name in enumerate(plan) if name in ("request sent", "status seen", "first byte sent")]
    for place, name in zip(
        sorted(dice.sample(behind * rounds, len(recoveries)), reverse=True), recoveries, strict=True
    ):
        plan.insert(place + 1, name)
    return plan


def _kill_at_random(home: Home, sandbox: Served, dice: random.Random) -> bool:
    """Start the command as a user does and kill it at some moment; whether it had ended before."""
    with home.running(*RUN) as process, sandbox.journal_path.open("rb") as journal:
        if dice.random() < EARLY:
            is_over = has_ended(process, dice.uniform(0.0, EARLY_S))
        else:
            journal.seek(0, 2)
            requests, is_over = dice.randint(1, REQUESTS_MOST), False
            while requests > 0 and not is_over:
                requests -= journal.read().count(b"\n")
                is_over = has_ended(process, TICK_S)
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return is_over


def campaign(folder: Path, seed: int, todo: Work, *, rounds: int = 2, at_random: int = 11) -> Killed:
    """Kill one run at every named point and at random, then let it end, and judge.

    Args:
        rounds: how often at each point at which work is left.
    """
    home, dice, killed = Home(folder), random.Random(seed), Killed()
    options = ("--rate-limit", "off", "--latency", "2", *FAULTS, "--fault-seed", str(seed))
    with served(folder / "sandbox", *options, seed=todo.fleet) as sandbox, Launcher(home) as launcher:
        todo.write(home, sandbox.base_url, LIMITS)
        started = time.monotonic()

        def kill(name: str, nth: int, command: Sequence[str] = RUN) -> None:
            exit_code = launcher.run(*command, point=name, nth=nth)
            assert exit_code == KILLED, f"{name} #{nth} was never passed: exit {exit_code} after {killed.at}"
            killed.at[name] += 1

        for name in points.AT_FIRST:
            kill(name, 1)
        for name in _plan(dice, rounds, at_random):
            if name == "at random":
                assert not _kill_at_random(home, sandbox, dice), f"the run was over after {killed.at}"
                killed.at[name] += 1
            else:
                kill(name, dice.randint(1, 10) if name in DENSE else 1)
        for name in points.WHEN_COMPLETE:
            kill(name, 1)
        assert launcher.run(*RUN) in (1, 6)
        for name in points.WHEN_RETRIED:
            kill(name, 1, RETRY)
        assert launcher.run(*RETRY) in (1, 6)
        killed.took_s = time.monotonic() - started
        lines = sandbox.requests()
        work.nothing_lost_or_doubled(todo, lines, sandbox.folder / "state")
        work.nothing_misreported(todo, home, sandbox)
    work.saved_files_are_whole(todo, folder / "run")
    work.nothing_is_left_over(folder / "run")
    faults = Counter(line["fault"] for line in lines)
    killed.requests, killed.lost, killed.refused = len(lines), faults["drop-after"], faults["error-after"]
    return killed
