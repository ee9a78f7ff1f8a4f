"""Explains in words every flaw of one item, by the types of its operation.

msgspec stops at the first flaw and speaks of types; here the fields are walked one by one, so that all flaws are named,
and its messages are translated into ours. This runs only for items that can't be used, so it may be slow. No message
repeats a value, which may be a secret.
"""

import re
from typing import Any

import msgspec
from msgspec import inspect

from bulk.flaws import MOST_FLAWS, name_shown, unknown_name
from bulk.operation import ItemFlaw
from bulk.quantities import kind_of

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "null": "nothing (null)",
    "object": "an object",
    "array": "a list",
}
_UNITS = {"str": "character", "array": "entry", "object": "field"}
_IS_MISSING = "is missing"
_AT = re.compile(r"^(.*) - at `(?:key in )?\$\.?(.*)`$", re.DOTALL)
_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_BOUND = re.compile(r"Expected `([^`]+)` (of length )?(>=|<=|>|<|==) (\S+)")
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.+)`", re.DOTALL)
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "==": "exactly"}


def flaws_of_part(value: Any, item_type: type[msgspec.Struct]) -> list[ItemFlaw]:
    """Return the flaws of some fields of an `item_type`, such as `with` gives them, that items complete; empty if they
    have none."""
    names = set(value)
    found = _flaws_of_struct(value, item_type, "", is_yaml=True)
    return [flaw for flaw in found if flaw.field in names or not flaw.message.startswith(_IS_MISSING)]


def missing_in(value: Any, item_type: type[msgspec.Struct]) -> list[ItemFlaw]:
    """Return a flaw for each required field of an `item_type` that `value` lacks; other flaws are left out."""
    return [
        flaw for flaw in _flaws_of_struct(value, item_type, "", is_yaml=True) if flaw.message.startswith(_IS_MISSING)
    ]


def flaws_of(value: Any, item_type: type[msgspec.Struct], *, is_yaml: bool = False) -> list[ItemFlaw]:
    """Return all flaws that keep `value` from being an `item_type`; at least one.

    Args:
        is_yaml: strings may lack quotes, so say where quotes would help.
    """
    found = _flaws_of_struct(value, item_type, "", is_yaml)
    if not found:
        found = _flaws_of_value(value, item_type, "", is_yaml)
    return found or [ItemFlaw("", "can't be used")]


def _flaws_of_struct(value: Any, struct: type[msgspec.Struct], where: str, is_yaml: bool) -> list[ItemFlaw]:
    if not isinstance(value, dict):
        return [ItemFlaw(where, f"expected an object, got {kind_of(value)}")]
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    unknown = [str(name) for name in value if name not in fields]
    explained, others = unknown[:MOST_FLAWS], unknown[MOST_FLAWS:]
    found = [ItemFlaw(_joined(where, name), unknown_name(name, fields)) for name in explained]
    found += [ItemFlaw(_joined(where, name), "unknown field") for name in others]
    for name, field in fields.items():
        if name not in value:
            if field.required:
                found.append(ItemFlaw(_joined(where, name), f"{_IS_MISSING}; expected {_expected(field.type)}"))
            continue
        inner = _struct_of(field.type)
        if inner is not None and isinstance(value[name], dict):
            found += _flaws_of_struct(value[name], inner, _joined(where, name), is_yaml)
        else:
            found += _flaws_of_value(value[name], field.type, _joined(where, name), is_yaml)
    return found


def _flaws_of_value(value: Any, kind: Any, where: str, is_yaml: bool) -> list[ItemFlaw]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return [_translated(str(error), kind, where, is_yaml)]
    except RecursionError:
        return [ItemFlaw(where, "nested too deeply")]
    return []


def _translated(message: str, kind: Any, where: str, is_yaml: bool) -> ItemFlaw:
    """Return msgspec's message as a flaw; its place is relative to `where`."""
    at = _AT.match(message)
    text, inner = (at[1], at[2]) if at else (message, "")
    inner = inner.replace("[...]", ".…") if inner else ""
    place = where + ("" if not inner or inner.startswith(("[", ".")) or not where else ".") + inner
    place = place.removeprefix(".")
    if found := _FIELD.fullmatch(text):
        return ItemFlaw(_joined(place, found[2]), _IS_MISSING if "missing" in found[1] else "unknown field")
    if found := _WRONG_TYPE.fullmatch(text):
        hint = " (put it in quotes)" if is_yaml and "str" in found[1].split(" | ") and found[2] in _SCALARS else ""
        return ItemFlaw(place, f"expected {in_words(found[1])}, got {_WORDS.get(found[2], found[2])}{hint}")
    if found := _BOUND.fullmatch(text):
        return ItemFlaw(place, _bound(found[1], bool(found[2]), found[3], found[4]))
    if text.startswith("Invalid enum value"):
        choices = _choices(kind)
        return ItemFlaw(place, f"expected one of {', '.join(choices)}" if choices else "is none of the allowed values")
    return ItemFlaw(place, text[:1].lower() + text[1:].replace("`", ""))


_SCALARS = ("int", "float", "bool", "null")


def _bound(kinds: str, is_length: bool, sign: str, number: str) -> str:
    kind = next((kind for kind in kinds.split(" | ") if kind != "null"), kinds)
    if not is_length:
        return f"expected {in_words(kinds)}, {_BOUNDS[sign]} {number}"
    unit = _UNITS.get(kind, "entry")
    if number != "1":
        unit = unit.removesuffix("y") + "ies" if unit.endswith("y") else unit + "s"
    return f"expected {in_words(kinds)} of {_BOUNDS[sign]} {number} {unit}"


def in_words(kinds: str) -> str:
    """Return `a whole number or a string` for msgspec's `int | str | null`; `null` is left out."""
    names = [kind for kind in kinds.split(" | ") if kind != "null"] or ["null"]
    if "float" in names and "int" in names:
        names.remove("int")
    words = [_WORDS.get(name, name) for name in names]
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} or {words[-1]}"


def _expected(kind: Any) -> str:
    """Return the values that a field of type `kind` takes, in words."""
    if choices := _choices(kind):
        return f"one of {', '.join(choices)}"
    flaws = _flaws_of_value(object(), kind, "", is_yaml=False)  # no field of an item takes this object
    return flaws[0].message.removeprefix("expected ").partition(", got ")[0] if flaws else "a value"


def options(info: inspect.Type) -> list[inspect.Type]:
    """Return the types that `info` allows, without annotations and null."""
    while isinstance(info, inspect.Metadata):
        info = info.type
    if isinstance(info, inspect.UnionType):
        return [inner for option in info.types for inner in options(option)]
    return [] if isinstance(info, inspect.NoneType) else [info]


def _choices(kind: Any) -> list[str]:
    """Return the allowed values where `kind` is one of a fixed set, or a list of such."""
    found: list[str] = []
    for option in options(inspect.type_info(kind)):
        for inner in options(option.item_type) if isinstance(option, inspect.ListType) else [option]:
            if isinstance(inner, inspect.LiteralType):
                found += map(str, inner.values)
            elif isinstance(inner, inspect.EnumType):
                found += [str(member.value) for member in inner.cls]
    return found


def _struct_of(kind: Any) -> type[msgspec.Struct] | None:
    """Return the struct of `kind`, apart from null and annotations; None if `kind` is something else."""
    found = [option.cls for option in options(inspect.type_info(kind)) if isinstance(option, inspect.StructType)]
    return found[0] if len(found) == 1 else None


def _joined(where: str, name: str) -> str:
    return f"{where}.{name_shown(name)}" if where else name_shown(name)
