"""One run of a pool in one way, in virtual time, and what effects and budgets say of it."""

import base64
import itertools
import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio

from bulk.engine import commands
from bulk.report.fold import Report
from tests.hostile.http.limits import Limits
from tests.hostile.http.turn import BASE_URL
from tests.hostile.pools.members import FIRST_REPOSITORY, Member, Members, readme_of
from tests.hostile.pools.ways import Way
from tests.hostile.virtual import AFTERWARDS_S, ended, in_virtual_time, killed, lines_of, wall

Work = Literal["reads", "files", "hooks"]
LIMIT, WINDOW_S = 40, 20
"""Of each budget: requests in a window, and its length (seconds)."""
LANES = 12
"""Files are written in so many repositories (count)."""
AT_MOST_S = 3_000.0
FEW = 5
"""So few may be left of a window of which only headers spoke while its first requests were under way (count)."""
LOOK_S = 0.05
QUESTIONS_FIRST, QUESTIONS_EACH, QUESTIONS_A_MINUTE = 30, 45, 60
"""At most this many questions for limits are sane for a member, and more for each window and each minute (counts)."""
DONE = ("succeeded", "unchanged")


def items_of(work: Work, count: int) -> tuple[str, list[dict[str, Any]]]:
    """The operation and the items of a job."""
    numbers = range(count)
    if work == "reads":
        return "readme.get", [{"owner": "acme", "repo": f"r{number}"} for number in numbers]
    if work == "hooks":
        hooks = [{"url": f"https://hooks.example.test/n{number}"} for number in numbers]
        return "webhook.create", [{"org": "acme", "config": hook} for hook in hooks]
    return "contents.put", [
        {
            "owner": "acme", "repo": f"r{number % LANES}", "path": f"f{number}.txt", "message": "A file.",
            "content": base64.b64encode(f"{number}\n".encode()).decode(),
        }
        for number in numbers
    ]  # fmt: skip


def members_of(count: int) -> list[Member]:
    """Members that are right, each with a budget of its own."""
    return [Member("abcd"[place], Limits(LIMIT, WINDOW_S), place + 1) for place in range(count)]


@dataclass(slots=True)
class Tried:
    """What came of a run.

    Attributes:
        report: None where it did not end. took_s: virtual seconds. trouble: why there is no report.
    """

    way: Way
    work: Work
    items: Sequence[Mapping[str, Any]]
    members: Sequence[Member]
    service: Members
    report: Report | None
    trouble: str
    lines: Sequence[Mapping[str, Any]]
    took_s: float

    @property
    def refused(self) -> int:
        """Requests beyond the budgets (count)."""
        budgets = {id(member.pays): member.pays for member in self.members}
        return sum(refused for each in budgets.values() for _, _, refused in each.spent())

    @property
    def idle_s(self) -> float:
        """The longest time in which nothing was sent although a member could have been used for all of it (seconds)."""
        moments = sorted(at for each in self.members for at, ask in each.heard if ask.path != "/rate_limit")
        pauses = itertools.pairwise([0.0, *moments, self.took_s])
        return max((self._free_s(*pause) for pause in pauses if pause[1] - pause[0] > 1.0), default=0.0)

    def _free_s(self, since: float, until: float) -> float:
        looks = [since + LOOK_S * number for number in range(int((until - since) / LOOK_S))]
        return LOOK_S * max(sum(self._is_free(member, at) for at in looks) for member in self.members)

    def _is_free(self, member: Member, at: float) -> bool:
        left, nothing = member.pays.left(self.service.began + at), max(FEW, 0.01 * member.pays.size, self.way.reserve)
        return member.is_free(at) and left > nothing

    def broken(self) -> list[str]:
        """What does not hold, in words."""
        if self.report is None:
            return [self.trouble]
        return [*self._unfinished(), *self.lies(), *self._wasteful()]

    def _unfinished(self) -> Iterator[str]:
        outcomes = Counter(line["outcome"] for line in self.lines)
        if self.report is not None and self.way.stops and self.report.exit_code != self.way.stops:
            yield f"exit code {self.report.exit_code}, not {self.way.stops}"
        if len(self.lines) != len(self.items) and not self.way.stops:
            yield f"{len(self.items)} items, {len(self.lines)} outcomes"
        if not self.way.may_fail and set(outcomes) - set(DONE):
            yield f"{dict(outcomes)}: {next(line['error'] for line in self.lines if line['outcome'] not in DONE)}"

    def lies(self) -> Iterator[str]:
        """What is said and is not so."""
        for line in self.lines:
            times = self._done(self.items[line["index"]])
            if times > 1:
                yield f"done {times} times: {self.items[line['index']]}"
            if line["outcome"] in DONE and not self._is_so(line, times):
                yield f"{line['outcome']}, but it is not so: {self.items[line['index']]}"
            if line["outcome"] in ("failed", "skipped") and times:
                yield f"{line['outcome']} ({line['error']['code']}), but it was done"

    def _wasteful(self) -> Iterator[str]:
        if self.refused > self.way.refused:
            yield f"{self.refused} requests beyond the budgets"
        if self.work == "reads" and self.idle_s > self.way.idle_s:  # what is written may have to wait for its lane
            yield f"nothing was sent for {self.idle_s:.1f} s, while a member could be used"
        for member in self.members:
            windows = len(member.pays.spent()) + 1
            most = QUESTIONS_FIRST + QUESTIONS_EACH * windows + QUESTIONS_A_MINUTE * self.took_s / 60.0
            if member.questions > most:
                yield f"{member.questions} questions for the limits of {member.name} in {self.took_s:.0f} s"

    def _done(self, item: Mapping[str, Any]) -> int:
        """How often a write was done (count)."""
        ours = self.service.platform.effects.ours()
        if self.work == "hooks":
            return sum(effect.value["config"]["url"] == item["config"]["url"] for effect in ours)
        return 0 if self.work == "reads" else sum(effect.key == _key(item) for effect in ours)

    def _is_so(self, line: Mapping[str, Any], times: int) -> bool:
        item = self.items[line["index"]]
        match self.work:
            case "reads":
                return base64.b64decode(line["result"]["content"]) == readme_of(item["repo"])
            case "hooks":
                return times == 1
        found = self.service.platform.state.get(_key(item), math.inf)
        return times == 1 and bool(found == base64.b64decode(item["content"]))


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return "file", FIRST_REPOSITORY + int(item["repo"][1:]), "trunk", item["path"]


