"""The reference page of all operations, in Markdown: `docs/operations-reference.md` is what `page` makes.

It is made from `documentation.py` and nothing else, so that it can't say anything that the code does not.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from bulk.cli.catalog import documentation
from bulk.cli.catalog.documentation import (
    FieldDocumentation,
    OperationDocumentation,
    about,
    example_manifest,
    facts,
    shown,
)
from bulk.operation import find

_HEAD = """\
# Operations

Every operation that is installed, as `bulk operations --markdown` prints it; `bulk operations NAME` shows one of them,
`--schema` its JSON Schema. This page is not edited: `make reference` writes it from the code, and a test compares them.

The words are those of [the interface](interface.md#1-words). *Requests* are those of one item when no answer is lost;
*lost answer* is how the engine finds out what happened then. Every example works on the sandbox's standard data.
"""
_MARKUP = re.compile(r"([\\<>*\[\]])")


def page(names: Sequence[str]) -> str:
    """Return the operations of these names, in their order, grouped by resource, with a table of contents; Markdown.

    Raises:
        UnknownOperation: one of them is not installed.
    """
    described = [documentation.describe(name) for name in names]
    lines = [_HEAD, "| operation | requests | category | what it does |", "|---|---|---|---|"]
    for name in names:
        row = documentation.summary(find(name))
        lines.append(
            f"| [`{row.name}`](#{_anchor(row.name)}) | {row.requests} | `{row.category}` | {_text(row.summary)} |"
        )
    for resource, group in groupby(described, key=lambda each: each.name.partition(".")[0]):
        lines += ["", f"## {resource}"]
        for each in group:
            lines += ["", section(each).rstrip()]
    return "\n".join(lines) + "\n"


def section(described: OperationDocumentation) -> str:
    """Return one operation: what it does, costs and writes, its fields, an example; Markdown from a heading of level 3
    on."""
    lines = [f"### {described.name}", "", _text(described.summary), ""]
    lines += [f"- {label}: {_text(text)}" for label, text in facts(described)]
    lines += ["", "| field | type | given | what it is |", "|---|---|---|---|"]
    lines += [_row(field) for field in described.fields]
    lines += ["", "```yaml", example_manifest(described).rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _row(field: FieldDocumentation) -> str:
    if field.is_required:
        given = "required"
    else:
        given = "optional" if field.default is None else f"default {_code(shown(field.default))}"
    return f"| {_code(field.name)} | {_text(field.type)} | {given} | {_text(about(field))} |"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _text(text: str) -> str:
    """Return words as they are, also in a cell of a table; what stands in backticks stays code."""
    parts = text.split("`")
    is_even = len(parts) % 2 == 1
    plain = [_MARKUP.sub(r"\\\1", part) if place % 2 == 0 or not is_even else part for place, part in enumerate(parts)]
    return ("`" if is_even else "\\`").join(plain).replace("|", "\\|").replace("\n", " ")


def _anchor(name: str) -> str:
    """Return the anchor of a heading: the heading without its full stops."""
    return name.replace(".", "")
