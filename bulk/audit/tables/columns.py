"""Columns of a table, from the declared types of an operation's items and results. Pure.

A shape is a type as DuckDB's `from_json` takes it: the name of a scalar type, a mapping for an object, a list of one
shape for an array. A value that has no one shape is `JSON`. Columns are added over time, never renamed or given
another type, because they follow the types: a test compares them with those of the last release.
"""

import fnmatch
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from bulk.capabilities import Returns, result_type, secret_fields
from bulk.errors import UsageError
from bulk.operation import AnyOperation, UnknownOperation, find

Shape: TypeAlias = "str | Mapping[str, Shape] | list[Shape]"

ENVELOPE: Mapping[str, str] = {
    "run": "VARCHAR",
    "job": "VARCHAR",
    "idx": "BIGINT",
    "id": "VARCHAR",
    "outcome": "VARCHAR",
    "missing": "BOOLEAN",
    "observed_at": "TIMESTAMP",
}
"""The columns that every table of an operation begins with."""

ITEMS: Mapping[str, str] = {
    **ENVELOPE,
    "operation": "VARCHAR",
    "item": "JSON",
    "http_status": "BIGINT",
    "attempts": "BIGINT",
    "elapsed_ms": "DOUBLE",
    "error_code": "VARCHAR",
    "error_message": "VARCHAR",
}
RUNS: Mapping[str, str] = {
    "run": "VARCHAR",
    "name": "VARCHAR",
    "base_url": "VARCHAR",
    "version": "VARCHAR",
    "state": "VARCHAR",
    "exit_code": "BIGINT",
    "started_at": "TIMESTAMP",
    "ended_at": "TIMESTAMP",
    "items": "BIGINT",
    "succeeded": "BIGINT",
    "unchanged": "BIGINT",
    "failed": "BIGINT",
    "skipped": "BIGINT",
    "unknown": "BIGINT",
    "requests": "BIGINT",
    "units": "BIGINT",
    "not_modified": "BIGINT",
}
SCHEMA_DRIFT: Mapping[str, str] = {
    "run": "VARCHAR",
    "operation": "VARCHAR",
    "field": "VARCHAR",
    "problem": "VARCHAR",
    "count": "BIGINT",
    "example_type": "VARCHAR",
}
CHANGES: Mapping[str, str] = {
    "run": "VARCHAR",
    "job": "VARCHAR",
    "operation": "VARCHAR",
    "item": "JSON",
    "id": "VARCHAR",
    "kind": "VARCHAR",
    "field": "VARCHAR",
    "old": "JSON",
    "new": "JSON",
    "before_at": "TIMESTAMP",
    "first_seen": "TIMESTAMP",
}
VIOLATIONS: Mapping[str, str] = {
    "run": "VARCHAR",
    "policy": "VARCHAR",
    "severity": "VARCHAR",
    "key": "JSON",
    "message": "VARCHAR",
    "status": "VARCHAR",
    "waiver": "VARCHAR",
    "first_seen": "TIMESTAMP",
    "last_seen": "TIMESTAMP",
}
COMMON: Mapping[str, Mapping[str, str]] = {
    "items": ITEMS,
    "runs": RUNS,
    "schema_drift": SCHEMA_DRIFT,
    "changes": CHANGES,
    "violations": VIOLATIONS,
}
"""The tables that are there whatever the operations are."""

_SCALARS: Mapping[Any, str] = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
_ANY = "JSON"
_DEEPEST = 6
"""Levels of objects whose fields have types of their own (count); deeper objects, as in recursive types, are JSON."""


@dataclass(frozen=True, slots=True)
class Table:
    """The table of one operation.

    Attributes:
        name: `webhook_list` for `webhook.list`.
        operation: name of the operation.
        item: shape of each field of an item; the column has the name of the field, or `item_` before it where the
            envelope has that name.
        result: shape of the result.
        untabled: dotted names of fields that the type of the result has and the table does not, from `result` on.
        list_field: where the result may be an array although its shape is an object: the field that takes the array.
    """

    name: str
    operation: str
    item: Mapping[str, Shape]
    result: Shape
    untabled: frozenset[str] = frozenset()
    list_field: str = ""

    @property
    def columns(self) -> dict[str, str]:
        """SQL type of each column, in order."""
        own = {column_of(name): sql_type(shape) for name, shape in self.item.items()}
        return {**ENVELOPE, **own, "result": sql_type(self.result)}


def table_named(operation: str) -> Table:
    """Return the table of the operation of that name.

    Raises:
        UsageError: no such operation is installed here.
    """
    try:
        return table_of(find(operation))
    except UnknownOperation as unknown:
        raise UsageError(f"tables can't be made: {unknown}") from None


