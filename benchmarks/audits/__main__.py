"""The bars of audits: `python -m benchmarks.audits [REPOSITORIES] [PART…]`.

Against a sandbox of its own, whose validators depend on the token: nights over a fleet of generated repositories
(README and root listing each), without change, with changes, each with another token; absent files, and a token of
lesser rights; policies over a night; audits that overlap; audits that are killed at random moments. Bills of materials
are in `bills.py`, tables in `tables.py`. A line each tells what was counted and measured, and what of it falls short of
its bar; then the exit code is 1.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import row
from bulk.audit.history import History, Night
from bulk.audit.policies.judging import Judgement, judge
from bulk.audit.policies.policy import read_policies
from bulk.audit.tables import processes
from bulk.audit.tables.nights import tables_of_night
from bulk.platform.cache.cache_entry import DATED_AFTER_S
from tests.e2e.support.platform import Home, Served, served

POLICIES = Path(__file__).parents[2] / "jobs" / "examples" / "policies"
OTHERS = "sbx-other-token", "sbx-third-token"
BLIND = "sbx-blind-token"
SETTLED_S = 3.0
"""After this time the date of a change, which has whole seconds, tells it from the next one (seconds)."""


ROUNDS = 5
"""Times that policies are judged by a process that is there (count)."""
STARTS, START_S = 100, 300.0
"""Audits that are started at once, and what each of them may take (count, seconds)."""

LAST = "SELECT idx, missing, result, owner, repo FROM contents_get WHERE run = (SELECT max(run) FROM runs) ORDER BY idx"


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended: its exit code, what it said, seconds, CPU seconds, and its largest process (MB)."""

    code: int
    said: str
    took_s: float
    cpu_s: float
    peak_mb: int


class Bench:
    """A home, its sandbox, and an audit of a fleet."""

    def __init__(self, home: Home, sandbox: Served, repositories: int) -> None:
        self.home, self.sandbox, self.repositories = home, sandbox, repositories
        self.changes = 0
        self.short = list[str]()

    def row(self, claim: str, figure: str, aim: str, *, holds: bool) -> None:
        """Print a row of the table of all benchmarks; say it where its bar does not hold."""
        row(claim, figure, aim, holds)
        self.want(claim, holds=holds)

    def want(self, bar: str, *, holds: bool) -> None:
        """Say that a bar does not hold."""
        if not holds:
            self.short.append(bar)
            print(f"FALLS SHORT: {bar}", flush=True)

    def items(self, **more: Any) -> list[dict[str, Any]]:
        """One item for each repository."""
        return [{"owner": "acme-fleet", "repo": f"repo-{number:05}", **more} for number in range(self.repositories)]

    def write(self, name: str, jobs: dict[str, Any], *, concurrency: int = 64, **audit: Any) -> None:
        """The manifest of an audit."""
        limits = {"concurrency": concurrency}
        credential = {"token": "env:BULK_TOKEN", "identity": "auditor"}  # kept answers outlive each of its tokens
        platform = {"base_url": self.sandbox.base_url, "credentials": {"default": credential}}
        self.home.manifest("", jobs, f"{name}.yaml", platform=platform, audit=audit, limits=limits)

    def audit(self, name: str, *options: str) -> Ended:
        """One night."""
        command = [sys.executable, "-m", "bulk", "audit", f"{name}.yaml", "--progress", "none", *options]
        began = time.perf_counter()
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                command, cwd=self.home.folder, env=self.home.environment(), stdout=said, stderr=said
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            took_s = time.perf_counter() - began
            said.seek(0)
            text = said.read().decode()
        return Ended(process.returncode, text, took_s, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)

    def night(self, name: str) -> Night:
        """The last night of an audit."""
        return History.open(self.home.folder / "audits" / name).nights[-1]

    def say(self, what: str, name: str, ran: Ended) -> Night:
        """Print what a night found, and return it."""
        if ran.code not in (0, 1, 7):
            raise SystemExit(f"{what}: exit {ran.code}: {ran.said[-600:]}")
        night = self.night(name)
        print(
            f"{what}: exit {ran.code}, {night.units:,} units, {night.drift} items drifted, {night.changes} rows, "
            f"{night.lost_sight:,} lost sight of, {night.failed:,} failed; {ran.took_s:.1f} s, CPU {ran.cpu_s:.1f} s, "
            f"largest process {ran.peak_mb} MB",
            flush=True,
        )
        return night

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


