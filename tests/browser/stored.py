"""A store for the page: one run, worked on by two workers, one of which is dead."""

from pathlib import Path

import msgspec

from bulk.manifest.manifest import Limits
from bulk.model import OutcomeKind
from bulk.store import runs
from tests.ledger.samples import STATUS, identity, record
from tests.report.ledgers import bucket
from tests.store.places import ENGINE, StorePlace, connection_to, ranges

NAME = "clustered"


def write_stored(text: str, folder: Path) -> StorePlace:
    """The run `clustered`: three shards, of which one was taken over, and one is free."""
    whose = identity(jobs=(("readmes", "readme.get", 200), ("codeowners", "contents.put", 100)))
    shards = ranges(((0, 0, 100), (0, 100, 200), (1, 0, 100)))
    made = StorePlace(text, folder, shards=shards, whose=whose, limits=Limits(concurrency=8))
    with connection_to(text) as store:
        assert runs.find(store, made.name).engine == ENGINE
        with store.using() as connection:
            connection.execute("UPDATE run SET name = %s WHERE id = %s", (NAME, made.run))
    made.opened(0).commit([record(index) for index in range(60)], STATUS)
    group = [record(index, OutcomeKind.FAILED if index > 150 else OutcomeKind.SUCCEEDED) for index in range(60, 180)]
    at_work = msgspec.structs.replace(
        STATUS, state="running", per_second=12.5, in_flight=3, concurrency=8, requests=200, buckets=(bucket(used=77),)
    )
    made.opened(0, 1).commit(group, at_work)
    keep_leases(made)
    return made


def keep_leases(place: StorePlace) -> None:
    """Whoever works on it is at work for an hour, however slow the test is."""
    later = "clock_timestamp() + interval '1 hour'"
    place.sql(f"UPDATE shard SET lease_until = {later} WHERE run = %s AND lease_until > clock_timestamp()", place.run)
    place.sql(f"UPDATE worker SET seen_at = {later}")
