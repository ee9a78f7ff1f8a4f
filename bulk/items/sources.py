"""An items file: its format by its name, opened safely, read once and hashed on the way.

The hash is of the file as it is on disk, compressed or not, and of all of it, even if only some items are wanted.
Only regular files are read: a run must be able to read them again. Source: interface.md §2, failures.md rows 53 and 55.
"""

import contextlib
import hashlib
import itertools
import os
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

import zstandard

from bulk.flaws import shown
from bulk.items import csv_rows, json_array, lines
from bulk.items.lines import CHUNK_BYTES, Read, Row, SourceFlaw
from bulk.items.yaml_text import stream_list
from bulk.operation import AnyOperation
from bulk.storage.private_files import NotRegular, open_regular, replacing

STDIN = Path("-")
"""The path for `items: -`, which is standard input."""

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".yaml": "yaml", ".yml": "yaml"}
COMPRESSIONS = (".gz", ".zst")
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")

_STEP_BYTES = 512
"""Compressed bytes that are expanded at once: at zstd's densest (4 bytes for 128 KiB) they become 16 MiB."""
_GZIP = 16 + zlib.MAX_WBITS
_MOST_WINDOW_BYTES = 128 * 1024 * 1024
_MOST_NAMES = 1_000
"""Files of a folder that a wrong name is compared with (count)."""


def format_of(path: Path) -> tuple[str, str]:
    """Return (`jsonl`, `json`, `csv` or `yaml`; `.gz`, `.zst` or nothing), by the name.

    Raises:
        ValueError: the name has no known format; the message says what was expected.
    """
    if path == STDIN:
        return "jsonl", ""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    if suffixes and suffixes[-1] in SPREADSHEETS:
        raise ValueError("is a spreadsheet; save it as CSV and name that file")
    if not suffixes or suffixes[-1] not in FORMATS:
        raise ValueError(
            "expected the name of a .jsonl, .ndjson, .json, .csv or .yaml file (also with .gz or .zst), or -"
        )
    return FORMATS[suffixes[-1]], compression


class ItemsFile:
    """One reading of an items file. Call `rows` first, then `finish`, which returns the hash."""

    def __init__(
        self,
        path: Path,
        operation: AnyOperation,
        *,
        is_hashed: bool = True,
        defaults: Collection[str] | None = None,
    ) -> None:
        """Open `path`, whose name gives the format; `operation` gives the types of CSV cells.

        Args:
            defaults: see `csv_rows.rows`.
            is_hashed: whether `finish` will be called.

        Raises:
            SourceFlaw: the file is missing, is not a regular file, or can't be opened.
        """
        self._operation, self._defaults = operation, defaults
        self._format, self._compression = format_of(path)
        self._file = open_source(path)
        self._hash = hashlib.sha256()
        self._is_hashed = is_hashed
        status = os.fstat(self._file.fileno())
        self.size, self.mtime_ns = status.st_size, status.st_mtime_ns

    @property
    def is_plain(self) -> bool:
        """Whether an item can be read again from its offset in the file."""
        return self._format == "jsonl" and not self._compression

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def fileno(self) -> int:
        """Return the descriptor of the open file."""
        return self._file.fileno()

    def rows(self) -> Iterator[list[Row]]:
        """Return all rows, in batches.

        Raises:
            SourceFlaw: the rest can't be read.
        """
        read = self._read_expanded()
        match self._format:
            case "jsonl":
                return lines.lines(read)
            case "json":
                return json_array.elements(read)
            case "csv":
                return csv_rows.rows(lines.lines(read), self._operation, self._defaults)
            case _:
                return stream_list(read)

    def rows_from(self, offset: int) -> Iterator[list[Row]]:
        """Yield the rows of a plain file as `rows` does, from the first byte of a line on; lines and offsets count from
        there.

        Raises:
            SourceFlaw: the rest can't be read.
        """
        assert self.is_plain, "others have no offsets"
        try:
            self._file.seek(offset)
        except OSError as error:
            raise SourceFlaw(f"can't be read: {error.strerror}") from error
        return lines.lines(self._read_raw)

    def finish(self) -> str:
        """Read the rest of the file, and return the SHA-256 (hex) of the whole file.

        Raises:
            SourceFlaw: the file can't be read, or changed while it was read.
        """
        while self._read_raw(CHUNK_BYTES):
            pass
        status = os.fstat(self._file.fileno())
        if (status.st_size, status.st_mtime_ns) != (self.size, self.mtime_ns):
            raise SourceFlaw("changed while it was read; start again when it is complete")
        return self._hash.hexdigest()

    def _read_raw(self, count: int) -> bytes:
        try:
            data = self._file.read(count)
        except OSError as error:
            raise SourceFlaw(f"can't be read: {error.strerror}") from error
        if self._is_hashed:
            self._hash.update(data)
        return data

    def _read_expanded(self) -> Read:
        match self._compression:
            case ".gz":
                expanded = _expanded(self._read_raw, lambda: zlib.decompressobj(_GZIP), "gzip")
            case ".zst":
                decompressor = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)
                expanded = _expanded(self._read_raw, decompressor.decompressobj, "zstd")
            case _:
                return self._read_raw
        return lambda _: next(expanded, b"")


