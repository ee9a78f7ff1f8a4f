"""Which instance of a manifest file is shown, where several snapshots report it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.snapshots import snapshots
from bulk.sandbox.areas.snapshots.snapshots import Origin
from bulk.sandbox.store import state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.sandbox.conftest import Platform, Start

SCHEMA = Path(state.__file__).with_name("schema.sql")
TEST_AREAS = (organizations.AREA, snapshots.AREA)
TOKENS = {
    "tokens": [
        {"token": "run", "user": "octoadmin", "kind": "workflow", "permissions": {"contents": "write"}},
        {
            "token": "job",
            "user": "octoadmin",
            "kind": "installation",
            "organization": "acme-eng",
            "permissions": {"contents": "write"},
        },
    ]
}


def manifest(name: str = "package.json", location: str | None = "src/package.json", **resolved: str) -> dict[str, Any]:
    """A manifest that resolves `resolved`: a key to the version of the package of that name."""
    made: dict[str, Any] = {"name": name}
    if location is not None:
        made["file"] = {"source_location": location}
    if resolved:
        made["resolved"] = {key: {"package_url": f"pkg:npm/{key}@{version}"} for key, version in resolved.items()}
    return made


async def submit(
    platform: Platform,
    correlator: str,
    detector: str,
    *manifests: dict[str, Any],
    token: str = "sbx-site-admin",
    repo: str = "hello-world",
) -> int:
    """Submit a snapshot; its id."""
    reply = await platform.ask(
        "POST",
        f"/repos/acme-eng/{repo}/dependency-graph/snapshots",
        token=token,
        body={
            "version": 0,
            "job": {"id": "1", "correlator": correlator},
            "sha": "a" * 40,
            "ref": "refs/heads/main",
            "detector": {"name": detector, "version": "1", "url": "https://example.com"},
            "scanned": "2026-11-21T08:00:00Z",
            "manifests": {str(place): each for place, each in enumerate(manifests)},
        },
    )
    assert reply.status == 201, reply.content
    number: int = reply.json()["id"]
    return number


def table(platform: Platform) -> dict[str, tuple[int, dict[str, str]]]:
    """What is shown: for each file the snapshot, and each package with its version."""
    rows = platform.sandbox.context.state.db.execute("SELECT * FROM shown_manifests").fetchall()
    return {row["source_location"]: (row["snapshot_id"], packages(row["manifest"])) for row in rows}


def packages(text: str) -> dict[str, str]:
    """Each package with its version."""
    resolved = json.loads(text).get("resolved", {})
    return {key: dependency["package_url"].partition("@")[2] for key, dependency in resolved.items()}


async def test_one_snapshot_is_shown_whole(start: Start) -> None:
    """Every manifest of a snapshot is shown under its file, one without a file under its name."""
    platform = await start()
    number = await submit(platform, "b", "npm", manifest(left="1"), manifest("go.mod", None, right="2"))
    assert table(platform) == {"src/package.json": (number, {"left": "1"}), "go.mod": (number, {"right": "2"})}


async def test_of_different_detectors_the_first_correlator_is_shown(start: Start) -> None:
    """Among submissions of users the alphabetically first correlator counts, not the newest, and nothing is merged."""
    platform = await start()
    await submit(platform, "m", "npm", manifest(left="1"))
    first = await submit(platform, "a", "pip", manifest(right="2"))
    await submit(platform, "z", "gem", manifest(up="3"))
    assert table(platform) == {"src/package.json": (first, {"right": "2"})}


async def test_equal_detectors_are_merged(start: Start) -> None:
    """What other correlators of the same detector resolve is added; where both do, the first correlator counts."""
    platform = await start()
    await submit(platform, "b", "npm", manifest(left="9", right="2"))
    first = await submit(platform, "a", "npm", manifest(left="1"))
    await submit(platform, "c", "pip", manifest(up="3"))
    assert table(platform) == {"src/package.json": (first, {"left": "1", "right": "2"})}


async def test_users_before_jobs_before_automatic_submissions(start: Start, tmp_path: Path) -> None:
    """The origin goes before the correlator, and of another origin nothing is merged."""
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps(TOKENS))
    platform = await start(seed_data=seed)
    automatic = await submit(platform, "a", "npm", manifest(left="1"), token="run")
    assert table(platform) == {"src/package.json": (automatic, {"left": "1"})}
    job = await submit(platform, "b", "npm", manifest(left="2"), token="job")
    assert table(platform) == {"src/package.json": (job, {"left": "2"})}
    user = await submit(platform, "c", "npm", manifest(left="3"))
    assert table(platform) == {"src/package.json": (user, {"left": "3"})}


async def test_a_replaced_snapshot_reports_nothing_any_more(start: Start) -> None:
    """What the latest snapshot of a correlator and detector leaves out falls to who else reports it, or is gone."""
    platform = await start()
    await submit(platform, "a", "npm", manifest(left="1"), manifest("go.mod", "go.mod", up="1"))
    other = await submit(platform, "b", "pip", manifest(right="2"))
    latest = await submit(platform, "a", "npm", manifest("Gemfile", "Gemfile"))
    assert table(platform) == {"src/package.json": (other, {"right": "2"}), "Gemfile": (latest, {})}


async def test_repositories_are_apart(start: Start) -> None:
    """The same file of another repository is another file."""
    platform = await start()
    first = await submit(platform, "b", "npm", manifest(left="1"))
    second = await submit(platform, "a", "npm", manifest(right="2"), repo="empty")
    rows = platform.sandbox.context.state.db.execute("SELECT repository_id, snapshot_id, manifest FROM shown_manifests")
    found = {row["repository_id"]: (row["snapshot_id"], packages(row["manifest"])) for row in rows}
    assert found == {1001: (first, {"left": "1"}), 1004: (second, {"right": "2"})}


async def test_manifests_of_one_file_in_one_snapshot_are_merged(start: Start) -> None:
    """Two entries for one file are one; the first entry's name and packages count."""
    platform = await start()
    number = await submit(platform, "a", "npm", manifest("first", left="1"), manifest("second", left="9", right="2"))
    assert table(platform) == {"src/package.json": (number, {"left": "1", "right": "2"})}
    (row,) = platform.sandbox.context.state.db.execute("SELECT manifest FROM shown_manifests")
    assert json.loads(row["manifest"])["name"] == "first"


