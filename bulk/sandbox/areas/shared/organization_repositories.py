"""The repositories of an organization as a list, generated ones (fleet.py) included, and one of them by its id.

`State` finds a repository by its name; this module lists all repositories, and finds one by its id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bulk.sandbox.git.fleet import Fleet
from bulk.sandbox.store import rows
from bulk.sandbox.store.records import Repository

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from bulk.sandbox.store.state import State


def visibilities(state: State, organization_id: int) -> dict[int, bool]:
    """Return id of a repository -> whether it is private, for every repository, in ascending order of the ids."""
    found = {
        row["id"]: bool(row["private"])
        for row in state.db.execute(
            "SELECT id, private FROM repositories WHERE organization_id = ?", (organization_id,)
        )
    }
    for row in state.db.execute("SELECT first_id, count FROM fleets WHERE organization_id = ?", (organization_id,)):
        found.update(dict.fromkeys(range(row["first_id"], row["first_id"] + row["count"]), False))
    return dict(sorted(found.items()))


def membership(state: State, organization_id: int) -> Callable[[int], bool]:
    """Return a function that tells whether an id is that of one of the organization's repositories, without listing
    them all.
    """
    rows = state.db.execute("SELECT id FROM repositories WHERE organization_id = ?", (organization_id,))
    single = {row["id"] for row in rows}
    fleets = state.db.execute("SELECT first_id, count FROM fleets WHERE organization_id = ?", (organization_id,))
    ranges = [range(row["first_id"], row["first_id"] + row["count"]) for row in fleets]
    return lambda number: number in single or any(number in each for each in ranges)


def by_ids(state: State, organization_id: int, ids: Iterable[int]) -> list[Repository]:
    """Return the repositories of these ids that the organization has, in the order of `ids`."""
    fleets = [
        _fleet(row) for row in state.db.execute("SELECT * FROM fleets WHERE organization_id = ?", (organization_id,))
    ]
    found = (_by_id(state, organization_id, fleets, number) for number in ids)
    return [repository for repository in found if repository is not None]


def _by_id(state: State, organization_id: int, fleets: list[Fleet], number: int) -> Repository | None:
    row = state.db.execute(
        "SELECT * FROM repositories WHERE id = ? AND organization_id = ?", (number, organization_id)
    ).fetchone()
    if row is not None:
        return rows.repository(row)
    for fleet in fleets:
        index = fleet.index_of_id(number)
        if index is not None:
            return Repository(
                number,
                organization_id,
                fleet.name(index),
                False,
                "",
                "main",
                fleet.created_at,
            )
    return None


def _fleet(row: sqlite3.Row) -> Fleet:
    return Fleet(
        row["organization_id"], row["first_id"], row["count"], row["readme_bytes"], row["prefix"], row["created_at"]
    )
