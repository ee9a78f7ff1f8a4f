"""How two JSON values differ, field by field: dotted names, entries of an array by their `id` or by their place. Pure.

`config.url` is a field of an object, `hooks[id=4001].active` one of the entry with that
id, `topics[2]` the third entry.
Entries go by `id` where every entry of both arrays is an object with an id of its own: their order is then no
difference. The number 1 is neither true nor 1.0; a field that is null is not one that is missing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

_SORTED = msgspec.json.Encoder(order="deterministic")


class FieldDifference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field that differs. `old` or `new` is UNSET, and missing in JSON, where the field was or is not there."""

    field: str
    old: Any = msgspec.UNSET
    new: Any = msgspec.UNSET


def differences(old: Any, new: Any, field: str) -> Iterator[FieldDifference]:
    """Yield the fields in which two JSON values differ, those of objects in the order of `old`, then the ones only in
    `new`.

    Args:
        field: what the values are called themselves, such as `result`.
    """
    match old, new:
        case dict(), dict():
            names = ((name, f"{field}.{name}") for name in dict.fromkeys((*old, *new)))
            yield from _of_entries(old, new, names)
        case list(), list():
            before, after = _by_id(old), _by_id(new)
            if before is None or after is None:
                before, after = _by_place(old), _by_place(new)
            yield from _of_entries(before, after, ((key, f"{field}[{key[1]}]") for key in {**before, **after}))
        case _:
            if canonical(old) != canonical(new):
                yield FieldDifference(field, old, new)


def canonical(value: Any) -> bytes:
    """JSON in which objects that differ only in the order of their fields are the same."""
    return _SORTED.encode(value)


def without(value: Any, field: str, ignored: Collection[str]) -> Any:
    """`value` without the fields of these names; `result.hooks.updated_at` names it in every entry of `hooks`."""
    match value:
        case dict():
            return {
                name: without(inner, f"{field}.{name}", ignored)
                for name, inner in value.items()
                if f"{field}.{name}" not in ignored
            }
        case list():
            return [without(inner, field, ignored) for inner in value]
    return value


def _of_entries(
    old: Mapping[Any, Any], new: Mapping[Any, Any], names: Iterable[tuple[Any, str]]
) -> Iterator[FieldDifference]:
    for key, name in names:
        if key not in new:
            yield FieldDifference(name, old=old[key])
        elif key not in old:
            yield FieldDifference(name, new=new[key])
        else:
            yield from differences(old[key], new[key], name)


def _by_id(entries: Sequence[Any]) -> dict[tuple[type, str], Any] | None:
    """Entries by their id, the number 1 not being the text `1`; None where one has none or two have the same."""
    found: dict[tuple[type, str], Any] = {}
    for entry in entries:
        own = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(own, bool) or not isinstance(own, int | str):
            return None
        found[type(own), f"id={own}"] = entry
    return found if len(found) == len(entries) else None


def _by_place(entries: Sequence[Any]) -> dict[tuple[type, str], Any]:
    return {(int, str(place)): entry for place, entry in enumerate(entries)}
