"""Reads items again, each at the place where it was checked. Only a few sources are open at a time.

A source that has changed since it was checked stops the run; it is never read as something else.
"""

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path

from bulk.bundle.checked import (
    Checked,
    changed,
    derived_path,
    index_name,
    is_spooled,
    refuse_change,
    source_path,
    spool_path,
)
from bulk.bundle.index import SCHEMA, opened
from bulk.bundle.item_secrets import ItemSecrets
from bulk.capabilities import file_fields
from bulk.errors import RunDirectoryError
from bulk.items.decoding import UNREADABLE, ItemReader
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source
from bulk.manifest.manifest import CheckedFile, Entry, Job
from bulk.operation import Item

_NO_FILES: Mapping[str, CheckedFile] = {}
_FILE = "SELECT digest, counted FROM files WHERE name = ?"

OPEN_MOST = 8
"""Most jobs whose sources are open at once (count): each has a file open, and there may be thousands of jobs."""

BLOCK_BYTES = 64 * 1024
"""Bytes that are read at once where items lie behind one another."""

NEAR_BYTES = 4 * 1024
"""An item that lies at most this far behind the last block counts as the next one (bytes)."""

LOOK_ITEMS = 16
"""How many items of one block are given out before the file is checked for changes again (count)."""


class Places:
    """The places of all jobs. Those that were not used for longest close their files, until they are used again."""

    def __init__(self, checked: Checked, workspace: Path) -> None:
        self._checked, self._workspace = checked, workspace
        self._places: dict[int, Place] = {}
        self._open: OrderedDict[int, Place] = OrderedDict()

    def of(self, number: int) -> "Place":
        """Return the place of the job with that number; use it before the next call."""
        place = self._places.get(number)
        if place is None:
            place = self._places[number] = Place(self._checked, number, self._workspace)
        self._open[number] = place
        self._open.move_to_end(number)
        if len(self._open) > OPEN_MOST:
            self._open.popitem(last=False)[1].close()
        return place

    def close(self) -> None:
        """Close all sources."""
        while self._open:
            self._open.popitem()[1].close()


class Place:
    """The source from which items of one job are read again: its own file at an offset, a spool, or the manifest."""

    def __init__(self, checked: Checked, number: int, workspace: Path) -> None:
        self._job, self._check = checked.manifest.jobs[number], checked.jobs[number]
        self._reader = ItemReader(self._job.operation, self._job.defaults)
        self._files = Files(workspace, self._job)
        path = source_path(self._job, workspace)
        self._is_spooled = is_spooled(self._job)
        self._path = spool_path(self._job, workspace) if self._is_spooled else path
        self._item_secrets: ItemSecrets | None = None
        if path is not None and self._is_spooled:
            self._item_secrets = ItemSecrets(path, self._job, self._check)
        if self._job.derivation is not None:
            self._path, self._is_spooled = derived_path(self._job, workspace), True
        self._fd = -1
        self._block, self._block_at = b"", 0
        self._unlooked = 0

    def entry(self, number: int, at: int, size: int) -> Entry:
        """Return the item with index `number`, of `size` bytes at offset `at`; raise what `entries` raises."""
        return self.entries([(number, at, size)])[0]

    def entries(self, places: Iterable[tuple[int, int, int]]) -> list[Entry]:
        """Return the items at these places: (index, offset, size in bytes) each.

        Raises:
            RunDirectoryError: the source is gone or has changed since it was checked.
        """
        try:
            items = [(number, self._item(number, at, size)) for number, at, size in places]
            if self._unlooked > LOOK_ITEMS:
                self._unlooked = 0
                if not self._is_spooled:
                    refuse_change(self._fd, self._check.source, self._path)
        except (*UNREADABLE, OSError) as error:
            raise changed(self._path) from error
        return [Entry(self._job.number, number, item, self._files.of(item)) for number, item in items]

    def _item(self, number: int, at: int, size: int) -> Item:
        if self._path is None:
            return self._reader.from_mapping((self._job.items or ())[number])
        if self._fd < 0:
            try:
                with open_source(self._path) as file:
                    self._fd = os.dup(file.fileno())
            except (OSError, SourceFlaw) as flaw:
                raise RunDirectoryError(f"{self._path}: its items are needed to go on: {flaw}") from flaw
        text = self._text(at, size)
        item = self._reader.spooled(text) if self._is_spooled else self._reader.again(text)
        return self._item_secrets.restored(number, item) if self._item_secrets is not None else item

    def _text(self, at: int, size: int) -> bytes:
        """Return the bytes of an item; where items are asked for in their order, read the following ones with it."""
        start = at - self._block_at
        if not 0 <= start <= len(self._block) - size:
            is_next = 0 <= start <= len(self._block) + NEAR_BYTES
            self._block = os.pread(self._fd, max(size, BLOCK_BYTES) if is_next else size, at)
            self._block_at, start = at, 0
            self._unlooked = LOOK_ITEMS
        self._unlooked += 1
        return self._block[start : start + size]

    def close(self) -> None:
        """Close the source; it is opened again when it is needed."""
        self._block = b""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._files.close()


class Files:
    """Finds what the check has noted of the files that items of one job name."""

    def __init__(self, workspace: Path, job: Job) -> None:
        self._fields, self._path = tuple(file_fields(job.operation)), workspace / index_name(job)
        self._database: sqlite3.Connection | None = None

    def of(self, item: Item) -> Mapping[str, CheckedFile]:
        """Return each file that `item` names, by field."""
        if not self._fields:
            return _NO_FILES
        if self._database is None:
            self._database = opened(self._path, SCHEMA)
        found: dict[str, CheckedFile] = {}
        for field in self._fields:
            name = getattr(item, field)
            if name is not None:
                row = self._database.execute(_FILE, (name,)).fetchone()
                if row is not None:
                    found[field] = CheckedFile(*row)
        return found

    def close(self) -> None:
        """Close the index."""
        if self._database is not None:
            self._database.close()
            self._database = None
