"""Finds items that would be saved to the same file, or one to a file where another needs a folder, over all jobs.

Paths are compared as file systems do that ignore case. They are kept as 128-bit hashes in a temporary SQLite file, so
that memory does not grow with the items.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from bulk.manifest.save_template import folded
from bulk.storage.temporary_rows import TemporaryRows

_REMEMBERED_FOLDERS = 100_000


class Collision(NamedTuple):
    """An item and an earlier one that would be saved to the same place: (job, its index, line) each."""

    job: int
    item: int
    line: int
    earlier: tuple[int, int, int]


class SavedPaths(TemporaryRows):
    """Collects the paths of all items; `collisions` finds those that collide. A context manager."""

    def __init__(self) -> None:
        super().__init__(
            "CREATE TABLE paths (hash BLOB, is_folder INTEGER, job INTEGER, item INTEGER, line INTEGER);",
            "paths",
        )
        self._folders: set[str] = set()

    def add(self, path: str, job: int, index: int, line: int) -> None:
        """Add the path below `saved/` of one item."""
        path = folded(path)
        self.keep((_hash(path), False, job, index, line))
        folder = path.rpartition("/")[0]
        while folder and folder not in self._folders:
            if len(self._folders) >= _REMEMBERED_FOLDERS:
                self._folders.clear()
            self._folders.add(folder)
            self.keep((_hash(folder), True, job, index, line))
            folder = folder.rpartition("/")[0]

    def collisions(self) -> Iterator[Collision]:
        """Yield every item that is in the way of an earlier one, in the order in which they were added."""
        query = """
            SELECT paths.job, paths.item, paths.line, firsts.job, firsts.item, firsts.line
            FROM (SELECT hash, min(rowid) AS first, job, item, line FROM paths GROUP BY hash
                  HAVING count(*) > 1 AND sum(NOT is_folder) > 0) AS firsts
            JOIN paths ON paths.hash = firsts.hash AND paths.rowid > firsts.first
            WHERE paths.job != firsts.job OR paths.item != firsts.item
            GROUP BY paths.job, paths.item ORDER BY min(paths.rowid)"""
        for job, index, line, *earlier in self.select(query):
            yield Collision(job, index, line, (earlier[0], earlier[1], earlier[2]))


def _hash(path: str) -> bytes:
    return hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def same_file(other: str) -> str:
    """Return the message about an item that would be saved to the file of an earlier item, which `other` names."""
    return (
        f"would be saved to the same file as {other} (counted from 0; case does not matter): "
        "add a field that tells them apart, such as {id}"
    )
