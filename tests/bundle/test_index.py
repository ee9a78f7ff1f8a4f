"""The index of lanes: the same items in the same order as a list in memory would give."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bulk.bundle.index import lane_key
from bulk.bundle.streams import Lane, LaneIndex
from tests.manifest.making import ReadThing, SecretThing, WriteThing, a_job, check_in, lanes_of

PLACES = st.sampled_from(["a", "A", "b", "c", "d", "ß", "SS", "e", ""])
ITEM = st.tuples(PLACES, st.none() | PLACES)


class OtherThing(WriteThing):
    """A write of another resource."""

    name = "other.write"


def expected(jobs):
    """Lanes by union-find in memory: [(job, label, [(job, index)])], in the order of the index."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        root.setdefault(name, name)
        while root[name] != name:
            name = root[name]
        return name

    items = []
    for job in jobs:
        for number, item in enumerate(job.items):
            names = [item["place"], item["also"]] if item.get("also") is not None else [item["place"]]
            if not item["place"]:
                names = [f"#{job.number}#{number}"]
            keys = [f"{job.operation.resource}:{name}".casefold() for name in names]
            for key in keys[1:]:
                root[find(key)] = find(keys[0])
            items.append((keys[0], names[0] if item["place"] else f"#{number}", job.number, number))
    lanes: dict[str, list] = {}
    for key, label, job, number in items:
        lanes.setdefault(find(key), [label]).append((job, number))
    found = [(entries[0][0], label, entries) for label, *entries in lanes.values()]
    return sorted(found, key=lambda lane: (lane[0], -len(lane[2]), lane[2][0]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(ITEM, max_size=12), st.lists(ITEM, max_size=6), st.lists(ITEM, max_size=6))
def test_lanes_are_those_of_a_list_in_memory(tmp_path, first, second, third):
    """Every item is in one lane, folded, joined over several names, in manifest order across jobs; longest first."""
    jobs = [
        a_job(operation, [{"place": place, "also": also} for place, also in items], number=number, name=f"j{number}")
        for number, (operation, items) in enumerate(
            ((WriteThing(), first), (OtherThing(), second), (SecretThing(), third))
        )
    ]
    checked, workspace = check_in(tmp_path, *jobs)
    wanted = expected(jobs)
    assert lanes_of(checked, workspace) == wanted
    for job, found in zip(jobs, checked.jobs, strict=True):
        mine = [(label, len(entries)) for owner, label, entries in wanted if owner == job.number]
        assert found.lanes == len(mine)
        assert found.longest_lane == (mine[0] if mine else None)


def test_a_rename_is_behind_both_names(tmp_path):
    """An item with two names waits for both, also where the names meet only later."""
    items = [
        {"place": "a"},
        {"place": "b"},
        {"place": "c"},
        {"place": "a", "also": "b"},
        {"place": "b"},
        {"place": "a"},
    ]
    checked, workspace = check_in(tmp_path, a_job(WriteThing(), items))
    assert lanes_of(checked, workspace) == [(0, "a", [(0, 0), (0, 1), (0, 3), (0, 4), (0, 5)]), (0, "c", [(0, 2)])]


@pytest.mark.parametrize(
    ("places", "others", "is_laned"),
    [
        (["a", "b", "", ""], ["c", "d"], (False, False)),
        (["a", "b", "A"], ["c", "d"], (True, False)),
        (["a", "b"], ["c", "B"], (True, True)),
        (["a"], ["c", "c"], (False, True)),
    ],
)
def test_who_shares_no_lane_needs_none(tmp_path, places, others, is_laned):
    """Only jobs of which an item may have to wait for another one, of whatever job, are asked for lanes."""
    jobs = [
        a_job(WriteThing(), [{"place": place} for place in names], number=number, name=f"j{number}")
        for number, names in enumerate((places, others))
    ]
    checked, _ = check_in(tmp_path, *jobs)
    assert tuple(job.is_laned for job in checked.jobs) == is_laned


def test_keys_are_the_same_in_every_process():
    """A lane's key is 63 bits of a hash of resource and folded name: fixed, so that an index outlives its process."""
    assert lane_key("contents", "Acme/API") == lane_key("contents", "acme/api") == 7_019_109_655_507_158_027
    assert lane_key("other", "acme/api") != lane_key("contents", "acme/api")


def test_reads_have_no_lanes(tmp_path):
    """A manifest of reads makes no index, and asking it gives nothing."""
    checked, workspace = check_in(tmp_path, a_job(ReadThing(), [{"place": "a"}]))
    assert not (workspace / "index.db").exists()
    index = LaneIndex(checked, workspace)
    assert index.lanes(0, after=0, count=5) == []
    assert index.entries(1, after=-1, count=5) == []
    index.close()


def test_the_index_is_private(tmp_path):
    """Whatever the umask, index, spool and summary are the user's alone (failures.md row 64)."""
    path = tmp_path / "a.csv"
    path.write_text("place\na\n")
    _, workspace = check_in(tmp_path, a_job(WriteThing(), path))
    names = {"index.db", "items-x.jsonl", "check.json"}
    assert {entry.name for entry in Path(workspace).iterdir()} == names
    assert {(workspace / name).stat().st_mode & 0o777 for name in names} == {0o600}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(ITEM, max_size=20), st.lists(ITEM, max_size=10), st.sets(st.integers(0, 29)), st.integers(1, 3))
def test_what_is_done_in_a_lane_is_jumped_over(tmp_path, first, second, done, count):
    """With what is left of each job, a lane gives exactly its items that are not done, in order."""
    jobs = [
        a_job(WriteThing(), [{"place": place, "also": also} for place, also in items], number=number, name=f"j{number}")
        for number, items in enumerate((first, second))
    ]
    checked, workspace = check_in(tmp_path, *jobs)
    begins, sizes = (0, len(first)), (len(first), len(second))

    def next_left(job: int, index: int) -> int:
        return next((at for at in range(index, sizes[job]) if begins[job] + at not in done), sizes[job])

    with LaneIndex(checked, workspace) as index:
        for _, _, entries in expected(jobs):
            key = next(
                lane.key for n in (0, 1) for lane in index.lanes(n, after=0, count=99) if holds(index, lane, entries)
            )
            found, after = [], 0
            while some := index.entries(key, after=after, count=count, next_left=next_left):
                found += [(entry.job, entry.index) for _, entry in some]
                after = some[-1][0]
            assert found == [(job, at) for job, at in entries if begins[job] + at not in done]


def holds(index: LaneIndex, lane: Lane, entries: list[tuple[int, int]]) -> bool:
    """Whether that lane begins with that item."""
    return [(entry.job, entry.index) for _, entry in index.entries(lane.key, after=0, count=1)] == entries[:1]
