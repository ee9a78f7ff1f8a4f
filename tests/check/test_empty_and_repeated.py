"""Items files without items, and ids that several items carry."""

import gzip
import io

import pytest

from bulk.bundle import duplicate_reads
from bulk.check.checking import check
from bulk.errors import ManifestError
from bulk.manifest.reading import Overrides, read_manifest
from tests.manifest.making import ReadThing, a_job, a_manifest, check_in, check_text, workspace_in


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a_csv", "", "is empty: add some, or write allow_empty: true into the job x"),
        ("a_csv", "owner,repo\n", "holds a header and no items: add some, or write allow_empty: true"),
        ("a_csv", "owner,repo\n\n  \n", "holds a header and no items"),
        ("a_jsonl", "", "is empty"),
        ("a_jsonl", "\n \n", "holds no items"),
        ("a_json", "[]", "holds no items"),
        ("a_yaml", "[]", "holds no items"),
        ("a_yaml", "# nothing yet\n", "holds no items"),
        ("a_jsonl_gz", gzip.compress(b"", mtime=0), "holds no items"),
    ],
)
def test_a_file_without_items_is_refused(tmp_path, name, data, words):
    """It ends with exit 2, the file and the way out; `allow_empty: true` takes it, with 0 items."""
    file = name.replace("_", ".")
    text = f"jobs:\n  x:\n    operation: readme.get\n    items: {file}\n"
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, text, **{name: data})
    assert f"{tmp_path}/{file}: {words}" in str(caught.value)
    assert (len(caught.value.flaws), caught.value.exit_code) == (1, 2)
    checked, _ = check_text(tmp_path, text + "    allow_empty: true\n", **{name: data})
    assert checked.jobs[0].items == 0


def test_a_flaw_of_a_file_that_two_jobs_read_is_told_once(tmp_path):
    """Nobody has to compare two equal lines to find out that one thing is wrong; what is wrong for one of the jobs
    alone is told too."""
    text = "jobs:\n" + "".join(f"  {name}: {{operation: readme.get, items: a.csv}}\n" for name in "xyz")
    text += "  w: {operation: committers.get, items: a.csv}\n"
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, text, a_csv="owner,repo,id\nacme,api,a\nacme,,b\n")
    told = [(flaw.path, flaw.line, flaw.field, flaw.message) for flaw in caught.value.flaws]
    assert len(told) == len(set(told)), told
    assert ("a.csv:3: repo" in str(caught.value), caught.value.more) == (True, 0)


def test_an_empty_list_is_refused(tmp_path):
    """`items: []` is as an empty file."""
    text = "jobs:\n  x:\n    operation: readme.get\n    items: []\n"
    with pytest.raises(
        ManifestError, match=r"jobs\.x\.items: is empty: add some, or write allow_empty: true"
    ) as caught:
        check_text(tmp_path, text)
    assert [(flaw.line > 0, flaw.field) for flaw in caught.value.flaws] == [(True, "jobs.x.items")]
    checked, _ = check_text(tmp_path, text + "    allow_empty: true\n")
    assert checked.jobs[0].items == 0


def test_empty_standard_input_is_refused(tmp_path):
    """So is a pipe whose other end had nothing to say."""
    (tmp_path / "m.yaml").write_text(
        "version: 1\nplatform: {base_url: 'https://api.example.com'}\n"
        "jobs:\n  x:\n    operation: readme.get\n    items: '-'\n"
    )
    manifest = read_manifest(tmp_path / "m.yaml", Overrides(), {})
    with pytest.raises(ManifestError, match=r"<stdin>: is empty"):
        check(manifest, workspace_in(tmp_path), stdin=io.BytesIO())


def test_a_bad_file_is_not_also_called_empty(tmp_path):
    """What can't be read is one flaw."""
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, "jobs:\n  x:\n    operation: readme.get\n    items: a.csv\n", a_csv="owner,rpeo\n")
    assert len(caught.value.flaws) == 1


@pytest.mark.interpreted
@pytest.mark.parametrize("held", [4 * 1024 * 1024, 48])
def test_repeated_ids_are_named_with_both_lines(tmp_path, monkeypatch, held):
    """Each item whose id an earlier one has is named, in order, also where ids were written to disk meanwhile."""
    monkeypatch.setattr(duplicate_reads, "_HELD_BYTES", held)
    lines = ["id,owner,repo", "1,a,b", "2,a,c", ",a,d", ",a,e", "1,a,f", "2,a,g", "1,a,h"]
    text = "jobs:\n  x:\n    operation: readme.get\n    items: a.csv\n"
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, text, a_csv="\n".join(lines))
    assert [(flaw.line, flaw.field) for flaw in caught.value.flaws] == [(6, "id"), (7, "id"), (8, "id")]
    first = "given twice; first on line 2: each item of a job needs an id of its own"
    assert [flaw.message for flaw in caught.value.flaws][::2] == [first, first]
    assert "first on line 3" in caught.value.flaws[1].message


def test_repeated_ids_on_one_line(tmp_path):
    """Items of one line are told apart by their number."""
    text = (
        "jobs:\n  x:\n    operation: readme.get\n    items: [{id: a, owner: o, repo: r}, {id: a, owner: o, repo: s}]\n"
    )
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, text)
    assert "m.yaml:6: id: given twice; first by item 0 on the same line" in str(caught.value)


def test_many_repeated_ids_are_counted(tmp_path):
    """Fifty are listed, the others counted."""
    with pytest.raises(ManifestError) as caught:
        check_in(tmp_path, a_job(ReadThing(), [{"place": str(number), "id": "x"} for number in range(1_000)]))
    assert (len(caught.value.flaws), caught.value.more) == (50, 949)


def test_ids_may_repeat_in_other_jobs(tmp_path):
    """An id belongs to its job; items without one are many."""
    items = [{"place": "a", "id": "x"}, {"place": "b"}, {"place": "c"}]
    jobs = [a_job(ReadThing(), items, number=number, name=f"job-{number}") for number in range(2)]
    checked = check(a_manifest(tmp_path, *jobs), workspace_in(tmp_path))
    assert [found.items for found in checked.jobs] == [3, 3]


FROM_WITH = "it is from `with` of the job"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a_csv", "owner,repo,path\nacme,api,x\n"),
        ("a_jsonl", '{"owner": "acme", "repo": "api", "path": "x"}\n'),
        ("a_yaml", "- {owner: acme, repo: api, path: x}\n"),
    ],
)
def test_a_bad_value_of_with_is_said_to_be_there(tmp_path, name, data):
    """Of an item's flaw that the job's `with` has brought, the message says so: the item's own line shows nothing."""
    text = (
        "jobs:\n  x:\n    operation: contents.put\n    with: {content: '* @acme', message: Add}\n"
        f"    items: {name.replace('_', '.')}\n"
    )
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, text, **{name: data})
    (flaw,) = caught.value.flaws
    assert (flaw.field, flaw.message.endswith(FROM_WITH)) == ("content", True)
    own = text.replace("content: '* @acme', ", "path: y, content: KiBAYWNtZQo=, ")
    with pytest.raises(ManifestError) as caught:
        check_text(tmp_path, own, **{name: data.replace("api", "a/b").replace("x", "../x")})
    assert FROM_WITH not in str(caught.value), "what the item says itself is not blamed on `with`"
