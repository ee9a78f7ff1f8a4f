"""Needs by key, checked: what waits for what, and that nothing waits for something that is not there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk.bundle.checked import load_checked
from bulk.bundle.streams import LaneIndex
from bulk.errors import ManifestError
from bulk.manifest.manifest import KeyedNeed
from tests.manifest.making import ReadThing, WriteThing, a_job, a_manifest, check_in, check_text, lanes_of, thing

ORGS = '{"login":"acme","admin":"a"}\n{"login":"Globex","admin":"a"}\n'
JOBS = """jobs:
  hooks:
    operation: webhook.create
    needs: [{orgs: {org: login}}]
    with: {config: {url: "https://hooks.example/"}, events: [push]}
    items: hooks.csv
  orgs: {operation: organization.create, items: orgs.jsonl}
"""


def needs(job="a", **fields):
    """One need by key."""
    return (KeyedNeed(job, tuple(fields.items())),)


def waiting(checked, workspace, number=0):
    """For each key of a need: the items that are needed, and those that wait."""
    with LaneIndex(checked, workspace) as index:
        links = index.links()[number]
        found: dict[int, tuple[list[int], list[int]]] = {key: ([], []) for key in range(links.keys)}
        for item, key in enumerate(links.key_of):
            if key >= 0:
                found[key][0].append(item)
        for key, item in links.waiting():
            found[key][1].append(item)
        assert [list(links.behind(key)) for key in found] == [mine for _, mine in found.values()]
    return sorted(found.values())


def test_keys_are_compared_without_case(tmp_path):
    """Each hook waits for the organization of its name, whichever way both spell it and whatever comes first."""
    checked, workspace = check_text(tmp_path, JOBS, orgs_jsonl=ORGS, hooks_csv="org\nGLOBEX\nAcme\nglobex\n")
    assert [job.name for job in checked.manifest.jobs] == ["orgs", "hooks"]
    assert waiting(checked, workspace) == [([0], [1]), ([1], [0, 2])]
    assert waiting(load_checked(checked.manifest, workspace), workspace) == [([0], [1]), ([1], [0, 2])]


def test_a_key_that_nothing_has_is_an_error(tmp_path):
    """It ends with exit 2, the file, the line, the value, and the way out; `unmatched: free` is that."""
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, JOBS, orgs_jsonl=ORGS, hooks_csv="org\nacme\nacne\n")
    assert caught.value.exit_code == 2
    assert f"{tmp_path}/hooks.csv:3: org: none of the items of orgs has login 'acne'" in str(caught.value)
    assert "unmatched: free in the job lets it begin at once" in str(caught.value)
    free = JOBS.replace("    items: hooks.csv", "    unmatched: free\n    items: hooks.csv")
    checked, workspace = check_text(tmp_path, free, orgs_jsonl=ORGS, hooks_csv="org\nacme\nacne\n")
    assert waiting(checked, workspace) == [([0], [0])]


def test_what_a_limit_leaves_out_is_not_there(tmp_path):
    """With `--limit` only the first items are read: the message says so."""
    jobs = [
        a_job(WriteThing(), [{"place": "x"}, {"place": "y"}], name="a"),
        a_job(WriteThing(), [{"place": "y"}], number=1, name="b", needs=("a",), by_key=needs(place="place")),
    ]
    assert waiting(*check_in(tmp_path, *jobs)) == [([1], [0])]
    with pytest.raises(ManifestError, match=r"none of the first 1 items of a has place 'y' \(--limit\)"):
        check_in(tmp_path, *jobs, limit=1)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"place": "x"}, "number: is missing: the item waits for items of a by number"),
        ({"place": "x", "number": 2}, "number: none of the items of a has number '2'"),
    ],
)
def test_an_item_without_a_key(tmp_path, item, words):
    """An item that lacks the field waits for nothing, and that is said."""
    jobs = [
        a_job(ReadThing(), [{"place": "x", "number": 1}, {"place": "z"}], name="a"),
        a_job(ReadThing(), [item], number=1, name="b", needs=("a",), by_key=needs(number="number")),
    ]
    with pytest.raises(ManifestError) as caught:
        check_in(tmp_path, *jobs)
    assert words in str(caught.value)


def test_a_key_is_no_list(tmp_path):
    """Only texts and numbers are compared."""
    jobs = [
        a_job(ReadThing(), [{"place": "x", "tags": ["t"]}], name="a"),
        a_job(ReadThing(), [{"place": "t"}], number=1, name="b", needs=("a",), by_key=needs(place="tags")),
    ]
    with pytest.raises(ManifestError, match="tags: a key is made of texts and numbers"):
        check_in(tmp_path, *jobs)


@pytest.mark.parametrize("file", ["items.jsonl", "items.csv", ""])
@pytest.mark.parametrize("operation", [ReadThing(), WriteThing()])
def test_items_are_found_by_their_place(tmp_path, operation, file):
    """Items that wait can be read again one by one, reads too, wherever they stand; reads are in no lane."""
    places = [f"p{number % 7}" for number in range(50)]
    source = [{"place": place} for place in places]
    if file:
        path = tmp_path / file
        rows = places if file.endswith("csv") else [f'{{"place": "{place}"}}' for place in places]
        path.write_text("\n".join((["place"] if file.endswith("csv") else []) + rows) + "\n")
        source = path
    jobs = [
        a_job(WriteThing(), [{"place": f"P{number}"} for number in range(7)], name="a"),
        a_job(operation, source, number=1, name="b", needs=("a",), by_key=needs(place="place")),
    ]
    checked, workspace = check_in(tmp_path, *jobs)
    with LaneIndex(checked, workspace) as index:
        for wanted in ([0], [49, 3, 7], range(50)):
            found = [(entry.job, entry.index, thing(entry).place) for entry in index.found(1, list(wanted))]
            assert found == [(1, number, places[number]) for number in sorted(wanted)]
        lanes = {lane.label: lane.items for lane in index.lanes_of(1, [0, 7, 14, 6])}
    assert lanes == ({} if operation.is_read else {"P0": 9, "P6": 8})
    assert checked.jobs[1].lanes == 0
    assert len(lanes_of(checked, workspace)) == 7


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_every_item_waits_for_all_of_its_key(tmp_path_factory, data):
    """What waits for what is what comparing each item with each would give, of several needs at once."""
    places, numbers = st.sampled_from("abcdABCD"), st.sampled_from([None, 1, 2])
    rows = st.lists(st.tuples(places, numbers), max_size=20)
    first, second, third = (data.draw(rows) for _ in range(3))
    sources = [[{"place": p, "number": n} if n else {"place": p} for p, n in part] for part in (first, second, third)]
    jobs = [
        a_job(WriteThing(), sources[0], name="a"),
        a_job(ReadThing(), sources[1], number=1, name="b"),
        a_job(
            WriteThing(),
            sources[2],
            number=2,
            name="c",
            needs=("a", "b"),
            by_key=(*needs(place="place", number="number"), *needs("b", number="number")),
            is_free_unmatched=True,
        ),
    ]
    checked, workspace = check_in(tmp_path_factory.mktemp("keys"), *jobs)
    for edge, needed in enumerate((first, second)):
        met = set()
        for its, mine in waiting(checked, workspace, edge):
            met |= {(one, other) for one in its for other in mine}
        keys = (lambda row: (row[0].lower(), row[1])) if edge == 0 else (lambda row: (row[1],))
        expected = {
            (one, other)
            for one, row in enumerate(needed)
            for other, mine in enumerate(third)
            if None not in keys(row) and keys(row) == keys(mine)
        }
        assert met == expected


def test_each_is_sent_where_items_wait(tmp_path):
    """Reads that ask for the same may wait for different items: none of them is a copy."""
    jobs = [
        a_job(ReadThing(), [{"place": "x"}], name="a"),
        a_job(
            ReadThing(), [{"place": "x"}, {"place": "x"}], number=1, name="b", needs=("a",), by_key=needs(place="place")
        ),
    ]
    assert check_in(tmp_path, *jobs)[0].jobs[1].copies == 0
    assert a_manifest(tmp_path, *jobs).jobs[1].barriers == ()
