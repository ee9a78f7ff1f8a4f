"""Joins the items that take back changes of the same thing: one restores what was there before the first change, and
expects what the last one has left. So a second undo of the same run finds the thing as it shall be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bulk.engine.migrations.changed_things import Thing
from bulk.engine.migrations.undo_items import flaw_of
from bulk.operation import AnyOperation
from bulk.undo import Undo, Undoable


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item that takes something back, at its place among all of them.

    Attributes:
        way: the item. operation: the operation whose change it takes back.
        things: the things that were changed. file_credential: the credential that reads the bytes of its file.
    """

    way: Undo
    operation: AnyOperation
    things: frozenset[Thing]
    file_credential: str


def join(items: dict[int, PlacedItem]) -> None:
    """Join the items of a run, which are in the order in which they run: what is changed last is taken back first.

    Args:
        items: by their places; those that are not needed any more are taken out.
    """
    last: dict[Thing, int] = {}
    for first in sorted(items):
        others = {last[thing] for thing in items[first].things if thing in last}
        place: int | None = first
        for other in sorted(others, reverse=True):
            place = _join_two(items, place, other, last) if place is not None else None
        if place is not None:
            last.update(dict.fromkeys(items[place].things, place))


def _join_two(items: dict[int, PlacedItem], place: int, other: int, last: dict[Thing, int]) -> int | None:
    """Join an item with the one at `other`, which takes back a later change, and return where it is now; None: there is
    nothing left to take back."""
    earlier, later = items[place], items[other]
    ways = _joined(earlier, later)
    if len(ways) == 2:
        items[other], items[place] = replace(later, way=ways[0]), replace(earlier, way=ways[1])
        return place
    del items[place], items[other]
    things = earlier.things | later.things
    for thing in things:
        last.pop(thing, None)
    for way in ways:
        at = place if way.operation == earlier.way.operation else other
        items[at] = replace(earlier, way=way, things=things)
        return at
    return None


def _joined(earlier: PlacedItem, later: PlacedItem) -> Sequence[Undo]:
    apart = [later.way, earlier.way]
    if not isinstance(earlier.operation, Undoable):
        return apart
    try:
        ways = earlier.operation.joined(earlier.way, later.way)
    except (ValueError, TypeError, LookupError, AttributeError):  # what was shown can't be compared
        return apart
    return apart if any(flaw_of(way) for way in ways) else ways
