"""Builds `index.db`: which items share a lane, in which order, and where each can be read again.

SQLite without a journal, because a half-built file is thrown away: it gets its name when it is complete. Memory is
bounded: rows are written in batches and sorted on disk. Items with several lanes (a rename has two) join them into one.
Items that a later one supersedes leave their lane.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from bulk.operation import AnyOperation, Item

INDEX = "index.db"
SCHEMA = Path(__file__).with_name("index.sql")

SUPERSEDED = -1
"""The lane of items that are not sent, because a later one takes their place: no hash is negative."""

_MOST_63 = 2**63 - 1
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


def short_63(*parts: object) -> int:
    """63 bits that stand for `parts` in this process alone, which takes a third of the time."""
    return hash(parts) & _MOST_63


def payload_of(operation: AnyOperation, item: Item, salt: bytes = b"") -> int:
    """63 bits that stand in this process for what an item asks for, its id aside.

    Args:
        salt: because what may hold a secret must not be guessed from what is kept of it.
    """
    bare = item if item.id is None else msgspec.structs.replace(item, id=None)
    try:
        return short_63(salt, operation.name, bare)
    except TypeError:  # it holds a list or an object
        return short_63(salt, operation.name, msgspec.json.encode(bare))


def built(part: Path) -> sqlite3.Connection:
    """A new database that only this process reads until it gets its name; what an earlier one left there is gone."""
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(part, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "temp_store=FILE"):
        database.execute(f"PRAGMA {pragma}").fetchall()
    return database


def opened(path: Path) -> sqlite3.Connection | None:
    """An index, only to be read; None where none was made."""
    if not path.is_file():
        return None
    uri = path.absolute().as_uri() + "?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


class IndexBuilder:
    """Takes the items in running order; `finish` gives the file its name. A context manager: an index that is not
    finished is thrown away.
    """

    def __init__(self, workspace: Path, name: str = INDEX) -> None:
        self._path = workspace / name
        self._part = workspace / (name + ".part")
        self._database = built(self._part)
        self._database.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        self._database.executescript(SCHEMA.read_text(encoding="utf-8"))
        self._database.execute("BEGIN")
        self._rows: list[EntryRow] = []
        self._sequence = 0
        self._seen: set[int] = set()
        self._sizes: list[tuple[int, int]] = []
        self._database.execute("CREATE TEMP TABLE sizes (sequence INTEGER PRIMARY KEY, size INTEGER NOT NULL)")
        self.superseded: dict[int, int] = {}
        """Items that are not sent, by the number of their job (count), once it is finished."""
        self.joined: dict[int, int] = {}
        """Items that share the request of one before them, by the number of their job (count), once it is finished."""

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
        size_combined: int = 0,
    ) -> None:
        """One item.

        Args:
            lanes: keys of the lanes that it writes; none: nothing else needs to wait for it.
            label: name of the first.
            at, size: where its JSON can be read again (bytes).
            payload: what it asks for (`payload_of`).
            is_last_kept: of its lane the last item alone may remain, so that each needs the name.
            size_combined: what it takes of a combined request (count); 0: it is sent alone.
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
        if size_combined:
            self._sizes.append((self._sequence, size_combined))
        if len(self._rows) >= _BATCH_ROWS:
            self._flush()

    def add_flaw(self, item: int, message: str, given: str) -> None:
        """An item that can't be used, of a job whose items are made while the run goes on."""
        self._database.execute("INSERT INTO flaws VALUES (?, ?, ?)", (item, message, given))

    def refuse(self, item: int, message: str, given: Callable[[int, int], str]) -> None:
        """As `add_flaw`, for an item that was added and is found wrong beside another; the first flaw counts.

        Args:
            given: what was made, as JSON, from its offset and size (bytes).
        """
        self._flush()
        self._database.execute("CREATE INDEX IF NOT EXISTS entries_by_item ON entries (item)")
        place = self._database.execute("SELECT at, size FROM entries WHERE item = ?", (item,)).fetchone()
        if place is not None:
            self._database.execute("DELETE FROM entries WHERE item = ?", (item,))
            self.add_flaw(item, message, given(*place))

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

    def finish(
        self, keep_last: Mapping[int, int] | None = None, most_combined: Mapping[int, int] | None = None
    ) -> dict[int, LaneCount]:
        """Make the lanes and give the file its name; returns the lanes of each job that has some.

        Args:
            keep_last: for each job of which only the last item of a lane is sent, a number: jobs of one number count
                as one.
            most_combined: `Operation.most_combined` of each job whose items are combined.
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
        if most_combined:
            self._count_joined(most_combined)
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
        self._database.executemany("INSERT INTO sizes VALUES (?, ?)", self._sizes)
        self._sizes.clear()

    def _count_joined(self, most_combined: Mapping[int, int]) -> None:
        """As `dispatch.lanes.Lane.take` will: neighbours of one job in a lane, as long as they fit."""
        query = """
            SELECT lane, job, sizes.size FROM entries LEFT JOIN sizes USING (sequence)
            WHERE lane IN (SELECT lane FROM entries JOIN sizes USING (sequence)) ORDER BY lane, sequence"""
        before: tuple[int, int] | None = None
        room = 0
        for lane, job, size in self._database.execute(query):
            if size is not None and before == (lane, job) and size <= room:
                room -= size
                self.joined[job] = self.joined.get(job, 0) + 1
            else:
                room = most_combined.get(job, 0) - (size or 0)
            before = lane, job

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
