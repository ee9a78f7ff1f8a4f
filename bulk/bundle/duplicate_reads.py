"""Finds reads of one job that ask for exactly the same, so that one is sent and the others get its outcome.

They are looked for only within a job, because something may be written between two jobs. Items ask for the same if
their canonical JSON without the id is equal; 128 bits of a hash stand for it. The hashes are kept in a temporary file,
in parts that are compared one after the other, so that memory does not grow with the items. The copies that were found
are in `copies.db`.
"""

import hashlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bulk.bundle.index import built, opened
from bulk.manifest.manifest import Job
from bulk.operation import Item
from bulk.storage.private_files import write_all

COPIES = "copies.db"
SCHEMA = """
CREATE TABLE copies (job INTEGER NOT NULL, item INTEGER NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (job, item))
WITHOUT ROWID;
"""

_DIGEST_BYTES, _RECORD_BYTES = 16, 24
_HELD_BYTES = 4 * 1024 * 1024
"""Size of the records that wait in memory before they are written (bytes)."""


def copies_name(job: Job) -> str:
    """Return the name of the file with the copies of `job`; those of derived items have a file of their own."""
    return f"from-{job.name}.copies.db" if job.derivation is not None else COPIES


def has_copies(job: Job) -> bool:
    """Return whether equal items of that job are sent only once.

    They are not where each has a file to be saved: two such items differ only in the id that names the file, which
    shows that both are wanted. Nor where each waits for items of its own.
    """
    operation = job.operation
    return operation.is_read and not operation.is_momentary and job.save is None and not job.by_key


class DuplicateFinder:
    """Takes the items of one job in their order; `found` yields which of them are copies. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Begin a search, whose temporary file may be made in `folder`."""
        self._folder = folder
        self._encode = msgspec.json.Encoder(order="deterministic").encode
        self._hash = hashlib.blake2b(digest_size=_DIGEST_BYTES)  # copying a hash costs less than making a new one
        # made when they are first needed: a manifest may have thousands of jobs of one item
        self._parts: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._until_written = _HELD_BYTES // _RECORD_BYTES
        self._fd = -1
        self._end = 0

    def __enter__(self) -> "DuplicateFinder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def add(self, item: Item, index: int) -> None:
        """Add the item of that index."""
        bare = item if item.id is None else msgspec.structs.replace(item, id=None)
        self.add_key(self._encode(bare), index)

    def add_key(self, key: bytes, number: int) -> None:
        """Add something other than an item, which is compared by its key; `number` takes the place of the index
        (below 2**64).
        """
        hashed = self._hash.copy()
        hashed.update(key)
        digest = hashed.digest()
        self._parts[digest[0]] += digest + number.to_bytes(_RECORD_BYTES - _DIGEST_BYTES, "big")
        self._until_written -= 1
        if not self._until_written:
            self._write()

    def found(self, job: int) -> Iterator[tuple[int, int, int]]:
        """Yield (`job`, index of a copy, index of the first item that asks for the same), in no particular order."""
        for number, part in self._parts.items():
            data = b"".join(os.pread(self._fd, size, at) for at, size in self._places[number]) + part
            digests = [data[at : at + _DIGEST_BYTES] for at in range(0, len(data), _RECORD_BYTES)]
            if len(set(digests)) == len(digests):
                continue
            firsts: dict[bytes, int] = {}
            for place, digest in enumerate(digests):
                at = place * _RECORD_BYTES
                index = int.from_bytes(data[at + _DIGEST_BYTES : at + _RECORD_BYTES], "big")
                first = firsts.setdefault(digest, index)
                if first != index:
                    yield job, index, first

    def _write(self) -> None:
        if self._fd < 0:
            self._fd, name = tempfile.mkstemp(prefix="copies-", dir=self._folder)
            Path(name).unlink()
        for number, part in self._parts.items():
            self._places[number].append((self._end, len(part)))
            self._end += len(part)
        write_all(self._fd, b"".join(self._parts.values()))
        for part in self._parts.values():
            part.clear()
        self._until_written = _HELD_BYTES // _RECORD_BYTES


class DuplicatesBuilder:
    """Builds `copies.db`, which gets its name when it is complete. A context manager."""

    def __init__(self, workspace: Path, name: str = COPIES) -> None:
        self._path, self._part = workspace / name, workspace / (name + ".part")
        self._path.unlink(missing_ok=True)
        self._database = built(self._part, SCHEMA + "CREATE TEMP TABLE found AS SELECT * FROM copies;")
        self._count = 0

    def __enter__(self) -> "DuplicatesBuilder":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._part.unlink(missing_ok=True)

    def add(self, job: int, finder: DuplicateFinder) -> int:
        """Keep the copies that were found in one job; return how many there are."""
        count = self._database.executemany("INSERT INTO found VALUES (?, ?, ?)", finder.found(job)).rowcount
        self._count += count
        return count

    def finish(self) -> None:
        """Give the file its name, if there are any copies."""
        if not self._count:
            return
        # in the order in which copies are looked up: a tree that is filled in order is small and quick
        self._database.execute("INSERT INTO copies SELECT * FROM found ORDER BY job, item")
        self._database.execute("COMMIT")
        self._database.close()
        self._part.replace(self._path)


class Copies:
    """The copies of a checked manifest. Where there is no `copies.db`, there are none."""

    def __init__(self, workspace: Path, name: str = COPIES) -> None:
        self._database = opened(workspace / name, SCHEMA)

    def bits(self, job: int, items: int) -> bytearray:
        """Return one bit for each of the first `items` items of a job, as in `Ledger.done_bits`: 1 where it is a
        copy."""
        bits = bytearray((items + 7) // 8)
        query = "SELECT item FROM copies WHERE job = ? AND item < ? ORDER BY item"
        for (item,) in self._database.execute(query, (job, items)):
            bits[item >> 3] |= 1 << (item & 7)
        return bits

    def firsts(self, job: int, items: Sequence[int]) -> Mapping[int, int]:
        """Return, for each of `items` (in their order), the first item that asks for the same."""
        if not items:
            return {}
        query = "SELECT item, first FROM copies WHERE job = ? AND item BETWEEN ? AND ?"
        return dict(self._database.execute(query, (job, items[0], items[-1])).fetchall())

    def close(self) -> None:
        """Close the file."""
        self._database.close()
