"""Files that items name (`content_file` and the like): checked before anything is sent, read again when they are sent.

A file must be a regular file below the manifest's folder, whatever links lead to it, and must have the same content
when it is sent as when it was checked. Source: interface.md §2, failures.md row 59.
"""

import bisect
import functools
import hashlib
import os
from array import array
from pathlib import Path
from typing import Any

from bulk.bundle.conversion import CONVERTER, Content, converted
from bulk.capabilities import ConvertsFiles, FileError, TakesFiles
from bulk.flaws import shown
from bulk.items.sources import near_names
from bulk.manifest.manifest import CheckedFile, Entry
from bulk.operation import AnyOperation, Item, ItemFlaw
from bulk.storage.private_files import NotRegular, open_regular

MOST_FILE_BYTES = 100 * 1024 * 1024
"""Largest file that an item may name (bytes). Source: specification, Limits."""

LARGE_BYTES = 10_000_000
"""A file that is larger than this as it is sent gets a note (bytes): no limit is published, and people met some."""

_REMEMBERED = 65_536
"""Files whose check is remembered (count): the same file is often sent to many places."""


def load_files(manifest_dir: Path, operation: AnyOperation, entry: Entry) -> Item:
    """Return the item of `entry` with the content of its files inline, as it is sent.

    This reads the files: call it where that may block.

    Raises:
        FileError: a file has changed since it was checked, or can't be read any more.
    """
    item = entry.item
    if not isinstance(operation, TakesFiles):
        return item
    for field in operation.file_fields:
        name = getattr(item, field)
        if name is None:
            continue
        content = _content(manifest_dir, operation, field, name)
        _refuse_change(entry, field, name, content.digest)
        item = _filled(operation, item, field, name, content)
    return item


def refuse_changes(manifest_dir: Path, operation: TakesFiles[Any], entry: Entry) -> None:
    """Check the files of an item that need not be sent, without converting any.

    Raises:
        FileError: as `load_files`.
    """
    for field in operation.file_fields:
        name = getattr(entry.item, field)
        if name is not None:
            _refuse_change(entry, field, name, hashlib.sha256(read_inside(manifest_dir, name)).digest())


def _refuse_change(entry: Entry, field: str, name: str, digest: bytes) -> None:
    checked = entry.files.get(field)
    if checked is not None and checked.digest != digest:
        raise FileError(f"{field}: {shown(name)} has changed since it was checked")


def _content(folder: Path, operation: TakesFiles[Any], field: str, name: str) -> Content:
    if isinstance(operation, ConvertsFiles):
        elsewhere = CONVERTER.content(folder, operation, field, name)
        return elsewhere or converted(type(operation), field, read_inside(folder, name))
    data = read_inside(folder, name)
    return Content(hashlib.sha256(data).digest(), data)


def _filled(operation: TakesFiles[Any], item: Item, field: str, name: str, content: Content) -> Item:
    filled: Item
    try:
        if content.flaw:
            raise FileError(content.flaw)
        if isinstance(operation, ConvertsFiles):
            filled = operation.with_converted(item, field, content.data)
        else:
            filled = operation.with_file(item, field, content.data)
    except FileError as error:
        raise FileError(f"{shown(name)}: {error}") from None
    return filled


def read_inside(folder: Path, name: str) -> bytes:
    """Return the content of the file `name` below `folder`.

    Raises:
        FileError: the file is missing, lies elsewhere, is not a regular file, is too large, or can't be read.
    """
    root = _real(folder)
    try:
        real = root.joinpath(name).resolve(strict=True)
        if not real.is_relative_to(root):
            raise FileError(f"{shown(name)} lies outside the manifest's folder, itself or through a link")
        with open(open_regular(real), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MOST_FILE_BYTES:
                raise FileError(f"{shown(name)} has {size:,} bytes; the most is {MOST_FILE_BYTES:,} (100 MiB)")
            data = file.read(MOST_FILE_BYTES + 1)
    except NotRegular:
        raise FileError(f"{shown(name)} is not a regular file") from None
    except FileNotFoundError:
        near = near_names(root / name)
        raise FileError(f"there is no file {shown(name)} below the manifest's folder{near}") from None
    except OSError as error:
        raise FileError(f"{shown(name)} can't be read: {error.strerror}") from None
    except RuntimeError:
        raise FileError(f"{shown(name)} can't be read: its links lead in a circle") from None
    except ValueError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{shown(name)} is not a file name") from None
    if len(data) > MOST_FILE_BYTES:
        raise FileError(f"{shown(name)} is growing while it is read")
    return data


@functools.lru_cache(maxsize=64)
def _real(folder: Path) -> Path:
    return folder.resolve()


class FileCheck:
    """Checks the files of one operation's items, each file once as long as it is remembered. A file that is converted
    is checked for each item that names it, because the item may decide whether it is usable.

    Attributes:
        new: files that were read since this dictionary was last emptied, by name, for the index.
    """

    def __init__(self, folder: Path, operation: TakesFiles[Any]) -> None:
        self._folder, self._operation = folder, operation
        self._known: dict[tuple[str, str], str] = {}
        self._sizes = array("Q")
        self.new: dict[str, CheckedFile] = {}

    def flaws(self, item: Item) -> list[ItemFlaw]:
        """Return the flaws that keep the files that `item` names from being sent."""
        found: list[ItemFlaw] = []
        for field in self._operation.file_fields:
            name = getattr(item, field)
            if name is not None:
                flaw = self._known.get((field, name))
                if flaw is None:
                    flaw = self._look(item, field, name)
                if flaw:
                    found.append(ItemFlaw(field, flaw))
        return found

    def _look(self, item: Item, field: str, name: str) -> str:
        flaw = ""
        try:
            content = _content(self._folder, self._operation, field, name)
            self.new[name] = CheckedFile(content.digest, content.counted)
            size = self._operation.sent_bytes(_filled(self._operation, item, field, name, content))
            if size:
                self._sizes.append(size)
        except FileError as error:
            flaw = str(error)
        if isinstance(self._operation, ConvertsFiles):
            return flaw
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[field, name] = flaw
        return flaw

    def notes(self, job: str) -> list[str]:
        """Return notes for people on the sizes of the files as they are sent."""
        sizes = sorted(self._sizes)
        if not sizes:
            return []
        median, high, most = sizes[len(sizes) // 2], sizes[(len(sizes) * 19) // 20], sizes[-1]
        said = f"job {job}: what is sent of its files has {_kilobytes(median)} (median), {_kilobytes(high)} (95%)"
        notes = [f"{said} and {_kilobytes(most)} at most"]
        large = len(sizes) - bisect.bisect_right(sizes, LARGE_BYTES)
        if large:
            notes.append(
                f"job {job}: {large:,} of its files are above 10 MB, which platforms refuse with 413, 500 or 502; "
                "split them by correlator"
            )
        return notes


def _kilobytes(size: int) -> str:
    return f"{max(1, round(size / 1_000)):,} kB"


def file_check_of(folder: Path, operation: AnyOperation) -> FileCheck | None:
    """Return a check of the files that items of `operation` name; None if they can't name any."""
    return FileCheck(folder, operation) if isinstance(operation, TakesFiles) else None
