"""Builds `index.db`, which says which items share a lane, in which order, and where each can be read again.

SQLite works without a journal, because a half-built file is deleted: the file gets its name when it is complete. Memory
is bounded: rows are written in batches and sorted on disk. Items with several lanes (a rename has two) join them into
one. Items that a later item supersedes leave their lane.
"""

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec

from bulk.bundle.columns import NewColumn
from bulk.capabilities import Combinable, keeps_only_last
from bulk.manifest.manifest import CheckedFile, Job
from bulk.operation import AnyOperation, Item
from bulk.storage.bulk_insert import insert
from bulk.storage.private_files import open_private

INDEX = "index.db"
SCHEMA = Path(__file__).with_name("index.sql").read_text(encoding="utf-8")

SUPERSEDED = -1
"""The lane of items that are not sent, because a later item takes their place; no hash of a lane is negative."""

_MOST_63 = 2**63 - 1
_BATCH_ROWS = 5_000
_REMEMBERED_LANES = 100_000
_CACHE_KIB = 16 * 1024

EntryRow: TypeAlias = tuple[int, int, int, int, int, int, int, str | None]


class JobCounts(NamedTuple):
    """Counts of one job in the finished index; the names are those of `JobCheck`."""

    lanes: int = 0
    longest_lane: tuple[str, int] | None = None
    superseded: int = 0
    joined: int = 0


class Repeats(NamedTuple):
    """Writes of one job that repeat an earlier item exactly: how many, and (job, index) of the first such pair."""

    items: int
    earlier: tuple[int, int]
    later: tuple[int, int]


def lane_key(resource: str, lane: str) -> int:
    """Return 63 bits that stand for a lane; case is folded, because names on the platform ignore it."""
    return hash_63(f"{resource}:{lane.casefold()}".encode("utf-8", "surrogatepass"))


