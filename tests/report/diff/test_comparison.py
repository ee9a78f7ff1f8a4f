"""What changed between two runs: every item is the same, added, removed or changed, and no one has to hold them all."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.errors import RunDirectoryError, UsageError
from bulk.ledger.view import LedgerView
from bulk.report.diff import diff_text
from bulk.report.diff.comparison import compare
from bulk.report.diff.field_changes import canonical, differences, without
from bulk.report.render.terminal import width
from tests.report.ledgers import START, finished, status

NOW = START + 100

values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.0, "", "a", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "a", "b.c"]), inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"id": st.integers(1, 4), "x": inner}), max_size=3)
    ),
    max_leaves=12,
)


def named(old, new, field="result"):
    """Differences as name, old, new; `...` where a value is not there."""
    found = [json.loads(line) for line in map(canonical, differences(old, new, field))]
    return [(each["field"], each.get("old", ...), each.get("new", ...)) for each in found]


def test_fields_of_objects_are_dotted():
    """Objects are compared field by field at any depth; a field that is null is not one that is missing."""
    old = {"name": "a", "config": {"url": "x", "secret": None}, "gone": None, "same": [1]}
    new = {"name": "b", "config": {"url": "x", "secret": "y"}, "same": [1], "fresh": None}
    assert named(old, new) == [
        ("result.name", "a", "b"),
        ("result.config.secret", None, "y"),
        ("result.gone", None, ...),
        ("result.fresh", ..., None),
    ]


def test_entries_with_an_id_are_compared_by_it():
    """In an array whose entries all have an id of their own, their order and what was put before them do not matter."""
    old = [{"id": 7, "on": True}, {"id": 8, "on": True}, {"id": 9}]
    new = [{"id": 6}, {"id": 8, "on": False}, {"id": 7, "on": True}]
    assert named(old, new) == [
        ("result[id=8].on", True, False),
        ("result[id=9]", {"id": 9}, ...),
        ("result[id=6]", ..., {"id": 6}),
    ]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (["a", "b"], ["a", "c", "d"], [("result[1]", "b", "c"), ("result[2]", ..., "d")]),
        ([{"id": 1}, {"id": 1}], [{"id": 1}, {"id": 2}], [("result[1].id", 1, 2)]),
        ([{"id": 1}, {}], [{}, {"id": 1}], [("result[0].id", 1, ...), ("result[1].id", ..., 1)]),
        ([{"id": True}], [{"id": False}], [("result[0].id", True, False)]),
        ([{"id": 1}], [{"id": "1"}], [("result[id=1]", {"id": 1}, ...), ("result[id=1]", ..., {"id": "1"})]),
        ([], [{"id": 5}], [("result[id=5]", ..., {"id": 5})]),
    ],
)
def test_other_entries_are_compared_by_their_place(old, new, found):
    """Where one entry has no id, or two have the same, the place in the array counts; 1 and "1" are different ids."""
    assert named(old, new) == found


@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (0, False), (1, 1.0), (1, "1"), (None, False), ({}, []), ("", None)]
)
def test_values_of_different_types_differ(old, new):
    """What JSON tells apart is a difference, also where Python calls it equal."""
    assert named(old, new) == [("result", old, new)]


@given(value=values)
def test_nothing_differs_from_itself(value):
    """A value has no difference to itself, in whatever order its fields come."""
    assert list(differences(value, json.loads(json.dumps(value, sort_keys=True)), "result")) == []


@given(old=values, new=values)
def test_a_difference_is_seen_from_both_sides(old, new):
    """From new to old the same fields differ, with the sides exchanged; and none only where the order is all."""
    there = {name: (before, after) for name, before, after in named(old, new)}
    back = {name: (after, before) for name, before, after in named(new, old)}
    assert set(there) == set(back)
    if canonical(old) == canonical(new):
        assert not there


def test_ignored_fields_are_left_out_of_every_entry():
    """An ignored name means that field in every entry of the arrays on its way."""
    value = {"at": 1, "hooks": [{"at": 2, "url": "x"}, [{"at": 3}]]}
    assert without(value, "result", {"result.hooks.at"}) == {"at": 1, "hooks": [{"url": "x"}, [{}]]}


@pytest.fixture
def diff(new_run):
    """Compare runs of the given items: JSON lines, the summary first."""

    def compared(old, new, ignored=(), is_all=False, **fields):
        views = [view_of(new_run, items, **fields) for items in (old, new)]
        with compare(*views, now=NOW, ignored=ignored, is_all=is_all) as found:
            return [json.loads(line) for line in found.json_lines()]

    return compared


def view_of(new_run, items, **fields) -> LedgerView:
    """A complete run of these items."""
    jobs = {each.job: 0 for each in items} or {"readmes": 0}
    for each in items:
        jobs[each.job] += 1
    view: LedgerView = new_run(**jobs).epoch(items, **fields)
    return view


def counts(summary):
    """Same, added, removed, changed."""
    return tuple(summary[name] for name in ("same", "added", "removed", "changed"))


def test_items_are_added_removed_and_changed(diff):
    """Items are matched by their fields wherever they stand; each change has the item and its places in both runs."""
    old = [finished(index, result={"size": index}) for index in range(4)]
    new = [
        finished(0, item={"owner": "acme", "repo": "fresh"}),
        finished(1, item={"repo": "r2", "owner": "acme"}, result={"size": 2}),
        finished(2, item=old[1].item, result={"size": 9}),
        finished(3, item=old[0].item, result={"size": 0}),
    ]
    summary, *changes = diff(old, new)
    assert counts(summary) == (2, 1, 1, 1)
    assert (summary["kind"], summary["old"]["items"], summary["new"]["items"], summary["notes"]) == (
        "summary",
        4,
        4,
        [],
    )
    assert [each["kind"] for each in changes] == ["added", "removed", "changed"]
    added, removed, changed = changes
    assert (added["item"]["repo"], added["new_index"], added["new"]["outcome"]) == ("fresh", 0, "succeeded")
    assert (removed["item"]["repo"], removed["old_index"], removed["old"]["result"]) == ("r3", 3, {"size": 3})
    assert changed == {
        "kind": "changed",
        "job": "readmes",
        "id": None,
        "item": {"owner": "acme", "repo": "r1"},
        "old_index": 1,
        "new_index": 2,
        "fields": [{"field": "result.size", "old": 1, "new": 9}],
    }


def test_what_makes_every_run_different_is_no_difference(diff):
    """Attempts, times, request ids, and `unchanged` instead of `succeeded`, are not compared."""
    error = {"outcome": "failed", "message": "Not Found"}
    old = [finished(0), finished(1, **error)]
    new = [
        finished(0, "unchanged", attempts=3, elapsed_ms=9000.0, started_at=START + 50, request_id="x", http_status=304),
        finished(1, **error, attempts=4, request_id="y"),
    ]
    summary, *changes = diff(old, new)
    assert (counts(summary), changes) == ((2, 0, 0, 0), [])


def test_what_can_not_be_read_any_more_is_no_change(diff):
    """A read that fails now is out of sight: it has a kind of its own, and its result counts for nothing."""
    (summary, lost) = diff([finished(0)], [finished(0, "failed", code="not_found")])
    assert (counts(summary), summary["lost_sight"]) == ((0, 0, 0, 0), 1)
    assert lost["kind"] == "lost_sight"
    assert {field["field"] for field in lost["fields"]} == {
        "outcome",
        "error.code",
        "error.message",
        "error.http_status",
    }


def test_what_changes_by_itself_is_no_change(diff):
    """Addresses change with the token that asks; `is_all` compares them too. What is missing differs from what is."""
    old, new = ({"sha": "a", "download_url": f"https://x.example.com?for={token}"} for token in "xy")
    (summary,) = diff([finished(0, result=old)], [finished(0, result=new)])
    assert counts(summary) == (1, 0, 0, 0)
    summary, changed = diff([finished(0, result=old)], [finished(0, result=new)], is_all=True)
    assert [field["field"] for field in changed["fields"]] == ["result.download_url"]
    summary, gone = diff([finished(0, result=old)], [finished(0, result=None, missing=True)])
    assert (gone["kind"], [field["field"] for field in gone["fields"]]) == ("changed", ["result"])


def test_another_outcome_is_a_change(diff):
    """Outcome and error are compared field by field, like the result."""
    (summary, changed) = diff([finished(0, "failed", code="forbidden", message="no")], [finished(0)])
    assert counts(summary) == (0, 0, 0, 1)
    assert {field["field"]: (field.get("old"), field.get("new")) for field in changed["fields"]} == {
        "outcome": ("failed", "succeeded"),
        "error.code": ("forbidden", None),
        "error.message": ("no", None),
        "error.http_status": (404, None),
        "result": (None, {"size": 3}),
    }


def test_an_id_of_the_users_own_matches_items(diff):
    """Where the id is the same, other fields may change; where it is gone, the fields still match."""
    old = [finished(0, id="a"), finished(1, id="b"), finished(2, id="c"), finished(3)]
    new = [
        finished(0, id="b", item={"owner": "acme", "repo": "moved"}),
        finished(1, id="a", item=old[0].item),
        finished(2, id="z", item=old[2].item),
        finished(3),
    ]
    summary, *changes = diff(old, new)
    assert counts(summary) == (2, 0, 0, 2)
    assert [(each["id"], each["fields"]) for each in changes] == [
        ("b", [{"field": "item.repo", "old": "r1", "new": "moved"}]),
        ("z", [{"field": "id", "old": "c", "new": "z"}]),
    ]


def test_an_id_within_the_item_is_no_field_of_it(diff):
    """A line has the id beside the item and maybe in it: that one counts once, and is ignored with it."""
    old = [finished(0, id="a", item={"id": "a", "org": "x"})]
    new = [finished(0, id="b", item={"id": "b", "org": "x"})]
    summary, changed = diff(old, new)
    assert counts(summary) == (0, 0, 0, 1)
    assert [field["field"] for field in changed["fields"]] == ["id"]
    assert counts(diff(old, new, ("id",))[0]) == (1, 0, 0, 0)


def test_an_id_that_many_share_does_no_harm(diff):
    """An id that is the same for several items matches none of them wrongly while their fields say which is which."""
    old = [finished(index, id="batch") for index in range(4)]
    new = [finished(index, id="batch", item=old[index + 1].item) for index in range(3)]
    summary, removed = diff(old, new)
    assert counts(summary) == (3, 0, 1, 0)
    assert removed["item"]["repo"] == "r0"


def test_the_same_item_several_times(diff):
    """Items that are alike are matched one to one, in their order."""
    item = {"owner": "acme", "repo": "twin"}
    old = [finished(index, item=item, result=size) for index, size in enumerate((1, 2, 3))]
    new = [finished(index, item=item, result=size) for index, size in enumerate((1, 5))]
    summary, removed, changed = diff(old, new)
    assert counts(summary) == (1, 0, 1, 1)
    assert (removed["old_index"], changed["old_index"]) == (2, 1)


def test_jobs_are_matched_by_name(diff):
    """The same item in another job is another one; a job that only one of the runs has is said."""
    summary, *changes = diff(
        [finished(0), finished(0, job="hooks")], [finished(0, job="files"), finished(0)],
    )  # fmt: skip
    assert counts(summary) == (1, 1, 1, 0)
    assert [(each["kind"], each["job"]) for each in changes] == [("added", "files"), ("removed", "hooks")]
    assert [job["name"] for job in summary["jobs"]] == ["readmes", "hooks", "files"]
    assert len(summary["notes"]) == 2
    assert all(note.startswith(("The job hooks is only in", "The job files is only in")) for note in summary["notes"])


def test_entries_in_another_order_are_the_same(diff):
    """An item whose list came in another order counts as the same, though its line is another one."""
    summary, *changes = diff([finished(0, result=[{"id": 1}, {"id": 2}])], [finished(0, result=[{"id": 2}, {"id": 1}])])
    assert (counts(summary), changes) == ((1, 0, 0, 0), [])


@pytest.mark.parametrize("ignored", [("result.at",), ("result",), ("result.at", "outcome", "error.code")])
def test_fields_can_be_ignored(diff, ignored):
    """What is ignored is not a change, and the summary names it."""
    summary, *changes = diff([finished(0, result={"at": 1})], [finished(0, result={"at": 2})], ignored)
    assert (counts(summary), changes) == ((1, 0, 0, 0), [])
    assert summary["ignored"] == sorted(ignored)


def test_an_ignored_field_does_not_tell_items_apart(diff):
    """Without the ignored field, or the ignored id, the items are the same."""
    old = [finished(0, item={"org": "a", "ref": "x"}, id="1")]
    new = [finished(0, item={"org": "a", "ref": "y"}, id="2")]
    assert counts(diff(old, new)[0]) == (0, 1, 1, 0)
    assert counts(diff(old, new, ("item.ref", "id"))[0]) == (1, 0, 0, 0)


@pytest.mark.parametrize("name", ["", "size", "result.", "item", "elapsed_ms", ".result"])
def test_only_fields_that_are_compared_can_be_ignored(diff, name):
    """Anything else is refused with an example."""
    with pytest.raises(UsageError, match="expected a field such as"):
        diff([], [], (name,))


def test_runs_that_may_not_fit_are_noted(new_run):
    """Other names, other platforms' runs and runs that are not complete are compared, with a note on each."""
    old = new_run(readmes=3).epoch([finished(0)], exit_code=3, why="time limit")
    new = new_run(readmes=1).epoch([finished(0)], name="other")
    with compare(old, new, now=NOW) as found:
        notes = found.summary.notes
        text = "\n".join(diff_text.lines(found))
    assert notes[0] == "These are runs of different manifests: migration and other."
    assert notes[1].endswith("run-1 is not complete: 2 items of it without an outcome count as not there.")
    assert "Note: These are runs of different manifests" in text


