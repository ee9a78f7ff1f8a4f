"""Files of items are read and converted beside the event loop, a few at once."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.lowlevel
import msgspec
import orjson
import pytest

from bulk.capabilities import FileError, skipping_unchanged
from bulk.execute.item_runner import AT_ONCE, FileContents, sent_digest
from bulk.manifest.manifest import Entry
from bulk.operation import find
from bulk.storage.disk_threads import thread_disk
from bulk_jobs.snapshots import CreateSnapshot
from tests.jobs.shared.sboms.bills import TIME, cyclonedx_json, graph
from tests.manifest.making import a_job, check_in, stream

SNAPSHOTS = find("snapshot.create")


def entry_of(**fields: str) -> Entry:
    """A snapshot of one repository."""
    given = {name: value for name, value in SNAPSHOTS.example.items() if name not in ("manifests", "scanned")}
    return Entry(0, 0, msgspec.convert({**given, "scanned": "2026-11-21T08:00:00Z", **fields}, SNAPSHOTS.Item))


class Counting(CreateSnapshot):
    """Counts what is converted."""

    conversions: ClassVar = 0

    @classmethod
    def converted(cls, field: str, data: bytes) -> bytes:
        """Convert."""
        Counting.conversions += 1
        return super().converted(field, data)


COUNTING = skipping_unchanged(Counting(), "exact", 60.0)


def checked_entry(folder: Path, **fields: object) -> Entry:
    """A snapshot as it comes from a check."""
    given = {name: value for name, value in SNAPSHOTS.example.items() if name != "manifests"}
    checked, workspace = check_in(folder, a_job(COUNTING, [{**given, **fields}]))
    (entry,) = stream(checked, workspace)
    return entry


def test_what_was_sent_before_is_known_from_the_check(tmp_path: Path) -> None:
    """What is sent has the digest that the check found, whatever the form and the time of a bill, and by every way that
    manifests are given; to know that nothing has to be sent, nothing is converted.
    """
    bill, contents = cyclonedx_json(graph(20, 1)), FileContents(tmp_path, thread_disk)
    (tmp_path / "bill.json").write_bytes(bill)
    (tmp_path / "later.json").write_bytes(bill.replace(TIME.encode(), b"2026-11-25T08:00:00Z"))
    (tmp_path / "other.json").write_bytes(cyclonedx_json(graph(20, 2)))
    manifests = orjson.loads(Counting.converted("sbom_file", bill).partition(b"\n")[2])
    (tmp_path / "manifests.json").write_bytes(orjson.dumps(manifests))

    async def main() -> None:
        entries = [checked_entry(tmp_path, sbom_file=name) for name in ("bill.json", "later.json", "other.json")]
        digests = [sent_digest(COUNTING, entry) for entry in entries]
        assert digests[0] == digests[1] != digests[2]
        before = Counting.conversions
        for entry in entries:
            await contents.refuse_changes(COUNTING, entry)
        assert Counting.conversions == before
        for entry, digest in zip(entries, digests, strict=True):
            assert COUNTING.sent_digest(await contents.load(COUNTING, entry)) == digest  # type: ignore[attr-defined]
        assert Counting.conversions == before + len(entries)
        for more in ({"manifest_file": "manifests.json"}, {"manifests": manifests}):
            entry = checked_entry(tmp_path, **more)
            item = await contents.load(COUNTING, entry)
            assert sent_digest(COUNTING, entry) == COUNTING.sent_digest(item) != b""  # type: ignore[attr-defined]

    anyio.run(main)


def test_a_changed_file_is_found_though_nothing_is_converted(tmp_path: Path) -> None:
    """A file that changes behind the check is refused, be it of the same size and time (failures.md row 59)."""
    path, contents = tmp_path / "bill.json", FileContents(tmp_path, thread_disk)
    path.write_bytes(cyclonedx_json(graph(20, 1)))
    was = path.stat()
    entry = checked_entry(tmp_path, sbom_file="bill.json")
    path.write_bytes(path.read_bytes().replace(b"package 1", b"package 2", 1))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert path.stat().st_size == was.st_size

    async def main() -> None:
        with pytest.raises(FileError, match=r"sbom_file: 'bill.json' has changed since it was checked"):
            await contents.refuse_changes(COUNTING, entry)
        path.unlink()
        with pytest.raises(FileError, match=r"there is no file 'bill.json'"):
            await contents.refuse_changes(COUNTING, entry)

    anyio.run(main)


def test_the_loop_turns_while_a_bill_is_converted(tmp_path: Path) -> None:
    """A bill of materials is converted in another thread than that of the event loop."""
    (tmp_path / "bill.json").write_bytes(cyclonedx_json(graph(3_000, 1)))
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(turn)
            item = await FileContents(tmp_path, thread_disk).load(SNAPSHOTS, entry_of(sbom_file="bill.json"))
            group.cancel_scope.cancel()
        assert b'"resolved"' in orjson.dumps(item.manifests)  # type: ignore[attr-defined]

    anyio.run(main)
    assert turns > 2


def test_few_files_are_read_at_once(tmp_path: Path) -> None:
    """However many items are in flight, `AT_ONCE` are read at once; one that names no file waits for none of them."""
    (tmp_path / "bill.json").write_bytes(cyclonedx_json(graph(20, 1)))
    running = most = 0

    async def counted(call: Callable[[], None]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        call()
        running -= 1

    async def main() -> None:
        contents = FileContents(tmp_path, counted)
        async with anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(contents.load, SNAPSHOTS, entry_of(sbom_file="bill.json"))
        assert (await contents.load(SNAPSHOTS, entry_of())).manifest_file is None  # type: ignore[attr-defined]

    anyio.run(main)
    assert most == AT_ONCE
