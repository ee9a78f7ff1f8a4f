"""The record of a diff of two runs: the counts, and one Change for every item that differs. Words, no logic.

Their JSON is stable: fields are added, never renamed or given another meaning. A field that is UNSET is missing in it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from bulk.report.diff.field_changes import FieldDifference

KINDS = ("added", "removed", "changed", "lost_sight")
"""The kinds in the order in which they are shown. `lost_sight`: an item that RUN_A has read and RUN_B could not."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs: `state` as in a report; `items` that have an outcome (count)."""

    run_dir: str
    name: str
    base_url: str
    state: str
    items: int


class JobDiff(msgspec.Struct, kw_only=True):
    """One job of either run: items (counts). `old_items` is `same` + `removed` + `changed` + `lost_sight`."""

    name: str
    operation: str
    old_items: int = 0
    new_items: int = 0
    same: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    lost_sight: int = 0


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a diff: its first line as JSON.

    Attributes:
        kind: tells this line from the changes.
        old: RUN_A; new: RUN_B.
        ignored: fields that were not compared.
        notes: what a person should know before trusting the counts.
    """

    kind: str = "summary"
    version: int = 1
    old: Side
    new: Side
    same: int
    added: int
    removed: int
    changed: int
    lost_sight: int = 0
    jobs: tuple[JobDiff, ...]
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Ending(msgspec.Struct, frozen=True):
    """How an item ended that only one of the runs has."""

    outcome: str
    error: Any
    result: Any


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item that was added or removed, or whose outcome or result differs: one line as JSON.

    Attributes:
        kind: `added`, `removed`, `changed` or `lost_sight`.
        id: the user's own id, from RUN_B where the item is there.
        item: fields of the item, also from RUN_B where it is there.
        old_index, new_index: its place among the job's items in RUN_A and in RUN_B.
        old: how a removed item had ended; new: how an added item ended.
        fields: the fields of a changed item that differ.
    """

    kind: str
    job: str
    id: str | None
    item: Mapping[str, Any]
    old_index: int | msgspec.UnsetType = msgspec.UNSET
    new_index: int | msgspec.UnsetType = msgspec.UNSET
    old: Ending | msgspec.UnsetType = msgspec.UNSET
    new: Ending | msgspec.UnsetType = msgspec.UNSET
    fields: list[FieldDifference] | msgspec.UnsetType = msgspec.UNSET
