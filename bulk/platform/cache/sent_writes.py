"""Digests of writes that were sent and confirmed, so that the same is not sent again; kept beside answers of reads.

Only writes that the platform has taken are noted, and what was noted of a place is forgotten before the next write to
it leaves. A digest that was lost costs one more request; a digest that is there says that the very same content was
taken last. Source: interface.md §3, snapshot.create.
"""

import contextlib
import logging
import os
import sqlite3
from pathlib import Path

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
        """Forget what `place` has taken, because a write to it is about to leave."""
        connection = self._opened()
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("DELETE FROM sent WHERE place = ?", (self._key(place),))

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
