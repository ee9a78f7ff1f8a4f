"""The check: standard input, `with`, limits, notes, progress, the summary that a resume relies on, and memory."""

import errno
import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bulk.bundle.checked import keep, load_checked
from bulk.check.checking import check
from bulk.errors import ManifestError, RunDirectoryError, RunStopped
from bulk.ledger.directory import Claim
from bulk.manifest.reading import Overrides, read_manifest
from tests.manifest.making import (
    HEAD,
    ReadThing,
    SecretThing,
    WriteThing,
    a_job,
    a_manifest,
    check_in,
    check_text,
    lanes_of,
    stream,
    thing,
    workspace_in,
)

STDIN = Path("-")


def flaws_of(folder, *jobs, **more):
    with pytest.raises(ManifestError) as caught:
        check_in(folder, *jobs, **more)
    return [(flaw.line, flaw.field) for flaw in caught.value.flaws]


def test_standard_input_is_kept(tmp_path):
    """Items from standard input are read once, kept byte for byte, private, and used again without asking for more."""
    text = b'\xef\xbb\xbf{"place":"a"}\r\n\n{"place":"b"}'
    for operation in (ReadThing(), WriteThing()):
        manifest = a_manifest(tmp_path, a_job(operation, STDIN, name="piped"))
        workspace = workspace_in(tmp_path, operation.name)
        checked = check(manifest, workspace, stdin=io.BytesIO(text))
        kept = workspace / "stdin-piped.jsonl"
        assert kept.read_bytes() == text
        assert kept.stat().st_mode & 0o777 == 0o600
        assert [thing(entry).place for entry in stream(checked, workspace)] == ["a", "b"]
        assert load_checked(manifest, workspace) == checked
        again = check(manifest, workspace, stdin=io.BytesIO(b"something else"))
        assert again.digest == checked.digest
        if not operation.is_read:
            assert [label for _, label, _ in lanes_of(checked, workspace)] == ["a", "b"]


def test_what_the_check_leaves_is_no_foreign_directory(tmp_path):
    """failures.md row 42: killed before it has a ledger, or while it makes a file, a run begins again where it was."""
    for name, text in {"reads.jsonl": '{"place":"a"}\n' * 2, "writes.csv": "place\na\nb\n"}.items():
        (tmp_path / name).write_text(text)
    manifest = a_manifest(
        tmp_path,
        a_job(WriteThing(), STDIN, name="piped"),
        a_job(ReadThing(), tmp_path / "reads.jsonl", name="reads"),
        a_job(WriteThing(), tmp_path / "writes.csv", name="writes"),
    )
    workspace = workspace_in(tmp_path)
    keep(check(manifest, workspace, stdin=io.BytesIO(b'{"place":"a"}\n')), workspace)
    made = {path.name for path in workspace.iterdir()}
    assert made == {"check.json", "copies.db", "index.db", "items-writes.jsonl", "stdin-piped.jsonl"}
    for name in made:
        (workspace / f"{name}.part").touch()
    Claim.take(workspace).release()


def test_no_standard_input_is_a_flaw(tmp_path):
    """`items: -` where there is nothing to read is refused, and flaws of what is read name <stdin>."""
    with pytest.raises(ManifestError, match=r"^<stdin>: there is no standard input"):
        check_in(tmp_path, a_job(ReadThing(), STDIN))
    manifest = a_manifest(tmp_path, a_job(ReadThing(), STDIN))
    with pytest.raises(ManifestError, match=r"^<stdin>:2: plaec: unknown field; did you mean place"):
        check(manifest, workspace_in(tmp_path), stdin=io.BytesIO(b'{"place":"a"}\n{"place":"a","plaec":1}'))


def test_standard_input_feeds_one_job(tmp_path):
    """A second job of standard input is a flaw of the manifest."""
    jobs = "jobs:\n" + "".join(f"  {name}: {{operation: readme.get, items: '-'}}\n" for name in "ab")
    with pytest.raises(ManifestError, match=r"jobs\.b\.items: standard input can feed one job only"):
        check_text(tmp_path, jobs)


