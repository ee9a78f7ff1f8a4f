"""Needs by key against a real sandbox: what is ready goes on, a failure stops its own key alone, and kills change
nothing of that."""

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.judging import Line, answered, arrived, effects
from tests.e2e.support.platform import Home, Ran, Served, served, wait_for

ORGS = tuple(f"org-{number:02d}" for number in range(24))
RUN = ("run", "manifest.yaml", "--run-dir", "run", "--progress", "none")
RULESET = {
    "name": "p",
    "target": "branch",
    "enforcement": "active",
    "conditions": {
        "ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []},
        "repository_name": {"include": ["~ALL"], "exclude": []},
    },
    "rules": [{"type": "deletion"}],
}


def jobs(home: Home, orgs: Sequence[str] = ORGS) -> dict[str, Any]:
    """Organizations, three hooks in each, spelt otherwise; then a ruleset; then its list, and that of the hooks."""
    home.folder.mkdir(exist_ok=True)
    home.write("orgs.csv", "login,admin\n" + "".join(f"{org},octoadmin\n" for org in orgs))
    home.lines("hooks.jsonl", [{"org": org.upper(), "config": hook(org, n)} for n in range(3) for org in orgs])
    home.lines("rules.jsonl", [{"org": org} for org in orgs])
    home.write("lists.csv", "org\n" + "".join(f"{org}\n" for org in reversed(orgs)))
    return {
        "lists": {"operation": "organization-ruleset.list", "needs": [by_org("rules")], "items": "lists.csv"},
        "hooks": {
            "operation": "webhook.create",
            "needs": [{"orgs": {"org": "login"}}],
            "with": {"events": ["push"]},
            "items": "hooks.jsonl",
        },
        "orgs": {"operation": "organization.create", "items": "orgs.csv"},
        "seen": {"operation": "webhook.list", "needs": [by_org("hooks"), by_org("rules")], "items": "lists.csv"},
        "rules": {
            "operation": "organization-ruleset.create",
            "needs": [by_org("hooks")],
            "with": RULESET,
            "items": "rules.jsonl",
        },
    }


def by_org(job: str) -> dict[str, Any]:
    """An item needs those of that job that have its organization."""
    return {job: {"org": "org"}}


def hook(org: str, number: int) -> dict[str, Any]:
    """Where events go."""
    return {"url": f"https://hooks.example/{org}/{number}", "content_type": "json"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for a manifest."""
    return Home(tmp_path / "home")


def steps(sandbox: Served) -> dict[str, list[tuple[str, Line]]]:
    """For each organization the effects and the reads behind them, in order."""
    found: dict[str, list[tuple[str, Line]]] = defaultdict(list)
    for line in sandbox.journal():
        parts = line["path"].split("/")
        if line["path"].endswith("admin/organizations") and line["effect"]:
            found[line["effect"].split()[1].lower()].append(("orgs", line))
        elif "orgs" in parts and line["method"] == "POST" and line["effect"]:
            kind = "hooks" if "hooks" in parts else "rules"
            found[parts[parts.index("orgs") + 1].lower()].append((kind, line))
    return found


def too_early(sandbox: Served) -> Iterator[str]:
    """What had left before all that it needs was answered."""
    for org, lines in steps(sandbox).items():
        for before, after, count in (("orgs", "hooks", 1), ("hooks", "rules", 3)):
            needed = [line for kind, line in lines if kind == before]
            for kind, line in lines:
                if kind == after and (len(needed) != count or max(map(answered, needed)) > arrived(line)):
                    yield f"{after} of {org}"


def test_what_is_ready_goes_on(tmp_path: Path, home: Home) -> None:
    """The first hook leaves before the last organization is there, and nothing before what it needs has ended."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", "--latency", "20") as sandbox:
        home.manifest(sandbox.base_url, jobs(home), limits={"concurrency": 8})
        plan = home.run("plan", "manifest.yaml")
        assert "hooks goes on item by item after orgs." in " ".join(plan.out.split()), plan.out
        ran = home.run(*RUN)
        assert ran.exit_code == 0, ran.err
        counts = Counter((line["job"], line["outcome"]) for line in home.results("run"))
        each = {(job, "succeeded"): len(ORGS) for job in ("orgs", "rules", "lists", "seen")}
        assert counts == {**each, ("hooks", "succeeded"): 3 * len(ORGS)}
        assert not list(too_early(sandbox))
        made = [line for lines in steps(sandbox).values() for kind, line in lines if kind == "orgs"]
        hooks = [line for lines in steps(sandbox).values() for kind, line in lines if kind == "hooks"]
        rules = [line for lines in steps(sandbox).values() for kind, line in lines if kind == "rules"]
        assert min(map(arrived, hooks)) < max(map(arrived, made))
        assert min(map(arrived, rules)) < max(map(arrived, hooks))
        assert home.run("verify", "run").exit_code == 0
        assert all(line["result"] for line in home.results("run") if line["job"] == "lists")