def nights(bench: Bench) -> None:
    """Nights over the fleet, each with another token of one identity."""
    bench.home.lines("fleet.jsonl", bench.items())
    jobs = {
        "readmes": {"operation": "readme.get", "items": "fleet.jsonl"},
        "roots": {"operation": "contents.get", "items": "fleet.jsonl"},
    }
    bench.write("fleet", jobs)
    writer, costs = bench.home.token, list[Ended]()
    for what, token, changed, most in (
        ("first night", writer, range(0), 2 * bench.repositories),
        ("second night, another token, nothing changed", OTHERS[0], range(0), 10),
        ("third night, another token, 10 repositories changed", OTHERS[1], range(10), 20),
        ("fourth night, the first token, 100 repositories changed", writer, range(100, 200), 110),
        ("fifth night, the first token, nothing changed", writer, range(0), 10),
    ):
        bench.home.token = writer
        if changed:
            bench.change(changed)
            threading.Event().wait(2.0 * DATED_AFTER_S)  # a night is hours after a change; at once dates prove nothing
        bench.home.token = token
        ran = bench.audit("fleet")
        night = bench.say(what, "fleet", ran)
        costs.append(ran)
        wanted, found = (7 if changed else 0, len(changed), len(changed)), (ran.code, night.changes, night.drift)
        bench.row(
            f"{bench.repositories:,} repositories, README and root listing each: {what}",
            f"{night.units:,} units, exit {ran.code}, {night.changes} rows",
            f"at most {most:,} units, exit {wanted[0]}, {len(changed)} rows",
            holds=night.units <= most and wanted == found,
        )
    later, most_mb = sorted(ran.took_s for ran in costs[1:]), max(ran.peak_mb for ran in costs)
    row("each later night", f"{later[0]:.1f} to {later[-1]:.1f} s, at most {most_mb} MB")
    bench.home.token = writer


