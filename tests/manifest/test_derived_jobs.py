"""`items: {from: …}`: what is wrong with it is said before anything is sent; what one line of results gives."""

import json
from typing import Any

import pytest

from bulk.bundle.streams import LaneIndex
from bulk.check.derived_items import DerivedStream, Sources, make
from bulk.errors import ManifestError
from bulk.manifest.derived_jobs import mapped
from bulk.manifest.manifest import Derivation
from tests.manifest.making import ReadThing, WriteThing, a_job, a_manifest, check_text, thing, workspace_in

LINE: dict[str, Any] = {
    "index": 3,
    "id": "mine",
    "item": {"org": "acme", "person": {"name": "n"}},
    "result": [{"id": 1, "tags": ["x", "y"]}, {"id": 2}],
}


def items_of(each: str, fields: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """What one line gives."""
    return list(mapped(Derivation("a", each, fields), {**LINE, **more}))


def test_each_entry_or_each_item():
    """`result` gives one for each entry of a list, or for the one result; `item` always one."""
    fields = {"org": "item.org", "hook_id": "result.id"}
    assert items_of("result", fields) == [{"org": "acme", "hook_id": 1}, {"org": "acme", "hook_id": 2}]
    assert items_of("result", fields, result={"id": 7}) == [{"org": "acme", "hook_id": 7}]
    assert items_of("result", fields, result=[]) == []
    assert items_of("item", {"first": "result.0.id"}) == [{"first": 1}]


def test_paths_and_literals():
    """Paths reach into objects and lists at any depth of `map`; one that leads nowhere is not a field; the rest is
    literal."""
    fields = {
        "id": "item.id",
        "config": {"url": "item.person.name", "gone": "result.nothing.at.all"},
        "tags": ["result.tags.1", "literal", "result.tags.9"],
        "itemised": "items.org",
        "active": False,
        "none": None,
    }
    assert items_of("result", fields)[0] == {
        "id": "mine",
        "config": {"url": "n"},
        "tags": ["y", "literal"],
        "itemised": "items.org",
        "active": False,
        "none": None,
    }


def test_the_result_of_another_job_beside():
    """`NAME.item.…` and `NAME.result.…` lead into the one line of a job of `also`; without a line nowhere."""
    fields = {
        "org": "item.org",
        "configuration_id": "base.line.result.0.id",
        "name": "base.item.name",
        "id": "base.line.item.id",
    }
    derivation = Derivation("a", "item", fields, ("base", "base.line"))
    beside: dict[str, dict[str, Any]] = {
        "base.line": {"id": "b", "item": {}, "result": [{"id": 9}]},
        "base": {"item": {"name": "n"}, "result": None},
    }
    assert list(mapped(derivation, LINE, beside)) == [{"org": "acme", "configuration_id": 9, "name": "n", "id": "b"}]
    assert list(mapped(derivation, LINE)) == [{"org": "acme"}]
    assert items_of("item", {"text": "base.item.name"}) == [{"text": "base.item.name"}]


JOBS = "jobs:\n  a: {operation: readme.get, items: [{owner: o, repo: r}]}\n"
JOBS += "  d: {operation: readme.get, items: [{owner: o, repo: r}, {owner: o, repo: s}]}\n"
JOBS += "  b: {operation: contents.put, items: %s}\n"


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ("{from: a, map: {ownr: item.owner}}", "items.map.ownr: unknown field; did you mean owner"),
        ("{from: a, map: {owner: item.ownr}}", "'item.ownr': unknown field; did you mean owner"),
        ("{from: a, map: {owner: item..x}}", "expected a path such as result.id"),
        ("{from: a, map: {mode: replaced}}", "items.map.mode: expected one of"),
        ("{from: a, map: {owner: 5}}", "items.map.owner: expected a string"),
        ("{from: a, map: 5}", "got a whole number, expected an object"),
        ("{from: a, each: thing, map: {owner: item.owner}}", "expected result or item"),
        ("{from: a, map: {owner: item.owner}, x: 1}", "items.x: unknown field"),
        ("{from: a, also: [c], map: {owner: c.item.owner}}", "items.also: 'c': unknown job"),
        ("{from: a, also: a, map: {owner: item.owner}}", "expected a list of names of jobs"),
        ("{from: a, also: [item], map: {owner: item.owner}}", "none of them item or result"),
        ("{from: a, also: [b], map: {owner: item.owner}}", "goes in a circle: b needs b"),
        ("{from: a, also: [a], map: {owner: a.owner}}", "'a.owner': expected a.item.… or a.result.…"),
        ("{from: a, also: [a], map: {owner: a.item.ownr}}", "'a.item.ownr': unknown field; did you mean owner"),
        ("{from: a, also: [a], map: {owner: a.result..x}}", "expected a path such as result.id"),
        ("{from: d, also: [d], map: {owner: item.owner}}", "items.also: expected jobs of one item each, 'd' has 2"),
        ("{from: [a], map: {owner: item.owner}}", "items.from: expected a string, got a list"),
        ("{from: b, map: {owner: item.owner}}", "goes in a circle: b needs b"),
        ("{from: a, map: {owner: item.owner}}", "items.map.repo: is missing; expected a string"),
        ("{from: a, map: {}}", "items.map.owner: is missing; expected a string"),
    ],
)
def test_flaws_are_named(tmp_path, items, words):
    """Unknown jobs, fields and paths, and literals of a wrong type are flaws of the manifest."""
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, JOBS % items)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("line", "text", "field"),
    [
        ("owner: item.ownr", "did you mean owner", "map"),
        ("content: {a: [item.ownr]}", "did you mean owner", "map"),
        ("owner: a.owner", "expected a.item.… or", "map"),
        ("config: {url: 'https://a.example', secret: hunter2hunter2}", "never the secret itself", "map.config.secret"),
        ("config: {secret: 'env:A'}", "is missing; expected a string", "map.config.url"),
    ],
)
def test_a_flaw_is_on_the_line_of_its_field(tmp_path, line, text, field):
    """A path or a secret that can't be is found where it stands, not where its job begins."""
    operation = "webhook.create" if "secret" in line else "contents.put"
    job = f"  b:\n    operation: {operation}\n    items:\n      from: a\n      also: [a]\n      map:\n"
    before = JOBS[: JOBS.index("  b:")]
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, f"{before}{job}        repo: item.repo\n        {line}\n")
    (flaw,) = (each for each in caught.value.flaws if text in each.message and each.field.endswith(field))
    named = (tmp_path / "m.yaml").read_text().splitlines()[flaw.line - 1]
    assert (named.strip(), flaw.field) == (line, f"jobs.b.items.{field}")


