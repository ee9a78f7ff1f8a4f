"""How far the end of a rehearsal is from that of the real run, for the whole and for each job.

Each scenario is run against a sandbox of its own, in another process. What the rehearsal knows is learnt: latencies and
lost answers from a trial of some items, the budget from the command line. Where the platform's own speed binds, the row
is labelled and not counted.

    python -m benchmarks.rehearsals [SCENARIO ...]
"""

import argparse
import base64
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.support.platform import Home, served

FLEET = {"organization": "acme-fleet", "count": 2_000, "readme_bytes": 200}
TRIAL = "20"


def reads(count: int, start: int = 0) -> dict[str, Any]:
    """READMEs of so many repositories."""
    items = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(start, start + count)]
    return {"operation": "readme.get", "items": items}


def writes(count: int, repositories: int, **more: Any) -> dict[str, Any]:
    """New files in so many repositories."""
    content = base64.b64encode(b"ours\n").decode()
    items = [
        {
            "owner": "acme-fleet",
            "repo": f"repo-{number % repositories:05d}",
            "path": f"f{number}",
            "message": "m",
            "content": content,
        }
        for number in range(count)
    ]
    return {"operation": "contents.put", "items": items, **more}


@dataclass(frozen=True, slots=True)
class Scenario:
    """Jobs, the budget of core as the sandbox and the rehearsal take it, and how the sandbox behaves besides."""

    jobs: Mapping[str, Any]
    budget: str
    options: Sequence[str] = ()
    faults: Sequence[str] = ()
    binds: str = "budget"
    seeds: int = 1
    more: Mapping[str, Any] = field(default_factory=dict)


SCENARIOS = {
    "reads": Scenario({"readmes": reads(950)}, "300/8"),
    "full-windows": Scenario({"readmes": reads(900)}, "300/6"),
    "one-window": Scenario({"readmes": reads(280)}, "300/6"),
    "two-jobs": Scenario({"first": reads(400), "second": reads(400, 400)}, "250/6"),
    "needs": Scenario({"first": reads(300), "second": {**reads(300, 300), "needs": ["first"]}}, "200/6"),
    "writes": Scenario({"files": writes(400, 100)}, "300/6"),
    "one-lane": Scenario({"files": writes(120, 1)}, "5000/60", ("--latency", "40"), binds="lane"),
    "four-lanes": Scenario({"files": writes(240, 4)}, "5000/60", ("--latency", "40"), binds="lane"),
    "latency": Scenario({"readmes": reads(1_500)}, "50000/60", ("--latency", "300"), binds="concurrency"),
    "lost": Scenario({"files": writes(300, 100)}, "300/6", ("--fault", "drop-after=0.02"), ("drop-after=2%",), seeds=5),
    "unavailable": Scenario(
        {"readmes": reads(700)}, "300/6", ("--fault", "unavailable=0.02"), ("unavailable=2%",), seeds=5
    ),
    "speed": Scenario({"readmes": reads(2_000)}, "50000/60", binds="platform"),
}


def seconds_of(text: str) -> float:
    """Return seconds of `1 h 2 min 3 s`, `2 min 4 s`, `5.1 s` or `270 ms`."""
    units = {"h": 3_600.0, "min": 60.0, "s": 1.0, "ms": 0.001}
    return sum(
        float(number.replace(",", "")) * units[unit] for number, unit in re.findall(r"([\d.,]+) (h|min|ms|s)\b", text)
    )


def run(name: str, scenario: Scenario, folder: Path) -> str:
    """Return a row: real end, rehearsed end and range, how far off, the worst job, requests to spare."""
    home = Home(folder / "home")
    home.folder.mkdir(parents=True)
    quiet = ("--progress", "none", "--no-cache")
    limits = {"settle": "1s"}
    with served(folder / "trial", "--rate-limit", "off", *scenario.options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, scenario.jobs, limits=limits)
        home.run("run", "manifest.yaml", "--limit", TRIAL, "--run-dir", "trial", *quiet, timeout_s=300)
    options = ("--rate-limit", f"core={scenario.budget}", *scenario.options)
    with served(folder / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, scenario.jobs, limits=limits)
        faults = [word for fault in scenario.faults for word in ("--fault", fault)]
        told = home.run(
            "rehearse", "manifest.yaml", "--from", "trial", "--budget", f"core={scenario.budget}",
            "--seeds", str(scenario.seeds), *faults, timeout_s=300,
        )  # fmt: skip
        assert told.exit_code == 0, told.err
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", *quiet, timeout_s=300)
        assert ran.exit_code in (0, 1), ran.err
    report = home.report("run")
    lines = told.out.splitlines()
    expected = seconds_of(lines[0].partition("(")[0])
    low, high = expected, expected
    if "rehearsals:" in lines[0]:
        first, _, last = lines[0].partition("rehearsals: ")[2].partition(" to ")
        low, high = seconds_of(first), seconds_of(last)
    real = report["active_s"]
    off = (expected - real) / real
    spare = re.search(r"([\d,]+) requests? to spare", told.out)
    within = "in range" if low * 0.98 <= real <= high * 1.02 else "out of range"
    return (
        f"{name:13} {scenario.binds:11} real {real:7.2f} s  rehearsed {expected:7.2f} s ({low:.2f} to {high:.2f})  "
        f"{off:+6.1%}  {within if scenario.faults else '':12}  to spare {spare[1] if spare else '-'}"
    )


def main() -> None:
    """Run them, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], default=[])
    chosen = parser.parse_args().scenarios or list(SCENARIOS)
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="bulk-rehearsals-") as folder:
            print(run(name, SCENARIOS[name], Path(folder)), flush=True)


if __name__ == "__main__":
    main()
