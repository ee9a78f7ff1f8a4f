"""Bundles in a store: the files of a checked manifest, in parts of 1 MiB, packed, named by a digest of them all.

Parts that the store already has are not sent again, so that an upload that broke off goes on. A download compares the
digest.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import zstandard

from bulk.errors import RunDirectoryError, UsageError
from bulk.storage.private_files import DIRECTORY_MODE, replacing
from bulk.store import sql
from bulk.store.connections import StoreConnection

_SQL = sql.load("runs")

PART_BYTES = 1024 * 1024
"""The size of a part before it is packed."""

MOST_BYTES = 256 * 1024 * 1024
"""The most that all files of a bundle may have together; more belongs into a folder that every worker sees."""

_READ_PARTS = 16
"""Parts that are sent in one transaction (count)."""


_Part = tuple[str, int, bytes]
"""Name of a file, number of the part, and the packed part."""


def digest_of(folder: Path, names: Sequence[str]) -> bytes:
    """Return 32 bytes over the names and the contents of these files of a folder."""
    whole = hashlib.sha256()
    for name in sorted(names):
        with (folder / name).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        whole.update(len(name.encode()).to_bytes(4, "big") + name.encode() + content)
    return whole.digest()


def upload(store: StoreConnection, folder: Path, names: Sequence[str]) -> bytes:
    """Bring these files of a folder, by their names in it, into the store; returns the bundle's digest.

    Raises:
        UsageError: the files are too large together.
        RunStopped: the store can't be reached.
        OSError: a file can't be read.
    """
    size = sum((folder / name).stat().st_size for name in names)
    if size > MOST_BYTES:
        raise UsageError(
            f"the bundle has {size / 2**20:,.0f} MiB; a store takes {MOST_BYTES // 2**20} MiB: split the manifest"
        )
    digest = digest_of(folder, names)
    with store.using() as connection:
        there = {(name, no) for name, no in connection.execute(_SQL["has_parts"], (digest,))}
    waiting: list[_Part] = []
    for name in sorted(names):
        for no, part in enumerate(_parts(folder / name)):
            if (name, no) not in there:
                waiting.append((name, no, zstandard.compress(part, 3)))
            if len(waiting) >= _READ_PARTS:
                _send(store, digest, waiting)
    _send(store, digest, waiting)
    return digest


def download(store: StoreConnection, digest: bytes, folder: Path) -> list[str]:
    """Write the files of a bundle into a folder, readable for this user alone; returns their names.

    Raises:
        RunDirectoryError: the store does not have the bundle, or the bundle is not as it was uploaded.
        RunStopped: the store can't be reached.
        OSError: the disk refused.
    """
    with store.using() as connection:
        rows = connection.execute(_SQL["parts"], (digest,)).fetchall()
    parts: dict[str, int] = {}
    for name, no in rows:
        if no != parts.get(name, 0) or not is_inside(name):
            raise _damaged(store)
        parts[name] = no + 1
    if not parts:
        raise RunDirectoryError(f"the store {store.address} has no bundle {digest.hex()[:12]}: its run was forgotten")
    for name, count in parts.items():
        target = folder / name
        target.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        with replacing(target) as file:
            for no in range(count):
                with store.using() as connection:
                    row = connection.execute(_SQL["part"], (digest, name, no)).fetchone()
                if row is None:
                    raise _damaged(store)
                try:
                    file.write(zstandard.decompress(row[0], PART_BYTES))
                except zstandard.ZstdError:
                    raise _damaged(store) from None
    if digest_of(folder, list(parts)) != digest:
        raise _damaged(store)
    return list(parts)


def _parts(path: Path) -> Iterator[bytes]:
    """Yield the parts of a file; an empty file has one empty part."""
    with path.open("rb") as file:
        part = file.read(PART_BYTES)
        yield part
        while part := file.read(PART_BYTES):
            yield part


def _send(store: StoreConnection, digest: bytes, waiting: list[_Part]) -> None:
    if waiting:
        with store.transaction() as connection:
            connection.execute(_SQL["add_parts"], (digest, *map(list, zip(*waiting, strict=True))))
        waiting.clear()


def is_inside(name: str) -> bool:
    """Return whether the name can be that of a file in a bundle: it does not lead out of the folder."""
    path = Path(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _damaged(store: StoreConnection) -> RunDirectoryError:
    return RunDirectoryError(f"the store {store.address}: the bundle is not as it was uploaded; restore the store")