def hash_63(data: bytes) -> int:
    """Return 63 bits of a hash, the same in every process; an INTEGER of SQLite holds them without a sign."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 1


def short_63(*parts: object) -> int:
    """Return 63 bits that stand for `parts` in this process alone; this takes a third of the time of `hash_63`."""
    return hash(parts) & _MOST_63


def payload_of(operation: AnyOperation, item: Item, salt: bytes) -> int:
    """Return 63 bits that stand in this process for the content of an item without its id.

    Args:
        salt: random bytes, so that a secret in the item can't be guessed from the stored bits.
    """
    bare = item if item.id is None else msgspec.structs.replace(item, id=None)
    try:
        return short_63(salt, operation.name, bare)
    except TypeError:  # the item holds a list or an object
        return short_63(salt, operation.name, msgspec.json.encode(bare))


def built(part: Path, schema: str) -> sqlite3.Connection:
    """Return a new database that only this process reads until it gets its name; a leftover of an earlier process is
    deleted."""
    part.unlink(missing_ok=True)
    os.close(open_private(part, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    database = sqlite3.connect(part, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "temp_store=FILE"):
        database.execute(f"PRAGMA {pragma}").fetchall()
    database.executescript(schema + "BEGIN;")
    return database


def opened(path: Path, schema: str) -> sqlite3.Connection:
    """Open a finished database for reading; where there is no such file, return an empty database."""
    if path.is_file():
        uri = path.absolute().as_uri() + "?mode=ro&immutable=1"
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.executescript(schema)
    return database


class IndexBuilder:
    """Takes the items in running order; `finish` gives the file its name. A context manager: an index that is not
    finished is deleted. `folder`: the folder of the file.
    """

    def __init__(self, workspace: Path, name: str = INDEX) -> None:
        self.folder, self._path = workspace, workspace / name
        self._part = workspace / (name + ".part")
        self._database = built(self._part, f"PRAGMA cache_size=-{_CACHE_KIB};" + SCHEMA)
        self._database.execute("CREATE TEMP TABLE sizes (sequence INTEGER PRIMARY KEY, size INTEGER NOT NULL)")
        self._rows: list[EntryRow] = []
        self._sizes: list[tuple[int, int]] = []
        self._sequence = 0
        self._seen: set[int] = set()
        self._salt = os.urandom(16)
        self._are_lanes_found = False
        self._places: dict[int, tuple[NewColumn, NewColumn]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "IndexBuilder":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._database.close()
        self._part.unlink(missing_ok=True)

    def add(self, job: Job, item: Item, number: int, at: int, size: int) -> int:
        """Add the item with index `number`, whose JSON can be read again at `at` (bytes); return its `payload_of`. For
        a read that waits for others by key return 0: it is in no lane, and only its place is kept."""
        operation = job.operation
        self._sequence += 1
        if job.by_key and operation.is_read:
            self._add_place(job.number, at, size)
            return 0
        names = () if operation.is_read else operation.lanes(item)
        lanes = [lane_key(operation.resource, name) for name in names]
        if not lanes:
            lanes = [hash_63(b"#%d:%d" % (job.number, number))]
        elif len(lanes) > 1:
            self._join(lanes)
        lane = lanes[0]
        # only the last item of the lane may remain, so each of them needs the name
        is_named = keeps_only_last(operation)
        if not is_named and lane not in self._seen:
            is_named = True
            if len(self._seen) >= _REMEMBERED_LANES:
                self._seen.clear()
            self._seen.add(lane)
        label = (names[0] if names else f"#{number}") if is_named else None
        payload = payload_of(operation, item, self._salt)
        self._rows.append((self._sequence, lane, job.number, number, at, size, payload, label))
        if isinstance(operation, Combinable) and (size_combined := operation.size_combined(item)):
            self._sizes.append((self._sequence, size_combined))
        if len(self._rows) >= _BATCH_ROWS:
            self._flush()
        return payload

    def _add_place(self, number: int, at: int, size: int) -> None:
        if number not in self._places:
            enter = self._stack.enter_context
            self._places[number] = enter(NewColumn(self.folder, "Q")), enter(NewColumn(self.folder, "I"))
        offsets, sizes = self._places[number]
        offsets.append(at)
        sizes.append(size)

    def add_flaw(self, item: int, message: str, given: str) -> None:
        """Add a derived item that can't be used."""
        self._database.execute("INSERT INTO flaws VALUES (?, ?, ?)", (item, message, given))

    def refuse(self, item: int, message: str, given: Callable[[int, int], str]) -> None:
        """Do the same as `add_flaw` for an item that was added already and does not fit beside another; the first flaw
        counts.

        Args:
            given: returns the item that was made, as JSON, from its offset and size (bytes).
        """
        self._flush()
        self._database.execute("CREATE INDEX IF NOT EXISTS entries_by_item ON entries (item)")
        place = self._database.execute("SELECT at, size FROM entries WHERE item = ?", (item,)).fetchone()
        if place is not None:
            self._database.execute("DELETE FROM entries WHERE item = ?", (item,))
            self.add_flaw(item, message, given(*place))

    def add_links(self, edge: int, key_of: NewColumn, starts: NewColumn | None, items: NewColumn) -> None:
        """Add which items wait for which, for the need by key with number `edge`; see `links.Links`. `starts`: None if
        one item waits by each key."""
        self._are_lanes_found = True
        self._add_columns("links", edge, {"key_of": key_of, "starts": starts, "items": items})

    def _add_columns(self, table: str, row: int, columns: Mapping[str, NewColumn | None]) -> None:
        blobs = ", ".join(f"zeroblob({column.size if column else 0})" for column in columns.values())
        self._database.execute(f"INSERT INTO {table} VALUES (?, {blobs})", (row,))
        for name, column in columns.items():
            if column:
                column.copy(self._database, table, name, row)

    def add_files(self, files: Mapping[str, CheckedFile]) -> None:
        """Add the files that items name, by the name of each."""
        rows = ((name, *file) for name, file in files.items())
        self._database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)

    def repeats(self) -> dict[int, Repeats]:
        """Return the writes that repeat an earlier item exactly, by the number of their job."""
        self._flush()
        query = """
            SELECT entries.job, count(*), firsts.job, firsts.item, min(entries.sequence), entries.item
            FROM (SELECT payload, min(sequence) AS sequence, job, item FROM entries
                  WHERE lane >= 0 GROUP BY payload HAVING count(*) > 1) AS firsts
            JOIN entries ON entries.payload = firsts.payload AND entries.sequence > firsts.sequence
            GROUP BY entries.job"""
        return {
            job: Repeats(count, (first_job, first_item), (job, item))
            for job, count, first_job, first_item, _, item in self._database.execute(query)
        }

    def finish(
        self, keep_last: Mapping[int, int], most_combined: Mapping[int, int] = MappingProxyType({})
    ) -> dict[int, JobCounts]:
        """Make the lanes and give the file its name; return the counts of each job that has items in the index.

        Args:
            keep_last: a number for each job of which only the last item of a lane is sent; jobs with the same number
                count as one job.
            most_combined: `Combinable.most_combined` of each job whose items are combined.
        """
        self._flush()
        database = self._database
        for number, (offsets, sizes) in self._places.items():
            self._add_columns("places", number, {"at": offsets, "size": sizes})
        self._flatten()
        database.execute(
            "UPDATE entries SET lane = (SELECT root FROM joined WHERE joined.lane = entries.lane) "
            "WHERE lane IN (SELECT lane FROM joined)"
        )
        superseded = self._supersede(keep_last) if keep_last else {}
        database.execute("CREATE INDEX entries_by_lane ON entries (lane)")
        joined = self._count_joined(most_combined) if most_combined else {}
        database.execute(
            "INSERT INTO lanes (lane, label, job, items) SELECT lane, label, job, items FROM "
            "(SELECT lane, label, job, count(*) AS items, min(sequence) AS first FROM entries "
            "WHERE lane >= 0 GROUP BY lane) "
            "ORDER BY job, items DESC, first"
        )
        lanes = {
            job: JobCounts(number, (label, items))
            for job, number, _, label, items in database.execute(
                "SELECT job, count(*), min(rank), label, items FROM lanes GROUP BY job"
            )
        }
        if self._are_lanes_found:  # lanes are looked up by their items
            database.execute("CREATE INDEX lanes_by_key ON lanes (lane)")
        database.execute("COMMIT")
        database.close()
        self._part.replace(self._path)
        return {
            job: lanes.get(job, JobCounts())._replace(superseded=superseded.get(job, 0), joined=joined.get(job, 0))
            for job in {**lanes, **superseded, **joined}
        }

    def _flush(self) -> None:
        insert(self._database, "entries", self._rows)
        self._rows.clear()
        insert(self._database, "sizes", self._sizes)
        self._sizes.clear()

    def _count_joined(self, most_combined: Mapping[int, int]) -> dict[int, int]:
        """Return how many items share the request of an item before them, by the number of their job (count).

        They are counted as `schedule.lanes` takes them: neighbours of one job in a lane, as long as they fit.
        """
        joined: dict[int, int] = {}
        query = """
            SELECT lane, job, sizes.size FROM entries LEFT JOIN sizes USING (sequence)
            WHERE lane IN (SELECT lane FROM entries JOIN sizes USING (sequence)) ORDER BY lane, sequence"""
        before: tuple[int, int] | None = None
        room = 0
        for lane, job, size in self._database.execute(query):
            if size is not None and before == (lane, job) and size <= room:
                room -= size
                joined[job] = joined.get(job, 0) + 1
            else:
                room = most_combined.get(job, 0) - (size or 0)
            before = lane, job
        return joined

    def _supersede(self, keep_last: Mapping[int, int]) -> dict[int, int]:
        """Take superseded items out of their lanes; return how many, by the number of their job (count)."""
        database = self._database
        database.execute("CREATE TEMP TABLE kept (job INTEGER PRIMARY KEY, together INTEGER NOT NULL)")
        database.executemany("INSERT INTO kept VALUES (?, ?)", keep_last.items())
        database.execute(
            "UPDATE entries SET lane = ? WHERE job IN (SELECT job FROM kept) AND sequence NOT IN "
            "(SELECT max(sequence) FROM entries JOIN kept USING (job) GROUP BY lane, together)",
            (SUPERSEDED,),
        )
        counts = database.execute("SELECT job, count(*) FROM entries WHERE lane = ? GROUP BY job", (SUPERSEDED,))
        return dict(counts.fetchall())

    def _join(self, lanes: list[int]) -> None:
        first = self._root(lanes[0])
        for lane in lanes[1:]:
            root = self._root(lane)
            if root != first:
                self._database.execute("UPDATE joined SET root = ? WHERE lane = ?", (first, root))

    def _root(self, lane: int) -> int:
        """Return the lane that stands for `lane`, which is itself from now on if it was in no join. Shorten the way
        there."""
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
        """Let every joined lane point straight to the lane that stands for all of its join."""
        changed = 1
        while changed:
            changed = self._database.execute(
                "UPDATE joined SET root = (SELECT up.root FROM joined AS up WHERE up.lane = joined.root) "
                "WHERE root != (SELECT up.root FROM joined AS up WHERE up.lane = joined.root)"
            ).rowcount