def test_a_run_that_is_still_going_is_refused(new_run):
    """What is not there yet would look as if it had been removed: the message says what to do."""
    run, done = new_run(readmes=3), view_of(new_run, [finished(0)])
    with run.open() as ledger:
        ledger.commit([run.record(finished(0))], status(START + 5))
        refused = pytest.raises(RunDirectoryError, match="run-1 is still running: compare it when it has ended")
        with refused, compare(done, run.view, now=START + 6):
            pass


def test_a_foreign_directory_is_refused(new_run, tmp_path):
    """A folder without a run is named."""
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        LedgerView(tmp_path)


@pytest.mark.parametrize("damage", [b'"outcome":"succeedes"', b'"index":9223372036854775808,"outcome":"succeeded"'])
def test_damaged_results_are_named(new_run, damage):
    """A line whose outcome is not one of ours is damage, and so is an index that no item has."""
    view = view_of(new_run, [finished(0)])
    results = view.run_dir / "results.jsonl"
    results.write_bytes(results.read_bytes().replace(b'"outcome":"succeeded"', damage))
    with pytest.raises(RunDirectoryError, match=r"results\.jsonl is damaged"), compare(view, view, now=NOW):
        pass


def test_the_text_has_the_counts_first_and_a_few_of_each(new_run):
    """At most ten of a kind and five fields of each, no line wider than 80, and how to see the rest."""
    wide = {f"field{number}": number for number in range(9)}
    old = view_of(new_run, [finished(index, result=wide) for index in range(30)])
    new = view_of(
        new_run,
        [finished(index, result=dict.fromkeys(wide, "y" * 300)) for index in range(15)]
        + [finished(index, item={"owner": "acme", "repo": f"new{index}"}) for index in range(15, 30)],
    )
    with compare(old, new, now=NOW, ignored=("result.x",)) as found:
        few, everything = list(diff_text.lines(found)), list(diff_text.lines(found, is_all=True))
        coloured = list(diff_text.lines(found, is_coloured=True))
    assert "30 items before, 30 now: 15 added, 15 removed, 15 changed, 0 the same." in few
    assert max(width(line) for line in few + everything if not line.startswith("All of it:")) <= 80
    assert few.index("Added") < few.index("Removed") < few.index("Changed")
    assert few.count("  and 5 more") == 3
    assert few.count("    and 4 more fields") == 10
    said = " ".join(few)
    assert f"All of it:  bulk diff {old.run_dir} {new.run_dir} --ignore=result.x --all, or --json" in said
    assert sum(line.startswith("  readmes #") for line in few) == 30
    assert sum(line.startswith("  readmes #") for line in everything) == 45
    assert sum("→" in line for line in everything) == 15 * 9
    assert not any("more" in line for line in everything)
    assert any("\x1b[" in line for line in coloured)


