"""`bulk sandbox`: a platform of one's own, to rehearse and to try things on."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, VENDORS, Assignment
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.sandbox import Sandbox

CONNECTIONS = 10_000
"""Connections that the sandbox has room for, if the system allows (count): more than a run may ask for."""


def _fault_kinds() -> tuple[str, ...]:
    from bulk.sandbox.settings import FAULT_KINDS

    return FAULT_KINDS


def _categories() -> tuple[str, ...]:
    from bulk.sandbox.settings import DEFAULT_RATE_LIMITS

    return tuple(DEFAULT_RATE_LIMITS)


@click.command(cls=Command)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=0, show_default=True, help="TCP port; 0 takes any free one.")
@click.option("--state", metavar="DIR", type=ANY_PATH, help="Keep the state here: SQLite and git.")
@click.option("--vendor", type=click.Choice(VENDORS), default="service", show_default=True, help="Name in headers.")
@click.option("--seed-data", metavar="FILE", type=ANY_PATH, help="Data besides the standard data.")
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
@click.option("--journal", metavar="FILE", type=ANY_PATH, help="One JSON line for every request.")
@click.option(
    "--deliver-to",
    metavar="HOST",
    multiple=True,
    help="Let webhooks reach this host; without it, loopback only. Repeatable.",
)
@click.option(
    "--base-path",
    metavar="PATH",
    default="/api/v3",
    show_default=True,
    help="Path of the base URL; / for none, as a cloud edition has it.",
)
@click.option(
    "--etag",
    type=click.Choice(("token", "content")),
    help="Whether validators depend on who asks; token with --vendor github, else content.",
)
@click.option("--mint-lag", metavar="S", default="0", help="New tokens of installations are not taken for so long.")
@click.option("--quiet", is_flag=True, help="Say nothing but the base URL.")
def sandbox(*, quiet: bool, **options: Any) -> int:
    """Serve an embedded platform on loopback.

    The first line on standard output is its base URL; Ctrl-C ends it. Its tokens, and what to export, are said on
    standard error.
    """
    from bulk.platform.environment import room_for_connections
    from bulk.sandbox import Sandbox, SettingError, Settings, serve
    from bulk.storage.scratch import scratch_folder

    def ready(sandbox: Sandbox) -> None:
        output.out(sandbox.base_url)
        if not quiet:
            _say_how_to_use(sandbox)

    room_for_connections(CONNECTIONS)  # raises the limit of open files
    try:
        settings = Settings.from_options(**options)
        with nullcontext() if settings.state else scratch_folder("platform") as folder:
            event_loop.run(lambda: serve(settings, ready, folder))
    except SettingError as error:
        raise UsageError(str(error)) from None
    return 0


def _say_how_to_use(sandbox: "Sandbox") -> None:
    """Say on standard error which tokens the sandbox has, and what another terminal needs."""
    tokens, vendor = sandbox.tokens, sandbox.context.settings.vendor
    lines = ["Tokens:" if tokens else "The seed file says which tokens there are."]
    width = max((len(text) for text in tokens), default=0)
    lines += [f"  {text:<{width}}  {whose}" for text, whose in tokens.items()]
    for app in sandbox.apps:
        lines.append(f"App {app.slug}: client_id {app.client_id}" + (f", private key {app.key}" if app.key else ""))
    token = next(iter(tokens), "TOKEN")
    lines += ["In another terminal:", f"export BULK_BASE_URL={sandbox.base_url}", f"export BULK_TOKEN={token}"]
    if vendor != VENDORS[0]:
        lines.append(f"export BULK_VENDOR={vendor}")
    output.say("\n".join(lines), is_public=True)
