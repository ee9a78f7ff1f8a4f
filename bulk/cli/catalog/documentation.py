"""The documentation of an operation, made from its class, the class's docstring, and its Item.

Nothing is written twice: fields, types and limits come from the annotations of the Item, the rest from class attributes
and from labelled lines of the docstring (`Requests:`, `Lane:`, `Result:`, `Source:`), which operations of other
packages may leave out. Data and text; the command line prints them.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect as types

from bulk import operation as operations
from bulk.capabilities import secret_fields
from bulk.operation import AnyOperation, Item

WIDTH = 100
"""Columns that the text is wrapped to (count)."""

SECRET = "a secret: env:NAME or file:PATH, in an items file also the value itself; it is written nowhere"

_NAMES: Mapping[type[types.Type], str] = {
    types.StrType: "string",
    types.IntType: "integer",
    types.FloatType: "number",
    types.BoolType: "true or false",
    types.NoneType: "null",
    types.StructType: "object",
}
_LABELS = ("Requests", "Category", "Lane", "Combined", "Superseded", "Refused", "Result", "Lost answer", "Source")
_LABEL = re.compile(rf"(?:^|(?<=\.)\s)({'|'.join(_LABELS)}):\s", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+(?:\n {6,}.+)*)", re.MULTILINE)


class FieldDocumentation(msgspec.Struct, frozen=True, kw_only=True):
    """One field of an item.

    Attributes:
        name: dotted; `*` stands for the keys of a map, `[]` for the entries of an array.
        type: in JSON's words, or the values it can have: `string`, `json | raw`.
        default: used where it is not given; None where there is none, or where that means "not sent".
        limits: such as `1 to 100 characters`.
    """

    name: str
    type: str
    is_required: bool
    default: Any = None
    limits: tuple[str, ...] = ()
    description: str = ""
    examples: tuple[Any, ...] = ()


class OperationDocumentation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation.

    Attributes:
        summary: one line: what it does.
        requests: what it costs, in words; `least_requests` and `most_requests` are what a plan counts with.
        lane: what it writes, one item at a time; `lane_of_example` names that of the example.
        combined: which items share their requests; superseded: which items are not sent; refused: which items
            are refused before anything is sent, because they would harm or contradict each other, and how to insist.
            Empty where there are none.
        settled_by: how a lost answer is settled.
        example: fields of an item that works on the sandbox's standard data.
        schema: JSON Schema (2020-12) of an item.
    """

    name: str
    summary: str
    category: str
    is_read: bool
    is_irreversible: bool
    requests: str
    least_requests: int
    most_requests: int
    lane: str
    lane_of_example: tuple[str, ...]
    combined: str
    superseded: str
    refused: str
    settled_by: str
    result: str
    source: str
    fields: tuple[FieldDocumentation, ...]
    example: Mapping[str, Any]
    schema: Mapping[str, Any]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of operations."""

    name: str
    requests: str
    category: str
    summary: str

    def cells(self) -> tuple[str, str, str, str]:
        """Return a row of the table: operation, requests, category, what it does."""
        return self.name, self.requests, self.category, self.summary


def summaries() -> list[Summary]:
    """Return all installed operations, by name.

    Raises:
        UnknownOperation: an entry point does not lead to an operation of its name.
    """
    return [summary(operations.find(name)) for name in operations.names()]


def summary(operation: AnyOperation) -> Summary:
    """Return one operation in one line."""
    least, most = operation.least_requests, operation.most_requests
    return Summary(
        name=operation.name,
        requests=str(least) if least == most else f"{least} to {most}",
        category=operation.category,
        summary=_sections(operation)[""],
    )


def describe(name: str) -> OperationDocumentation:
    """Return the installed operation of that name.

    Raises:
        UnknownOperation: no operation of that name is installed.
    """
    return documentation(operations.find(name))


def documentation(operation: AnyOperation) -> OperationDocumentation:
    """Return everything that there is to know about an operation before it is used."""
    said = _sections(operation)
    short = summary(operation)
    lanes = _lanes_of_example(operation)
    return OperationDocumentation(
        name=operation.name,
        summary=short.summary,
        category=operation.category,
        is_read=operation.is_read,
        is_irreversible=operation.is_irreversible,
        requests=said.get("Requests", short.requests),
        least_requests=operation.least_requests,
        most_requests=operation.most_requests,
        lane=said.get("Lane", "as the example's" if lanes else _lane_without_example(operation)).rstrip("."),
        lane_of_example=lanes,
        combined=said.get("Combined", ""),
        superseded=said.get("Superseded", ""),
        refused=said.get("Refused", ""),
        settled_by=operation.settled_by,
        result=said.get("Result", ""),
        source=said.get("Source", ""),
        fields=tuple(_fields(operation)),
        example=dict(operation.example),
        schema=schema(operation),
    )


def schema(operation: AnyOperation) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an item."""
    made = msgspec.json.schema(operation.Item)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": operation.name}
    examples = {"examples": [dict(operation.example)]} if _has_example(operation.example, _fields(operation)) else {}
    return {**head, "description": _sections(operation)[""], **made, **examples}


