"""Files that items save, while their run is in a store: they are kept in packed parts until the run is forgotten.

A worker's disk goes with the worker, so no part of a file is kept there alone. All parts are in the store before the
outcome is; each transaction begins with the fence and is short, because it holds up the renewal of the lease. A file
whose item has no outcome does not count: the worker that takes over the shard writes it anew.
"""

import io
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

import psycopg
import zstandard

from bulk.errors import RunDirectoryError
from bulk.ledger import saved_files
from bulk.ledger.records import Record
from bulk.model import SUCCESSFUL, BodyFile
from bulk.storage.private_files import open_directory, replacing, stopped
from bulk.store import sql
from bulk.store.connections import StoreConnection
from bulk.store.groups import array
from bulk.store.holding import Holding

_SQL = sql.load("saved")

PART_BYTES = 1024 * 1024
"""The size of a part before it is packed."""

SENT_BYTES = 4 * PART_BYTES
"""About how many bytes of packed parts are sent in one transaction."""

_WHOLE = "saved.whole"
"""The name, in the run directory, of the file that is being put together from its parts."""

_READ_PARTS = 8

_Part = tuple[int, int, int, str, bytes]
"""Job and index of an item, number of the part, path below `saved/`, and the packed part."""

_End = tuple[int, int, int]
"""Job and index of an item, and how many parts its file has."""


class Keeping:
    """Writes the saved files of one run into its store; calls block.

    Args:
        folder: where this process keeps its files of the run.
    """

    def __init__(self, store: StoreConnection, run: int, holding: Holding, folder: Path) -> None:
        self._store, self._run, self._holding, self._folder = store, run, holding, folder

    def keep(self, records: Sequence[Record]) -> None:
        """Write the files of these items; a second call with the same records does no harm.

        Raises:
            RunStopped: the store can't be reached, or a file can't be read.
            RunDirectoryError: another worker has taken over a shard.
        """
        parts: list[_Part] = []
        ends: list[_End] = []
        size = 0
        for record in records:
            if record.save is None:
                continue
            path, content = record.save
            key = (record.job, record.finished.index)
            name, number = "/".join(saved_files.saved_parts(path)), 0
            for number, part in enumerate(self._parts(content)):
                packed = zstandard.compress(part, 1)
                parts.append((*key, number, name, packed))
                size += len(packed)
                if size >= SENT_BYTES:
                    self._send(parts, ends)
                    size = 0
            ends.append((*key, number + 1))
        if ends:
            self._send(parts, ends)

    def _send(self, parts: list[_Part], ends: list[_End]) -> None:
        keys = {row[:2] for row in parts} | {row[:2] for row in ends}
        shards = sorted({self._holding.shard_of(job, index) for job, index in keys})
        epochs = [self._holding.epoch_of(shard) for shard in shards]
        with self._store.transaction() as connection:
            connection.execute(_SQL["fence"], (self._run, array(shards), array(epochs)))
            if parts:
                connection.execute(_SQL["add_parts"], (self._run, *map(list, zip(*parts, strict=True))))
            if ends:
                connection.execute(_SQL["cut_off"], (*map(list, zip(*ends, strict=True)), self._run))
        parts.clear()
        ends.clear()

    def _parts(self, content: bytes | BodyFile) -> Iterator[bytes]:
        """Yield the parts of a file; an empty file has one empty part."""
        try:
            with self._opened(content) as file:
                part = file.read(PART_BYTES)
                yield part
                while part := file.read(PART_BYTES):
                    yield part
        except OSError as error:
            raise stopped(error, self._folder) from error

    def _opened(self, content: bytes | BodyFile) -> BinaryIO:
        return io.BytesIO(content) if isinstance(content, bytes) else (self._folder / content.name).open("rb")


def bring(connection: psycopg.Connection, run: int, run_dir: Path, damaged: RunDirectoryError) -> None:
    """Write the files of all items that succeeded, or were unchanged, below `saved/` of a run directory.

    Raises:
        RunDirectoryError: a part is missing or can't be unpacked; the error raised is `damaged`.
        OSError: the disk refused.
    """
    run_fd = open_directory(run_dir)
    try:
        with connection.cursor("saved", binary=True) as found:
            found.itersize = _READ_PARTS
            found.execute(_SQL["parts"], (run, [kind.value for kind in SUCCESSFUL]))
            for (_, _, path), rows in groupby(found, itemgetter(0, 1, 3)):
                with replacing(run_dir / _WHOLE) as file:
                    for expected, (_, _, number, _, data) in enumerate(rows):
                        if number != expected:
                            raise damaged
                        file.write(zstandard.decompress(data, PART_BYTES))
                whole = BodyFile(name=_WHOLE, size_bytes=0, sha256="", blob_sha="")
                saved_files.save(run_fd, [(path, whole)])
    except zstandard.ZstdError:
        raise damaged from None
    finally:
        os.close(run_fd)