def test_with_is_merged_one_level_deep(tmp_path):
    """A field of the item replaces that of `with` whole; null counts as given; every source is merged alike."""
    defaults = {"place": "d", "number": 1, "person": {"name": "n", "email": "e"}, "extra": {"a": 1, "b": 2}}
    item = {"number": 2, "extra": {"c": 3}, "person": None}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(item))
    table = tmp_path / "b.csv"
    table.write_text('number,extra\n2,"{""c"": 3}"\n')
    jobs = [
        a_job(WriteThing(), items, number=number, name=f"j{number}", defaults=defaults)
        for number, items in enumerate(([item], path, table))
    ]
    checked, workspace = check_in(tmp_path, *jobs)
    for number in (0, 1, 2):
        (entry,) = stream(checked, workspace, number)
        merged = thing(entry)
        assert (merged.place, merged.number, merged.extra) == ("d", 2, {"c": 3})
        assert (merged.person is None) == (number < 2)
    assert lanes_of(checked, workspace) == [(0, "d", [(0, 0), (1, 0), (2, 0)])]


def test_only_the_first_items_are_checked_with_a_limit(tmp_path):
    """`--limit` takes the first items of each job; the rest may even be wrong, and the hash is the same."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"place":"a"}\n\n{"place":"b"}\n{"place":5}\n')
    inline = a_job(ReadThing(), [{"place": "x"}] * 5, number=1, name="y")
    checked, workspace = check_in(tmp_path, a_job(WriteThing(), path), inline, limit=2)
    assert [job.items for job in checked.jobs] == [2, 2]
    assert len(stream(checked, workspace, 0)) == len(stream(checked, workspace, 1)) == 2
    assert flaws_of(tmp_path, a_job(WriteThing(), path)) == [(4, "place")]


def test_equal_writes_are_noted(tmp_path):
    """Writes that were asked for before are a note, not an error; `id` makes no difference. Reads are sent once."""
    items = [{"place": "a"}, {"place": "b"}, {"place": "a", "id": "x"}, {"place": "a"}]
    jobs = (
        a_job(ReadThing(), items, name="reads"),
        a_job(WriteThing(), items, number=1, name="writes"),
        a_job(WriteThing(), [{"place": "b"}], number=2, name="more"),
    )
    checked, _ = check_in(tmp_path, *jobs)
    assert checked.notes == (
        "job writes: 2 items ask for the same as an earlier one (first: item 2 as item 0, counted from 0)",
        "job more: 1 item asks for the same as an earlier one (first: item 0 as item 1 of writes, counted from 0)",
        (
            "job reads: 2 items are the same read as an earlier one and not sent; its outcome is that one's, which "
            "saves 2 of its requests"
        ),
    )


def test_requests_are_counted(tmp_path):
    """A job's requests are those of its items."""
    checked, _ = check_in(tmp_path, a_job(WriteThing(), [{"place": "a"}, {"place": "b"}]))
    assert (checked.jobs[0].least_requests, checked.jobs[0].most_requests) == (2, 6)


