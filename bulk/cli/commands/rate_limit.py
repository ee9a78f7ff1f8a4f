"""`bulk rate-limit`: every bucket of a credential."""

import os
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import PLATFORM, as_json, overriding

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.command("rate-limit", cls=Command)
@overriding(*PLATFORM)
@as_json
def rate_limit(*, overrides: "Overrides", as_json: bool) -> int:
    """Show every bucket of a credential."""
    from bulk.clock import Clock
    from bulk.engine.commands import rate_limits
    from bulk.report.render import status_data, status_text

    found = event_loop.run(lambda: rate_limits(overrides=overrides, environ=os.environ))
    if as_json:
        output.out_json(status_data.buckets(found))
    else:
        output.out(status_text.buckets(found, now=Clock().now(), columns=output.look()["columns"]))
    return 0
