"""`results.jsonl`: one line for every finished item, and how lines are written, found and cut.

The ledger says which bytes of the file count. Bytes that it does not point to (a torn tail, the old line of an item
that was run again) mean nothing and are never read.

A file with replaced lines is rewritten so that it holds every current line once, in the order of jobs and items. The
new file carries the number of its generation until the ledger points into it. A process that dies on the way leaves
either a file that the ledger does not know (deleted at the next open) or a file that the ledger points to already
(renamed at the next open): the old lines and the new ones are never mixed. Source: interface.md §5, design.md §6,
failures.md row 42.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import orjson

from bulk.clock import iso_utc
from bulk.errors import ANOTHER_RUN, RunDirectoryError
from bulk.ledger.records import Finished
from bulk.model import Encoded, OutcomeKind
from bulk.redaction import redact_lines
from bulk.storage.private_files import open_private, sync_directory, write_all

DEPTH_MOST = 200
"""Deepest nesting of a value that is written as it is; orjson's own limit is 254 for the whole line."""

_KINDS = {kind: kind.value for kind in OutcomeKind}
"""The values of the outcomes: writing a member of an enumeration takes longer than all else in a short line."""

_BEHIND_RESULT = len(b',"error":null}\n')

READ_BYTES = 1024 * 1024
"""Most bytes of neighbouring lines that are read at once."""

PAGE_ROWS = 10_000
BUFFER_BYTES = 4 * 1024 * 1024


def encode(finished: Finished) -> bytes:
    """Return the line of `results.jsonl`, with its newline, keys in the order of interface.md §5.

    No value makes it fail: see `dump`.
    """
    error = finished.error
    row = {
        "job": finished.job,
        "index": finished.index,
        "id": finished.id,
        "item": finished.item,
        "outcome": _KINDS[finished.outcome],
        "http_status": finished.http_status,
        "attempts": finished.attempts,
        "started_at": iso_utc(finished.started_at),
        "elapsed_ms": int(finished.elapsed_ms * 10.0 + 0.5) / 10.0,  # `round` takes an eighth of a line's time
        "request_id": finished.request_id,
        "result": finished.result,
        "error": error
        and {
            "code": error.code,
            "message": error.message,
            "http_status": error.http_status,
            "attempts": error.attempts,
        },
    }
    if finished.missing:
        row["missing"] = True
    if finished.unchanged_by is not None:
        row["unchanged_by"] = finished.unchanged_by
    return dump(row, orjson.OPT_APPEND_NEWLINE)


def encode_all(group: Iterable[Finished]) -> tuple[bytearray, list[int]]:
    """Return the lines of a group, one behind the other, and the length of each (bytes). They hold no secret.

    The lines are not kept one by one: orjson's bytes hold on to the 4 kB that it begins with, ten times what most lines
    need.
    """
    text, lengths, clean = bytearray(), [], []
    for finished in group:
        line = encode(finished)
        text += line
        lengths.append(len(line))
        result = finished.result
        if type(result) is Encoded and result.is_clean:
            clean.append(min(len(line), len(result.text) + _BEHIND_RESULT))
        else:
            clean.append(0)
    return redact_lines(text, lengths, clean)


def dump(value: Any, option: int = 0) -> bytes:
    """Return `value` as JSON, always.

    What JSON or orjson can't hold is replaced: NaN and infinities by null, a lone surrogate by U+FFFD, an integer
    outside -2^63…2^64-1 by a string of its digits, a key that is not a string by its text, bytes by `<N bytes>`, any
    other object by `<its type>`, and what is nested deeper than `DEPTH_MOST` by `<nested too deeply>`.
    """
    try:
        return orjson.dumps(value, _known, option)
    except TypeError:
        return orjson.dumps(_plain(value, 0), None, option)


