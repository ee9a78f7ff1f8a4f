"""Dependency snapshots: what is well-formed, what is kept, what is reported."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.snapshots import snapshots
from bulk.sandbox.areas.snapshots.snapshot_rules import MOST_FAULTS, faults

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start

PATH = "/repos/acme-eng/hello-world/dependency-graph/snapshots"
TEST_AREAS = (organizations.AREA, rate_limit.AREA, rulesets.AREA, snapshots.AREA)
BODY: dict[str, Any] = {
    "version": 0,
    "job": {"id": "1", "correlator": "build", "html_url": "https://ci.example.com/1"},
    "sha": "a" * 40,
    "ref": "refs/heads/main",
    "detector": {"name": "npm", "version": "1.0", "url": "https://example.com/npm"},
    "metadata": {"a": "text", "b": 1, "c": 1.5, "d": True, "e": None},
    "manifests": {
        "package.json": {
            "name": "package.json",
            "file": {"source_location": "src/package.json"},
            "metadata": {},
            "resolved": {
                "left-pad": {
                    "package_url": "pkg:npm/left-pad@1.3.0",
                    "metadata": {"licence": "WTFPL"},
                    "relationship": "direct",
                    "scope": "runtime",
                    "dependencies": ["pkg:npm/%40scope/core@2"],
                }
            },
        }
    },
    "scanned": "2026-11-21T08:00:00Z",
}


def changed(path: str, value: object) -> dict[str, Any]:
    """The body with one member set; `...` removes it."""
    body = deepcopy(BODY)
    *parents, last = path.split("/")
    holder = body
    for parent in parents:
        holder = holder[parent]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return body


async def submit(platform: Platform, body: object = BODY, **options: Any) -> Any:
    """Submit a snapshot."""
    return await platform.ask("POST", PATH, body=body, **options)


def kept(platform: Platform) -> list[tuple[Any, ...]]:
    """The snapshots that are kept."""
    rows = platform.sandbox.context.state.db.execute("SELECT id, correlator, detector FROM snapshots ORDER BY id")
    return [tuple(row) for row in rows]


async def test_taken(start: Start, clock: HandClock) -> None:
    """201 with id, created_at, message and result; its own category pays."""
    platform = await start(clock=clock)
    reply = await submit(platform)
    assert reply.status == 201
    assert list(reply.json()) == ["id", "created_at", "message", "result"]
    assert (reply.json()["id"], reply.json()["result"]) == (1, "SUCCESS")
    assert reply.json()["created_at"] == "2027-01-15T08:00:00Z"
    assert reply.headers["X-RateLimit-Resource"] == "dependency_snapshots"
    (line,) = platform.journal()
    assert line["category"] == "dependency_snapshots"
    assert line["effect"].startswith("snapshot acme-eng/hello-world build npm ")


async def test_the_latest_is_kept(start: Start) -> None:
    """Of each correlator and detector, the latest snapshot is kept, and no other."""
    platform = await start()
    await submit(platform)
    await submit(platform, changed("sha", "b" * 40))
    await submit(platform, changed("job/correlator", "nightly"))
    await submit(platform, changed("detector/name", "pip"))
    assert kept(platform) == [(2, "build", "npm"), (3, "nightly", "npm"), (4, "build", "pip")]
    assert len({line["effect"] for line in platform.journal()}) == 4


async def test_the_same_again_changes_nothing(start: Start, clock: HandClock) -> None:
    """The kept body, submitted again, answers with the kept id and time and has no effect; once replaced, it is new."""
    platform = await start(clock=clock)
    first = await submit(platform)
    clock.advance(10)
    reordered = dict(reversed(BODY.items()))
    assert (await submit(platform, reordered)).json() == first.json()
    assert [bool(line["effect"]) for line in platform.journal()] == [True, False]
    await submit(platform, changed("sha", "b" * 40))
    again = await submit(platform)
    assert again.json()["id"] == 3
    assert again.json()["created_at"] != first.json()["created_at"]


async def test_a_post_costs_the_same_however_many_are_kept(start: Start) -> None:
    """Other correlators report the same file: the 40th snapshot takes no more work than the first."""
    platform = await start()
    resolved = {f"package-{number}": {"scope": "runtime"} for number in range(3_000)}
    costs = []
    for number in range(40):
        body = {**BODY, "job": {"id": "1", "correlator": f"job {number}"}}
        body["manifests"] = {"package.json": {"name": "package.json", "resolved": resolved}}
        began = time.process_time()
        await submit(platform, body)
        costs.append(time.process_time() - began)
    assert min(costs[-10:]) < 2 * min(costs[:10])


async def test_reported_as_failed(start: Start) -> None:
    """A snapshot of the null sha is taken and reported as INVALID; what was kept stays."""
    platform = await start()
    await submit(platform)
    reply = await submit(platform, changed("sha", "0" * 40))
    assert (reply.status, reply.json()["result"]) == (201, "INVALID")
    assert "does not exist" in reply.json()["message"]
    assert kept(platform) == [(1, "build", "npm")]
    assert platform.journal()[-1]["effect"] is None


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        (None, PATH, 401),
        ("sbx-member", PATH, 201),
        ("sbx-fine-grained", PATH, 201),
        ("sbx-read-only", PATH, 403),
        ("sbx-member", PATH.replace("acme-eng/hello-world", "acme-ops/runbook"), 403),
        ("sbx-member", PATH.replace("hello-world", "missing"), 404),
    ],
)
async def test_who_may(shared: Platform, token: str | None, path: str, status: int) -> None:
    """Whoever may write the repository may submit."""
    assert (await shared.ask("POST", path, token=token, body=BODY)).status == status


WRONG = [
    ("version", ..., "version is missing"),
    ("version", "0", "version must be an integer"),
    ("version", True, "version must be an integer"),
    ("version", 1.5, "version must be an integer"),
    ("job", ..., "job is missing"),
    ("job", "build", "job must be an object"),
    ("job/id", ..., "job.id is missing"),
    ("job/id", 5, "job.id must be a string"),
    ("job/correlator", None, "job.correlator must be a string"),
    ("job/html_url", 5, "job.html_url must be a string"),
    ("sha", ..., "sha is missing"),
    ("sha", "a" * 41, "sha must have 1 to 40 characters"),
    ("sha", "", "sha must have 1 to 40 characters"),
    ("sha", 5, "sha must be a string"),
    ("ref", ..., "ref is missing"),
    ("ref", "", "ref must not be empty"),
    ("detector", ..., "detector is missing"),
    ("detector/name", ..., "detector.name is missing"),
    ("detector/version", 1, "detector.version must be a string"),
    ("detector/url", ..., "detector.url is missing"),
    ("metadata", [], "metadata must be an object"),
    ("metadata", {str(n): n for n in range(9)}, "metadata has 9 keys: at most 8 are allowed"),
    ("metadata/a", {}, "metadata.a must be a string, a number, a boolean or null"),
    ("manifests", [], "manifests must be an object"),
    ("manifests/package.json", "text", "manifests.package.json must be an object"),
    ("manifests/package.json/name", ..., "manifests.package.json.name is missing"),
    ("manifests/package.json/file", "text", "manifests.package.json.file must be an object"),
    ("manifests/package.json/file/source_location", 5, "file.source_location must be a string"),
    ("manifests/package.json/metadata", {str(n): n for n in range(9)}, "package.json.metadata has 9 keys"),
    ("manifests/package.json/resolved", [], "resolved must be an object"),
    ("manifests/package.json/resolved/left-pad", 5, "resolved.left-pad must be an object"),
    ("manifests/package.json/resolved/left-pad/package_url", "left-pad", "package_url is not a package URL"),
    ("manifests/package.json/resolved/left-pad/package_url", 5, "package_url must be a string"),
    ("manifests/package.json/resolved/left-pad/metadata", {"a": []}, "metadata.a must be a string"),
    ("manifests/package.json/resolved/left-pad/relationship", "far", "relationship must be one of direct, indirect"),
    ("manifests/package.json/resolved/left-pad/scope", "test", "scope must be one of runtime, development"),
    ("manifests/package.json/resolved/left-pad/dependencies", "pkg:npm/a", "dependencies must be an array"),
    ("manifests/package.json/resolved/left-pad/dependencies", ["a"], "dependencies[0] is not a package URL"),
    ("manifests/package.json/resolved/left-pad/dependencies", [5], "dependencies[0] must be a string"),
    ("scanned", ..., "scanned is missing"),
    ("scanned", "yesterday", "scanned must be a timestamp"),
    ("scanned", "2026-11-21", "scanned must be a timestamp"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG)
def test_malformed(path: str, value: object, said: str) -> None:
    """Each fault of a body is one sentence that begins with its place."""
    (fault,) = faults(changed(path, value))
    assert said in fault
    assert fault.startswith(path.split("/", maxsplit=1)[0])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata", ...),
        ("metadata", {str(n): n for n in range(8)}),
        ("manifests", ...),
        ("manifests", {}),
        ("sha", "abc"),
        ("ref", "main"),
        ("job/html_url", ...),
        ("scanned", "2026-11-21T08:00:00+01:00"),
        ("manifests/package.json/file", ...),
        ("manifests/package.json/resolved/left-pad/dependencies", []),
    ],
)
def test_well_formed(path: str, value: object) -> None:
    """What the specification allows is not a fault."""
    assert faults(changed(path, value)) == []


async def test_refused(shared: Platform) -> None:
    """A malformed body is 422 with a sentence for each fault, 20 at most; nothing is kept."""
    before = kept(shared)
    reply = await submit(shared, {"manifests": {str(n): None for n in range(50)}})
    assert reply.status == 422
    assert len(reply.json()["errors"]) == MOST_FAULTS
    assert reply.json()["errors"][0] == "version is missing"
    assert kept(shared) == before
