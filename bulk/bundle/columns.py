"""Long columns of numbers in `index.db`: memory does not grow with them, whether they are made or read.

A column is one blob, which is a plain array of its numbers. It is made in a file without a name, because its length is
known only at the end, and is read in place: SQLite keeps a few pages of it in memory.
"""

import shutil
import sqlite3
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import TypeAlias, overload

_BLOCK = 8_192
"""Numbers that are read or filled in at once (count)."""

Numbers: TypeAlias = "Column | array[int] | range"


class Column(Sequence[int]):
    """The numbers of one blob, read whenever they are asked for; as good as the connection, which closes it.

    Args:
        code: what each of them is, see `array`.

    Raises:
        sqlite3.OperationalError: no such row is there.
    """

    def __init__(self, database: sqlite3.Connection, table: str, name: str, row: int, code: str) -> None:
        self._blob = database.blobopen(table, name, row, readonly=True)
        number = Struct(code)
        self._code, self._size, self._unpack = code, number.size, number.unpack
        self._length = len(self._blob) // number.size

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> "array[int]": ...
    def __getitem__(self, index: int | slice) -> "int | array[int]":
        size = self._size
        if isinstance(index, int):
            self._blob.seek(index * size)
            found: int = self._unpack(self._blob.read(size))[0]
            return found
        start, stop, step = index.indices(self._length)
        assert step == 1, "neighbours are read"
        numbers = array(self._code)
        self._blob.seek(start * size)
        numbers.frombytes(self._blob.read((stop - start) * size) if stop > start else b"")
        return numbers

    def __iter__(self) -> Iterator[int]:
        for start in range(0, self._length, _BLOCK):
            yield from self[start : start + _BLOCK]


class NewColumn:
    """Numbers on their way into a blob: they are either appended, or set in any order where there are `length` of them
    that are all `filled` at first. A context manager.

    Args:
        folder: where the file lies, as long as it is open.
    """

    def __init__(self, folder: Path, code: str, length: int = 0, filled: int = 0) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by __exit__
        number = Struct(code)
        self._size, self._pack = number.size, number.pack
        self._length = length
        for start in range(0, length, _BLOCK):
            self._file.write(array(code, [filled]) * min(_BLOCK, length - start))

    def __enter__(self) -> "NewColumn":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._length

    def append(self, number: int) -> None:
        """Add one at the end."""
        self._file.write(self._pack(number))
        self._length += 1

    def __setitem__(self, index: int, number: int) -> None:
        self._file.seek(index * self._size)
        self._file.write(self._pack(number))

    @property
    def size(self) -> int:
        """How long it is (bytes)."""
        return self._length * self._size

    def copy(self, database: sqlite3.Connection, table: str, name: str, row: int) -> None:
        """Write it into a blob of zeros that is as long."""
        self._file.seek(0)
        with database.blobopen(table, name, row) as blob:
            shutil.copyfileobj(self._file, blob)