def test_flaws_of_all_jobs_are_found(tmp_path):
    """All flaws of all jobs are listed up to 50, in the order of the files; the rest is counted."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"place":1}\n' * 40 + '{"place":"a","number":-1}\n' * 20)
    second = a_job(ReadThing(), [{"x": 1, "person": 5}], number=1, name="y", item_lines=({"": 7, "x": 8},))
    with pytest.raises(ManifestError) as caught:
        check_in(tmp_path, a_job(WriteThing(), path), second)
    places = [(flaw.line, flaw.field) for flaw in caught.value.flaws]
    assert places == [(line, "place") for line in range(1, 41)] + [(line, "number") for line in range(41, 51)]
    assert caught.value.more == 11
    flaws = flaws_of(tmp_path, a_job(ReadThing(), [{"place": "a"}]), second)
    assert flaws == [(7, "place"), (7, "person"), (8, "x")]


@pytest.mark.parametrize(
    ("item", "field", "words"),
    [
        ({"place": "a", "number": True}, "number", "expected a whole number, got true or false"),
        ({"place": "a", "share": "x"}, "share", "expected a number, got a string"),
        ({"place": "a", "is_new": 1}, "is_new", "expected true or false, got a whole number"),
        ({"place": "a", "kind": "big"}, "kind", "expected one of large, small"),
        ({"place": "a", "tags": ["a", 5]}, "tags[1]", "expected a string, got a whole number"),
        ({"place": "a", "tags": "a"}, "tags", "expected a list, got a string"),
        ({"place": "a", "person": {"name": "n", "email": 5}}, "person.email", "expected a string, got a whole number"),
        ({"place": "a", "people": [{"name": "n"}]}, "people[0].email", "is missing"),
        ({"place": "a", "people": [{"name": "n", "email": "e", "x": 1}]}, "people[0].x", "unknown field"),
        ({"place": "a", "extra": {"k": [1]}}, "extra.…", "expected true or false, a number or a string, got a list"),
        ({"place": "a", "short": "toolong"}, "short", "expected a string of at most 5 characters"),
        ({"place": None}, "place", "expected a string, got nothing (null)"),
        ({"place": "a", "id": 5}, "id", "expected a string, got a whole number"),
    ],
)
def test_messages_say_what_was_expected(tmp_path, item, field, words):
    """Types are named in words that people use, the same for every source, and the value is not repeated."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(item))
    for items in ([item], path):
        with pytest.raises(ManifestError) as caught:
            check_in(tmp_path, a_job(ReadThing(), items))
        (flaw,) = caught.value.flaws
        assert (flaw.field, flaw.message.removesuffix(" (put it in quotes)")) == (field, words)


def test_progress_is_told_often(tmp_path):
    """The display hears of every 5,000 items or so, in order, and of the last."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"place":"a"}\n' * 60_000)
    told: list[int] = []
    check(a_manifest(tmp_path, a_job(ReadThing(), path)), workspace_in(tmp_path), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 60_000
    assert max(later - earlier for earlier, later in zip([0, *told], told, strict=False)) < 25_000


def test_an_earlier_check_is_used_while_nothing_has_changed(tmp_path):
    """A resume takes the earlier check; a changed time alone is looked into, a changed content is refused
    (failures.md row 55)."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"place":"a"}\n')
    manifest = a_manifest(tmp_path, a_job(WriteThing(), path))
    workspace = workspace_in(tmp_path)
    assert load_checked(manifest, workspace) is None
    checked = check(manifest, workspace)
    assert load_checked(manifest, workspace) == checked
    os.utime(path, ns=(1, 1))
    found = load_checked(manifest, workspace)
    assert found is not None
    assert found.jobs[0].source is not None
    assert (found.jobs[0].source.mtime_ns, found.digest, found.notes) == (1, checked.digest, checked.notes)
    assert len(stream(found, workspace)) == 1
    path.write_text('{"place":"b"}\n')
    with pytest.raises(RunDirectoryError, match="was edited since the run"):
        load_checked(manifest, workspace)
    path.unlink()
    with pytest.raises(RunDirectoryError, match="items are needed"):
        load_checked(manifest, workspace)


def test_another_manifest_is_refused(tmp_path):
    """A workspace belongs to one manifest: another digest is refused, other limits are not."""
    job = a_job(ReadThing(), [{"place": "a"}])
    checked, workspace = check_in(tmp_path, job)
    assert load_checked(a_manifest(tmp_path, job, concurrency=3), workspace) is not None
    with pytest.raises(RunDirectoryError, match="belongs to another manifest"):
        load_checked(a_manifest(tmp_path, job, digest="other"), workspace)
    assert checked.manifest.digest == "d"


