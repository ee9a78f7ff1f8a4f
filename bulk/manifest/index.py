"""Builds `index.db`: which items share a lane, in which order, and where each can be read again.

SQLite without a journal, because a half-built file is thrown away: it gets its name when it is complete. Memory is
bounded: rows are written in batches and sorted on disk. Items with several lanes (a rename has two) join them into one.
Items that a later one supersedes leave their lane.
"""

import hashlib
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

INDEX = "index.db"
SCHEMA = Path(__file__).with_name("index.sql")

SUPERSEDED = -1
"""The lane of items that are not sent, because a later one takes their place: no hash is negative."""

_BATCH_ROWS = 5_000
_REMEMBERED_LANES = 100_000
_CACHE_KIB = 16 * 1024

EntryRow: TypeAlias = tuple[int, int, int, int, int, int, int, str | None]


class LongestLane(NamedTuple):
    """The lane with the most items."""

    label: str
    items: int


class LaneCount(NamedTuple):
    """Lanes whose first item belongs to one job."""

    lanes: int
    longest: LongestLane | None


class Repeats(NamedTuple):
    """Writes of one job that an earlier item asks for in the same words: how many, and the first pair of indexes."""

    items: int
    earlier: tuple[int, int]
    later: tuple[int, int]


def lane_key(resource: str, lane: str) -> int:
    """63 bits that stand for a lane; case is folded, because names on the platform ignore it."""
    return hash_63(f"{resource}:{lane.casefold()}".encode("utf-8", "surrogatepass"))


