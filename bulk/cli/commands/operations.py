"""`bulk operations`: the catalog of operations, or one of them."""

from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import OperationName, as_json
from bulk.errors import UsageError

if TYPE_CHECKING:
    pass


@click.command(cls=Command)
@click.argument("name", required=False, type=OperationName())
@click.option("--schema", is_flag=True, help="JSON Schema of its items.")
@click.option("--markdown", is_flag=True, help="All that there is to know, as a page in Markdown.")
@as_json
def operations(name: str | None, *, schema: bool, markdown: bool, as_json: bool) -> int:
    """List the operations, or describe one.

    With NAME: its fields, types, limits, category, lane, and how a lost answer is settled.
    """
    from bulk.operation import UnknownOperation

    if name is None and schema:
        raise UsageError("--schema needs the NAME of an operation")
    if schema + markdown + as_json > 1:
        raise UsageError("--schema, --markdown and --json are different things to print: give one of them")
    try:
        if markdown:
            _page(name)
        elif name is None:
            _list(as_json=as_json)
        else:
            _describe(name, schema=schema, as_json=as_json)
    except UnknownOperation as error:
        raise UsageError(str(error)) from None
    return 0


def _list(*, as_json: bool) -> None:
    from bulk.cli.catalog import documentation

    found = documentation.summaries()
    if as_json:
        output.out_json(found)
    else:
        output.out_table(["operation", "requests", "category", "what it does"], [row.cells() for row in found])


def _page(name: str | None) -> None:
    from bulk import operation
    from bulk.cli.catalog import documentation, reference

    if name is None:
        output.out(reference.page(operation.names()))
    else:
        output.out(reference.section(documentation.describe(name)))


def _describe(name: str, *, schema: bool, as_json: bool) -> None:
    from bulk.cli.catalog import documentation

    described = documentation.describe(name)
    if schema:
        output.out_json(described.schema)
    elif as_json:
        output.out_json(described)
    else:
        output.out(documentation.as_text(described))
