"""Items made from results are checked against each other, as those of a manifest are: when they are made."""

from pathlib import Path
from typing import Any

import msgspec

from bulk.bundle.checked import Checked, JobCheck, index_name
from bulk.bundle.duplicate_reads import Copies, copies_name
from bulk.bundle.streams import LaneIndex
from bulk.check.derived_items import make
from bulk.manifest.manifest import Derivation, Job
from bulk.operation import Operation
from bulk_jobs.contents import PutContents
from bulk_jobs.snapshots import CreateSnapshot
from tests.manifest.making import ReadThing, a_job, a_manifest, workspace_in

FILE = {"owner": "acme", "repo": "api", "message": "Write"}


def made(folder: Path, operation: Operation[Any], items: list[dict[str, Any]], **more: Any) -> tuple[Job, LaneIndex]:
    """The index of items that come from as many lines of results."""
    fields = {name: f"result.{name}" for name in dict.fromkeys(name for item in items for name in item)}
    job = a_job(operation, [], derivation=Derivation("a", "item", fields), **more)
    manifest, workspace = a_manifest(folder, job), workspace_in(folder)
    lines = [{"index": number, "item": {}, "result": item} for number, item in enumerate(items)]
    assert make(job, manifest, workspace, lines) == len(items)
    checked = Checked(manifest, (JobCheck(items=0),), (), "")
    return job, LaneIndex(checked, workspace, index_name(job))


def flaws(index: LaneIndex) -> dict[int, tuple[str, dict[str, Any]]]:
    """Index -> what is wrong, and what was made."""
    return {item: (message, msgspec.json.decode(given)) for item, message, given in index.flaws(after=-1, count=99)}


def test_two_contents_for_one_file(tmp_path: Path) -> None:
    """The later one is refused with its reason; another file, the same content, or insisting pass (row 54)."""
    items = [
        {**FILE, "path": "a", "content": "YQ=="},
        {**FILE, "path": "b", "content": "YQ=="},
        {**FILE, "path": "a", "content": "YQ==", "id": "again"},
        {**FILE, "path": "a", "content": "Yg=="},
        {**FILE, "path": "c", "content": "no Base64"},
    ]
    _, index = made(tmp_path, PutContents(), items)
    with index:
        found = flaws(index)
        assert set(found) == {3, 4}
        assert "item 2" in found[3][0]
        assert found[3][1] == {**FILE, "path": "a"}
        assert [row[2] for row in index.in_order(after=0, count=9)] == [0, 1, 2]
    _, index = made(tmp_path, PutContents(), items[:4], allow_overwrites=True, name="y")
    with index:
        assert not flaws(index)


def test_two_results_for_one_file(tmp_path: Path) -> None:
    """What would be saved where an earlier one is saved is refused, in any case of the name (row 67)."""
    items = [{"place": "a"}, {"place": "b"}, {"place": "A"}]
    _, index = made(tmp_path, ReadThing(), items, save="{place}.md")
    with index:
        ((item, (message, given)),) = flaws(index).items()
        assert (item, given) == (2, {"place": "A"})
        assert message.startswith("save: would be saved to the same file as item 0 (counted from 0")


def test_superseded_and_copied(tmp_path: Path) -> None:
    """Of a lane that keeps the last only, the last one that is good is sent; equal reads are known."""
    items = [dict(CreateSnapshot.example) for _ in range(3)]
    _, index = made(tmp_path, CreateSnapshot(), [*items, {**items[0], "version": "none"}])
    with index:
        assert set(flaws(index)) == {3}
        assert [entry.index for _, entry in index.superseded(after=0, count=9)] == [0, 1]
    job, index = made(tmp_path, ReadThing(), [{"place": "a"}, {"place": "b"}, {"place": "a"}], name="reads")
    index.close()
    copies = Copies(workspace_in(tmp_path), copies_name(job))
    assert bytes(copies.bits(0, 3)) == b"\x04"
    copies.close()