def open_source(path: Path) -> BinaryIO:
    """Open a regular file for reading; a FIFO or a device is neither waited for nor read.

    Raises:
        SourceFlaw: the file is missing, is not a regular file, or can't be opened.
    """
    try:
        return open(open_regular(path, follows=True), "rb", buffering=0)
    except NotRegular as error:
        what = (
            "is a folder; expected a file"
            if path.is_dir()
            else "is not a regular file; a run must be able to read it again"
        )
        raise SourceFlaw(what) from error
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        what = f"there is no such file{near_names(path)}" if is_missing else f"can't be opened: {error.strerror}"
        if is_missing and path.is_symlink():
            what = f"is a link to {shown(str(path.readlink()))}, where no file is"
        raise SourceFlaw(what) from error
    except ValueError:
        raise SourceFlaw("can't be opened: its name holds a NUL character") from None


def refuse_folder(path: Path) -> None:
    """Refuse a folder where an items file is expected, and name a file in it.

    Raises:
        SourceFlaw: `path` is a folder.
    """
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        with contextlib.suppress(OSError):
            for name in itertools.islice(sorted(entry.name for entry in path.iterdir()), _MOST_NAMES):
                if Path(name).suffix.lower() in FORMATS:
                    raise SourceFlaw(f"is a folder; name one file, such as {shown(f'{path.name}/{name}')}")
        raise SourceFlaw("is a folder; expected a file")


def near_names(path: Path) -> str:
    """Return `; did you mean 'repos.csv'?`, if a file with nearly that name lies in the same folder; else nothing."""
    import difflib

    try:
        names = [entry.name for entry in itertools.islice(path.parent.iterdir(), _MOST_NAMES)]
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(path.name, sorted(names), n=1, cutoff=0.75) if len(path.name) < 256 else []
    return f"; did you mean {shown(near[0])}?" if near else ""


def digest_of(path: Path) -> tuple[int, int, str]:
    """Return (size in bytes, time of the last change in ns, SHA-256 in hex) of a regular file.

    Raises:
        SourceFlaw: the file can't be read.
    """
    with open_source(path) as file:
        status = os.fstat(file.fileno())
        try:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        except OSError as error:
            raise SourceFlaw(f"can't be read: {error.strerror}") from error
        return status.st_size, status.st_mtime_ns, digest


def _expanded(raw: Read, frame_of: Callable[[], Any], kind: str) -> Iterator[bytes]:
    """Yield the content of the frames in `raw`, expanded in small steps, so that a bomb can't fill the memory.

    This notices a file that ends within a frame, which the readers of the libraries do not.

    Args:
        frame_of: begins a frame, as `zlib.decompressobj` does.
        kind: the expected compression, in words.

    Raises:
        SourceFlaw: the data is something else, or damaged, or ends too early.
    """
    frame = frame_of()
    expanded = bytearray()
    while piece := raw(_STEP_BYTES):
        while piece := piece if frame else piece.lstrip(b"\0"):  # zeros may fill up a block behind a frame
            frame = frame or frame_of()
            try:
                expanded += frame.decompress(piece)
            except (zlib.error, zstandard.ZstdError):
                raise SourceFlaw(f"the compressed data is damaged, or is not {kind}") from None
            piece, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
        if len(expanded) >= CHUNK_BYTES:
            yield bytes(expanded)
            expanded.clear()
    if frame is not None:
        raise SourceFlaw("the compressed data ends too early")
    yield bytes(expanded)


def keep_stdin(stdin: BinaryIO | None, path: Path) -> None:
    """Copy `stdin` to `path` (0600), byte for byte, so that a run can read it again; an existing copy is kept.

    Raises:
        SourceFlaw: there is no standard input, or it can't be read.
    """
    if path.is_file():
        return
    if stdin is None:
        raise SourceFlaw("there is no standard input to read items from")
    with replacing(path) as file:
        while chunk := _read_stdin(stdin):
            file.write(chunk)


def _read_stdin(stdin: BinaryIO) -> bytes:
    try:
        return stdin.read(CHUNK_BYTES)
    except OSError as error:
        raise SourceFlaw(f"can't be read: {error.strerror}") from error
