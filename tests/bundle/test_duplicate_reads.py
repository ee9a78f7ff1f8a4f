"""Which reads of a job ask for the same, found with memory that does not grow; and how much that and the rest saves."""

import sys
import tempfile
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.bundle import duplicate_reads
from bulk.bundle.checked import SUMMARY, load_checked
from bulk.bundle.duplicate_reads import Copies, DuplicateFinder
from bulk.check.plan import plan
from bulk.operation import Item
from bulk_jobs.snapshots import CreateSnapshot
from bulk_jobs.team_organizations import AddTeamOrganizations, AssignTeamOrganization
from tests.manifest.making import ReadThing, ThingItem, WriteThing, a_job, check_in

TEAM = {"enterprise": "acme", "enterprise-team": "ent:security"}


class Momentary(ReadThing):
    """A read that has a point each time."""

    is_momentary = True


@given(places=st.lists(st.integers(0, 40), max_size=300), held=st.sampled_from([24, 240, 4_000_000]))
def test_a_copy_is_what_was_asked_before(places: list[int], held: int) -> None:
    """Whatever the order and however little fits in memory: each later item is told with the first of its kind."""
    seen: dict[int, int] = {}
    expected = {index: seen[place] for index, place in enumerate(places) if seen.setdefault(place, index) != index}
    real, duplicate_reads._HELD_BYTES = duplicate_reads._HELD_BYTES, held
    try:
        with tempfile.TemporaryDirectory() as folder, DuplicateFinder(Path(folder)) as finder:
            for index, place in enumerate(places):
                finder.add(ThingItem(id=str(index) if index % 2 else None, place=str(place)), index)
            assert {copy: first for _, copy, first in finder.found(0)} == expected
            assert not list(Path(folder).iterdir())
    finally:
        duplicate_reads._HELD_BYTES = real


def test_the_same_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    """Order of fields, `with`, defaults given, ids and keys of maps make no difference; any other value does."""
    items = [
        {"place": "a", "number": 1, "extra": {"x": 1, "y": 2}},
        {"id": "u", "extra": {"y": 2, "x": 1}, "number": 1, "place": "a"},
        {"place": "a", "number": 1, "extra": {"x": 1, "y": 2}, "kind": None},
        {"place": "a", "number": 2, "extra": {"x": 1, "y": 2}},
        {"place": "A", "number": 1, "extra": {"x": 1, "y": 2}},
    ]
    checked, workspace = check_in(
        tmp_path, a_job(ReadThing(), items), a_job(ReadThing(), items[:1], number=1, name="y")
    )
    assert [job.copies for job in checked.jobs] == [2, 0]
    found = Copies(workspace)
    assert [bytes(found.bits(*of)) for of in ((0, 5), (0, 2), (1, 1))] == [b"\x06", b"\x02", b"\x00"]
    assert found.firsts(0, [1, 2]) == {1: 0, 2: 0}
    found.close()
    assert (workspace / duplicate_reads.COPIES).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "job",
    [
        a_job(WriteThing(), [{"place": "a"}] * 3),
        a_job(Momentary(), [{"place": "a"}] * 3),
        a_job(ReadThing(), [{"place": "a", "id": str(number)} for number in range(3)], save="{id}"),
    ],
)
def test_what_is_never_a_copy(tmp_path: Path, job) -> None:
    """Writes, reads of the moment, and results that are saved are each sent."""
    checked, workspace = check_in(tmp_path, job)
    assert checked.jobs[0].copies == 0
    assert not (workspace / duplicate_reads.COPIES).exists()


def test_a_check_counts_only_with_what_it_found(tmp_path: Path) -> None:
    """Without `copies.db` the check is made again; with it, what was found is what is read."""
    checked, workspace = check_in(tmp_path, a_job(ReadThing(), [{"place": "a"}] * 3))
    again = load_checked(checked.manifest, workspace)
    assert again is not None
    assert again.jobs[0].copies == 2
    (workspace / duplicate_reads.COPIES).unlink()
    assert load_checked(checked.manifest, workspace) is None
    assert (workspace / SUMMARY).exists()


def test_the_plan_says_what_is_saved(tmp_path: Path) -> None:
    """Copies, superseded snapshots and shared calls are not in what the plan counts, and it says how many they are."""
    snapshot = dict(CreateSnapshot.example)
    assign = [{**TEAM, "org": f"org-{number}"} for number in range(250)]
    add = [{**TEAM, "organization_slugs": [f"a{number}-{each}" for each in range(40)]} for number in range(5)]
    checked, _ = check_in(
        tmp_path,
        a_job(ReadThing(), [{"place": "a"}] * 10, number=0, name="reads"),
        a_job(CreateSnapshot(), [snapshot] * 4, number=1, name="snapshots"),
        a_job(AssignTeamOrganization(), assign, number=2, name="assign"),
        a_job(AddTeamOrganizations(), add, number=3, name="add"),
    )
    found = plan(checked, [], 0.0)
    assert [(job.saved.duplicates, job.saved.superseded, job.saved.combined) for job in found.jobs] == [
        (9, 0, 0),
        (0, 3, 0),
        (0, 0, 247),
        (0, 0, 2),
    ]
    assert [(job.least_requests, job.most_requests) for job in found.jobs] == [(1, 1), (1, 1), (3, 9), (3, 6)]
    assert (found.saved.requests, found.saved.already_so) == (9 + 3 + 247 + 2, 9)
    assert any("247 items are sent together" in note for note in found.notes)


def test_memory_does_not_grow_with_the_items(tmp_path: Path) -> None:
    """What is held for each item goes to a file that has no name, once it is more than a few megabytes."""
    with DuplicateFinder(tmp_path) as finder:
        item = Item()
        most = 0
        for index in range(400_000):
            finder.add(item, index)
            if index % 50_000 == 0:
                most = max(most, sum(map(len, finder._parts.values())))
        assert most <= duplicate_reads._HELD_BYTES
        assert not list(tmp_path.iterdir())


@pytest.mark.interpreted
def test_a_few_items_are_searched_in_a_few_steps(tmp_path: Path) -> None:
    """A manifest of thousands of jobs has thousands of such searches: each costs what its own items do."""
    steps = 0

    def count(_frame: FrameType, _event: str, _of: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        with DuplicateFinder(tmp_path) as finder:
            finder.add(Item(), 0)
            copies = list(finder.found(0))
    finally:
        sys.setprofile(None)
    assert copies == []
    assert steps < 60
