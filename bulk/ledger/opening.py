"""Checks before a ledger may be written: that it is this run's and sound, and that it is this process's turn.

Source: interface.md §5; failures.md rows 45, 46, 55, 80.
"""

import os
import socket
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import orjson

from bulk.errors import ANOTHER_RUN, RunDirectoryError
from bulk.ledger import database, seal
from bulk.ledger.directory import RESULTS
from bulk.ledger.records import RunIdentity
from bulk.ledger.results import refuse_short
from bulk.ledger.rows import read_elsewhere, read_identity, read_words
from bulk.model import ErrorCode, OutcomeKind
from bulk.storage.private_files import open_regular

UNKNOWN = ""
"""The digest of items that were not read yet."""
_TAIL_BYTES = 64 * 1024 * 1024

_SET_ITEMS = """
    UPDATE jobs SET items = CASE WHEN ? < 0 THEN -1 ELSE
    ? + (SELECT count(*) FROM outcomes WHERE job = jobs.number AND idx >= ?) END WHERE number = ?
"""
"""An item that has ended stays counted, even if it lies behind the `--limit` of this process."""


def begin_epoch(connection: sqlite3.Connection, identity: RunIdentity, now: float, *, is_sealed: bool = True) -> int:
    """Add this process's epoch and return its number. Words of this version that the ledger lacks are added, too.

    Args:
        now: UTC epoch seconds.
        is_sealed: see `seal.begin`.

    Raises:
        sqlite3.Error: the disk refused.
    """
    with database.transaction(connection):
        database.add_tables(connection)
        words = read_words(connection)
        missing = [word for word in (*OutcomeKind, *ErrorCode) if word not in words]
        first = max(words.values(), default=0) + 1
        connection.executemany(
            "INSERT INTO words VALUES (?, ?)", [(number, word.value) for number, word in enumerate(missing, first)]
        )
        connection.executemany(
            _SET_ITEMS, [(items, items, items, number) for number, (_, _, items) in enumerate(identity.jobs)]
        )
        seal.begin(connection, is_sealed=is_sealed)
        connection.execute("UPDATE meta SET epoch = epoch + 1")
        (epoch,) = connection.execute("SELECT epoch FROM meta").fetchone()
        connection.execute(
            "INSERT INTO epochs (number, started_at, pid, host) VALUES (?, ?, ?, ?)",
            (epoch, now, os.getpid(), socket.gethostname()),
        )
    return int(epoch)


def refuse_changed(path: Path, identity: RunIdentity) -> tuple[int, int]:
    """Check that the ledger is this run's, and look for damage where the last process did not end its epoch.

    Returns:
        The generation of results.jsonl, and how much of it counts (bytes).

    Raises:
        RunDirectoryError: the ledger is another run's (the message says what changed, and the way out), or damaged,
            or its run goes on in a store.
    """
    with database.open_reader(path) as connection:
        ended = connection.execute("SELECT ended_at FROM epochs ORDER BY number DESC LIMIT 1").fetchone()
        generation, end = connection.execute("SELECT generation, results_bytes FROM meta").fetchone()
    if ended is not None and ended[0] is None:
        database.examine(path)
    refuse_other_run(path, identity)
    return generation, end


def refuse_other_run(path: Path, identity: RunIdentity) -> None:
    """Check that the ledger at `path` is this run's. Nothing is written, and items whose digest is `UNKNOWN` are not
    compared.

    Raises:
        RunDirectoryError: the ledger is another run's (the message says what changed, and the way out), or its run
            goes on in a store.
    """
    with database.open_reader(path) as connection:
        found, elsewhere = read_identity(connection), read_elsewhere(connection)
    changes = {
        "the manifest": (found.name, found.manifest_digest) != (identity.name, identity.manifest_digest),
        "the content of its items files": identity.items_digest not in (UNKNOWN, found.items_digest),
        f"the platform's address (it was {found.base_url})": found.base_url != identity.base_url,
        f"the vendor (it was {found.vendor})": found.vendor != identity.vendor,
        "the list of jobs": [job[:2] for job in found.jobs] != [job[:2] for job in identity.jobs],
    }
    changed = [what for what, is_changed in changes.items() if is_changed]
    if changed:
        raise RunDirectoryError(
            f"{path.parent} belongs to another run: {' and '.join(changed)} changed since it began; undo that, "
            f"or {ANOTHER_RUN}"
        )
    if elsewhere:
        raise RunDirectoryError(
            f"{path.parent} shows a run as it was when it was exported; the store goes on with it, and what was sent "
            f"from here could be sent twice: {elsewhere}"
        )


def refuse_other_results(path: Path, results: Path, end: int, writes: Collection[str]) -> None:
    """Check that the results are those of the ledger at `path`. Nothing is written.

    Args:
        results: path of the file that the ledger points into. end: how much of it counts (bytes).
        writes: names of jobs that write.

    Raises:
        RunDirectoryError: the results are gone, were edited or cut short, or the ledger is older than they are.
        OSError: the results can't be read.
    """
    if not results.exists():
        if end:
            raise RunDirectoryError(
                f"{results} is gone, and nothing else holds its lines; restore it from a copy, or {ANOTHER_RUN}"
            )
        return
    with database.open_reader(path) as connection, open(open_regular(results), "rb") as file:
        refuse_short(results, file.fileno(), end)
        _refuse_newer_results(path, connection, file, end, writes)
        seal.refuse_edited(connection, file.fileno(), end, results)


def _refuse_newer_results(
    path: Path, connection: sqlite3.Connection, results: BinaryIO, end: int, writes: Collection[str]
) -> None:
    """Look at the lines behind `end`, which the ledger does not know and which are about to be cut off.

    A killed process leaves lines of items that it had not yet marked as done; for a write, the intent is there. If the
    intent is missing, that write was sent after this ledger was copied.
    """
    if not writes or os.fstat(results.fileno()).st_size <= end:
        return
    sent = set(connection.execute("SELECT j.name, i.idx FROM intents i JOIN jobs j ON j.number = i.job").fetchall())
    results.seek(end)
    for line in results.read(_TAIL_BYTES).splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        try:
            row = orjson.loads(line)
            is_sent = row["job"] in writes and row["outcome"] == OutcomeKind.SUCCEEDED and row["attempts"]
            key = row["job"], row["index"]
        except (ValueError, KeyError, TypeError):
            continue
        if is_sent and key not in sent:
            raise RunDirectoryError(
                f"{path} is an older copy: {RESULTS} beside it has item {key[1]:,} of job {key[0]}, which was "
                f"written since, and going on would write it again; {seal.WAY_OUT}"
            )
