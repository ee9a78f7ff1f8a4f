"""The bars of audits and uploads: `python -m benchmarks.audits [REPOSITORIES] [PART…]`.

Against a sandbox of its own: nights over a fleet of generated repositories (README and root listing each), without
change, with changes, with a token of lesser rights; absent files; policies over a night; audits that overlap; audits
that are killed at every step. Bills of materials are in `bills.py`, tables in `tables.py`. Prints what was counted and
measured, a line each.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bulk.audit.history import History
from tests.e2e.support.platform import Home, Ran, Served, served

POLICIES = Path(__file__).parents[2] / "jobs" / "examples" / "policies"
OTHERS = "sbx-other-token", "sbx-third-token"
BLIND = "sbx-blind-token"
SETTLED_S = 3.0
"""So long after a change its date, which has whole seconds, tells it from the next one (seconds)."""


class Bench:
    """A home, its sandbox, and an audit of a fleet."""

    def __init__(self, home: Home, sandbox: Served, repositories: int) -> None:
        self.home, self.sandbox, self.repositories = home, sandbox, repositories
        self.changes = 0

    def items(self, **more: Any) -> list[dict[str, Any]]:
        """One item for each repository."""
        return [{"owner": "acme-fleet", "repo": f"repo-{number:05}", **more} for number in range(self.repositories)]

    def write(self, name: str, jobs: dict[str, Any], **audit: Any) -> None:
        """The manifest of an audit."""
        limits = {"concurrency": 64}
        credential = {"token": "env:BULK_TOKEN", "identity": "auditor"}  # kept answers outlive each of its tokens
        platform = {"base_url": self.sandbox.base_url, "credentials": {"default": credential}}
        self.home.manifest("", jobs, f"{name}.yaml", platform=platform, audit=audit, limits=limits)

    def audit(self, name: str, *options: str) -> tuple[Ran, float, float]:
        """One night: what it said, seconds, CPU seconds."""
        began, cpu = time.perf_counter(), _cpu_s()
        command = [sys.executable, "-m", "bulk", "audit", f"{name}.yaml", "--progress", "none", *options]
        ran = self.home.run_any(command, timeout_s=3_000)
        return ran, time.perf_counter() - began, _cpu_s() - cpu

    def night(self, name: str) -> Any:
        """The last night of an audit."""
        return History.open(self.home.folder / "audits" / name).nights[-1]

    def say(self, what: str, name: str, found: tuple[Ran, float, float]) -> None:
        """Print what a night found."""
        ran, took, cpu = found
        if ran.exit_code not in (0, 1, 7):
            print(f"{what}: exit {ran.exit_code}: {ran.err[-600:]}", flush=True)
            return
        night = self.night(name)
        print(
            f"{what}: exit {ran.exit_code}, {night.units:,} units, {night.drift} items drifted, {night.changes} rows, "
            f"{night.lost_sight:,} lost sight of, {night.failed:,} failed; {took:.1f} s, CPU {cpu:.1f} s",
            flush=True,
        )

    def change(self, repositories: Iterable[int]) -> None:
        """Add a file to each: its root listing is another one then, with one entry more."""
        self.changes += 1
        more = {"path": f"CHANGE-{self.changes}.md", "message": "Change", "content": "eA=="}
        lines = [{"owner": "acme-fleet", "repo": f"repo-{number:05}", **more} for number in repositories]
        self.home.lines("changes.jsonl", lines)
        job = {"operation": "contents.put", "items": "changes.jsonl"}
        self.home.manifest(self.sandbox.base_url, {"put": job}, "put.yaml")
        ran = self.home.run("run", "put.yaml", "--run-dir", f"put-{self.changes}", timeout_s=600)
        assert ran.exit_code == 0, ran.err


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def nights(bench: Bench) -> None:
    """Nights over the fleet, each with another token of one identity."""
    bench.home.lines("fleet.jsonl", bench.items())
    jobs = {
        "readmes": {"operation": "readme.get", "items": "fleet.jsonl"},
        "roots": {"operation": "contents.get", "items": "fleet.jsonl"},
    }
    bench.write("fleet", jobs)
    writer = bench.home.token
    for what, token, changed in (
        ("first night", writer, range(0)),
        ("second night, another token, nothing changed", OTHERS[0], range(0)),
        ("third night, another token, 10 repositories changed", OTHERS[1], range(10)),
        ("fourth night, the first token, 100 repositories changed", writer, range(100, 200)),
        ("fifth night, the first token, nothing changed", writer, range(0)),
    ):
        bench.home.token = writer
        if changed:
            bench.change(changed)
        bench.home.token = token
        bench.say(what, "fleet", bench.audit("fleet"))
    bench.home.token = writer


def absent(bench: Bench) -> None:
    """Files that are not there, and a token that may not see whether they are."""
    items = bench.items(path="CODEOWNERS")[:2_000]
    bench.home.lines("absent.jsonl", items)
    bench.write("absent", {"owners": {"operation": "contents.get", "missing": "ok", "items": "absent.jsonl"}})
    bench.say(f"{len(items):,} absent files, first night", "absent", bench.audit("absent"))
    bench.say("second night", "absent", bench.audit("absent"))
    items = [{"owner": "acme-eng", "repo": "vault", "path": f"file-{number}"} for number in range(500)]
    bench.home.lines("absent.jsonl", items)
    bench.write("vault", {"owners": {"operation": "contents.get", "missing": "ok", "items": "absent.jsonl"}})
    bench.say("500 absent files of a private repository", "vault", bench.audit("vault"))
    bench.home.token, token = BLIND, bench.home.token
    bench.say("permission taken away", "vault", bench.audit("vault"))
    bench.home.token = token
    run = bench.home.folder / "audits" / "vault" / "runs" / bench.night("vault").run
    missing = sum('"missing":true' in line for line in (run / "results.jsonl").read_text().splitlines())
    print(f"of these missing: {missing}")


def policies(bench: Bench) -> None:
    """The example policies over the fleet: nothing is sent."""
    shutil.copytree(POLICIES, bench.home.folder / "policies", dirs_exist_ok=True)
    bench.home.lines("fleet.jsonl", bench.items())
    jobs = {
        "readmes": {"operation": "readme.get", "items": "fleet.jsonl"},
        "owners": {
            "operation": "contents.get",
            "missing": "ok",
            "with": {"path": "CODEOWNERS"},
            "items": "fleet.jsonl",
        },
        "hooks": {"operation": "webhook.list", "items": [{"org": "acme-ops"}]},
        "rulesets": {"operation": "organization-ruleset.list", "items": [{"org": "acme-ops"}]},
        "defaults": {"operation": "enterprise-configuration.defaults", "items": [{"enterprise": "acme"}]},
        "configurations": {"operation": "enterprise-configuration.list", "items": [{"enterprise": "acme"}]},
        "license": {"operation": "license.get", "items": [{}]},
        "committers": {"operation": "committers.get", "items": [{"enterprise": "acme"}]},
    }
    bench.write("judged", jobs, policies=["policies/*.sql"])
    ran, took, _ = bench.audit("judged")
    night = bench.night("judged")
    print(
        f"13 policies in a night of {night.items:,} items: exit {ran.exit_code}, {night.new:,} new; {took:.1f} s in all"
    )
    from bulk.audit.policies.judging import judge
    from bulk.audit.policies.policy import read_policies
    from bulk.audit.tables.nights import tables_of_night

    history = History.open(bench.home.folder / "audits" / "judged")
    files = {folder.name: folder / f"{night.run}.parquet" for folder in (history.path / "tables").iterdir()}
    found = read_policies(["policies/*.sql"], bench.home.folder)
    asked = len(bench.sandbox.journal())
    began, cpu = time.perf_counter(), _cpu_s()
    judgement = judge(found, [], tables_of_night(files, night.items), {}, items=night.items, at=night.at)
    took, cpu = time.perf_counter() - began, _cpu_s() - cpu
    print(
        f"policies alone, {len(judgement.violations):,} violations: {took:.2f} s, CPU {cpu:.2f} s, with the start of "
        f"the process; {len(bench.sandbox.journal()) - asked} requests"
    )


def overlap(bench: Bench, starts: int = 100) -> None:
    """A hundred starts at once."""
    bench.home.lines("few.jsonl", bench.items()[:300])
    bench.write("overlap", {"readmes": {"operation": "readme.get", "items": "few.jsonl"}})
    command = [sys.executable, "-m", "bulk", "audit", "overlap.yaml", "--progress", "none", "--no-cache"]
    lock = bench.home.folder / "audits" / "overlap"
    lock.mkdir(parents=True)
    quiet = subprocess.DEVNULL
    processes = [
        subprocess.Popen(
            command,
            cwd=bench.home.folder,
            env=bench.home.environment(),
            stdout=quiet,
            stderr=quiet,
        )
        for _ in range(starts)
    ]
    codes = Counter(process.wait() for process in processes)
    runs = len(list((lock / "runs").iterdir()))
    print(f"{starts} audits at once: exit codes {dict(codes)}, {runs} run(s)", flush=True)


def kills(bench: Bench, times: int = 20) -> None:
    """Killed at random moments of a night, gone on with: the same tables, and at most one message for each night."""
    bench.home.lines("few.jsonl", bench.items()[:300])
    tell = {"command": ["sh", "-c", "cat >> told.jsonl"], "on": ["drift", "failure"]}
    bench.write("killed", {"roots": {"operation": "contents.get", "items": "few.jsonl"}}, notify=[tell])
    ran, whole_s, _ = bench.audit("killed")
    assert ran.exit_code == 0, ran.err
    dice, killed = random.Random(1), 0
    command = [sys.executable, "-m", "bulk", "audit", "killed.yaml", "--progress", "none", "--no-cache"]
    for _ in range(times):
        bench.change([dice.randrange(300)])
        process = subprocess.Popen(
            command, cwd=bench.home.folder, env=bench.home.environment(), stdout=subprocess.DEVNULL
        )
        try:
            process.wait(dice.uniform(0.3, 1.0) * whole_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        ran, _, _ = bench.audit("killed")
    history = History.open(bench.home.folder / "audits" / "killed")
    told = [json.loads(line)["run"] for line in (bench.home.folder / "told.jsonl").read_text().splitlines()]
    rows = bench.home.run("sql", "audits/killed", "SELECT run, count(*) AS n FROM contents_get GROUP BY run", "--csv")
    sizes = {line.rsplit(",", 1)[1] for line in rows.out.splitlines()[1:]}
    drifted = sum(night.drift for night in history.good())
    print(
        f"{times} nights, {killed} of them killed: {len(history.good())} good, rows of each {sizes}, "
        f"{drifted} items drifted, at most {max(Counter(told).values(), default=0)} message for each night",
        flush=True,
    )


def main() -> None:
    repositories = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    chosen = sys.argv[2:] or ["nights", "absent", "policies", "overlap", "kills"]
    seed = {
        "repositories": [
            {"organization": "acme-eng", "name": "vault", "private": True, "files": {"README.md": "x"}},
            {"organization": "acme-fleet", "count": repositories},
        ],
        "tokens": [
            *({"token": token, "user": "octoadmin", "scopes": ["repo"]} for token in OTHERS),
            {"token": BLIND, "user": "octoadmin", "scopes": ["read:org"]},
        ],
    }
    with tempfile.TemporaryDirectory(prefix="bulk-audits-") as folder:
        home = Home(Path(folder))
        with served(
            Path(folder) / "sandbox",
            "--rate-limit",
            "core=10000000/3600",
            seed=seed,
        ) as sandbox:
            threading.Event().wait(SETTLED_S)
            bench = Bench(home, sandbox, repositories)
            for part in (nights, absent, policies, overlap, kills):
                if part.__name__ in chosen:
                    part(bench)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[2]))
    main()
