"""What is done while processes are killed, and the judge: the sandbox's journal and git history, never the engine."""

import base64
import json
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.support.judging import changed_files, effects, git
from tests.e2e.support.platform import Home, Served

ORGANIZATION = "acme-fleet"
RUN_FILES = frozenset(
    ("check.json", "index.db", "items-orgs.jsonl", "ledger.db", "manifest.yaml", "origin.json", "report.html")
) | {"digests.json", "report.json", "results.jsonl", "run.lock", "run.seal", "saved"}


@dataclass(frozen=True, slots=True)
class Work:
    """Number of writes of each kind; `refused` of them must be refused, because the file is there already."""

    files: int
    organizations: int
    snapshots: int
    refused: int
    repositories: int = 20

    @property
    def fleet(self) -> dict[str, Any]:
        """Seed data: its repositories."""
        return {
            "repositories": {"organization": ORGANIZATION, "count": self.repositories, "readme_bytes": 200},
        }

    @property
    def jobs(self) -> Mapping[str, int]:
        """Items of each job (count)."""
        return {
            "files": self.files,
            "orgs": self.organizations,
            "snapshots": self.snapshots,
            "refused": self.refused,
        }

    def repository(self, number: int) -> str:
        """The repository of the n-th file or snapshot."""
        return f"repo-{number % self.repositories:05d}"

    def write(self, home: Home, base_url: str, limits: Mapping[str, Any]) -> None:
        """The manifest and its items."""
        at = [{"owner": ORGANIZATION, "repo": self.repository(n)} for n in range(max(self.files, self.snapshots))]
        home.lines("files.jsonl", [{**at[n], **_file(f"docs/{n}.txt", content(n))} for n in range(self.files)])
        home.lines("refused.jsonl", [{**at[n], **_file("README.md", "mine")} for n in range(self.refused)])
        builds = [{**at[n], "job": {"id": "1", "correlator": f"build-{n}"}} for n in range(self.snapshots)]
        home.lines("snapshots.jsonl", builds)
        made = "".join(f"new-{n:04d},octoadmin\n" for n in range(self.organizations))
        home.write("orgs.csv", "login,admin\n" + made)
        detector = {"name": "d", "version": "1", "url": "https://example.com/d"}
        common = {"version": 0, "ref": "refs/heads/main", "sha": "0" * 39 + "1", "scanned": "2026-11-21T08:00:00Z"}
        save = "{owner}/{repo}/{path}.json"
        jobs = {
            "files": {"operation": "contents.put", "items": "files.jsonl", "with": {"message": "Add"}, "save": save},
            "orgs": {"operation": "organization.create", "items": "orgs.csv"},
            "snapshots": {
                "operation": "snapshot.create",
                "items": "snapshots.jsonl",
                "with": {**common, "detector": detector},
            },
            "refused": {
                "operation": "contents.put",
                "items": "refused.jsonl",
                "with": {"message": "Add", "mode": "create"},
            },
        }
        home.manifest(base_url, jobs, limits=dict(limits))


def content(number: int) -> str:
    """What the n-th file holds."""
    return f"file {number}\n"


def _file(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "content": base64.b64encode(text.encode()).decode()}


def nothing_lost_or_doubled(work: Work, lines: Sequence[Mapping[str, Any]], state: Path) -> None:
    """By journal and git history every effect is there exactly once.

    A snapshot whose answer was lost is sent again, as operations.md says: the platform keeps it already, so the
    journal's effect of the repeat is null. That is not a second effect; one would have an id of its own.
    """
    assert Counter(effects(lines, "organization")) == Counter(
        f"organization new-{n:04d} created" for n in range(work.organizations)
    )
    assert Counter(effects(lines, "commit")) == Counter(
        f"commit {ORGANIZATION}/{work.repository(n)} docs/{n}.txt" for n in range(work.files)
    )
    snapshots = Counter(tuple(effect.split()[1:4]) for effect in effects(lines, "snapshot"))
    assert snapshots == Counter(
        (f"{ORGANIZATION}/{work.repository(n)}", f"build-{n}", "d") for n in range(work.snapshots)
    )
    assert len(effects(lines)) == work.files + work.organizations + work.snapshots
    for number in range(work.repositories):
        name = f"{ORGANIZATION}/{work.repository(number)}"
        mine = range(number, work.files, work.repositories)
        assert sorted(changed_files(state, name)) == sorted(f"docs/{n}.txt" for n in mine)
        shown = git(state, name, "grep", "-h", "^file", "main", "--", "docs").splitlines()
        assert sorted(shown) == sorted(content(n).strip() for n in mine)


def nothing_misreported(work: Work, home: Home, sandbox: Served) -> None:
    """Each item has one line in the results, and it says what is the case; the report counts the same."""
    results = home.results("run")
    ended = Counter((line["job"], line["index"]) for line in results)
    assert ended == Counter((job, n) for job, items in work.jobs.items() for n in range(items))
    wrong = [line for line in results if _is_wrong(line, sandbox.folder / "state")]
    assert not wrong, [json.dumps(line) for line in wrong[:5]]
    told = {name: outcomes for job in home.report("run")["jobs"] for name, outcomes in [(job["name"], job)]}
    for name, items in work.jobs.items():
        # a clash whose answer was lost may stay unknown: what stands there could have been written since
        kinds = ("failed", "unknown") if name == "refused" else ("succeeded",)
        assert sum(told[name]["outcomes"].get(kind, 0) for kind in kinds) == items, told[name]


def _is_wrong(line: Mapping[str, Any], state: Path) -> bool:
    if line["job"] == "refused":
        ended = line["outcome"], line["error"] and line["error"]["code"]
        return ended not in (("failed", "conflict"), ("unknown", "unknown_outcome"))
    return bool(line["outcome"] != "succeeded" or line["error"] is not None)


def saved_files_are_whole(work: Work, run_dir: Path) -> None:
    """`save` wrote each file's answer, and nothing a kill cut short has a name there."""
    saved = run_dir / "saved"
    found = {str(path.relative_to(saved)) for path in saved.rglob("*") if path.is_file()}
    assert found == {f"{ORGANIZATION}/{work.repository(n)}/docs/{n}.txt.json" for n in range(work.files)}
    assert all(json.loads((saved / name).read_bytes()) is not None for name in found)


def nothing_is_left_over(run_dir: Path) -> None:
    """The run directory holds what the documentation names, closed to others, and no half-written file."""
    left = {path.name for path in run_dir.iterdir()} - RUN_FILES
    assert not left, left
    for path in (run_dir, *run_dir.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path}: {mode:o}"
