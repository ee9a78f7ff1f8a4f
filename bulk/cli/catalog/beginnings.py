"""The files that `bulk init` writes: a manifest whose jobs are explained in comments, and a CSV header for each job."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bulk.capabilities import TakesFiles
from bulk.cli.catalog.documentation import FieldDocumentation, about, documentation
from bulk.operation import AnyOperation

MANIFEST = "manifest.yaml"
WIDTH = 110
"""Columns that comments are wrapped to (count)."""

_HEAD = """\
# One line in a CSV file is one item. Fill the files in, then:
#
#   bulk check manifest.yaml      checks every item; nothing is sent
#   bulk plan manifest.yaml       says what the run costs and when it ends
#   bulk run manifest.yaml
version: 1

platform:
  base_url: https://code.example.com/api/v3     # a cloud edition: https://api.HOST; BULK_BASE_URL beats this line
  credentials: {default: "env:BULK_TOKEN"}      # where the token is, never the token itself

limits:
  failures: 5%                                  # stop when more items fail than this

jobs:
"""


class Beginning(msgspec.Struct, frozen=True):
    """One job to fill in.

    Attributes:
        name: name of the job, and of its file without `.csv`.
        columns: the header of the file; empty where items have no fields that must or should be given.
        more: names of other columns that the file may have.
    """

    name: str
    operation: AnyOperation
    columns: tuple[FieldDocumentation, ...]
    more: tuple[str, ...]

    @property
    def file(self) -> str:
        """Name of the items file."""
        return f"{self.name}.csv"


def beginnings(operations: Sequence[AnyOperation]) -> list[Beginning]:
    """Return a job for each operation; several jobs of one operation have different names."""
    found: list[Beginning] = []
    for operation in operations:
        base = operation.name.replace(".", "-")
        count = sum(each.operation is operation for each in found)
        leaves = _leaves(documentation(operation).fields)
        columns = tuple(_columns(operation, leaves))
        chosen = {field.name for field in columns}
        more = tuple(name for name in leaves if name not in chosen)
        found.append(Beginning(f"{base}-{count + 1}" if count else base, operation, columns, more))
    return found


def files_of(jobs: Sequence[Beginning]) -> dict[str, str]:
    """Return the text of each file by its name, the manifest first."""
    manifest = _HEAD + "\n".join("\n".join(_job(job)) + "\n" for job in jobs)
    headers = {job.file: ",".join(field.name for field in job.columns) + "\n" for job in jobs if job.columns}
    return {MANIFEST: manifest, **headers}


def _leaves(fields: Sequence[FieldDocumentation]) -> dict[str, FieldDocumentation]:
    """Return the fields that can be columns: of an object each of its fields, and lists and maps whole, as JSON."""
    plain = {field.name: field for field in fields if "*" not in field.name and "[" not in field.name}
    return {name: field for name, field in plain.items() if not any(other.startswith(f"{name}.") for other in plain)}


def _columns(operation: AnyOperation, leaves: Mapping[str, FieldDocumentation]) -> Iterator[FieldDocumentation]:
    """Yield the fields that are required or in the example; for content, the field that names its file instead."""
    files = operation.file_fields if isinstance(operation, TakesFiles) else {}
    instead = {inline: file for file, inline in files.items()}
    required = {field.name for field in documentation(operation).fields if field.is_required}
    for name, field in leaves.items():
        parts = name.split(".")
        outer = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        if outer <= required or _at(operation.example, parts):
            yield leaves.get(instead.get(name, ""), field)


def _at(example: Any, parts: Sequence[str]) -> bool:
    """Return whether the example has a value at these parts of a dotted name."""
    for part in parts:
        if not isinstance(example, Mapping) or part not in example:
            return False
        example = example[part]
    return True


def _job(job: Beginning) -> Iterator[str]:
    told = documentation(job.operation)
    yield f"  {job.name}:"
    yield from _comment(told.summary + (" This can't be undone." if told.is_irreversible else ""))
    yield f"    operation: {told.name}"
    if not job.columns:
        yield "    items: [{}]"
        yield from _comment(
            f"One item without fields. `bulk operations {told.name}` lists the fields that it may have."
        )
        return
    yield f"    items: {job.file}"
    has_json = any(field.type.startswith(("array", "object")) for field in job.columns)
    in_json = ', a list or an object is JSON, as "[""a"", ""b""]"' if has_json else ""
    yield from _comment(f"Columns; an empty cell is a field that is not given{in_json}:")
    width = max(len(field.name) for field in job.columns)
    for field in job.columns:
        kind = f"{field.type}, required" if field.is_required else field.type
        said = about(msgspec.structs.replace(field, limits=tuple(_readable(field.limits))))
        yield from _comment(f"{kind}{'; ' if said else ''}{said}", f"  {field.name.ljust(width)}  ")
    if job.more:
        yield from _comment(f"More columns: {', '.join(job.more)}.")
    yield from _comment(f"`bulk operations {told.name}` explains all of them.")
    yield "    # with: {}       # fields that are the same for every item, instead of a column"


def _readable(limits: Sequence[str]) -> Iterator[str]:
    """Yield the limits without patterns, which are for `bulk operations`."""
    return (limit for limit in limits if not limit.startswith("matches "))


def _comment(text: str, first: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"    # {first}",
        subsequent_indent=f"    # {' ' * len(first)}",
        break_long_words=False,
        break_on_hyphens=False,
    )
