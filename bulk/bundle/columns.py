"""Long columns of numbers in `index.db`: making or reading them takes no more memory for more numbers.

A column is one blob, which is a plain array of its numbers. It is made in a file without a name, because its length is
known only at the end, and is read in place. The blocks that were used last, of all columns, are kept, because each look
into the database releases the interpreter's lock, which costs more than the look where other threads wait for it.
"""

import shutil
import sqlite3
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from mmap import MADV_DONTNEED, mmap
from pathlib import Path
from struct import Struct
from typing import TypeAlias, overload

_BLOCK = 8_192
"""Numbers that are read or filled in at once (count)."""

_KEPT_BYTES = 4_096
"""Size of a block that is kept (bytes): a page of the database."""

_KEPT_BLOCKS = 4_096
"""Most blocks that are kept, of all columns together (count)."""

_MAPPED, _MAPPED_BYTES = 512, 8 * 1024 * 1024
"""After this many numbers were set (count), the pages of a column longer than `_MAPPED_BYTES` (bytes) are let go of: a
page that is mapped counts as memory of the process."""

Numbers: TypeAlias = "Column | array[int] | range"


class Columns:
    """The columns of a database, and the blocks kept of them. They can be read as long as the connection is open."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._kept = lru_cache(maxsize=_KEPT_BLOCKS)(Column.block)

    def of(self, table: str, name: str, row: int, code: str) -> "Column":
        """Return the numbers of one blob; `code`: the type of each number, see `array`.

        Raises:
            sqlite3.OperationalError: there is no such row.
        """
        return Column(self._database.blobopen(table, name, row, readonly=True), code, self._kept)


class Column(Sequence[int]):
    """The numbers of one blob, each read when it is asked for.

    Args:
        kept: calls `Column.block`, and may remember what that has returned.
    """

    def __init__(self, blob: sqlite3.Blob, code: str, kept: "Callable[[Column, int], array[int]]") -> None:
        self._blob, self._code, self._kept = blob, code, kept
        self._size = Struct(code).size
        self._length = len(blob) // self._size
        self._shift = (_KEPT_BYTES // self._size).bit_length() - 1
        self._within = (1 << self._shift) - 1

    def __len__(self) -> int:
        return self._length

    def block(self, number: int) -> "array[int]":
        """Return the numbers of the block with that number; a block has `_KEPT_BYTES`."""
        return self._read(number << self._shift, min((number + 1) << self._shift, self._length))

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> "array[int]": ...
    def __getitem__(self, index: int | slice) -> "int | array[int]":
        if isinstance(index, int):
            return self._kept(self, index >> self._shift)[index & self._within]
        start, stop, step = index.indices(self._length)
        assert step == 1, "neighbours are read"
        if start >> self._shift != (stop - 1) >> self._shift:
            return self._read(start, stop)
        first = start & self._within
        return self._kept(self, start >> self._shift)[first : first + stop - start]

    def _read(self, start: int, stop: int) -> "array[int]":
        numbers = array(self._code)
        self._blob.seek(start * self._size)
        numbers.frombytes(self._blob.read((stop - start) * self._size) if stop > start else b"")
        return numbers

    def __iter__(self) -> Iterator[int]:
        for start in range(0, self._length, _BLOCK):
            yield from self._read(start, min(start + _BLOCK, self._length))


class NewColumn:
    """Numbers on their way into a blob: they are either appended, or set in any order where there are `length` of them
    that are all `filled` at first. A context manager.

    Args:
        folder: the folder that holds the file while it is open.
    """

    def __init__(self, folder: Path, code: str, length: int = 0, filled: int = 0) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by __exit__
        self._size = Struct(code).size
        self._written, self._added, self._set = length, array(code), 0
        for start in range(0, length, _BLOCK):
            array(code, [filled] * min(_BLOCK, length - start)).tofile(self._file)
        self._file.flush()
        self._map = mmap(self._file.fileno(), length * self._size) if length else None
        self._numbers: memoryview[int] = memoryview(self._map or b"").cast(code)  # type: ignore[call-overload]

    def __enter__(self) -> "NewColumn":
        return self

    def __exit__(self, *_: object) -> None:
        self._numbers.release()
        if self._map is not None:
            self._map.close()
        self._file.close()

    def __len__(self) -> int:
        return self._written + len(self._added)

    def append(self, number: int) -> None:
        """Add a number at the end."""
        self._added.append(number)
        if len(self._added) >= _BLOCK:
            self._write()

    def __setitem__(self, index: int, number: int) -> None:
        self._numbers[index] = number
        self._set += 1
        if self._set % _MAPPED == 0 and self._map is not None and self._numbers.nbytes > _MAPPED_BYTES:
            self._map.madvise(MADV_DONTNEED)

    def _write(self) -> None:
        self._added.tofile(self._file)
        self._written += len(self._added)
        del self._added[:]

    @property
    def size(self) -> int:
        """The length of the column (bytes)."""
        return len(self) * self._size

    def copy(self, database: sqlite3.Connection, table: str, name: str, row: int) -> None:
        """Write the column into a blob of zeros of the same length."""
        self._write()
        self._file.seek(0)
        with database.blobopen(table, name, row) as blob:
            shutil.copyfileobj(self._file, blob)
