"""Values that a platform has shown, in the form in which an item can give them back.

A platform may show a switch as 0, 1 or a text, a number as a text, and a word of a set in another case. An item takes
none of these: the types of its fields say what is meant.
"""

from typing import Any

from msgspec import inspect

_SWITCHES = {"0": False, "false": False, "1": True, "true": True}


def as_given(value: Any, kind: inspect.Type) -> Any:
    """Return a shown value as a field of this type takes it; one for which there is no such form stays as it is."""
    match kind:
        case inspect.Metadata():
            return as_given(value, kind.type)
        case inspect.UnionType():
            forms = (as_given(value, each) for each in kind.types)
            return next((form for form in forms if form is not value), value)
        case inspect.StructType() if isinstance(value, dict):
            kinds = {field.encode_name: field.type for field in kind.fields}
            return {name: as_given(each, kinds[name]) if name in kinds else each for name, each in value.items()}
        case inspect.ListType() if isinstance(value, list):
            return [as_given(each, kind.item_type) for each in value]
        case inspect.LiteralType():
            return next((word for word in kind.values if _folded(word) == _folded(value)), value)
        case inspect.BoolType() if not isinstance(value, bool):
            return _SWITCHES.get(_folded(value), value)
        case inspect.IntType() if isinstance(value, str) and value.isascii() and value.isdigit():
            return int(value)
    return value


def _folded(value: Any) -> str:
    return str(value).strip().casefold()
