"""How far the end of a rehearsal is from that of the real run, for the whole and for each job.

    python -m benchmarks.rehearsals [--at-once 4] [SCENARIO ...]

Each scenario is run against a sandbox of its own, in another process. What the rehearsal knows is learnt: latencies and
lost answers from a trial of some items, the budget from the command line. Budgets are low and answers slow, so that the
processor decides nothing and several scenarios can run at once. Where budgets or lanes bind, the end and that of every
job must be within 5%; where the platform's own speed binds, the output must say so. With faults the end must lie in the
range that is printed, in nine of ten. It takes about five minutes.
"""

import argparse
import base64
import re
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.support.platform import Home, served

FLEET = {"organization": "acme-fleet", "count": 400, "readme_bytes": 200}
SHARE = 0.05
"""How far an end may be off where budgets or lanes bind."""
OWN_SPEED = "perhaps the platform's own speed"


def reads(count: int, **more: Any) -> dict[str, Any]:
    """READMEs of `count` repositories."""
    items = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count)]
    return {"operation": "readme.get", "items": items, **more}


def writes(count: int, repositories: int, **more: Any) -> dict[str, Any]:
    """`count` new files in `repositories`."""
    content = base64.b64encode(b"ours\n").decode()
    item = {"owner": "acme-fleet", "message": "m", "content": content}
    items = [
        {**item, "repo": f"repo-{number % repositories:05d}", "path": f"{repositories}-{number}"}
        for number in range(count)
    ]
    return {"operation": "contents.put", "items": items, **more}


@dataclass(frozen=True, slots=True)
class Scenario:
    """Jobs, the budget of core as the sandbox and the rehearsal take it, and how the sandbox behaves besides.

    Attributes:
        binds: `budget`, `lane` and `concurrency`, where the end is known; or `platform`.
        trial: items of each job that are run before (count).
    """

    jobs: Mapping[str, Any]
    budget: str
    latency_ms: int = 40
    fault: str = ""
    binds: str = "budget"
    limits: Mapping[str, Any] | None = None
    trial: int = 20


PAIR = {"first": reads(150), "second": reads(150, needs=["first"])}
SCENARIOS = {
    "reads": Scenario({"readmes": reads(290)}, "60/10"),
    "full-windows": Scenario({"readmes": reads(240)}, "60/12"),
    "burst": Scenario({"readmes": reads(290)}, "60/10", limits={"pace": "burst"}),
    "two-jobs": Scenario({"first": reads(150), "second": reads(135)}, "60/10"),
    "needs": Scenario(PAIR, "60/15"),
    "writes": Scenario({"files": writes(150, 50)}, "60/10"),
    "reserve": Scenario({"readmes": reads(190)}, "60/12", limits={"reserve": 20}),
    "one-lane": Scenario({"files": writes(60, 1)}, "5000/60", 300, binds="lane", trial=30),
    "four-lanes": Scenario({"files": writes(240, 4)}, "5000/60", 300, binds="lane", trial=60),
    "latency": Scenario(
        {"readmes": reads(400)}, "5000/60", 400, binds="concurrency", limits={"concurrency": 4}, trial=40
    ),
    "speed": Scenario({"readmes": reads(400)}, "50000/60", 0, binds="platform"),
    "lost-1": Scenario({"files": writes(150, 50)}, "60/10", fault="drop-after=0.01"),
    "lost-2": Scenario({"files": writes(150, 50)}, "60/10", fault="drop-after=0.02"),
    "lost-5": Scenario({"files": writes(150, 50)}, "60/10", fault="drop-after=0.05"),
    "lost-reads": Scenario({"readmes": reads(290)}, "60/10", fault="drop-after=0.02"),
    "lost-lanes": Scenario({"files": writes(120, 4)}, "5000/60", 200, fault="drop-after=0.02", trial=40),
    "lost-needs": Scenario(PAIR, "60/15", fault="drop-after=0.01"),
    "out-1": Scenario({"readmes": reads(290)}, "60/10", fault="unavailable=0.01"),
    "out-2": Scenario({"readmes": reads(290)}, "60/10", fault="unavailable=0.02"),
    "out-5": Scenario({"readmes": reads(290)}, "60/10", fault="unavailable=0.05"),
    "out-writes": Scenario({"files": writes(150, 50)}, "60/10", fault="unavailable=0.02"),
}
IN_RANGE = 0.9
"""Share of the scenarios with faults whose end has to lie in the range."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a scenario: its line, and whether it is as it must be."""

    text: str
    is_right: bool