def _known(value: Any) -> Any:
    if type(value) is Encoded:
        return orjson.Fragment(value.text)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, Encoded):
        return _plain(value.decoded(), depth)
    if isinstance(value, Enum):
        return _plain(value.value, depth)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else _digits(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if depth >= DEPTH_MOST:
        return "<nested too deeply>"
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(entry, depth + 1) for entry in value]
    return f"<{type(value).__name__}>"


def _text(value: str) -> str:
    # Two surrogates that belong together become their character, and a lone surrogate U+FFFD.
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to print more than 4,300 digits
        return f"<integer of {value.bit_length()} bits>"


def lines_at(fd: int, places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the line at each (position, length), with its newline; neighbours are read together.

    Raises:
        RunDirectoryError: the file does not hold a line there.
    """
    run: list[tuple[int, int]] = []
    start = end = 0
    for position, length in places:
        if run and (position != end or end + length - start > READ_BYTES):
            yield from _split(os.pread(fd, end - start, start), run)
            run.clear()
        if not run:
            start = position
        run.append((position, length))
        end = position + length
    if run:
        yield from _split(os.pread(fd, end - start, start), run)


def _split(data: bytes, run: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    start = run[0][0]
    for position, length in run:
        line = data[position - start : position - start + length]
        if len(line) != length or line[:1] != b"{" or line[-1:] != b"\n":
            raise RunDirectoryError(
                f"results.jsonl is damaged: it holds no line at byte {position:,}, where the ledger has one; "
                f"restore the run directory from a copy, or {ANOTHER_RUN}"
            )
        yield line


class ResultsFile:
    """The open `results.jsonl`: grows at its end, one group of lines at a time.

    Attributes:
        path: of the file.
        end: where the next line goes (bytes). All bytes before it were synced.
    """

    def __init__(self, path: Path, fd: int, end: int) -> None:
        self.path, self.fd, self.end = path, fd, end
        self._unclaimed: tuple[int, bytes] | None = None

    @classmethod
    def open(cls, path: Path, end: int) -> "ResultsFile":
        """Open for appending after byte `end`; a torn tail behind it is cut off.

        Raises:
            RunDirectoryError: the file is shorter than `end`, so lines of it are gone.
            OSError: the file can't be opened or written; a symbolic link is not followed.
        """
        fd = open_private(path, os.O_RDWR | os.O_APPEND | (0 if end else os.O_CREAT))
        try:
            refuse_short(path, fd, end)
            if os.fstat(fd).st_size > end:
                os.ftruncate(fd, end)
                os.fsync(fd)
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd, end)

    def append(self, lines: bytes | bytearray) -> int:
        """Add lines, one behind the other, and make them durable; returns the position of the first.

        Lines that were given to `unclaim` before are not written twice.

        Raises:
            RunDirectoryError: another process has written to the file.
            OSError: the disk refused; the file is as it was.
        """
        if self._unclaimed is not None and self._unclaimed[1] == _digest(lines):
            return self._unclaimed[0]
        position = self.end
        try:
            if os.fstat(self.fd).st_size != position:
                raise RunDirectoryError(f"{self.path} was changed by another process; this one has stopped writing")
            write_all(self.fd, lines)
            os.fdatasync(self.fd)
            _let_go(self.fd, position, len(lines))
        except OSError:
            self._cut(position)
            raise
        self.end = position + len(lines)
        self._unclaimed = None
        return position

    def unclaim(self, position: int, lines: bytes | bytearray) -> None:
        """Leave lines in the file that the ledger did not take: after a crash it may turn out that it did take them.

        (A transaction whose sync failed can still be found complete when the write-ahead log is recovered.)
        """
        self._unclaimed = (position, _digest(lines))

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _cut(self, end: int) -> None:
        try:
            os.ftruncate(self.fd, end)
        except OSError:
            self.end = os.fstat(self.fd).st_size  # the next lines go behind the bytes that could not be cut off


def refuse_short(path: Path, fd: int, end: int) -> None:
    """Refuse a results file that is shorter than the ledger says.

    Args:
        end: how much of the file counts (bytes).

    Raises:
        RunDirectoryError: lines of the file are gone.
    """
    size = os.fstat(fd).st_size
    if size < end:
        raise RunDirectoryError(
            f"{path} is damaged: it has {size:,} bytes and the ledger knows {end:,}; "
            f"restore it from a copy, or {ANOTHER_RUN}"
        )


def _let_go(fd: int, position: int, size: int) -> None:
    """Tell the system that it need not keep these bytes in memory: they are on disk, and hardly ever read again soon.

    Otherwise a long run drives all else out of the system's memory, and writes every page to new memory: on a virtual
    machine that takes ten times as long as writing to the same pages again (benchmarks/notes/changes.md).
    """
    if hasattr(os, "posix_fadvise"):  # not on macOS
        with suppress(OSError):  # the call is only advice: the lines are on disk without it
            os.posix_fadvise(fd, position, size, os.POSIX_FADV_DONTNEED)


def _digest(data: bytes | bytearray) -> bytes:
    return hashlib.blake2b(data).digest()


def rewritten_path(path: Path, generation: int) -> Path:
    """Return the path of the given generation of a results file, before it is renamed."""
    return path.with_name(f"{path.name}.{generation}")


def in_force(path: Path, generation: int) -> Path:
    """Return the path of the file that the ledger points into, whether a rewrite of it was completed or not."""
    rewritten = rewritten_path(path, generation)
    return rewritten if rewritten.is_file() else path


def settle_rewrite(path: Path, generation: int) -> None:
    """Complete or undo a rewrite that a killed process left behind.

    Raises:
        OSError: the disk refused.
    """
    if in_force(path, generation) != path:
        rename_rewritten(path, generation)
    rewritten_path(path, generation + 1).unlink(missing_ok=True)


def rename_rewritten(path: Path, generation: int) -> None:
    """Give the file of that generation, which the ledger points into, its own name.

    Raises:
        OSError: the disk refused.
    """
    rewritten_path(path, generation).rename(path)
    sync_directory(path.parent)


def rewrite(connection: sqlite3.Connection, old: ResultsFile) -> tuple[int, ResultsFile]:
    """Write the next generation of the file, make the ledger point into it, and return the generation and the file.

    Must be called within a transaction. Once that is committed, the new file counts; see `rename_rewritten`.

    Raises:
        RunDirectoryError: the old file does not hold what the ledger says.
        OSError, sqlite3.Error: the disk refused.
    """
    (generation,) = connection.execute("SELECT generation + 1 FROM meta").fetchone()
    path = rewritten_path(old.path, generation)
    path.unlink(missing_ok=True)
    new = ResultsFile.open(path, 0)
    try:
        new.end = _copy_lines(connection, old.fd, new.fd)
        os.fsync(new.fd)
        sync_directory(path.parent)
        connection.execute("UPDATE meta SET generation = ?, results_bytes = ?", (generation, new.end))
    except BaseException:
        new.close()
        path.unlink(missing_ok=True)
        raise
    new.path = old.path
    return generation, new


def _copy_lines(connection: sqlite3.Connection, fd: int, new_fd: int) -> int:
    job, index, size = -1, -1, 0
    while rows := connection.execute(
        "SELECT job, idx, position, length FROM outcomes WHERE (job, idx) > (?, ?) ORDER BY job, idx LIMIT ?",
        (job, index, PAGE_ROWS),
    ).fetchall():
        buffer: list[bytes] = []
        buffered, moved = 0, []
        for (job, index, position, length), line in zip(
            rows, lines_at(fd, [(row[2], row[3]) for row in rows]), strict=True
        ):
            if position != size:
                moved.append((size, job, index))
            size += length
            buffer.append(line)
            buffered += length
            if buffered >= BUFFER_BYTES:
                write_all(new_fd, b"".join(buffer))
                buffer.clear()
                buffered = 0
        write_all(new_fd, b"".join(buffer))
        connection.executemany("UPDATE outcomes SET position = ? WHERE job = ? AND idx = ?", moved)
    return size