def test_a_failure_stops_its_key_alone(tmp_path: Path, home: Home) -> None:
    """What needs an organization that could not be made is skipped with the cause, and what needs that in turn; all
    others go on. A retry does the same again, and goes on where the cause is gone (failures.md row 90)."""
    seed = {"organizations": [{"login": "org-07"}]}
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed=seed) as sandbox:
        wanted = jobs(home)
        home.manifest(sandbox.base_url, wanted)
        for command in (RUN, ("retry", "run", "--progress", "none")):
            ran = home.run(*command)
            assert ran.exit_code == 1, ran.err
            lines = home.results("run")
            bad = [line for line in lines if line["outcome"] != "succeeded"]
            assert Counter((line["job"], line["outcome"]) for line in bad) == {
                ("orgs", "failed"): 1,
                ("hooks", "skipped"): 3,
                ("rules", "skipped"): 1,
                ("lists", "skipped"): 1,
                ("seen", "skipped"): 1,
            }
            assert len(lines) == 7 * len(ORGS)
            why = {line["job"]: line["error"] for line in bad}
            assert {line["code"] for line in why.values()} - {"dependency_failed"} == {why["orgs"]["code"]}
            message = "not tried: hooks needs item 7 of orgs (org 'org-07'), which did not succeed"
            assert (why["hooks"]["message"], "rules" in why["lists"]["message"]) == (message, True)
        assert not [line for line in sandbox.requests() if "/orgs/org-07/hooks" in line["path"].lower()]


def test_a_key_that_nothing_has_is_refused(tmp_path: Path, home: Home) -> None:
    """The check ends with exit 2 and the line, before anything is sent."""
    wanted = jobs(home)
    home.write("orgs.csv", "login,admin\n" + "".join(f"{org},octoadmin\n" for org in ORGS[1:]))
    home.manifest("http://127.0.0.1:9/api/v3", wanted)
    ran = home.run(*RUN)
    assert (ran.exit_code, (home.folder / "run").exists()) == (2, False)
    assert "hooks.jsonl:1: org: none of the items of orgs has login 'org-00'" in ran.err


def said(ran: Ran) -> str:
    """What a command printed, on one line."""
    return " ".join((ran.out + ran.err).split())


def counts(sandbox: Served) -> dict[str, int]:
    """How many effects each organization has seen, itself included."""
    return {org: len(lines) for org, lines in steps(sandbox).items()}