def seconds_of(text: str) -> float:
    """Return seconds of `1 h 2 min 3 s`, `2 min 4 s`, `5.1 s` or `270 ms`."""
    units = {"h": 3_600.0, "min": 60.0, "s": 1.0, "ms": 0.001}
    return sum(
        float(number.replace(",", "")) * units[unit] for number, unit in re.findall(r"([\d.,]+) (h|min|ms|s)\b", text)
    )


def run(name: str, scenario: Scenario, folder: Path) -> Row:
    """Try some items, rehearse, run, and compare."""
    home = Home(folder / "home")
    home.folder.mkdir(parents=True)
    quiet = ("--progress", "none", "--no-cache")
    limits = {"settle": "1s", **(scenario.limits or {})}
    slow = ("--latency", str(scenario.latency_ms))
    with served(folder / "trial", "--rate-limit", "off", *slow, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, scenario.jobs, limits=limits)
        home.run("run", "manifest.yaml", "--limit", str(scenario.trial), "--run-dir", "trial", *quiet, timeout_s=300)
    kind, _, share = scenario.fault.partition("=")
    options = ["--rate-limit", f"core={scenario.budget}", *slow, *(["--fault", scenario.fault] if kind else [])]
    with served(folder / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, scenario.jobs, limits=limits)
        faults = ["--fault", f"{kind}={float(share):.0%}"] if kind else []
        budget = ("--budget", f"core={scenario.budget}")
        told = home.run("rehearse", "manifest.yaml", "--from", "trial", *budget, *faults, timeout_s=300)
        assert told.exit_code == 0, told.err
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", *quiet, timeout_s=300)
        assert ran.exit_code in (0, 1), ran.err
    return compared(name, scenario, told.out, home.report("run"))


def compared(name: str, scenario: Scenario, told: str, report: Mapping[str, Any]) -> Row:
    """Return how far what was told is from what the report says."""
    began = datetime.fromisoformat(report["started_at"])
    ends = {job["name"]: (datetime.fromisoformat(job["ended_at"]) - began).total_seconds() for job in report["jobs"]}
    real = max(ends.values())
    first = told.splitlines()[0]
    expected = low = high = seconds_of(first.partition("(")[0])
    if "rehearsals:" in first:
        low, high = (seconds_of(end) for end in first.partition("rehearsals: ")[2].split(" to "))
    off = {"end": expected / real - 1.0}
    for job, ended in ends.items():
        row = re.search(rf"^{job} {{2,}}.*$", told, re.MULTILINE)
        assert row, told
        off[job] = seconds_of(re.split(r" {2,}", row[0])[2]) / ended - 1.0
    if scenario.fault:
        is_right = low - 0.5 <= real <= high + 0.5  # both are printed in whole seconds
        verdict = "in range" if is_right else "OUT OF RANGE"
    elif scenario.binds == "platform":
        is_right = OWN_SPEED in told
        verdict = "labelled" if is_right else "NOT LABELLED"
    else:
        is_right = all(abs(share) <= SHARE for share in off.values()) and OWN_SPEED not in told
        verdict = "within 5%" if is_right else "MORE THAN 5% OFF"
    shares = ", ".join(f"{what} {share:+.1%}" for what, share in off.items())
    spare = re.search(r"([\d,]+) requests? to spare", told)
    return Row(
        f"{name:13} {scenario.binds:11} real {real:6.2f} s, rehearsed {expected:6.2f} s ({low:.1f} to {high:.1f}), "
        f"to spare {spare[1] if spare else '-':>3}: {shares}: {verdict}",
        is_right,
    )


def main() -> int:
    """Run them, some at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], default=[])
    given = parser.parse_args()

    def one(name: str) -> Row:
        with tempfile.TemporaryDirectory(prefix="bulk-rehearsals-") as folder:
            return run(name, SCENARIOS[name], Path(folder))

    rows: dict[str, Row] = {}
    with ThreadPoolExecutor(given.at_once) as pool:
        names = given.scenarios or list(SCENARIOS)
        for name, row in zip(names, pool.map(one, names), strict=True):
            print(row.text, flush=True)
            rows[name] = row
    faulty = [row.is_right for name, row in rows.items() if SCENARIOS[name].fault]
    if faulty:
        print(f"with faults: {sum(faulty)} of {len(faulty)} in the range")
    others = all(row.is_right for name, row in rows.items() if not SCENARIOS[name].fault)
    return 0 if others and sum(faulty) >= IN_RANGE * len(faulty) else 1


if __name__ == "__main__":
    sys.exit(main())
