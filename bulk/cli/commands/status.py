"""`bulk status`: where a run stands."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory, as_json


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@as_json
def status(run_dir: Path, *, as_json: bool) -> int:
    """Say where RUN stands, also while it runs.

    What is done, what is left, what waits for what, when it ends.
    """
    from bulk.clock import Clock
    from bulk.control import client
    from bulk.ledger.view import LedgerView
    from bulk.report.render import status_data, status_text

    view, live, now = LedgerView(run_dir), client.status(run_dir), Clock().now()
    if as_json:
        output.out_json(status_data.data(view, now=now, live=live))
    else:
        output.out(status_text.render(view, now=now, live=live, **output.look()))
    return 0