def hash_63(data: bytes) -> int:
    """63 bits of a hash, the same in every process: what an INTEGER of SQLite holds without a sign."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 1


class IndexBuilder:
    """Takes the items in running order; `finish` gives the file its name. A context manager: an index that is not
    finished is thrown away.
    """

    def __init__(self, workspace: Path, name: str = INDEX) -> None:
        self._path = workspace / name
        self._part = workspace / (name + ".part")
        self._part.unlink(missing_ok=True)
        os.close(os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self._database = sqlite3.connect(self._part, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "temp_store=FILE"):
            self._database.execute(f"PRAGMA {pragma}").fetchall()
        self._database.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        self._database.executescript(SCHEMA.read_text(encoding="utf-8"))
        self._database.execute("BEGIN")
        self._rows: list[EntryRow] = []
        self._sequence = 0
        self._seen: set[int] = set()
        self.superseded: dict[int, int] = {}
        """Items that are not sent, by the number of their job (count), once it is finished."""

    def __enter__(self) -> "IndexBuilder":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._part.unlink(missing_ok=True)

    def add(
        self,
        lanes: list[int],
        label: str,
        job: int,
        item: int,
        at: int,
        size: int,
        payload: int,
        *,
        is_last_kept: bool = False,
    ) -> None:
        """One item.

        Args:
            lanes: keys of the lanes that it writes; none: nothing else needs to wait for it.
            label: name of the first.
            at, size: where its JSON can be read again (bytes).
            payload: `hash_63` of what it asks for.
            is_last_kept: of its lane the last item alone may remain, so that each needs the name.
        """
        self._sequence += 1
        if not lanes:
            lanes, label = [hash_63(b"#%d:%d" % (job, item))], f"#{item}"
        elif len(lanes) > 1:
            self._join(lanes)
        lane = lanes[0]
        is_new = is_last_kept or lane not in self._seen
        if is_new and not is_last_kept:
            if len(self._seen) >= _REMEMBERED_LANES:
                self._seen.clear()
            self._seen.add(lane)
        self._rows.append((self._sequence, lane, job, item, at, size, payload, label if is_new else None))
        if len(self._rows) >= _BATCH_ROWS:
            self._flush()

    def add_flaw(self, item: int, message: str, given: str) -> None:
        """An item that can't be used, of a job whose items are made while the run goes on."""
        self._database.execute("INSERT INTO flaws VALUES (?, ?, ?)", (item, message, given))

    def add_files(self, digests: dict[str, bytes]) -> None:
        """Files that items name: SHA-256 by name."""
        self._database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?)", digests.items())

    def repeats(self) -> dict[int, Repeats]:
        """Writes that were asked for before in the same words, by the number of their job."""
        self._flush()
        found: dict[int, Repeats] = {}
        query = """
            SELECT entries.job, count(*), firsts.job, firsts.item, min(entries.sequence), entries.item
            FROM (SELECT payload, min(sequence) AS sequence, job, item FROM entries
                  GROUP BY payload HAVING count(*) > 1) AS firsts
            JOIN entries ON entries.payload = firsts.payload AND entries.sequence > firsts.sequence
            GROUP BY entries.job"""
        for job, count, first_job, first_item, _, item in self._database.execute(query):
            found[job] = Repeats(count, (first_job, first_item), (job, item))
        return found

    def finish(self, keep_last: Mapping[int, int] | None = None) -> dict[int, LaneCount]:
        """Make the lanes and give the file its name; returns the lanes of each job that has some.

        Args:
            keep_last: for each job of which only the last item of a lane is sent, a number: jobs of one number count
                as one.
        """
        self._flush()
        database = self._database
        self._flatten()
        database.execute(
            "UPDATE entries SET lane = (SELECT root FROM joined WHERE joined.lane = entries.lane) "
            "WHERE lane IN (SELECT lane FROM joined)"
        )
        if keep_last:
            self._supersede(keep_last)
        database.execute("CREATE INDEX entries_by_lane ON entries (lane)")
        database.execute(
            "CREATE TABLE lanes (rank INTEGER PRIMARY KEY, lane INTEGER NOT NULL, label TEXT NOT NULL, "
            "job INTEGER NOT NULL, items INTEGER NOT NULL)"
        )
        database.execute(
            "INSERT INTO lanes (lane, label, job, items) SELECT lane, label, job, items FROM "
            "(SELECT lane, label, job, count(*) AS items, min(sequence) AS first FROM entries "
            "WHERE lane != ? GROUP BY lane) "
            "ORDER BY job, items DESC, first",
            (SUPERSEDED,),
        )
        found = {
            job: LaneCount(lanes, LongestLane(label, items))
            for job, lanes, _, label, items in database.execute(
                "SELECT job, count(*), min(rank), label, items FROM lanes GROUP BY job"
            )
        }
        database.execute("COMMIT")
        database.close()
        self._part.replace(self._path)
        return found

    def _flush(self) -> None:
        self._database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._rows)
        self._rows.clear()

    def _supersede(self, keep_last: Mapping[int, int]) -> None:
        database = self._database
        database.execute("CREATE TEMP TABLE kept (job INTEGER PRIMARY KEY, together INTEGER NOT NULL)")
        database.executemany("INSERT INTO kept VALUES (?, ?)", keep_last.items())
        database.execute(
            "UPDATE entries SET lane = ? WHERE job IN (SELECT job FROM kept) AND sequence NOT IN "
            "(SELECT max(sequence) FROM entries JOIN kept USING (job) GROUP BY lane, together)",
            (SUPERSEDED,),
        )
        counts = database.execute("SELECT job, count(*) FROM entries WHERE lane = ? GROUP BY job", (SUPERSEDED,))
        self.superseded = dict(counts.fetchall())

    def _join(self, lanes: list[int]) -> None:
        first = self._root(lanes[0])
        for lane in lanes[1:]:
            root = self._root(lane)
            if root != first:
                self._database.execute("UPDATE joined SET root = ? WHERE lane = ?", (first, root))

    def _root(self, lane: int) -> int:
        """What stands for `lane`; it stands for itself from now on where it was in no join. Shortens the way there."""
        way: list[int] = []
        while True:
            found = self._database.execute("SELECT root FROM joined WHERE lane = ?", (lane,)).fetchone()
            if found is None:
                self._database.execute("INSERT INTO joined VALUES (?, ?)", (lane, lane))
                break
            if found[0] == lane:
                break
            way.append(lane)
            lane = found[0]
        self._database.executemany("UPDATE joined SET root = ? WHERE lane = ?", [(lane, passed) for passed in way[:-1]])
        return lane

    def _flatten(self) -> None:
        """Let every joined lane point straight to the one that stands for all."""
        changed = 1
        while changed:
            changed = self._database.execute(
                "UPDATE joined SET root = (SELECT up.root FROM joined AS up WHERE up.lane = joined.root) "
                "WHERE root != (SELECT up.root FROM joined AS up WHERE up.lane = joined.root)"
            ).rowcount
