"""The ledger's SQLite file: how it is made, recognised, examined, opened and brought up to date, and what its errors
mean.

A file that is not ours, newer, or damaged is refused before anything is written to it. While a run is open the file is
in WAL mode; a clean end takes that back, so that a finished run is one file and reading it leaves nothing behind.
Source: design.md §6; failures.md rows 46 to 48.
"""

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec

from bulk.errors import ANOTHER_RUN, BulkError, RunDirectoryError, RunStopped
from bulk.ledger.records import RunIdentity
from bulk.storage.private_files import open_private, open_regular, sync_directory

LEDGER = "ledger.db"

APPLICATION_ID = 0x42554C4B
"""`BULK` in ASCII: SQLite's mark of the program that a file belongs to."""

VERSION = 3
"""Version of the schema (SQLite's user_version). A change of schema.sql adds one to it, and an entry to MIGRATIONS."""

MIGRATIONS: Mapping[int, str] = MappingProxyType(
    {
        1: """
            ALTER TABLE intents RENAME COLUMN memo TO before;
            UPDATE intents SET before = CASE
                WHEN json_type(CAST(before AS TEXT), '$.before') IS NOT NULL
                    THEN CAST(json_quote(json_extract(CAST(before AS TEXT), '$.before')) AS BLOB)
                WHEN json_type(CAST(before AS TEXT), '$.preflight') IS NOT NULL THEN CAST('null' AS BLOB)
            END
        """,
        2: "DROP TABLE IF EXISTS chunks",  # digests of the bytes of results.jsonl, not of its lines
    }
)
"""Version -> the SQL that turns it into the next version. Each runs in one transaction, before anything is read."""

MOST_NUMBER = 2**62
"""No job has a higher number, and no item a higher index."""
Index = Annotated[int, msgspec.Meta(ge=0, le=MOST_NUMBER)]
"""The index of an item, as a line of the results has it that was not damaged."""

BUSY_MS = 10_000
"""How long a lock of another connection (a reader, a backup) is waited for (milliseconds)."""

_ADDED = re.compile(r"^CREATE TABLE IF NOT EXISTS .*?^\)(?: WITHOUT ROWID)?;$", re.MULTILINE | re.DOTALL)
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"
_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
_NO_ROOM = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE))
"""Errors that say that the disk is full: of the file `ledger.db-shm` SQLite says no more than that it can't grow."""
_PRIMARY = 0xFF  # the low byte of SQLite's extended codes is the primary one
UNREADABLE = (ValueError, TypeError, LookupError, OverflowError, RecursionError)
"""Errors from values that can't be ours: SQLite keeps no checksum of a row, and takes flipped bits for data."""
_NEEDS_RECOVERY = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN))