@pytest.mark.parametrize("manifests", [{}, {"manifests": None}, {"manifests": {}}])
def test_no_manifests(manifests: dict[str, Any]) -> None:
    """A snapshot may report none."""
    assert shown([(1, Origin.USER, "a", "npm", manifests)]) == []


@pytest.mark.parametrize("key", ['quo"te', "back\\slash", "ümlaut", "line\nend", "dotted.key", ""])
def test_any_key_is_shown_as_it_is(key: str) -> None:
    """Keys of manifests and packages are texts of the submitter's own."""
    made = {"manifests": {key: manifest(key, None, **{key: "1"})}}
    (found,) = shown([(1, Origin.USER, "a", "npm", made)])
    assert packages(found["manifest"]) == {key: "1"}


REPORTS = st.lists(
    st.tuples(st.sampled_from(Origin), st.sampled_from("abc"), st.sampled_from("xyz")),
    min_size=1,
    unique_by=lambda each: each[1:],
)


def shown(snapshots: Sequence[tuple[int, Origin, str, str, dict[str, Any]]]) -> list[sqlite3.Row]:
    """What a new database shows of these: id, origin, correlator, detector and body of each."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.row_factory = sqlite3.Row
        db.executescript(SCHEMA.read_text())
        db.executemany(
            "INSERT INTO snapshots VALUES (?, 1, ?, ?, ?, x'00', 1, 0.0, ?)",
            [
                (number, correlator, detector, origin, json.dumps(body))
                for number, origin, correlator, detector, body in snapshots
            ],
        )
        return db.execute("SELECT * FROM shown_manifests").fetchall()


@given(REPORTS, st.randoms())
def test_what_is_shown_does_not_depend_on_the_order(keys: list[tuple[Origin, str, str]], dice: Any) -> None:
    """Whatever the order of submission: the best origin, in it the first correlator, and all of its detector there,
    where the first of them counts for what several resolve.
    """
    best = min(keys)
    equal = sorted(key for key in keys if (key[0], key[2]) == (best[0], best[2]))
    wanted = {f"p{keys.index(key)}": "1" for key in equal} | {"same": str(keys.index(best))}
    numbers = list(range(len(keys)))
    dice.shuffle(numbers)
    reports = []
    for number, key in zip(numbers, keys, strict=True):
        place = str(keys.index(key))
        reports.append((number, *key, {"manifests": {"m": manifest(**{f"p{place}": "1", "same": place})}}))
    (found,) = shown(reports)
    assert (found["snapshot_id"], found["correlator"], found["detector"]) == (numbers[keys.index(best)], *best[1:])
    assert packages(found["manifest"]) == wanted
