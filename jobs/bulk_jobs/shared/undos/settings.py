"""One undo for two changes of the same settings: it gives back what was before both, and expects what both left."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from bulk.undo import Undo

Settings: TypeAlias = Mapping[str, Any]
Given: TypeAlias = tuple[Settings, Settings]
"""What an undo gives back, and what it expects, by the names of settings; what it can't give back it only expects."""

Differences: TypeAlias = Callable[[Settings, Settings], Sequence[str]]
"""Gives the settings of the first mapping that the second one shows otherwise."""


def of_settings(way: Given, later: Given, differences: Differences) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return what one undo gives back and expects; None: the later change found something else than the earlier left.

    A copy of the platform may still have shown the later change what was there before the earlier one.
    """
    (before, left), (found, left_later) = way, later
    shared = left.keys() & left_later.keys()
    shown = {name: found.get(name) for name in shared}
    for state in (left, before):
        if state.keys() >= shared and not differences({name: state[name] for name in shared}, shown):
            break
    else:
        return None
    given = {name: value for name, value in found.items() if name not in shared}
    return {**given, **before}, {**left, **left_later}


def of_items(way: Undo, later: Undo, differences: Differences) -> Sequence[Undo]:
    """Return what takes back two changes by items that hold their settings beside what they expect of these."""
    if later.operation != way.operation:
        return [later, way]
    joined = of_settings(_given(way), _given(later), differences)
    if joined is None:
        return [later, way]
    given, expect = joined
    rest = {name: value for name, value in way.item.items() if name not in way.item["expect"]}
    loses = both(way.loses, later.loses)
    return [msgspec.structs.replace(way, item={**rest, **given, "expect": expect}, loses=loses)]


def both(*loses: str) -> str:
    """Return what two undos lose, in words."""
    return " and ".join(dict.fromkeys(filter(None, loses)))


def _given(way: Undo) -> Given:
    expect = way.item["expect"]
    return {name: way.item[name] for name in expect if name in way.item}, expect