def test_another_limit_checks_again(tmp_path):
    """A run that was cut by `--limit` and goes on without it is checked again."""
    job = a_job(ReadThing(), [{"place": "a"}] * 3)
    _, workspace = check_in(tmp_path, job, limit=1)
    assert load_checked(a_manifest(tmp_path, job), workspace) is None
    assert load_checked(a_manifest(tmp_path, job, limit=1), workspace) is not None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"form":2}', b"\xff"])
def test_a_damaged_summary_is_no_summary(tmp_path, damage):
    """A check.json that can't be used, or an index that is gone, means that the check is repeated."""
    manifest = a_manifest(tmp_path, a_job(WriteThing(), [{"place": "a"}]))
    workspace = workspace_in(tmp_path)
    checked = check(manifest, workspace)
    (workspace / "check.json").write_bytes(damage)
    assert load_checked(manifest, workspace) is None
    keep(checked, workspace)
    assert load_checked(manifest, workspace) is not None
    (workspace / "index.db").unlink()
    assert load_checked(manifest, workspace) is None


def test_secrets_stay_out_of_the_run_directory(tmp_path):
    """A literal secret of an items file, copied or not, is in no file of the workspace (failures.md row 61)."""
    for name, text in (
        ("a.csv", "place,secret\na,env:NAME\nb,hunter2\n"),
        ("a.jsonl", '{"place":"a","secret":"hunter2"}\n'),
    ):
        (tmp_path / name).write_text(text)
        _, workspace = check_in(tmp_path, a_job(SecretThing(), tmp_path / name))
        assert all(b"hunter2" not in file.read_bytes() for file in workspace.iterdir())


def test_a_full_disk_ends_with_exit_3(tmp_path):
    """A workspace that can't be written ends the check cleanly: full with exit 3, else with exit 5."""
    manifest = a_manifest(tmp_path, a_job(WriteThing(), [{"place": "a"}]))

    def full(items: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(RunStopped, match="the disk is full; free some space, then give the same command again"):
        check(manifest, workspace_in(tmp_path), progress=full)
    with pytest.raises(RunDirectoryError, match="can't be written"):
        check(manifest, tmp_path / "gone")
    assert not (tmp_path / "run" / "index.db").exists()

    def broken(items: int) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with pytest.raises(RunDirectoryError, match="disk I/O error"):
        check(manifest, workspace_in(tmp_path), progress=broken)


PEAK = """
import resource, sys
from pathlib import Path
from bulk.bundle.streams import EntryStream
from tests.manifest.making import ReadThing, WriteThing, a_job, check_in
folder = Path(sys.argv[1])
path = folder / "a.jsonl"
with path.open("w") as file:
    file.writelines(f'{{"place":"place-{number:07}"}}\\n' for number in range(int(sys.argv[2])))
jobs = a_job(ReadThing(), path, save="{place}"), a_job(WriteThing(), path, number=1, name="y")
checked, workspace = check_in(folder, *jobs)
source = EntryStream(checked, 0, workspace)
while source.take(1_000, lambda index: -(-index // 100) * 100):
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_grow_with_the_items(tmp_path):
    """Checking, indexing and streaming 60,000 items takes hardly more memory than 12,000, all of them different."""
    peaks = []
    for size in (12_000, 60_000):
        folder = tmp_path / str(size)
        folder.mkdir()
        command, root = [sys.executable, "-c", PEAK, str(folder), str(size)], Path(__file__).parents[2]
        peaks.append(int(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout))
    assert peaks[1] < peaks[0] + 20, peaks


def test_a_manifest_is_checked_as_a_whole(tmp_path):
    """The check of a file: items seen from the manifest's folder, flaws named as the user named the manifest."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.yaml").write_text(HEAD + "jobs: {x: {operation: readme.get, items: a.csv}}\n")
    (tmp_path / "sub" / "a.csv").write_text("owner,repo\nacme,\n")
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        with pytest.raises(ManifestError) as caught:
            check(read_manifest(Path("sub/m.yaml"), Overrides(), {}), workspace_in(tmp_path))
    finally:
        os.chdir(here)
    assert str(caught.value).startswith("sub/a.csv:2: repo: is missing")
