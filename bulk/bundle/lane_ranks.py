"""Lanes by their rank, as shards have them: how many items are in each, and which.

Reads `index.db` of a checked manifest. The longest lanes of a job have the lowest ranks, so those that leave the same
remainder are as long together as others.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from bulk.bundle.index import INDEX, SCHEMA, SUPERSEDED, opened

NO_LANE = -1
"""The rank of items that a later one supersedes."""


def lane_sizes(workspace: Path) -> dict[int, dict[int, int]]:
    """Return job number -> rank -> items of that job in that lane (count)."""
    sizes: dict[int, dict[int, int]] = {}
    database = opened(workspace / INDEX, SCHEMA)
    try:
        query = """
            SELECT entries.job, coalesce(lanes.rank, ?), count(*) FROM entries LEFT JOIN lanes USING (lane)
            GROUP BY entries.job, lanes.rank"""
        for job, rank, items in database.execute(query, (NO_LANE,)):
            sizes.setdefault(job, {})[rank] = items
    finally:
        database.close()
    return sizes


def items_of_lanes(
    workspace: Path, jobs: Collection[int], modulus: int, remainder: int, apart: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Yield job and index of each item of these jobs whose lane's rank leaves the remainder, and is not in `apart`.

    With remainder 0 come items that are in no lane.
    """
    chosen = _marks(jobs)
    database = opened(workspace / INDEX, SCHEMA)
    try:
        query = f"""
            SELECT entries.job, entries.item FROM lanes JOIN entries USING (lane)
            WHERE lanes.rank % ? = ? AND lanes.rank NOT IN ({_marks(apart)}) AND entries.job IN ({chosen})"""
        yield from database.execute(query, (modulus, remainder, *apart, *jobs))
        if remainder == 0:
            query = f"SELECT job, item FROM entries WHERE lane = ? AND job IN ({chosen})"
            yield from database.execute(query, (SUPERSEDED, *jobs))
    finally:
        database.close()


def items_of_lane(workspace: Path, jobs: Collection[int], rank: int) -> Iterator[tuple[int, int]]:
    """Yield job and index of each item of these jobs in the lane of that rank."""
    database = opened(workspace / INDEX, SCHEMA)
    try:
        query = f"""
            SELECT entries.job, entries.item FROM lanes JOIN entries USING (lane)
            WHERE lanes.rank = ? AND entries.job IN ({_marks(jobs)})"""
        yield from database.execute(query, (rank, *jobs))
    finally:
        database.close()


def _marks(values: Collection[int]) -> str:
    return ",".join("?" * len(values))