REST = "repo: item.repo, path: CODEOWNERS, message: m, content: QQ=="


def test_a_derivation_is_a_need(tmp_path):
    """The job that items come from is needed, goes first, and the items are not known yet."""
    checked, _ = check_text(tmp_path, JOBS % "{from: a, map: {owner: item.owner, mode: create, %s}}" % REST)
    first, _, second = checked.manifest.jobs
    assert (first.name, second.needs, checked.jobs[2].items) == ("a", ("a",), 0)
    checked, _ = check_text(tmp_path, JOBS % "{from: d, also: [a], map: {owner: a.item.owner, %s}}" % REST)
    assert checked.manifest.jobs[2].needs == ("d", "a")


def lines(*numbers: int) -> list[dict[str, Any]]:
    """Lines of results of these items of the source."""
    return [{"index": number, "item": {"place": f"p{number}"}, "result": {"n": number}} for number in numbers]


FIELDS = {"place": "item.place", "number": "result.n"}


@pytest.mark.parametrize("operation", [ReadThing(), WriteThing()], ids=["reads", "writes"])
def test_what_was_made_stays_where_it_is(tmp_path, operation):
    """Made again it is the same; what a source gives later is added behind; `with` is merged below, flaws are noted."""
    job = a_job(operation, [], derivation=Derivation("a", "item", FIELDS), defaults={"kind": "small"})
    manifest, workspace = a_manifest(tmp_path, job), workspace_in(tmp_path)
    path = workspace / "from-x.jsonl"
    assert make(job, manifest, workspace, lines(0, 2, 9)) == 3
    before = path.read_bytes()
    (workspace / "from-x.jsonl.part").write_bytes(b"torn")
    assert make(job, manifest, workspace, lines(0, 2, 9)) == 3
    assert path.read_bytes() == before
    late = [*lines(0, 1, 2), {"index": 4, "item": {}, "result": {"n": "x"}}, *lines(9)]
    assert make(job, manifest, workspace, late) == 5
    assert path.read_bytes().startswith(before)
    assert path.stat().st_mode & 0o777 == 0o600
    with LaneIndex(_checked(manifest), workspace, "from-x.db") as index:
        entries = DerivedStream(index).take(10, lambda number: 2 if number == 1 else number) or []
        assert [(entry.index, thing(entry).place, thing(entry).kind) for entry in entries] == [
            (0, "p0", "small"),
            (2, "p9", "small"),
            (3, "p1", "small"),
        ]
        ((number, message, given),) = index.flaws(after=-1, count=5)
    assert (number, json.loads(given)) == (4, {"kind": "small", "number": "x"})
    assert "place: is missing" in message
    assert make(job, a_manifest(tmp_path, job, limit=2), workspace, late) == 2


def _checked(manifest):
    from bulk.bundle.checked import Checked, JobCheck

    return Checked(manifest, (JobCheck(items=0),), (), "")


def test_sources_are_remembered_one_bit_each():
    """A source that was added is known, no other."""
    sources = Sources()
    for number in (0, 7, 8, 1_000):
        sources.add(number)
    assert [number for number in range(1_100) if sources.has(number)] == [0, 7, 8, 1_000]
