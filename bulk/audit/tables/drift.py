"""Finds what the declared types of results don't foresee: undeclared fields, and values of another type. Pure.

The platform's addresses and own keys, of which every answer has many, are foreseen though no type lists them.

It looks at the structures of results, as DuckDB's `json_structure` tells them: they are few, however many results
there are. No value is ever looked at or shown.
"""

import fnmatch
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bulk.audit.tables.columns import Shape, Table
from bulk.capabilities import VOLATILE

UNKNOWN, TYPE = "unknown", "type"
_FITTING: Mapping[str, frozenset[str]] = {
    "VARCHAR": frozenset({"VARCHAR"}),
    "BIGINT": frozenset({"BIGINT", "UBIGINT"}),
    "DOUBLE": frozenset({"DOUBLE", "BIGINT", "UBIGINT"}),
    "BOOLEAN": frozenset({"BOOLEAN"}),
}


def drift_rows(run: str, tables: Mapping[str, Table], found: Iterable[tuple[str, str, int]]) -> list[list[Any]]:
    """Return the rows of `schema_drift`.

    Args:
        tables: the table of each job, by the name of the job.
        found: job, structure of results as JSON, and how many results of the job have it (count).
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    types: dict[tuple[str, str, str], str] = {}
    for job, structure, count in found:
        table = tables[job]
        shape = table.result
        given = json.loads(structure)
        if table.list_field and isinstance(given, list) and isinstance(shape, dict):
            shape = shape[table.list_field]
        for field, problem, kind in differences(given, shape, "result", table.untabled):
            key = table.operation, field, problem
            counts[key] += count
            types.setdefault(key, kind)
    return [[run, *key, count, types[key]] for key, count in sorted(counts.items())]


def differences(
    given: Any, shape: Shape, field: str, left_out: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str, str]]:
    """Yield (field, problem, type) for everything in a structure that does not fit `shape`.

    Args:
        left_out: fields that the type has and tables don't, with their dotted names.
    """
    if given == "NULL" or shape == "JSON":
        return
    if isinstance(shape, str):
        if isinstance(given, dict | list) or given not in _FITTING[shape]:
            yield field, TYPE, _kind(given)
    elif isinstance(shape, list):
        if isinstance(given, list):
            yield from differences(given[0], shape[0], field, left_out)
        else:
            yield field, TYPE, _kind(given)
    elif isinstance(given, dict):
        for name, inner in given.items():
            place = f"{field}.{name}"
            if name in shape:
                yield from differences(inner, shape[name], place, left_out)
            elif place not in left_out and not any(fnmatch.fnmatchcase(place, known) for known in VOLATILE):
                yield place, UNKNOWN, _kind(inner)
    else:
        yield field, TYPE, _kind(given)


def _kind(given: Any) -> str:
    if isinstance(given, dict):
        return "OBJECT"
    return "ARRAY" if isinstance(given, list) else str(given)