def table_of(operation: AnyOperation) -> Table:
    """Return the table that holds results of `operation`, without fields that are large or may hold secrets."""
    untabled = operation.untabled if isinstance(operation, Returns) else frozenset()
    declared = result_type(operation)
    shape, list_field = _of_result(declared)
    left_out = operation.unreported | secret_fields(operation) | {"id"}
    hints = get_type_hints(operation.Item)
    item = {
        field.encode_name: _of_type(hints[field.name], 0)
        for field in msgspec.structs.fields(operation.Item)
        if field.encode_name not in left_out
    }
    return Table(
        name=table_name(operation.name),
        operation=operation.name,
        item={name: _without(inner, name, secret_fields(operation)) for name, inner in item.items()},
        result=_without(shape, "", untabled),
        untabled=frozenset(f"result.{place}" for place in _places(shape, "") if _is_any_of(place, untabled)),
        list_field=list_field,
    )


def table_name(operation: str) -> str:
    """Return `webhook_get_config` for `webhook.get-config`."""
    return operation.replace(".", "_").replace("-", "_")


def column_of(field: str) -> str:
    """Return the column of a field of items."""
    return f"item_{field}" if field in ENVELOPE or field == "result" else field


def sql_type(shape: Shape) -> str:
    """Return the shape as a type of a column."""
    if isinstance(shape, str):
        return shape
    if isinstance(shape, list):
        return f"{sql_type(shape[0])}[]"
    fields = ", ".join(f'"{name}" {sql_type(inner)}' for name, inner in shape.items())
    return f"STRUCT({fields})"


def _of_result(declared: Any) -> tuple[Shape, str]:
    """Return the shape of a result, and the field that takes the result where that is an array and no object."""
    if get_origin(declared) in (typing.Union, types.UnionType):
        inner = [arg for arg in get_args(declared) if arg is not type(None)]
        shapes = [_of_type(arg, 0) for arg in inner]
        objects = [shape for shape in shapes if isinstance(shape, dict)]
        lists = [shape for shape in shapes if isinstance(shape, list)]
        if len(objects) == 1 and len(lists) == 1 and len(shapes) == 2:
            for name, shape in objects[0].items():
                if shape == lists[0]:
                    return objects[0], name
    return _of_type(declared, 0), ""


def _of_type(declared: Any, depth: int) -> Shape:
    if get_origin(declared) is typing.Annotated:
        declared = get_args(declared)[0]
    origin = get_origin(declared)
    if origin in (typing.Union, types.UnionType):
        inner = [arg for arg in get_args(declared) if arg not in (type(None), msgspec.UnsetType)]
        shapes = {repr(shape): shape for shape in (_of_type(arg, depth) for arg in inner)}
        return next(iter(shapes.values())) if len(shapes) == 1 else _ANY
    if origin is typing.Literal:
        kinds = {type(value) for value in get_args(declared)}
        return _SCALARS.get(kinds.pop(), _ANY) if len(kinds) == 1 else _ANY
    if origin in (list, tuple):
        return [_of_type(get_args(declared)[0], depth)]
    if isinstance(declared, type) and (typing.is_typeddict(declared) or issubclass(declared, msgspec.Struct)):
        return _of_object(declared, depth)
    return _SCALARS.get(declared, _ANY)


def _of_object(declared: Any, depth: int) -> Shape:
    if depth >= _DEEPEST:
        return _ANY
    hints = get_type_hints(declared, include_extras=True)
    if isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        names = {field.name: field.encode_name for field in msgspec.structs.fields(declared)}
        hints = {names[name]: hint for name, hint in hints.items() if name in names}
    return {name: _of_type(hint, depth + 1) for name, hint in hints.items()}


def _without(shape: Shape, place: str, left_out: frozenset[str]) -> Shape:
    """Return the shape without fields that match; patterns as in `Returns.untabled`."""
    if isinstance(shape, list):
        return [_without(shape[0], place, left_out)]
    if isinstance(shape, str):
        return shape
    places = {name: f"{place}.{name}" if place else name for name in shape}
    kept = {
        name: _without(inner, places[name], left_out)
        for name, inner in shape.items()
        if not _is_any_of(places[name], left_out)
    }
    return kept or _ANY


def _places(shape: Shape, place: str) -> Iterator[str]:
    """Yield the dotted names of all fields, without places in lists."""
    if isinstance(shape, list):
        yield from _places(shape[0], place)
    elif not isinstance(shape, str):
        for name, inner in shape.items():
            own = f"{place}.{name}" if place else name
            yield own
            yield from _places(inner, own)


def _is_any_of(place: str, patterns: frozenset[str]) -> bool:
    return any(fnmatch.fnmatchcase(place, pattern) for pattern in patterns)
