"""Random work from a seed: what a run is asked to do, and how each item must end."""

import base64
import random
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.wire.network import GIVEN_UP_S

OWNER = "fleet"
TIMEOUT_S = 5.0
SETTLE_S = 15.0
LATEST_S = TIMEOUT_S + GIVEN_UP_S
"""A request that comes later than this is not promised anything (seconds after it was sent)."""


@dataclass(frozen=True, slots=True)
class Expected:
    """How an item must end.

    Attributes:
        effect: what the platform's journal says of it, without what is not known before; empty: nothing was changed.
        may_stay_unknown: where its answer is lost, what stands there instead can be somebody else's, written since.
    """

    outcome: str
    code: str | None = None
    effect: str = ""
    may_stay_unknown: bool = False

    def is_met(self, outcome: str, code: str | None) -> bool:
        """Whether an item that ended so ended as it must."""
        if self.may_stay_unknown and (outcome, code) == ("unknown", "unknown_outcome"):
            return True
        return (outcome, code) == (self.outcome, self.code)


@dataclass(slots=True)
class Schedule:
    """Work, and what must come of it.

    Attributes:
        expected: by (job, index).
        files: (repository, path) -> what the file must hold at the end; None: it must not be there.
    """

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    expected: dict[tuple[str, int], Expected] = field(default_factory=dict)
    files: dict[tuple[str, str], bytes | None] = field(default_factory=dict)

    def job(self, name: str, operation: str, **more: Any) -> list[dict[str, Any]]:
        """A new job; returns its items."""
        items: list[dict[str, Any]] = []
        self.jobs[name] = {"operation": operation, "items": items, **more}
        return items

    def expect(self, job: str, item: dict[str, Any], expected: Expected) -> None:
        """Add an item to a job."""
        items = self.jobs[job]["items"]
        self.expected[job, len(items)] = expected
        items.append(item)

    @property
    def limits(self) -> dict[str, Any]:
        """Short waits, so that a run is not longer than it must be."""
        return {"request_timeout": f"{TIMEOUT_S:g}s", "settle": f"{SETTLE_S:g}s", "concurrency": 12}


def mixed_case(text: str, dice: random.Random) -> str:
    """Half of the times as it is. The platform ignores case, and so must lanes; a stale read comes by the same path."""
    if dice.random() < 0.5:
        return text
    return "".join(letter.upper() if dice.random() < 0.3 else letter for letter in text)


def content(text: str) -> str:
    """Base64, as the platform wants it."""
    return base64.b64encode(text.encode()).decode()


