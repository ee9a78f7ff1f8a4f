"""`items: {from: JOB, each: …, also: […], map: {…}}`: how it is read, and how a line of results becomes items. No I/O.

Source: interface.md §2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bulk import quantities
from bulk.capabilities import secret_fields
from bulk.flaws import shown, unknown_name
from bulk.items import type_errors
from bulk.manifest.fields import Fields
from bulk.manifest.manifest import Derivation, Job
from bulk.operation import AnyOperation

EACH = ("result", "item")
OWN_ROOTS = ("item", "result")
"""Paths in `map` that lead into the line of results itself begin with these; others begin with a name of `also`."""
_MISSING = object()


def read(part: Fields, operation: AnyOperation, defaults: Mapping[str, Any]) -> Derivation:
    """Return the derivation in `items`; flaws are noted in `part`.

    Args:
        operation: operation of the job whose items are made. defaults: the fields that its `with` gives every item.
    """
    source = part.text("from", "")
    each = part.choice("each", EACH[0], EACH)
    also: tuple[str, ...] = tuple(part.scalar("also", {}, _names))
    node = part.node("map")
    part.finish()
    if "from" in part and not source:
        part.flaw("from", "expected the name of a job")
    if node is None or not isinstance(node.value, dict):
        got = "is missing; expected" if node is None else f"got {quantities.kind_of(node.value)}, expected"
        part.flaw("map", f"{got} an object of fields, such as {{org: item.org, hook_id: result.id}}")
        return Derivation(source, each, {}, also)
    fields: dict[str, Any] = node.plain()
    lines = node.places()
    known = {field.encode_name for field in msgspec.structs.fields(operation.Item)}
    for name, value in fields.items():
        if name not in known:
            part.flaw(f"map.{name}", unknown_name(name, known), lines.get(name, node.line))
        for path in paths_of(value, also):
            if not all(path.split(".")):
                part.flaw(f"map.{name}", f"expected a path such as result.id, got {shown(path)}", node.line)
    literal = {name: value for name, value in fields.items() if name in known and not any(paths_of(value, also))}
    for flaw in type_errors.flaws_of_part(literal, operation.Item):
        part.flaw(f"map.{flaw.field}", flaw.message, lines.get(flaw.field, node.line))
    for flaw in type_errors.missing_in({**defaults, **fields}, operation.Item):
        part.flaw(f"map.{flaw.field}", flaw.message, lines.get(flaw.field.rpartition(".")[0], node.line))
    return Derivation(source, each, fields, also)


def _names(given: object) -> dict[str, None]:
    if not isinstance(given, list) or not all(isinstance(name, str) and name not in OWN_ROOTS for name in given):
        raise ValueError("expected a list of names of jobs, none of them item or result, such as [baseline]")
    return dict.fromkeys(given)


def refuse_unknown_paths(part: Fields, jobs: Sequence[Job]) -> None:
    """Note a flaw for each path into an item that names a field which its items lack, or which results don't keep."""
    found = {job.name: job for job in jobs}
    for job in jobs:
        derivation = job.derivation
        if derivation is None or derivation.job not in found:
            continue
        for name in derivation.also:
            items = found[name].items if name in found else None
            if items is not None and len(items) != 1:
                message = f"expected jobs of one item each, {shown(name)} has {len(items):,}"
                part.flaw(f"{job.name}.items.also", message, part.line_at(job.name, "items", "also"))
        for given, value in derivation.fields.items():
            line = part.line_at(job.name, "items", "map", given)
            for path in paths_of(value, derivation.also):
                flaw = _flaw_of_path(path, derivation, found)
                if flaw:
                    part.flaw(f"{job.name}.items.map", f"{shown(path)}{flaw}", line)


def _flaw_of_path(path: str, derivation: Derivation, jobs: Mapping[str, Job]) -> str:
    """Return why a path of `map` leads nowhere; empty: it may lead somewhere."""
    name, kind, field = _aim(path, derivation)
    if kind not in OWN_ROOTS:
        return f": expected {name}.item.… or {name}.result.…"
    return _flaw_of_field(field, jobs[name].operation) if kind == "item" and name in jobs else ""


def _aim(path: str, derivation: Derivation) -> tuple[str, str, str]:
    """Return the job that a path leads to, `item` or `result`, and the dotted field there."""
    root, rest = _split(path, derivation.also)
    if root in OWN_ROOTS:
        return derivation.job, root, rest
    kind, _, field = rest.partition(".")
    return root, kind, field


def _flaw_of_field(dotted: str, operation: AnyOperation) -> str:
    """Return why a field of an operation's items can't be read from their results; empty: it can."""
    name = dotted.partition(".")[0]
    known = {field.encode_name for field in msgspec.structs.fields(operation.Item)}
    if name and name not in known:
        return f": {unknown_name(name, known)}"
    if name in operation.unreported or dotted in secret_fields(operation):
        return " is not kept in results"
    return ""


def paths_of(value: object, also: Sequence[str] = ()) -> Iterator[str]:
    """Yield the paths in a value of `map`."""
    match value:
        case str():
            if _split(value, also)[0]:
                yield value
        case dict():
            for inner in value.values():
                yield from paths_of(inner, also)
        case list():
            for inner in value:
                yield from paths_of(inner, also)


def _split(text: str, also: Sequence[str]) -> tuple[str, str]:
    """Return the root that makes a string of `map` a path, and the rest of it; both are empty if it is literal.

    Names of jobs may have dots: the longest one that fits counts.
    """
    fitting = [root for root in (*OWN_ROOTS, *also) if text.startswith(f"{root}.")]
    root = max(fitting, key=len, default="")
    return root, text[len(root) + 1 :] if root else ""


def mapped(
    derivation: Derivation, line: Mapping[str, Any], beside: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the items of one line of `results.jsonl`. A path that leads nowhere gives no field.

    Args:
        beside: the one line of results of each job of `also` that has one.
    """
    others = {name: {"item": _item(other), "result": other["result"]} for name, other in (beside or {}).items()}
    result = line["result"]
    results = result if derivation.each == "result" and isinstance(result, list) else [result]
    for one in results:
        yield _filled(dict(derivation.fields), {**others, "item": _item(line), "result": one}, derivation.also)


def _item(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": line.get("id"), **line["item"]}


def _filled(value: Any, roots: Mapping[str, Any], also: Sequence[str]) -> Any:
    if isinstance(value, str) and _split(value, also)[0]:
        return _at(value, roots, also)
    if isinstance(value, dict):
        pairs = {name: _filled(inner, roots, also) for name, inner in value.items()}
        return {name: inner for name, inner in pairs.items() if inner is not _MISSING}
    if isinstance(value, list):
        return [inner for inner in (_filled(entry, roots, also) for entry in value) if inner is not _MISSING]
    return value


def _at(path: str, roots: Mapping[str, Any], also: Sequence[str]) -> Any:
    root, rest = _split(path, also)
    value: Any = roots.get(root, _MISSING)
    for name in rest.split("."):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) < 20 and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value