def test_the_text_is_safe_on_a_terminal(new_run):
    """Whatever names and values hold, a line is a line and a terminal obeys none of it (failures.md row 66)."""
    bad = "\x1b[2Ja\n\u202eb\x9b1m"
    old = view_of(new_run, [finished(0, result={bad: bad}), finished(1, item={"repo": bad}, id=bad)])
    new = view_of(new_run, [finished(0, result={bad: bad + "x"}, id=bad)])
    with compare(old, new, now=NOW) as found:
        for line in diff_text.lines(found, is_all=True):
            assert line.isprintable()
            assert "\u202e" not in line


def test_nothing_changed_is_said(new_run):
    """Two runs that are alike are told in one line."""
    view = view_of(new_run, [finished(0)])
    with compare(view, view, now=NOW) as found:
        assert "1 item before, 1 now: nothing has changed." in list(diff_text.lines(found))


def test_memory_does_not_grow_with_the_items(new_run):
    """1,500 more items, all of them changed, 9 MB in the two runs, take hardly more memory: the disk holds them."""

    def peak(items):
        old = view_of(new_run, [finished(index, result={"text": "x" * 3_000}) for index in range(items)])
        new = view_of(new_run, [finished(index, result={"text": "y" * 3_000}) for index in range(items)])
        tracemalloc.start()
        try:
            with compare(old, new, now=NOW) as found:
                assert sum(1 for _ in found.json_lines()) == items + 1
                list(diff_text.lines(found))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)
    small, large = peak(500), peak(2_000)
    assert large - small < 1_500_000
