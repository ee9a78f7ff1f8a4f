"""`bulk status`: where a run stands."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored, with_workers
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory, as_json


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@stored.in_store
@as_json
def status(run_dir: Path, *, store: str | None, as_json: bool) -> int:
    """Say where RUN stands, also while it runs.

    It shows how many items have ended and are left, the reasons for waits, and when the run will end. With --store RUN
    is the name of a run in that store.
    """
    if store is not None:
        return _in_store(str(run_dir), store, as_json=as_json)
    from bulk.clock import Clock
    from bulk.control import client
    from bulk.ledger.view import LedgerView
    from bulk.report.render import status_data, status_text

    with_workers.refuse_under_way(run_dir)
    view, live, now = LedgerView(run_dir), client.status(run_dir), Clock().now()
    if as_json:
        output.out_json(status_data.data(view, now=now, live=live))
    else:
        output.out(status_text.render(view, now=now, live=live, **output.look()))
    return 0


def _in_store(run: str, address: str, *, as_json: bool) -> int:
    with stored.opened(address, "status") as store:
        from bulk.cluster import stored_status

        found = stored_status.status_of(store, run, address)
    if as_json:
        output.out_json(found)
    else:
        output.out(output.redacted(stored_status.as_text(found)))
    return 0
