"""`items: {from: JOB, each: …, map: {…}}`: how it is read, and how one line of results becomes items. No I/O here.

Source: interface.md §2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bulk.manifest import expectations, quantities
from bulk.manifest.fields import Fields
from bulk.manifest.flaws import shown, unknown_name
from bulk.manifest.manifest import Derivation, Job
from bulk.operation import AnyOperation

EACH = ("result", "item")
_MISSING = object()


def read(part: Fields, operation: AnyOperation) -> Derivation:
    """The derivation in `items`; flaws are noted in `part`.

    Args:
        operation: of the job whose items are made.
    """
    source = part.text("from", "")
    each = part.choice("each", EACH[0], EACH)
    node = part.node("map")
    part.finish()
    if "from" in part and not source:
        part.flaw("from", "expected the name of a job")
    if node is None or not isinstance(node.value, dict):
        got = "is missing; expected" if node is None else f"got {quantities.kind_of(node.value)}, expected"
        part.flaw("map", f"{got} an object of fields, such as {{org: item.org, hook_id: result.id}}")
        return Derivation(source, each, {})
    fields: dict[str, Any] = node.plain()
    lines = node.places()
    known = {field.encode_name for field in msgspec.structs.fields(operation.Item)}
    for name, value in fields.items():
        if name not in known:
            part.flaw(f"map.{name}", unknown_name(name, known), lines.get(name, node.line))
        for path in paths_of(value):
            if not all(path.split(".")):
                part.flaw(f"map.{name}", f"expected a path such as result.id, got {shown(path)}", node.line)
    literal = {name: value for name, value in fields.items() if name in known and not any(paths_of(value))}
    for flaw in expectations.flaws_of_part(literal, operation.Item):
        part.flaw(f"map.{flaw.field}", flaw.message, lines.get(flaw.field, node.line))
    return Derivation(source, each, fields)


def refuse_unknown_paths(part: Fields, jobs: Sequence[Job]) -> None:
    """Note a flaw for each path into an item that names a field which its items lack, or which results don't keep."""
    operations = {job.name: job.operation for job in jobs}
    for job in jobs:
        derivation = job.derivation
        if derivation is None or derivation.job not in operations:
            continue
        source = operations[derivation.job]
        known = {field.encode_name for field in msgspec.structs.fields(source.Item)}
        for path in paths_of(dict(derivation.fields)):
            root, _, rest = path.partition(".")
            name = rest.partition(".")[0]
            if root == "item" and name and name not in known:
                part.flaw(f"{job.name}.items.map", f"{shown(path)}: {unknown_name(name, known)}", job.line)
            elif root == "item" and (name in source.unreported or rest in source.secret_fields):
                part.flaw(f"{job.name}.items.map", f"{shown(path)} is not kept in results", job.line)


def paths_of(value: object) -> Iterator[str]:
    """The paths in a value of `map`."""
    match value:
        case str():
            if is_path(value):
                yield value
        case dict():
            for inner in value.values():
                yield from paths_of(inner)
        case list():
            for inner in value:
                yield from paths_of(inner)


def is_path(text: str) -> bool:
    """Whether a string of `map` is a path, not literal."""
    return text.startswith(("item.", "result."))


def mapped(derivation: Derivation, line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The items of one line of `results.jsonl`. A path that leads nowhere gives no field."""
    item = {"id": line.get("id"), **line["item"]}
    result = line["result"]
    results = result if derivation.each == "result" and isinstance(result, list) else [result]
    for one in results:
        yield _filled(dict(derivation.fields), {"item": item, "result": one})


def _filled(value: Any, roots: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and is_path(value):
        return _at(value, roots)
    if isinstance(value, dict):
        pairs = {name: _filled(inner, roots) for name, inner in value.items()}
        return {name: inner for name, inner in pairs.items() if inner is not _MISSING}
    if isinstance(value, list):
        return [inner for inner in (_filled(entry, roots) for entry in value) if inner is not _MISSING]
    return value


def _at(path: str, roots: Mapping[str, Any]) -> Any:
    value: Any = roots
    for name in path.split("."):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value
