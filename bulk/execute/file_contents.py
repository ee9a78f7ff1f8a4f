"""Puts the content of files into items before they are sent, in threads: reading blocks, and a bill of materials of
5 MB takes a tenth of a second to convert, in which the event loop would do nothing else.
"""

from pathlib import Path

import anyio

from bulk.bundle.item_files import load_files, refuse_changes
from bulk.capabilities import SkipsUnchanged, TakesFiles
from bulk.manifest.manifest import Entry
from bulk.operation import AnyOperation, Item
from bulk.storage.disk_threads import Disk, beside

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

    async def load(self, operation: AnyOperation, entry: Entry) -> Item:
        """Return the item of `entry` with its files inline.

        Raises:
            FileError: a file is not what it was when it was checked, or can't be read any more.
        """
        if not _named(operation, entry.item):
            return entry.item
        async with self._room:
            return await beside(self._disk, lambda: load_files(self._base_dir, operation, entry))

    async def refuse_changes(self, operation: AnyOperation, entry: Entry) -> None:
        """Raise what `load` raises, for an item that need not be sent, without converting anything.

        Raises:
            FileError: as `load`.
        """
        if isinstance(operation, TakesFiles) and _named(operation, entry.item):
            async with self._room:
                await self._disk(lambda: refuse_changes(self._base_dir, operation, entry))


def sent_digest(operation: AnyOperation, entry: Entry) -> bytes:
    """Return the `sent_digest` of an item, from what the check found in its files; empty where no digest is known."""
    if not isinstance(operation, SkipsUnchanged):
        return b""
    named = _named(operation, entry.item)
    if not named:
        return operation.sent_digest(entry.item)
    checked = [entry.files[field].counted for field in named if field in entry.files]
    is_known = len(checked) == len(named) and all(checked)
    return operation.sent_digest(entry.item, b"".join(checked)) if is_known else b""


def _named(operation: AnyOperation, item: Item) -> list[str]:
    """Return the fields of `item` that name a file."""
    if not isinstance(operation, TakesFiles):
        return []
    return [field for field in operation.file_fields if getattr(item, field) is not None]