def example_manifest(described: OperationDocumentation) -> str:
    """Return a whole manifest (YAML) with the example as its one item."""
    item = msgspec.json.encode(described.example)
    if len(item) > WIDTH:
        # JSON is YAML also over several lines, as long as they are indented further than what they belong to
        item = msgspec.json.format(item, indent=2)
    shown = textwrap.indent(item.decode(), " " * 8).lstrip()
    return f"version: 1\njobs:\n  example:\n    operation: {described.name}\n    items:\n      - {shown}\n"


def as_text(described: OperationDocumentation) -> str:
    """Return the documentation as text for people: a head, the fields, an example."""
    lines = [described.name, *_wrapped(described.summary, 2), ""]
    for label, text in facts(described):
        if label == "lane":
            text = ", ".join((text, *(f"here {lane}" for lane in described.lane_of_example)))
        lines += _wrapped(text, 15, f"  {label:<13}")
    lines += ["", "Fields of an item"]
    for field in described.fields:
        lines.append(f"  {field.name}  ({_kind(field)})")
        lines += _wrapped(about(field), 6)
    if _has_example(described.example, described.fields):
        lines += ["", "Example: a manifest"]
        lines += textwrap.indent(example_manifest(described), "  ").splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def facts(described: OperationDocumentation) -> Iterator[tuple[str, str]]:
    """Return the facts besides the summary and the fields, each with its label; an empty fact is left out."""
    effect = "changes nothing" if described.is_read else "writes"
    said = {
        "requests": described.requests,
        "category": described.category,
        "lane": described.lane,
        "combined": described.combined,
        "superseded": described.superseded,
        "refused": described.refused,
        "effect": f"{effect}; can't be undone" if described.is_irreversible else effect,
        "result": described.result,
        "lost answer": described.settled_by,
        "source": described.source,
    }
    return ((label, text) for label, text in said.items() if text)


def _kind(field: FieldDocumentation) -> str:
    if field.is_required:
        return f"{field.type}, required"
    return field.type if field.default is None else f"{field.type}, default {shown(field.default)}"


def about(field: FieldDocumentation) -> str:
    """Return what a field is, its limits and examples, in one sentence."""
    parts = [field.description, *field.limits]
    if field.examples:
        parts.append(f"such as {', '.join(shown(example) for example in field.examples)}")
    return "; ".join(part for part in parts if part)


def shown(value: Any) -> str:
    """Return a value as a person writes it: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _wrapped(text: str, indent: int, first: str | None = None) -> list[str]:
    blank = " " * indent
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=blank if first is None else first,
        subsequent_indent=blank,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _sections(operation: AnyOperation) -> dict[str, str]:
    """Return the labelled parts of the class's docstring; its first paragraph, what it does, under the empty label."""
    text = inspect.cleandoc(type(operation).__doc__ or "")
    said = {"": " ".join(text.partition("\n\n")[0].split())}
    parts = _LABEL.split(text)
    for label, part in zip(parts[1::2], parts[2::2], strict=True):
        said[label] = " ".join(part.partition("\n\n")[0].split())
    return said


def _has_example(example: Mapping[str, Any], fields: Iterable[FieldDocumentation]) -> bool:
    return bool(example) or not any(field.is_required for field in fields)


def _lane_without_example(operation: AnyOperation) -> str:
    return "none" if operation.is_read or type(operation).lanes is operations.Operation.lanes else "not described"


def _lanes_of_example(operation: AnyOperation) -> tuple[str, ...]:
    if operation.is_read or not operation.example:
        return ()
    try:
        return tuple(operation.lanes(msgspec.convert(dict(operation.example), operation.Item)))
    except msgspec.ValidationError:
        return ()


def _fields(operation: AnyOperation) -> Iterator[FieldDocumentation]:
    """Yield the fields of an item and of what is in it, the id last, because it is the user's own."""
    found = types.type_info(operation.Item)
    assert isinstance(found, types.StructType), "an Item is a struct"
    said = _attributes(operation.Item)
    for field in sorted(found.fields, key=lambda field: field.name == "id"):
        for shown in _field(field, "", said):
            if shown.name in secret_fields(operation):
                shown = msgspec.structs.replace(shown, limits=(*shown.limits, SECRET))
            yield shown


