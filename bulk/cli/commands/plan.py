"""`bulk plan`: what a manifest costs and when it would end."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import LIMITS, MANIFEST, PLATFORM, as_json, overriding

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("manifest", type=click.Path(path_type=Path))
@overriding(*MANIFEST, *PLATFORM, *LIMITS)
@as_json
def plan(*, manifest: Path, overrides: "Overrides", as_json: bool) -> int:
    """Say what MANIFEST costs and when it would end.

    Everything is checked; nothing but GET /rate_limit is sent.
    """
    from bulk.engine import commands
    from bulk.report.render import plan_text

    found = event_loop.run(lambda: commands.plan_manifest(manifest, overrides=overrides, environ=os.environ))
    if as_json:
        output.out_json(found)
    else:
        output.out(plan_text.render(found, **output.look()))
    return 0