def absent(bench: Bench) -> None:
    """Files that are not there, and a token that may not see whether they are."""
    items = bench.items(path="CODEOWNERS")[:2_000]
    bench.home.lines("absent.jsonl", items)
    bench.write("absent", {"owners": {"operation": "contents.get", "missing": "ok", "items": "absent.jsonl"}})
    bench.say(f"{len(items):,} absent files, first night", "absent", bench.audit("absent"))
    ran = bench.audit("absent")
    night = bench.say("second night", "absent", ran)
    bench.row(
        f"{len(items):,} absent files, second night",
        f"{night.units:,} units, exit {ran.code}",
        "0 units, exit 0",
        holds=(night.units, ran.code) == (0, 0),
    )
    items = [{"owner": "acme-eng", "repo": "vault", "path": f"file-{number}"} for number in range(500)]
    bench.home.lines("absent.jsonl", items)
    bench.write("vault", {"owners": {"operation": "contents.get", "missing": "ok", "items": "absent.jsonl"}})
    bench.say("500 absent files of a private repository", "vault", bench.audit("vault"))
    bench.home.token, token = BLIND, bench.home.token
    ran = bench.audit("vault")
    night = bench.say("permission taken away", "vault", ran)
    bench.home.token = token
    run = bench.home.folder / "audits" / "vault" / "runs" / bench.night("vault").run
    missing = sum('"missing":true' in line for line in (run / "results.jsonl").read_text().splitlines())
    bench.row(
        f"{len(items):,} absent files, permission taken away",
        f"exit {ran.code}, {night.lost_sight:,} lost sight of, {missing:,} missing, {night.drift:,} drifted",
        f"exit 1, {len(items):,} lost sight of, none missing or drifted",
        holds=(ran.code, night.lost_sight, missing, night.drift) == (1, len(items), 0, 0),
    )


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
    ran = bench.audit("judged")
    night = bench.say("13 policies in a night", "judged", ran)
    print(f"of {night.items:,} items, {night.new:,} violations, all new")
    history = History.open(bench.home.folder / "audits" / "judged")
    files = {folder.name: folder / f"{night.run}.parquet" for folder in (history.path / "tables").iterdir()}
    found = read_policies(["policies/*.sql"], bench.home.folder)
    task = tables_of_night(files)
    asked = len(bench.sandbox.journal())

    def once() -> Judgement:
        return judge(found, [], task, {}, items=night.items, at=night.at)

    judgement, first_s, first_cpu_s = _timed(once, 1)
    print(
        f"policies alone, {len(judgement.violations):,} violations: {first_s:.2f} s, CPU {first_cpu_s:.2f} s, with the "
        "start of the process for tables, which a night has before"
    )
    _, all_s, all_cpu_s = _timed(once, 1 + ROUNDS)
    took_s, cpu_s = (all_s - first_s) / ROUNDS, (all_cpu_s - first_cpu_s) / ROUNDS
    print(f"policies alone, by a process that is there: {took_s:.2f} s, CPU of both processes {cpu_s:.2f} s")
    bench.want("policies: nothing is asked", holds=len(bench.sandbox.journal()) == asked)
    bench.want("policies: exit 7, what they find is found again", holds=ran.code == 7 and night.new > 0)
    bench.want("policies alone find the same", holds=len(judgement.violations) == night.new)
    bench.row(
        f"{len(found)} policies over a night of {bench.repositories:,} repositories, by a process that is there",
        f"{took_s:.2f} s; {first_s:.2f} s with its start",
        "at most 0.3 s, or of CPU time where others use the machine",
        holds=min(took_s, cpu_s) <= 0.3,
    )


def _timed(once: Callable[[], Judgement], times: int) -> tuple[Judgement, float, float]:
    """Judge `times` times; return what was found, the seconds, and the CPU seconds of both processes."""
    processes.end_all()
    began = time.perf_counter(), _cpu_s()
    for _ in range(times):
        judgement = once()
    took_s = time.perf_counter() - began[0]
    processes.end_all()
    return judgement, took_s, _cpu_s() - began[1]


def _cpu_s() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def overlap(bench: Bench) -> None:
    """A hundred starts at once, of an audit whose platform is slow, so that none comes when it has ended."""
    bench.home.lines("few.jsonl", bench.items()[:300])
    with served(bench.home.folder / "slow", "--latency", "200", seed=_fleet(300)) as slow:
        own = Bench(bench.home, slow, 300)
        own.write("overlap", {"readmes": {"operation": "readme.get", "items": "few.jsonl"}}, concurrency=1)
        command = [sys.executable, "-m", "bulk", "audit", "overlap.yaml", "--progress", "none", "--no-cache"]
        began, until = time.perf_counter(), time.monotonic() + START_S
        processes = [_quietly(bench, command) for _ in range(STARTS)]
        codes = Counter(process.wait(max(0.0, until - time.monotonic())) for process in processes)
        took_s = time.perf_counter() - began
        requests = len(slow.requests())
    runs = len(list((bench.home.folder / "audits" / "overlap" / "runs").iterdir()))
    print(
        f"{STARTS} audits at once: exit codes {dict(codes)}, {runs} run, {requests} requests for 300 items; "
        f"{took_s:.1f} s",
        flush=True,
    )
    bench.row(
        f"{STARTS} starts of one audit at once, 300 items",
        f"{codes[0]} ran, {codes[5]} ended with exit 5, {requests} requests",
        f"1 ran, {STARTS - 1} ended with exit 5, 300 requests",
        holds=codes == {0: 1, 5: STARTS - 1} and (runs, requests) == (1, 300),
    )