def readmes(count: int, first: int = 0) -> list[dict[str, Any]]:
    """READMEs of sixty repositories of the fleet, in turn; no two items alike, so that each is sent.

    The platform does not care how an owner is spelled: the turn is written in the case of its letters.
    """
    return [
        {"owner": _spelled(OWNER, number // 60), "repo": f"repo-{first + number % 60:05d}"} for number in range(count)
    ]


def _spelled(name: str, turn: int) -> str:
    return "".join(letter.upper() if turn >> place & 1 else letter for place, letter in enumerate(name))


def put(repo: str, path: str, text: str, owner: str = OWNER, **more: Any) -> dict[str, Any]:
    """An item of `contents.put`."""
    return {"owner": owner, "repo": repo, "path": path, "message": f"Put {path}", "content": content(text), **more}


def snapshot(repo: str, correlator: str, sha: str = "a" * 40, owner: str = OWNER) -> dict[str, Any]:
    """An item of `snapshot.create`."""
    return {
        "owner": owner,
        "repo": repo,
        "version": 0,
        "job": {"id": "1", "correlator": correlator},
        "sha": sha,
        "ref": "refs/heads/main",
        "detector": {"name": "detector", "version": "1", "url": "https://example.com"},
        "scanned": "2026-11-21T08:00:00Z",
    }


def random_schedule(seed: int, items: int, repositories: int = 8) -> Schedule:
    """About `items` items of every kind over a few repositories."""
    dice = random.Random(f"work {seed}")
    schedule = Schedule()
    schedule.job("reads", "readme.get")
    for name, operation in (("puts", "contents.put"), ("deletes", "contents.delete")):
        schedule.job(name, operation, allow_overwrites=True)
    schedule.job("snapshots", "snapshot.create")
    schedule.job("orgs", "organization.create")
    schedule.job("renames", "organization.rename", needs=["orgs"], needs_policy="any-outcome")
    made = 0
    for number in range(items):
        repo = f"repo-{dice.randrange(repositories):05d}"
        kind = dice.random()
        if kind < 0.3:
            _add_read(schedule, repo, dice)
        elif kind < 0.65:
            _add_put(schedule, repo, number, dice)
        elif kind < 0.73:
            _add_delete(schedule, dice, number)
        elif kind < 0.9:
            _add_snapshot(schedule, repo, number, dice)
        else:
            made += 1
            _add_organization(schedule, made, dice)
    schedule.jobs = {name: job for name, job in schedule.jobs.items() if job["items"]}
    if "orgs" not in schedule.jobs:
        schedule.jobs.pop("renames", None)
    return schedule


def _add_read(schedule: Schedule, repo: str, dice: random.Random) -> None:
    if dice.random() < 0.1:
        schedule.expect("reads", {"owner": OWNER, "repo": "no-such-repo"}, Expected("failed", "not_found"))
    else:
        schedule.expect("reads", {"owner": OWNER, "repo": mixed_case(repo, dice)}, Expected("succeeded"))


def _add_put(schedule: Schedule, repo: str, number: int, dice: random.Random) -> None:
    owner, name = mixed_case(OWNER, dice), mixed_case(repo, dice)
    path, text = f"file-{number}.txt", f"content {number}"
    kind = dice.random()
    written = [key for key, held in schedule.files.items() if held is not None]
    if kind < 0.1:
        expected = Expected("failed", "conflict", may_stay_unknown=True)
        schedule.expect("puts", put(name, "README.md", text, owner, mode="create"), expected)
        return
    if kind < 0.3 and written:
        (repo, path), is_same = dice.choice(written), dice.random() < 0.5
        held = schedule.files[repo, path]
        assert held is not None
        if is_same:
            schedule.expect("puts", put(mixed_case(repo, dice), path, held.decode(), owner), Expected("unchanged"))
            return
        name = mixed_case(repo, dice)
    schedule.files[repo, path] = text.encode()
    schedule.expect("puts", put(name, path, text, owner), Expected("succeeded", effect=f"commit {OWNER}/{repo} {path}"))


def _add_delete(schedule: Schedule, dice: random.Random, number: int) -> None:
    written = [
        key
        for key, held in schedule.files.items()
        if held is not None and not any(item.get("path") == key[1] for item in schedule.jobs["deletes"]["items"])
    ]
    if not written or dice.random() < 0.2:
        item = {"owner": OWNER, "repo": "repo-00000", "path": f"never-{number}.txt", "message": "Delete"}
        schedule.expect("deletes", item, Expected("unchanged"))
        return
    # the deletes come after all puts of their lane, so nothing may be put there any more
    repo, path = dice.choice(written)
    schedule.files[repo, path] = None
    item = {"owner": OWNER, "repo": mixed_case(repo, dice), "path": path, "message": "Delete"}
    schedule.expect("deletes", item, Expected("succeeded", effect=f"commit {OWNER}/{repo} {path}"))


def _add_snapshot(schedule: Schedule, repo: str, number: int, dice: random.Random) -> None:
    if dice.random() < 0.15:
        item = snapshot(repo, f"null-{number}", "0" * 40)
        schedule.expect("snapshots", item, Expected("failed", "rejected"))
        return
    item = snapshot(mixed_case(repo, dice), f"build-{number}")
    effect = f"snapshot {OWNER}/{repo} build-{number} detector"
    schedule.expect("snapshots", item, Expected("succeeded", effect=effect))


def _add_organization(schedule: Schedule, number: int, dice: random.Random) -> None:
    if dice.random() < 0.2:
        item: dict[str, Any] = {"login": "acme-eng", "admin": "octoadmin"}
        schedule.expect("orgs", item, Expected("failed", "conflict"))
        return
    login = f"new-{number}"
    effect = f"organization {login} created"
    schedule.expect("orgs", {"login": login, "admin": "octoadmin"}, Expected("succeeded", effect=effect))
    if dice.random() < 0.5:
        item = {"org": login, "login": f"renamed-{number}", "wait": dice.random() < 0.5}
        effect = f"organization {login} renamed to renamed-{number}"
        schedule.expect("renames", item, Expected("succeeded", effect=effect))
