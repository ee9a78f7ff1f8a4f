"""Files of items are read and converted beside the event loop, a few at once."""

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import orjson

from bulk.execute.file_contents import AT_ONCE, FileContents
from bulk.manifest.manifest import Entry
from bulk.operation import find
from bulk.storage.disk_threads import thread_disk
from tests.jobs.shared.sboms.bills import cyclonedx_json, graph

SNAPSHOTS = find("snapshot.create")


def entry_of(**fields: str) -> Entry:
    """A snapshot of one repository."""
    given = {name: value for name, value in SNAPSHOTS.example.items() if name not in ("manifests", "scanned")}
    return Entry(0, 0, msgspec.convert({**given, "scanned": "2026-11-21T08:00:00Z", **fields}, SNAPSHOTS.Item))


def test_the_loop_turns_while_a_bill_is_converted(tmp_path: Path) -> None:
    """A bill of materials is converted, and its digest is made, in another thread than that of the event loop."""
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
            item, digest = await FileContents(tmp_path, thread_disk).load(SNAPSHOTS, entry_of(sbom_file="bill.json"))
            group.cancel_scope.cancel()
        assert b'"resolved"' in orjson.dumps(item.manifests)  # type: ignore[attr-defined]
        assert digest == SNAPSHOTS.sent_digest(item)  # type: ignore[attr-defined]

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
        assert (await contents.load(SNAPSHOTS, entry_of()))[0].manifest_file is None  # type: ignore[attr-defined]

    anyio.run(main)
    assert most == AT_ONCE