def kills(bench: Bench, times: int = 20) -> None:
    """Killed at random moments of a night, gone on with: the same tables, and at most one message for each night."""
    bench.home.lines("few.jsonl", bench.items()[:300])
    tell = {"command": ["sh", "-c", "cat >> told.jsonl"], "on": ["drift", "failure"]}
    bench.write("killed", {"roots": {"operation": "contents.get", "items": "few.jsonl"}}, notify=[tell])
    ran = bench.audit("killed")
    assert ran.code == 0, ran.said
    dice, killed = random.Random(1), 0
    command = [sys.executable, "-m", "bulk", "audit", "killed.yaml", "--progress", "none", "--no-cache"]
    for _ in range(times):
        bench.change([dice.randrange(300)])
        process = _quietly(bench, command)
        try:
            process.wait(dice.uniform(0.3, 1.0) * ran.took_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        bench.audit("killed")
    bench.audit("killed", "--history", "audits/twin", "--no-notify")
    last, twin = (bench.home.run("sql", f"audits/{each}", LAST, "--json").out for each in ("killed", "twin"))
    good = History.open(bench.home.folder / "audits" / "killed").good()
    told = Counter(json.loads(line)["run"] for line in (bench.home.folder / "told.jsonl").read_text().splitlines())
    drifted, most = sum(night.drift for night in good), max(told.values(), default=0)
    print(
        f"{times} nights, {killed} of them killed: {len(good)} good, {drifted} items drifted, {len(told)} nights told, "
        f"at most {most} message for each; the last night has {len(last.splitlines())} rows, "
        f"{'the same as' if last == twin else 'others than'} an audit that nothing happened to",
        flush=True,
    )
    bench.want(f"kills: at least half of {times} nights are killed", holds=killed >= times / 2)
    is_same = last == twin and len(last.splitlines()) == 300
    bench.row(
        f"{times} nights with a change each, killed at random moments and gone on with",
        f"{drifted} changes found, at most {most} message for each, {'the same' if is_same else 'other'} tables",
        f"{times} changes found, at most 1 message for each, the same tables",
        holds=drifted == times and most <= 1 and is_same,
    )


def _quietly(bench: Bench, command: Sequence[str]) -> "subprocess.Popen[bytes]":
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        command, cwd=bench.home.folder, env=bench.home.environment(), stdout=nothing, stderr=nothing
    )


def _fleet(repositories: int) -> dict[str, Any]:
    return {"repositories": [{"organization": "acme-fleet", "count": repositories}]}


def main() -> int:
    """Show every part that is asked for; 1 where a bar does not hold."""
    repositories = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    parts = {part.__name__: part for part in (nights, absent, policies, overlap, kills)}
    chosen = sys.argv[2:] or list(parts)
    vault = {"organization": "acme-eng", "name": "vault", "private": True, "files": {"README.md": "x"}}
    seed = {
        "repositories": [vault, *_fleet(repositories)["repositories"]],
        "tokens": [
            *({"token": token, "user": "octoadmin", "scopes": ["repo"]} for token in OTHERS),
            {"token": BLIND, "user": "octoadmin", "scopes": ["read:org"]},
        ],
    }
    limits = "--rate-limit", "core=10000000/3600"
    with tempfile.TemporaryDirectory(prefix="bulk-audits-") as folder:
        home, began = Home(Path(folder)), time.perf_counter()
        with served(Path(folder) / "sandbox", "--etag", "token", *limits, seed=seed) as sandbox:
            print(f"{repositories:,} repositories: the sandbox is there after {time.perf_counter() - began:.1f} s")
            threading.Event().wait(SETTLED_S)
            bench = Bench(home, sandbox, repositories)
            for name in chosen:
                parts[name](bench)
    print(f"{len(bench.short)} bars don't hold" if bench.short else "all bars hold")
    return 1 if bench.short else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[2]))
    sys.exit(main())
