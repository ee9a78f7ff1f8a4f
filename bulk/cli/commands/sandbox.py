"""`bulk sandbox`: a platform of one's own, to rehearse and to try things on."""

from pathlib import Path
from typing import Any

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import VENDORS, Assignment
from bulk.errors import UsageError

CONNECTIONS = 10_000
"""Connections that the sandbox has room for, where the system lets it (count): more than a run may ask for."""


def _fault_kinds() -> tuple[str, ...]:
    from bulk.sandbox.settings import FAULT_KINDS

    return FAULT_KINDS


def _categories() -> tuple[str, ...]:
    from bulk.sandbox.settings import DEFAULT_RATE_LIMITS

    return tuple(DEFAULT_RATE_LIMITS)


@click.command(cls=Command)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=0, show_default=True, help="TCP port; 0 takes any free one.")
@click.option("--state", metavar="DIR", type=click.Path(path_type=Path), help="Keep the state here: SQLite and git.")
@click.option("--vendor", type=click.Choice(VENDORS), default="service", show_default=True, help="Name in headers.")
@click.option("--seed-data", metavar="FILE", type=click.Path(path_type=Path), help="Data besides the standard data.")
@click.option(
    "--rate-limit",
    metavar="CATEGORY=LIMIT/SECONDS",
    type=Assignment("rate limit", _categories),
    multiple=True,
    help="Budget of a category, as core=1000/5; off: no limits. Repeatable.",
)
@click.option("--token", metavar="NAME=USER[:SECONDS]", multiple=True, help="One more token of a user. Repeatable.")
@click.option("--latency", metavar="MS", default="0", help="How long every request takes at least.")
@click.option(
    "--fault",
    metavar="KIND=SHARE",
    type=Assignment("fault", _fault_kinds),
    multiple=True,
    help="Share of requests that go wrong, as drop-after=0.05. Repeatable.",
)
@click.option("--fault-seed", type=int, default=0, show_default=True, help="The same seed gives the same faults.")
@click.option("--journal", metavar="FILE", type=click.Path(path_type=Path), help="One JSON line for every request.")
@click.option(
    "--deliver-to",
    metavar="HOST",
    multiple=True,
    help="Let webhooks reach this host; without it, loopback only. Repeatable.",
)
def sandbox(**options: Any) -> int:
    """Serve an embedded platform on loopback.

    The first line on standard output is its base URL; Ctrl-C ends it. Users and tokens: docs/sandbox.md.
    """
    from bulk.platform.environment import room_for_connections
    from bulk.sandbox import SettingError, Settings, serve

    room_for_connections(CONNECTIONS)  # raises the limit of open files
    try:
        settings = Settings.from_options(**options)
        event_loop.run(lambda: serve(settings, ready=output.out))
    except SettingError as error:
        raise UsageError(str(error)) from None
    return 0
