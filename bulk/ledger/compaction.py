"""Rewriting `results.jsonl` so that it holds every current line once, in the order of jobs and items.

The new file carries the number of its generation until the ledger points into it. A process that dies on the way leaves
either a file that the ledger does not know (thrown away at the next open) or one that it points to already (given its
name at the next open): the old lines and the new ones are never mixed. Source: interface.md §5, failures.md row 42.
"""

import os
import sqlite3
from pathlib import Path

from bulk.ledger.results import ResultsFile, lines_at
from bulk.storage.private_files import sync_directory, write_all

PAGE_ROWS = 10_000
BUFFER_BYTES = 4 * 1024 * 1024


def rewritten_path(path: Path, generation: int) -> Path:
    """Where the given generation of a results file stands until it is renamed."""
    return path.with_name(f"{path.name}.{generation}")


def settle_rewrite(path: Path, generation: int) -> None:
    """Complete or undo a rewrite that a killed process left behind.

    Raises:
        OSError: the disk refused.
    """
    finished = rewritten_path(path, generation)
    if finished.is_file():
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