def refuse_foreign(path: Path) -> None:
    """Look at the first bytes of the ledger at `path`, without SQLite, which might write.

    Raises:
        RunDirectoryError: the file is not a ledger of Bulk, is cut short, or is newer than this program.
        OSError: the file can't be read.
    """
    with open(open_regular(path), "rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES and _MAGIC.startswith(header[: len(_MAGIC)]):
        raise damaged(path, "it is cut short")
    application = int.from_bytes(header[68:72], "big")
    if not header.startswith(_MAGIC) or application != APPLICATION_ID:
        raise RunDirectoryError(f"{path} is not a ledger of Bulk; {ANOTHER_RUN}")
    version = int.from_bytes(header[60:64], "big")
    if version > VERSION:
        raise _newer(path, version)
    if version < 1:
        raise damaged(path, "it has no version")


def _newer(path: Path, version: int) -> RunDirectoryError:
    return RunDirectoryError(
        f"{path} was written by a newer Bulk (ledger version {version}, this one knows {VERSION}); "
        f"use that one, or {ANOTHER_RUN}"
    )


def create(path: Path, identity: RunIdentity) -> None:
    """Make the ledger of a new run under another name, then rename it: the ledger exists complete or not at all.

    Raises:
        sqlite3.Error, OSError: the disk refused.
    """
    new = path.with_name(path.name + ".new")
    for leftover in (new, new.with_name(new.name + "-journal")):
        leftover.unlink(missing_ok=True)
    os.close(open_private(new, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA synchronous = FULL; PRAGMA application_id = {APPLICATION_ID}; BEGIN IMMEDIATE;\n"
            f"{_schema()}\nPRAGMA user_version = {VERSION};"
        )
        connection.execute(
            "INSERT INTO meta VALUES (1, ?, ?, ?, ?, ?, 0, 0, 0)",
            (identity.name, identity.base_url, identity.vendor, identity.manifest_digest, identity.items_digest),
        )
        numbered = [(number, *job) for number, job in enumerate(identity.jobs)]
        connection.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?)", numbered)
        connection.execute("INSERT INTO status VALUES (1, NULL)")
        connection.execute("COMMIT")
    new.rename(path)
    sync_directory(path.parent)


def _schema() -> str:
    return resources.files("bulk.ledger").joinpath("schema.sql").read_text(encoding="utf-8")


def add_tables(connection: sqlite3.Connection) -> None:
    """Make the tables that the ledger of an older run may lack, within a transaction: those with `IF NOT EXISTS`."""
    for statement in _ADDED.findall(_schema()):
        connection.execute(statement)


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether there is a table of that name."""
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone() is not None


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction: all of it takes effect, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def migrate(path: Path, *, version: int = VERSION, migrations: Mapping[int, str] = MIGRATIONS) -> None:
    """Bring an older ledger up to `version`, one step and one transaction after the other; does nothing to a current
    one.

    Raises:
        RunDirectoryError: the ledger is damaged or newer.
        sqlite3.Error: the disk refused; steps that are complete stay.
    """
    with open_reader(path) as connection:
        # The file's first bytes may be older than the write-ahead log, so they are not used.
        (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > version:
        raise _newer(path, found)
    if found == version:
        return
    examine(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        for step in range(found, version):
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{migrations[step]};\nPRAGMA user_version = {step + 1};\nCOMMIT;"
            )


def open_writer(path: Path) -> sqlite3.Connection:
    """Return the one writing connection: WAL, every commit synced. The caller holds the run directory and has had it
    examined.

    Raises:
        sqlite3.Error: the ledger can't be opened or written.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -1000")
        connection.execute("PRAGMA temp_store = MEMORY")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise RunDirectoryError(f"{path} is on a file system without shared memory; {ANOTHER_RUN}")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
    except BaseException:
        connection.close()
        raise
    return connection


def close_writer(connection: sqlite3.Connection) -> None:
    """Close the writing connection, and leave one plain file unless a reader or a full disk is in the way."""
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


@contextlib.contextmanager
def open_reader(path: Path) -> Iterator[sqlite3.Connection]:
    """Lend a connection that only reads, for a moment: one transaction, from the first query to the end of the block.

    Raises:
        RunDirectoryError: the ledger can't be read.
    """
    with reading(path, is_opening=True), contextlib.closing(_connect_reader(path)) as connection:
        yield connection


@contextlib.contextmanager
def reading(path: Path, *, is_opening: bool = False) -> Iterator[None]:
    """Turn errors of SQLite into errors for the user, and values that can't be ours into a report of damage.

    SQLite itself sees no damage in such a value.
    """
    try:
        with telling(path, is_opening=is_opening):
            yield
    except UNREADABLE as error:
        raise damaged(path, f"a value of it can't be read: {type(error).__name__}") from error


@contextlib.contextmanager
def telling(path: Path, *, is_opening: bool = False) -> Iterator[None]:
    """Turn errors of SQLite into errors for the user: see `refusal`."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a call after `close`: a bug of ours
    except sqlite3.Error as error:
        raise refusal(error, path, is_opening=is_opening) from error


def _connect_reader(path: Path) -> sqlite3.Connection:
    # A process that was killed while it changed the journal mode leaves a file that only a writing connection can
    # recover: then reading needs such a connection. It changes nothing that SQLite had promised to keep.
    for mode in ("ro", "rw"):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        try:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("BEGIN")
            connection.execute("SELECT epoch FROM meta").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if mode == "rw" or error.sqlite_errorcode & _PRIMARY not in _NEEDS_RECOVERY:
                raise
        except BaseException:
            connection.close()
            raise
        else:
            break
    return connection


def examine(path: Path) -> None:
    """Look for damage, as after a process that did not end its epoch; about 0.15 s for a million items.

    Raises:
        RunDirectoryError: SQLite's quick check finds damage.
    """
    with open_reader(path) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damaged(path, found)


def damaged(path: Path, detail: str) -> RunDirectoryError:
    """Return the error for a ledger that can't be trusted; nothing was written to it."""
    return RunDirectoryError(
        f"{path} is damaged ({detail}); restore the run directory from a copy, or {ANOTHER_RUN}: "
        "what was done already is then found by reading"
    )


def refusal(error: sqlite3.Error, path: Path, *, is_opening: bool = False) -> BulkError:
    """Return the error for the user that an error of SQLite stands for: a stop that can be resumed, or a directory that
    can't be used."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & _PRIMARY in _DAMAGED:
        return damaged(path, str(error))
    if code in _NO_ROOM or not is_opening:
        way_out = "free some space" if code in _NO_ROOM else "correct that"
        return RunStopped(f"{path}: {error}; {way_out}, then give the same command again: nothing recorded is lost")
    return RunDirectoryError(f"{path} can't be used: {error}; correct that, or {ANOTHER_RUN}")


def behind(
    connection: sqlite3.Connection, after: tuple[int, int], until: tuple[int, int] | None, job: str
) -> tuple[list[str], list[int]]:
    """Return the condition that an item is behind `after`, not behind `until`, and in that job (empty: any).

    Where one job is left, the condition bounds the index in that job alone: with both kinds of bounds, SQLite goes
    through all items of the job each time.
    """
    last = until or (MOST_NUMBER, MOST_NUMBER)
    if job:
        (number,) = connection.execute("SELECT number FROM jobs WHERE name = ?", (job,)).fetchone() or (-1,)
        after, last = max(after, (number, -1)), min(last, (number, MOST_NUMBER))
    if after[0] == last[0]:
        return ["job = ?", "idx > ?", "idx <= ?"], [*after, last[1]]
    return ["(job, idx) > (?, ?)", "(job, idx) <= (?, ?)"], [*after, *last]
