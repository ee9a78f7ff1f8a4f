"""How two JSON values differ, field by field: dotted names, entries of an array by their `id` or by their place. Pure.

`config.url` is a field of an object, `hooks[id=4001].active` one of the entry with that
id, `topics[2]` the third entry.
Entries are matched by `id`, or by the key that the operation names, where every entry of both arrays is an object that
has a value of its own there: their order is then no difference. The number 1 is neither true nor 1.0; a field that is
null differs from a missing field.
"""

import fnmatch
import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bulk.capabilities import Returns
from bulk.operation import UnknownOperation, find

_SORTED = msgspec.json.Encoder(order="deterministic")


class FieldDifference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field that differs. `old` or `new` is UNSET, and missing in JSON, where the field was or is not there."""

    field: str
    old: Any = msgspec.UNSET
    new: Any = msgspec.UNSET


class FieldRules:
    """Which fields of the results of one operation are compared, and how entries of its lists are told apart.

    Args:
        volatile, list_keys: see `bulk.capabilities.Returns`.
    """

    def __init__(self, volatile: Collection[str] = (), list_keys: Mapping[str, str] | None = None) -> None:
        self._volatile = re.compile("|".join(map(fnmatch.translate, sorted(volatile))) or r"(?!)")
        self._list_keys = list_keys or {}
        self.is_volatile = functools.lru_cache(maxsize=4_096)(self._is_volatile)

    def _is_volatile(self, place: str) -> bool:
        return self._volatile.match(place) is not None

    def key_of(self, place: str) -> str:
        """Return the field by which entries of the list at `place` are told apart."""
        return self._list_keys.get(place, "id")

    def steady(self, value: Any, place: str = "") -> Any:
        """Return `value` without fields that change by themselves; `place`: its dotted name without places in lists."""
        match value:
            case dict():
                places = {name: f"{place}.{name}" if place else name for name in value}
                return {
                    name: self.steady(inner, places[name])
                    for name, inner in value.items()
                    if not self.is_volatile(places[name])
                }
            case list():
                return [self.steady(inner, place) for inner in value]
        return value


PLAIN = FieldRules()
"""Rules with which every field is compared."""


def rules_of(name: str, *, is_all: bool = False, is_tabled: bool = False) -> FieldRules:
    """Return the rules of an operation; `PLAIN` where it is not installed.

    Args:
        is_all: compare also the fields that change by themselves. is_tabled: compare only the fields that tables hold.
    """
    try:
        operation = find(name)
    except UnknownOperation:
        return PLAIN
    if not isinstance(operation, Returns):
        return PLAIN
    left_out = frozenset() if is_all else operation.volatile
    return FieldRules(left_out | operation.untabled if is_tabled else left_out, operation.list_keys)


def differences(
    old: Any, new: Any, field: str, rules: FieldRules = PLAIN, place: str = ""
) -> Iterator[FieldDifference]:
    """Yield the fields in which two JSON values differ: of objects in the order of `old`, then those only in `new`.

    Args:
        field: name of the values themselves, such as `result`.
        rules: how entries of lists are told apart; the fields that they leave out must be gone already (`steady`).
        place: dotted name of the values within the result, without places in lists.
    """
    match old, new:
        case dict(), dict():
            for name in dict.fromkeys((*old, *new)):
                inner = f"{place}.{name}" if place else name
                yield from _of_entry(old, new, name, f"{field}.{name}", rules, inner)
        case list(), list():
            own = rules.key_of(place)
            before, after = _by_key(old, own), _by_key(new, own)
            if before is None or after is None:
                before, after = _by_place(old), _by_place(new)
            for key in {**before, **after}:
                yield from _of_entry(before, after, key, f"{field}[{key[1]}]", rules, place)
        case _:
            if canonical(old) != canonical(new):
                yield FieldDifference(field, old, new)


def canonical(value: Any) -> bytes:
    """Return JSON in which objects that differ only in the order of their fields are the same."""
    return _SORTED.encode(value)


def without(value: Any, field: str, ignored: Collection[str]) -> Any:
    """Return `value` without the fields of these names; `result.hooks.updated_at` names that field in every
    entry of `hooks`.
    """
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


def _of_entry(
    old: Mapping[Any, Any], new: Mapping[Any, Any], key: Any, name: str, rules: FieldRules, place: str
) -> Iterator[FieldDifference]:
    if key not in new:
        yield FieldDifference(name, old=old[key])
    elif key not in old:
        yield FieldDifference(name, new=new[key])
    else:
        yield from differences(old[key], new[key], name, rules, place)


def _by_key(entries: Sequence[Any], name: str) -> dict[tuple[type, str], Any] | None:
    """Return the entries by their field `name`, where the number 1 is not the text `1`; None where an entry lacks the
    field or two entries have the same value.
    """
    found: dict[tuple[type, str], Any] = {}
    for entry in entries:
        own = entry.get(name) if isinstance(entry, dict) else None
        if isinstance(own, bool) or not isinstance(own, int | str):
            return None
        found[type(own), f"{name}={own}"] = entry
    return found if len(found) == len(entries) else None


def _by_place(entries: Sequence[Any]) -> dict[tuple[type, str], Any]:
    return {(int, str(place)): entry for place, entry in enumerate(entries)}