def try_way(way: Way, work: Work = "reads", count: int = 140, size: int = 3, *, kills: Sequence[float] = ()) -> Tried:
    """Do `count` items with a pool of `size` members.

    Args:
        kills: how long after it began the run is killed, for as many times, and begun again (virtual seconds).
    """
    operation, items = items_of(work, count)

    async def main() -> Tried:
        members = members_of(size)
        way.change(members)
        service = Members(members, wall, max(LANES, count if work == "reads" else 0))
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            path = Path(folder)
            manifest = _manifest(path, members, operation, items, way.reserve)
            run = partial(commands.run_manifest, manifest, run_dir=path / "run")
            environ = {member.name.upper(): member.token for member in members}
            for after_s in kills:
                await killed(run, service, environ, path / "run", after_s)
            report, trouble = await ended(run, service, environ, AT_MOST_S)
            took_s = wall() - service.began
            await anyio.sleep(AFTERWARDS_S)
            lines = lines_of(path / "run" / "results.jsonl").get("work", [])
        return Tried(way, work, items, members, service, report, trouble, lines, took_s)

    return in_virtual_time(main)


def _manifest(
    path: Path, members: Sequence[Member], operation: str, items: Sequence[Mapping[str, Any]], reserve: int
) -> Path:
    (path / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    credentials: dict[str, Any] = {member.name: f"env:{member.name.upper()}" for member in members}
    credentials["default"] = {"pool": [member.name for member in members], "writes": True}
    whole = {
        "version": 1,
        "name": "pool",
        "platform": {"base_url": BASE_URL, "credentials": credentials},
        "limits": {"concurrency": 16, "reserve": reserve},
        "jobs": {"work": {"operation": operation, "items": "items.jsonl"}},
    }
    manifest = path / "manifest.yaml"
    manifest.write_text(json.dumps(whole))
    return manifest


def told(tried: Tried) -> str:
    """One line of the table."""
    budgets = {id(member.pays): member.pays for member in tried.members}
    spent = " ".join("+".join(str(served) for _, served, _ in each.spent()) for each in budgets.values())
    asked = "/".join(str(member.questions) for member in tried.members)
    broken = "; ".join(tried.broken()[:3])
    return (
        f"{tried.way.name:<40} {tried.work:<6} {len(tried.members)} {tried.took_s:6.1f} s  {tried.refused:3} refused  "
        f"idle {tried.idle_s:4.1f} s  asked {asked:<12} spent {spent}  {broken}"
    )
