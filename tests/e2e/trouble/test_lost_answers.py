"""Lost answers on real sockets and between real processes: the right outcome, and exactly one effect, by the journal.

The sandbox loses answers at random, in all four ways at once, often enough that each way to write meets some. What
every operation does about each of them is the matrix of `tests/simulation/effects/test_lost_answers.py`.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.support.judging import Line, effects, git
from tests.e2e.support.platform import Home, served

ITEMS, REPOSITORIES = 40, 20
FAULTS = {"drop-before": 0.025, "drop-after": 0.025, "error-after": 0.025, "truncate": 0.025}
SEED = 11
SETTLE = "3s"
"""The sandbox renames in the background, for up to 2 s: before that a look proves nothing."""

FLEET = {"organization": "acme-fleet", "count": REPOSITORIES, "readme_bytes": 100}
SNAPSHOT = {
    "version": 0,
    "ref": "refs/heads/main",
    "sha": "0" * 39 + "1",
    "scanned": "2026-11-21T08:00:00Z",
    "detector": {"name": "d", "version": "1", "url": "https://example.com/d"},
}


def first(number: int) -> bytes:
    """What the n-th file holds at first."""
    return b"first %d\n" % number


def second(number: int) -> bytes:
    """What it is replaced by."""
    return b"second %d\n" % number


def blob_sha(content: bytes) -> str:
    """Git's name of a file's content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def place(number: int, folder: str) -> dict[str, str]:
    """A file of the n-th item."""
    repo = f"repo-{number % REPOSITORIES:05d}"
    return {"owner": "acme-fleet", "repo": repo, "path": f"{folder}/{number}.txt"}


def put(content: bytes, **fields: str) -> dict[str, str]:
    """The rest of a `contents.put` item."""
    return {"content": base64.b64encode(content).decode(), "message": "Write a file", **fields}


def jobs() -> dict[str, Any]:
    """Seven jobs, one for each way to write."""
    numbers = range(ITEMS)
    return {
        "ensure": {"operation": "contents.put", "items": [{**place(n, "a"), **put(first(n))} for n in numbers]},
        "create": {
            "operation": "contents.put",
            "items": [{**place(n, "b"), **put(first(n), mode="create")} for n in numbers],
        },
        "replace": {
            "operation": "contents.put",
            "needs": ["ensure"],
            "items": [{**place(n, "a"), **put(second(n), mode="replace", sha=blob_sha(first(n)))} for n in numbers],
        },
        "delete": {
            "operation": "contents.delete",
            "needs": ["replace"],
            "with": {"message": "Delete a file"},
            # every second one says which blob it means
            "items": [{**place(n, "a"), **({"sha": blob_sha(second(n))} if n % 2 else {})} for n in numbers],
        },
        "snapshots": {
            "operation": "snapshot.create",
            "with": SNAPSHOT,
            "items": [
                {
                    "owner": "acme-fleet",
                    "repo": f"repo-{n % REPOSITORIES:05d}",
                    "job": {"id": "1", "correlator": f"{n}"},
                }
                for n in numbers
            ],
        },
        "orgs": {
            "operation": "organization.create",
            "items": [{"login": f"new-{n:02d}", "admin": "octoadmin"} for n in numbers],
        },
        "renames": {
            "operation": "organization.rename",
            "needs": ["orgs"],
            "items": [{"org": f"new-{n:02d}", "login": f"renamed-{n:02d}", "wait": True} for n in numbers],
        },
    }


def expected_effects() -> Iterator[tuple[str, int]]:
    """Each effect that may be in the journal, and how often."""
    for n in range(ITEMS):
        repo = f"acme-fleet/repo-{n % REPOSITORIES:05d}"
        yield f"commit {repo} a/{n}.txt", 3
        yield f"commit {repo} b/{n}.txt", 1
        yield f"organization new-{n:02d} created", 1
        yield f"organization new-{n:02d} renamed to renamed-{n:02d}", 1


def kind_of(line: Line) -> str | None:
    """Which way of writing a request is; None: a read."""
    match line["method"], line["path"].split("/")[3:]:
        case "PUT", [*_, folder, _]:
            return f"put {folder}"
        case "DELETE", _:
            return "delete"
        case "POST", ["admin", *_]:
            return "create organization"
        case "POST", _:
            return "snapshot"
        case "PATCH", _:
            return "rename"
    return None


def test_lost_answers_leave_one_effect_and_the_right_outcome(tmp_path: Path, figure) -> None:
    """A tenth of the answers lost: each write has one effect and has `succeeded` (failures.md rows 4, 5, 24)."""
    home = Home(tmp_path)
    faults = [option for kind, share in FAULTS.items() for option in ("--fault", f"{kind}={share}")]
    options = ("--rate-limit", "off", *faults, "--fault-seed", str(SEED))
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs(), limits={"settle": SETTLE})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run")
        lines = sandbox.requests()
    results = home.results("run")
    hit = Counter(kind for line in lines if line["fault"] and (kind := kind_of(line)))
    settled = sum("lost" in str(line["result"]) for line in results)
    figure(f"{len(lines):,} requests, answers lost {dict(hit)}, {settled} settled by reading")
    assert ran.exit_code == 0, ran.err
    assert Counter((line["job"], line["outcome"]) for line in results) == {
        (job, "succeeded"): ITEMS for job in jobs()
    }, [line for line in results if line["outcome"] != "succeeded"][:3]
    assert {line["fault"] for line in lines if kind_of(line)} > set(FAULTS)  # and None
    assert sum(hit.values()) >= ITEMS / 4  # about 28 on the average; which ones depends on what comes first
    found = Counter(effects(lines))
    snapshots = {effect: count for effect, count in found.items() if effect.startswith("snapshot ")}
    assert (len(snapshots), set(snapshots.values())) == (ITEMS, {1})
    assert {effect: found[effect] for effect in found if effect not in snapshots} == dict(expected_effects())
    for number in range(REPOSITORIES):
        state, name = sandbox.folder / "state", f"acme-fleet/repo-{number:05d}"
        shown = git(state, name, "ls-tree", "-r", "--name-only", "main").split()
        assert sorted(shown) == sorted(["README.md", *(f"b/{n}.txt" for n in range(number, ITEMS, REPOSITORIES))])
