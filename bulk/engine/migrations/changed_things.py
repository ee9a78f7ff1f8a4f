"""What an item changes, such as a file or a webhook, so that items of a manifest that change the same are known."""

from collections.abc import Mapping
from typing import Any

import msgspec

from bulk.bundle.index import short_63
from bulk.capabilities import DecidesState
from bulk.manifest.manifest import Job
from bulk.storage.temporary_rows import TemporaryRows

Thing = tuple[str, ...]
"""What an item changes, such as a file: resource, owner, repository, branch and path."""


def things_of(job: Job, row: Mapping[str, Any]) -> frozenset[Thing]:
    """Return what an item changes, by its line of the results; nothing: nobody can tell it from other things."""
    operation, item, result = job.operation, row["item"], row["result"]
    if "path" in item:
        places = [(*(str(item.get(name) or "").casefold() for name in ("owner", "repo", "branch")), str(item["path"]))]
    elif (team := item.get("enterprise-team")) is not None:
        organizations = item.get("organization_slugs") or [item.get("org")]
        places = [(str(item["enterprise"]), str(team).casefold(), str(each).casefold()) for each in organizations]
    elif isinstance(operation, DecidesState):
        places = [(each,) for each in operation.identities(msgspec.convert(item, operation.Item))]
    else:
        number = item.get("hook_id") or item.get("configuration_id")
        if number is None and isinstance(result, dict):
            number = result.get("id")
        places = [(str(item["org"]).casefold(), str(number))] if "org" in item and number is not None else []
    return frozenset((operation.resource, *place) for place in places)


class Followers(TemporaryRows):
    """Takes what each item changes, in running order, and tells which of them come behind another one that writes. A
    context manager."""

    def __init__(self) -> None:
        columns = "thing INTEGER, number INTEGER, job INTEGER, item INTEGER, writes INTEGER"
        super().__init__(f"CREATE TABLE changed ({columns});", "changed VALUES (?, ?, ?, ?, ?)")
        self._number = 0

    def add(self, job: Job, row: Mapping[str, Any], *, writes: bool) -> None:
        """Add an item, by its line of the results. `writes`: it is about to change what is there."""
        self._number += 1
        for thing in things_of(job, row):
            self.keep((short_63(thing[0], "\n".join(thing[1:])), self._number, job.number, row["index"], writes))

    def found(self) -> set[tuple[int, int]]:
        """Return (number of the job, index) of each item that changes what an earlier one writes."""
        query = """
            SELECT DISTINCT job, item FROM (SELECT *, min(CASE WHEN writes THEN number END) OVER (PARTITION BY thing)
            AS first FROM changed) WHERE number > first"""
        return set(self.select(query))
