"""Digests of writes that were sent and confirmed, so that the same is not sent again; kept beside answers of reads.

Only writes that the platform has taken are noted, and what was noted of a place is forgotten before the next write to
it leaves: on the disk, and where that refuses, all that was noted is thrown away. A digest that was lost costs one more
request; a digest that is there says that the very same content was taken last. Source: interface.md §3,
snapshot.create; failures.md row 106.
"""

import contextlib
import logging
import os
import sqlite3
from pathlib import Path

from bulk.errors import RunStopped
from bulk.storage.private_files import DIRECTORY_MODE, open_private

NAME = "sent.db"
_SCHEMA = """
PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS sent (place TEXT PRIMARY KEY, digest BLOB, at REAL) WITHOUT ROWID;
"""

log = logging.getLogger(__name__)


class SentWrites:
    """The digests of one platform; if the file can't be used, nothing is known and nothing is kept.

    Args:
        folder: where answers of reads are kept. base_url: base URL of the platform.
    """

    def __init__(self, folder: Path, base_url: str) -> None:
        self._path, self._base_url = folder / NAME, base_url
        self._connection: sqlite3.Connection | None = None
        self._is_unusable = False

    def was_sent(self, place: str, digest: bytes, since: float) -> bool:
        """Return whether `digest` is of the last write to `place`, noted at `since` or later (UTC epoch seconds)."""
        connection = self._opened()
        if connection is None:
            return False
        with contextlib.suppress(sqlite3.Error):
            row = connection.execute("SELECT digest, at FROM sent WHERE place = ?", (self._key(place),)).fetchone()
            return row is not None and row[0] == digest and row[1] >= since
        return False

    def note(self, place: str, digest: bytes, at: float) -> None:
        """Note the digest of a write that `place` has taken."""
        connection = self._opened()
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("INSERT OR REPLACE INTO sent VALUES (?, ?, ?)", (self._key(place), digest, at))

    def forget(self, place: str) -> None:
        """Forget what `place` has taken, because a write to it is about to leave.

        Raises:
            RunStopped: what is noted can be neither taken back nor thrown away, and a later run would believe it.
        """
        connection, key = self._opened(), self._key(place)
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                if connection.execute("SELECT 1 FROM sent WHERE place = ?", (key,)).fetchone() is not None:
                    connection.execute("PRAGMA synchronous = FULL")  # no loss of power may bring the digest back
                    connection.execute("DELETE FROM sent WHERE place = ?", (key,))
                    connection.execute("PRAGMA synchronous = NORMAL")
                return
        self._throw_away()

    def _throw_away(self) -> None:
        """Remove the file, of which nobody knows what is noted in it."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        for name in (NAME, f"{NAME}-wal", f"{NAME}-shm"):  # in this order: no older state shows in between
            try:
                (self._path.parent / name).unlink()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise RunStopped(
                    f"{self._path} says what was sent before and can't be changed ({error.strerror}): it would be "
                    "wrong after this run. Remove it, name another --cache or give --no-cache, and run the same "
                    "command again."
                ) from None

    def _key(self, place: str) -> str:
        return f"{self._base_url} {place}"

    def _opened(self) -> sqlite3.Connection | None:
        if self._connection is None and not self._is_unusable:
            try:
                self._path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
                with open(open_private(self._path, os.O_RDWR | os.O_CREAT), "rb"):  # creates it for its owner alone
                    pass
                self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
                self._connection.executescript(_SCHEMA)
            except (OSError, sqlite3.Error) as error:
                self._is_unusable, self._connection = True, None
                log.warning("%s can't be used, so that everything is sent: %s", self._path, error)
        return self._connection
