"""What needs by key take: 50 organizations through six steps against the longest of them alone, and a million items.

    python -m benchmarks.needs [ITEMS]

The organizations have between 4 and 24 hooks to be made in each of five steps behind their own making, one behind the
other, as hooks of one organization are. The longest one alone is the same command with its items only; the same
manifest that needs whole jobs is shown beside. First in virtual time, then against a sandbox, whose times are its own,
from the first request to the last answer: a machine that has other things to do is too slow for that.
That no more than a few requests are in flight at first costs some ten round trips: of shorter chains it is more.
Memory is the peak of the whole command, ITEMS reads in six jobs, each of which waits for the one before that reads the
same repository, against a platform of canned answers.
"""

import contextlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.canned_platform import canned_platform
from benchmarks.harness.measuring import SERVER_CORE, cost_of, environment, on_core, row
from bulk.engine.rehearsal.measured import Measured
from bulk.engine.rehearsal.rehearse import model_of, rehearse_all
from bulk.manifest.reading import Overrides, read_manifest
from tests.e2e.support.judging import span_s

ITEMS = 1_000_000
STEPS, ORGANIZATIONS, HOOKS = 6, 50, (4, 24)
LATENCY_MS = 200
TOKEN = "sbx-site-admin"
MOST_RATIO, MOST_MB, MOST_CPU = 1.1, 200.0, 1.3


def needs(before: str, fields: dict[str, str], *, by_key: bool) -> list[Any]:
    """What a step says."""
    return [{before: fields}] if by_key else [before]


def write_lines(path: Path, items: Sequence[Any]) -> None:
    """An items file."""
    path.write_text("".join(json.dumps(item) + "\n" for item in items))


def organizations(folder: Path, counts: dict[str, list[int]], *, by_key: bool) -> dict[str, Any]:
    """Six jobs over these organizations, with the hooks of `counts` in each step behind the first."""
    write_lines(folder / "step0.jsonl", [{"login": org, "admin": "octoadmin"} for org in counts])
    jobs: dict[str, Any] = {"step0": {"operation": "organization.create", "items": "step0.jsonl"}}
    for step in range(1, STEPS):
        items = [
            {"org": org, "config": {"url": f"https://hooks.example/{org}/{step}/{number}"}}
            for org, found in counts.items()
            for number in range(found[step - 1])
        ]
        write_lines(folder / f"step{step}.jsonl", items)
        jobs[f"step{step}"] = {
            "operation": "webhook.create",
            "items": f"step{step}.jsonl",
            "with": {"events": ["push"]},
            "needs": needs(f"step{step - 1}", {"org": "login" if step == 1 else "org"}, by_key=by_key),
        }
    return jobs


def lasts(counts: dict[str, list[int]], *, by_key: bool) -> float:
    """From the first request to the last answer (seconds)."""
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
        folder = Path(name)
        with sandbox(folder) as base_url:
            manifest: dict[str, Any] = {"version": 1, "platform": {"base_url": base_url}}
            manifest["jobs"] = organizations(folder, counts, by_key=by_key)
            (folder / "manifest.yaml").write_text(json.dumps(manifest))
            command = [sys.executable, "-m", "bulk", "run", str(folder / "manifest.yaml"), "--run-dir"]
            cost_of([*command, str(folder / "run"), "--no-cache", "--progress", "none"], environ={"BULK_TOKEN": TOKEN})
            lines = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
            return span_s([line for line in lines if "rate_limit" not in line["path"]])


@contextlib.contextmanager
def sandbox(folder: Path) -> Iterator[str]:
    """A sandbox in a process of its own; its base URL."""
    options = ["--quiet", "--rate-limit", "off", "--latency", str(LATENCY_MS), "--state", str(folder / "state")]
    command = [sys.executable, "-m", "bulk", "sandbox", *options, "--journal", str(folder / "journal.jsonl")]
    with (
        on_core(SERVER_CORE),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process,
    ):
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def rehearsed(counts: dict[str, list[int]], *, by_key: bool) -> float:
    """The same in virtual time (seconds): the real engine against a model, so that no machine is too slow for it."""
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
        path = Path(name) / "manifest.yaml"
        jobs = organizations(Path(name), counts, by_key=by_key)
        path.write_text(json.dumps({"version": 1, "platform": {"base_url": "https://x.example"}, "jobs": jobs}))
        operations = ("organization.create", "webhook.create")
        learnt = Measured(dict.fromkeys(operations, LATENCY_MS / 1_000), dict.fromkeys(operations, 0.0))
        model = model_of({}, learnt, LATENCY_MS / 1_000, {})
        found = rehearse_all(read_manifest(path, Overrides(), {}), model, seeds=1, assumed={}, asks=False)
        assert found.course.exit_code == 0, found.course.why
        return found.course.ends_s


