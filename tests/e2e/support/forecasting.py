"""The plan and the live display against what then happens: a sandbox, `bulk plan`, `bulk run`, and what they said."""

import datetime
import json
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.support.platform import ADMIN, Home, Process, Served, served

ORGANIZATION = "acme-fleet"
AT = (0.25, 0.5, 0.75)
"""Where the live display is judged, as shares of the run's time."""
PLAN_SHARE, PLAN_S, LIVE_SHARE = 0.05, 1.0, 0.10
"""How far a plan may be off (the larger), and the live display, of what is left."""


@dataclass(frozen=True)
class Scenario:
    """What is run against what.

    Attributes:
        options: of the sandbox. jobs: of the manifest. limits: likewise.
        spent: requests that somebody else sends before the plan is made, by path.
        is_faulty: answers are lost, so that the plan is judged by the range that it prints.
    """

    name: str
    options: tuple[str, ...]
    jobs: Mapping[str, Any]
    limits: Mapping[str, Any] = field(default_factory=dict)
    spent: int = 0
    is_faulty: bool = False


@dataclass(frozen=True)
class Told:
    """What was told and what happened. Moments are UTC epoch seconds.

    Attributes:
        planned_at: when the plan was made. least_at, most_at, lossy_at: the ends that it names.
        began_at, ended_at: of the run. live: (when, predicted end) of each status that named one.
        waits: (items that wait, items left) of each status that named something that waits.
    """

    planned_at: float
    least_at: float
    most_at: float
    lossy_at: float
    began_at: float
    ended_at: float
    live: Sequence[tuple[float, float | None]]
    waits: Sequence[tuple[int, int]]

    @property
    def took_s(self) -> float:
        """The run's time (seconds)."""
        return self.ended_at - self.began_at

    @property
    def plan_error_s(self) -> float:
        """How far the end is from the one that the plan names for a start at `planned_at`. The run began later: where
        only a reset decides, it ends at the same moment all the same, and else as much later."""
        later = max(0.0, self.began_at - self.planned_at)
        return self.ended_at - min(max(self.ended_at, self.most_at), self.most_at + later)

    @property
    def is_in_range(self) -> bool:
        """Whether the end lies in the range that the plan prints."""
        later = max(0.0, self.began_at - self.planned_at)
        return self.least_at - PLAN_S <= self.ended_at <= self.lossy_at + later

    def live_error(self, share: float) -> float:
        """How far the end that was shown at that share of the time was off, of what was left; 1.0: none was shown."""
        moment = self.began_at + share * self.took_s
        when, predicted = min(self.live, key=lambda told: abs(told[0] - moment))
        return 1.0 if predicted is None else (predicted - self.ended_at) / (self.ended_at - when)


def measure(scenario: Scenario, folder: Path, repositories: int) -> Told:
    """Plan it, run it, and note what was told."""
    fleet = {"organization": ORGANIZATION, "count": repositories, "readme_bytes": 100}
    home = Home(folder)
    with served(folder / "sandbox", *scenario.options, seed={"repositories": fleet}) as sandbox:
        jobs = {name: _with_file(home, name, job) for name, job in scenario.jobs.items()}
        home.manifest(sandbox.base_url, jobs, limits=dict(scenario.limits))
        _spend(sandbox, scenario.spent)
        planned = home.run("plan", "manifest.yaml", "--json")
        assert planned.exit_code == 0, planned.err
        plan = json.loads(planned.out)
        with home.running("run", "manifest.yaml", "--run-dir", "run", "--progress", "json", "--no-cache") as process:
            statuses = list(_statuses(process))
            process.wait(60)
        assert process.returncode == 0, process.returncode
    running = [status for status in statuses if status["state"] == "running"]
    return Told(
        planned_at=_moment(plan["at"]),
        least_at=_moment(plan["least_finish_at"]),
        most_at=_moment(plan["most_finish_at"]),
        lossy_at=_moment(plan["lossy_finish_at"]),
        began_at=_moment(running[0]["started_at"]),
        ended_at=_moment(statuses[-1]["at"]),
        live=[
            (_moment(status["at"]), None if status["finish_at"] is None else _moment(status["finish_at"]))
            for status in running
        ],
        waits=[(wait["count"], _left(status)) for status in running for wait in status["waits"]],
    )


def _with_file(home: Home, name: str, job: Mapping[str, Any]) -> dict[str, Any]:
    home.lines(f"{name}.jsonl", job["items"])
    return {**job, "items": f"{name}.jsonl"}


def _spend(sandbox: Served, requests: int) -> None:
    """What somebody else sends with the same token."""
    for _ in range(requests):
        asked = urllib.request.Request(f"{sandbox.base_url}/repos/{ORGANIZATION}/repo-00000/readme")
        asked.add_header("Authorization", f"Bearer {ADMIN}")
        with urllib.request.urlopen(asked, timeout=60) as answer:
            answer.read()


def _statuses(process: "Process | subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    assert process.stderr is not None
    for line in process.stderr:
        told = json.loads(line) if line.startswith("{") else {}
        if told.get("type") == "status":
            yield told


def _left(status: Mapping[str, Any]) -> int:
    return sum((job["items"] or 0) - sum(job["outcomes"].values()) for job in status["jobs"])


def _moment(iso: str) -> float:
    return datetime.datetime.fromisoformat(iso).timestamp()


def repositories(first: int, end: int) -> list[dict[str, Any]]:
    """Items for these repositories."""
    return [{"owner": ORGANIZATION, "repo": f"repo-{number:05d}"} for number in range(first, end)]


def readmes(count: int, **fields: Any) -> dict[str, Any]:
    """A job that reads `count` READMEs."""
    return {"operation": "readme.get", "items": repositories(0, count), **fields}


def files(each: Sequence[int], **fields: Any) -> dict[str, Any]:
    """A job that writes `each` new files to some repositories."""
    items = [
        {**repository, "path": f"F{number}", "content": "QQ=="}
        for repository, count in zip(repositories(0, len(each)), each, strict=True)
        for number in range(count)
    ]
    return {"operation": "contents.put", "items": items, "with": {"message": "m"}, **fields}


def snapshots(count: int, **fields: Any) -> dict[str, Any]:
    """A job that submits a snapshot of each of `count` repositories."""
    given = {
        "version": 0,
        "job": {"id": "1", "correlator": "build"},
        "sha": "0123456789abcdef0123456789abcdef01234567",
        "ref": "refs/heads/main",
        "detector": {"name": "detector", "version": "1", "url": "https://example.com/detector"},
        "scanned": "2026-11-21T08:00:00Z",
        "manifests": {},
    }
    return {"operation": "snapshot.create", "items": repositories(0, count), "with": given, **fields}
