"""Puts the content of files into items before they are sent, in threads: reading blocks, and a bill of materials of
5 MB takes a tenth of a second to convert, in which the event loop would do nothing else.
"""

from pathlib import Path

import anyio

from bulk.bundle.item_files import load_files
from bulk.capabilities import SkipsUnchanged, TakesFiles
from bulk.manifest.manifest import Entry
from bulk.operation import AnyOperation, Item
from bulk.storage.disk_threads import Disk

AT_ONCE = 2
"""Items whose files are read and converted at once (count): the objects of a large bill take ten times its bytes."""


class FileContents:
    """Reads the files that items name.

    Args:
        base_dir: folder of the manifest.
    """

    def __init__(self, base_dir: Path, disk: Disk) -> None:
        self._base_dir, self._disk = base_dir, disk
        self._room = anyio.Semaphore(AT_ONCE)

    async def load(self, operation: AnyOperation, entry: Entry) -> tuple[Item, bytes]:
        """Return the item of `entry` with its files inline, and its `sent_digest` (empty where it has none).

        Raises:
            FileError: a file is not what it was when it was checked, or can't be read any more.
        """
        if not _names_files(operation, entry.item):
            return entry.item, _digest(operation, entry.item)
        loaded: list[tuple[Item, bytes]] = []

        def read() -> None:
            item = load_files(self._base_dir, operation, entry)
            loaded.append((item, _digest(operation, item)))

        async with self._room:
            await self._disk(read)
        return loaded[0]


def _names_files(operation: AnyOperation, item: Item) -> bool:
    return isinstance(operation, TakesFiles) and any(
        getattr(item, field) is not None for field in operation.file_fields
    )


def _digest(operation: AnyOperation, item: Item) -> bytes:
    return operation.sent_digest(item) if isinstance(operation, SkipsUnchanged) else b""