def _field(field: types.Field, prefix: str, said: Mapping[str, str]) -> Iterator[FieldDocumentation]:
    name = f"{prefix}{field.encode_name}"
    kind, extra = _plain(field.type)
    default = None if field.default is msgspec.NODEFAULT else field.default
    yield FieldDocumentation(
        name=name,
        type=_type_name(kind, has_null=default is not None or field.required),
        is_required=field.required,
        default=default,
        limits=tuple(_limits(kind, extra)),
        description=extra.get("description", said.get(field.name, "")),
        examples=tuple(extra.get("examples", ())),
    )
    yield from _inner(kind, name)


def _inner(kind: types.Type, name: str) -> Iterator[FieldDocumentation]:
    """Yield the fields of the structs that a field holds."""
    match kind:
        case types.StructType(fields=fields):
            for field in fields:
                yield from _field(field, f"{name}.", _attributes(kind.cls))
        case types.DictType(value_type=value):
            yield from _inner(_plain(value)[0], f"{name}.*")
        case types.ListType(item_type=entry) | types.VarTupleType(item_type=entry):
            yield from _inner(_plain(entry)[0], f"{name}[]")
        case types.UnionType(types=several):
            tagged = [each for each in several if isinstance(each, types.StructType) and each.tag_field]
            yield from _variants(tagged, name)


def _variants(several: Sequence[types.StructType], name: str) -> Iterator[FieldDocumentation]:
    """Yield the fields of objects that a tag tells apart: first the tag, then such as `rules[update].parameters`."""
    if several:
        tags = " | ".join(str(each.tag) for each in several)
        yield FieldDocumentation(name=f"{name}.{several[0].tag_field}", type=tags, is_required=True)
    for each in several:
        for field in each.fields:
            yield from _field(field, f"{name.removesuffix('[]')}[{each.tag}].", _attributes(each.cls))


def _plain(kind: types.Type) -> tuple[types.Type, dict[str, Any]]:
    """Return a type without its annotations and without None, and what the annotations say."""
    said: dict[str, Any] = {}
    while True:
        if isinstance(kind, types.Metadata):
            said = {**(kind.extra_json_schema or {}), **said}
            kind = kind.type
        elif isinstance(kind, types.UnionType):
            some = [part for part in kind.types if not isinstance(part, types.NoneType)]
            if len(some) != 1 or len(some) == len(kind.types):
                return kind, said
            kind = some[0]
        else:
            return kind, said


def _type_name(kind: types.Type, *, has_null: bool = True) -> str:
    """Return a type in JSON's words. `has_null`: whether null means something else than "not given"."""
    match kind:
        case types.LiteralType(values=values):
            return " | ".join(str(value) for value in values)
        case types.EnumType(cls=cls):
            return " | ".join(str(each.value) for each in cls)
        case types.DictType(value_type=value):
            return f"map of {_type_name(_plain(value)[0])}"
        case types.ListType(item_type=entry) | types.VarTupleType(item_type=entry):
            return f"array of {_type_name(_plain(entry)[0])}"
        case types.UnionType(types=several):
            shown = [each for each in several if has_null or not isinstance(each, types.NoneType)]
            return " | ".join(dict.fromkeys(_type_name(_plain(each)[0]) for each in shown))
    return _NAMES.get(type(kind), "any")


def _limits(kind: types.Type, said: Mapping[str, Any]) -> Iterator[str]:
    """Yield the limits of a value, in words."""
    match kind:
        case types.StrType(min_length=least, max_length=most):
            yield from _span(least, most, "characters")
        case types.DictType(min_length=least, max_length=most):
            yield from _span(least, most, "keys")
        case types.ListType(min_length=least, max_length=most):
            yield from _span(least, most, "entries")
        case types.IntType(ge=least, le=most) | types.FloatType(ge=least, le=most):
            yield from _span(least, most, "")
    pattern = said.get("pattern") or getattr(kind, "pattern", None)
    if pattern:
        yield f"matches {pattern}"


def _span(least: float | None, most: float | None, unit: str) -> Iterator[str]:
    if least is not None and least == most:
        yield f"exactly {most} {unit}".rstrip()
    elif least == 1 and most is None and unit:
        yield "not empty"
    elif least is not None and most is not None:
        yield f"{least} to {most} {unit}".rstrip()
    elif least is not None:
        yield f"at least {least} {unit}".rstrip()
    elif most is not None:
        yield f"at most {most} {unit}".rstrip()


def _attributes(cls: type[Any]) -> dict[str, str]:
    """Return what the docstrings of a struct and of its bases say about their attributes."""
    said: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base in (object, msgspec.Struct) or not (issubclass(base, Item) or issubclass(base, msgspec.Struct)):
            continue
        text = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2]
        said.update((name, " ".join(words.split()).rstrip(".")) for name, words in _ATTRIBUTE.findall(text))
    return said