def measure_chains() -> None:
    """All of them, the longest alone, and all with whole jobs."""
    dice = random.Random(50)
    counts = {f"org-{number:02d}": [dice.randint(*HOOKS) for _ in range(STEPS - 1)] for number in range(ORGANIZATIONS)}
    longest = max(counts, key=lambda org: sum(counts[org]))
    for how, end in (("in virtual time", rehearsed), ("against a sandbox", lasts)):
        alone = end({longest: counts[longest]}, by_key=True)
        together, whole = end(counts, by_key=True), end(counts, by_key=False)
        ratio = together / alone
        print(f"{how}: the longest alone {alone:.1f} s, by key {together:.1f} s, whole jobs {whole:.1f} s", flush=True)
        row(
            f"{ORGANIZATIONS} organizations through {STEPS} steps by key, of the longest alone, {how}",
            f"{ratio:.2f} ({together:.1f} of {alone:.1f} s; with whole jobs {whole / alone:.2f})",
            f"at most {MOST_RATIO:g}",
            ratio <= MOST_RATIO,
        )


def manifest_of_reads(folder: Path, base_url: str, items: int, *, by_key: bool) -> None:
    """Six jobs that read the same repositories, in an order of its own each."""
    repositories = list(range(items // STEPS))
    jobs: dict[str, Any] = {}
    for step in range(STEPS):
        random.Random(step).shuffle(repositories)
        with (folder / f"step{step}.jsonl").open("w") as file:
            file.writelines(f'{{"owner": "acme", "repo": "api-{number}"}}\n' for number in repositories)
        jobs[f"step{step}"] = {"operation": "readme.get", "items": f"step{step}.jsonl"}
        if step:
            jobs[f"step{step}"]["needs"] = needs(f"step{step - 1}", {"repo": "repo"}, by_key=by_key)
    head = {"version": 1, "platform": {"base_url": base_url}, "jobs": jobs}
    (folder / "manifest.yaml").write_text(json.dumps(head))


def measure_memory(sizes: Sequence[int]) -> None:
    """The peak of the whole command and its CPU time, the check included, beside whole jobs."""
    for items in sizes:
        peak_mb, cpu_s = dict[bool, float](), dict[bool, float]()
        for by_key in (False, True):
            with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
                folder = Path(name)
                manifest_of_reads(folder, base_url, items, by_key=by_key)
                command = [sys.executable, "-m", "bulk", "run", str(folder / "manifest.yaml"), "--run-dir"]
                command += [str(folder / "run"), "--no-cache", "--progress", "none"]
                cost = cost_of(command, environ={"BULK_TOKEN": "t"})
                with (folder / "run" / "results.jsonl").open("rb") as file:
                    assert sum(1 for _ in file) == items // STEPS * STEPS
            peak_mb[by_key], cpu_s[by_key] = cost.peak_mb, cost.cpu_s
            print(
                f"{items:10,} items  by key {by_key!s:5}  {items / cost.took_s:7,.0f}/s  "
                f"{cost.cpu_s / items * 1e6:5.0f} us  {cost.peak_mb:6.1f} MB",
                flush=True,
            )
        share = cpu_s[True] / cpu_s[False]
        row(
            f"peak memory of {items:,} items that wait by key",
            f"{peak_mb[True]:.0f} MB ({peak_mb[False]:.0f} with whole jobs)",
            f"at most {MOST_MB:g} MB",
            peak_mb[True] <= MOST_MB,
        )
        row(
            f"CPU time of {items:,} items that wait by key, of the same with whole jobs",
            f"{share:.2f} ({cpu_s[True]:.0f} of {cpu_s[False]:.0f} s)",
            f"at most {MOST_CPU:g}",
            share <= MOST_CPU,
        )


def main() -> None:
    """Measure, tell."""
    measure_chains()
    measure_memory([int(sys.argv[1].replace("_", ""))] if len(sys.argv) > 1 else [ITEMS])


if __name__ == "__main__":
    main()