def test_a_wave_is_whole(tmp_path: Path, home: Home) -> None:
    """What waits by key goes in the wave of what it needs: behind each gate the organizations that were opened have all
    of theirs, and no other one is there."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        limits = {"waves": [2, "25%", "rest"], "gate": "manual"}
        home.manifest(sandbox.base_url, jobs(home), limits=limits)
        for wave, orgs in ((2, 2), (3, 2 + len(ORGS) // 4)):
            for _ in range(2):
                ran = home.run(*RUN)
                assert (ran.exit_code, f"wave {wave} of 3 of orgs waits to be opened" in said(ran)) == (3, True), ran
                assert counts(sandbox) == dict.fromkeys(ORGS[:orgs], 5)
            assert home.run("approve", "run", "--wave", str(wave)).exit_code == 0
        ran = home.run(*RUN)
        assert ran.exit_code == 0, ran.err
        assert (len(home.results("run")), list(too_early(sandbox))) == (7 * len(ORGS), [])
        assert counts(sandbox) == dict.fromkeys(ORGS, 5)


def test_shares_are_of_the_items_in_a_wave(tmp_path: Path, home: Home) -> None:
    """One of six hooks that two organizations bring is wrong: that is more than 5% of this wave, though not of all
    hooks; it stops there, also when it is given again, and goes on where that is accepted."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        limits = {"waves": [2, "rest"], "errors": {"conflict": "5%"}}
        wanted = jobs(home)
        hooks = [{"org": org, "config": hook(org, n)} for n in range(3) for org in reversed(ORGS)]
        hooks[-1]["config"] = hooks[-2 - len(ORGS)]["config"] = hook(ORGS[0], 9)  # there is one like it by then
        hooks[-2 - len(ORGS)]["org"] = ORGS[0]
        home.lines("hooks.jsonl", hooks)
        home.manifest(sandbox.base_url, {name: wanted[name] for name in ("orgs", "hooks")}, limits=limits)
        for _ in range(2):
            ran = home.run(*RUN)
            assert ran.exit_code == 3, ran.err
            assert "wave 1 of 2 of hooks stopped: 1 conflict of 6 items, 0 allowed" in said(ran), ran
            assert set(steps(sandbox)) == set(ORGS[:2])
        ran = home.run(*RUN, "--accept-wave", "1")
        assert (ran.exit_code, len(home.results("run"))) == (1, 4 * len(ORGS)), ran.err


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [pytest.param(6), pytest.param(50, marks=pytest.mark.soak)])
def test_kills_in_waves(tmp_path: Path, home: Home, kills: int) -> None:
    """Killed at any moment in any wave: each start goes on in the wave it was in, nothing of a later one has left
    before all of the wave before has ended, and every effect is there once (failures.md row 90)."""
    dice = random.Random(kills)
    orgs = [f"org-{number:03d}" for number in range(kills * 4)]
    faults = ("--fault", "drop-after=3%")
    with served(tmp_path / "sandbox", "--rate-limit", "off", "--latency", "10", *faults) as sandbox:
        limits = {"concurrency": 8, "settle": "1s", "waves": [2, "25%", "25%", "rest"]}
        home.manifest(sandbox.base_url, jobs(home, orgs), limits=limits)
        killed = 0
        while killed < kills:
            before, more = len(sandbox.requests()), dice.randrange(1, 30)
            with home.running(*RUN) as process:
                wait_for(lambda: len(sandbox.requests()) >= before + more, process)  # noqa: B023 - within the loop
            killed += 1
        ran = home.run(*RUN, timeout_s=300)
        assert ran.exit_code == 0, ran.err
        assert Counter(line["outcome"] for line in home.results("run")) == {"succeeded": 7 * len(orgs)}
        made = Counter(effects(sandbox.journal()))
        assert (len(made), set(made.values()), list(too_early(sandbox))) == (5 * len(orgs), {1}, [])
        ends = [0, *itertools.accumulate([2, len(orgs) // 4, len(orgs) // 4]), len(orgs)]
        found = steps(sandbox)
        waves = [[line for org in orgs[a:b] for _, line in found[org]] for a, b in itertools.pairwise(ends)]
        for first, second in itertools.pairwise(waves):
            assert max(map(answered, first)) < min(map(arrived, second))
        assert home.run("verify", "run").exit_code == 0


def test_kills_change_nothing(tmp_path: Path, home: Home) -> None:
    """Killed at any moment and resumed: every effect once, nothing before what it needs, and every item ends
    (failures.md row 90)."""
    dice = random.Random(20261125)
    faults = ("--fault", "drop-after=5%")
    with served(tmp_path / "sandbox", "--rate-limit", "off", "--latency", "10", *faults) as sandbox:
        home.manifest(sandbox.base_url, jobs(home), limits={"concurrency": 8, "settle": "1s"})
        for _ in range(8):
            before = len(sandbox.requests())
            with home.running(*RUN) as process:
                more = dice.randrange(5, 60)
                wait_for(lambda: len(sandbox.requests()) >= before + more, process)  # noqa: B023 - within the loop
        ran = home.run(*RUN)
        assert ran.exit_code == 0, ran.err
        lines = home.results("run")
        assert Counter(line["outcome"] for line in lines) == {"succeeded": 7 * len(ORGS)}
        made = Counter(effects(sandbox.journal()))
        assert (len(made), set(made.values())) == (5 * len(ORGS), {1})
        assert {org: len(lines) for org, lines in steps(sandbox).items()} == dict.fromkeys(ORGS, 5)
        for found in steps(sandbox).values():
            assert [kind for kind, _ in sorted(found, key=lambda step: arrived(step[1]))][::4] == ["orgs", "rules"]
        assert home.run("verify", "run").exit_code == 0
