"""The things that items change, such as files or webhooks, to find items of a manifest that change the same thing."""

from collections.abc import Mapping
from typing import Any

import msgspec

from bulk import urls
from bulk.bundle.index import short_63
from bulk.capabilities import ChangesThings, CreatesNames, DecidesState
from bulk.manifest.manifest import Job
from bulk.operation import Item
from bulk.storage.temporary_rows import TemporaryRows

Thing = tuple[str, str]
"""A thing that an item changes, such as a file: its resource, and its place or name."""


def things_of(job: Job, row: Mapping[str, Any]) -> frozenset[Thing]:
    """Return the things that an item changes, by its line of the results; empty: they can't be told from others."""
    operation, result, things = job.operation, row["result"], list[str]()
    item = without_expect(msgspec.convert(row["item"], operation.Item))
    if isinstance(operation, ChangesThings):
        things += operation.things(item)
    elif isinstance(operation, DecidesState):
        things += operation.identities(item)
    elif isinstance(operation, CreatesNames) and isinstance(result, dict) and "id" in result:
        things.append(urls.place(operation.collection(item), result["id"]))
    return frozenset((operation.resource, thing) for thing in things)


def without_expect(item: Item) -> Item:
    """Return an item without its field `expect`, which says what has to be there before and changes nothing."""
    return msgspec.structs.replace(item, expect=None) if getattr(item, "expect", None) is not None else item


class Followers(TemporaryRows):
    """Finds items that come behind another item that writes the same thing. Items are added in running order. A context
    manager."""

    def __init__(self) -> None:
        columns = "thing INTEGER, number INTEGER, job INTEGER, item INTEGER, writes INTEGER"
        super().__init__(f"CREATE TABLE changed ({columns});", "changed")
        self._number = 0

    def add(self, job: Job, row: Mapping[str, Any], *, writes: bool) -> None:
        """Add an item, by its line of the results. `writes`: the item is about to change what is there."""
        self._number += 1
        for thing in things_of(job, row):
            self.keep((short_63(*thing), self._number, job.number, row["index"], writes))

    def found(self) -> set[tuple[int, int]]:
        """Return (number of the job, index) of each item that changes what an earlier one writes."""
        query = """
            SELECT DISTINCT job, item FROM (SELECT *, min(CASE WHEN writes THEN number END) OVER (PARTITION BY thing)
            AS first FROM changed) WHERE number > first"""
        return set(self.select(query))
