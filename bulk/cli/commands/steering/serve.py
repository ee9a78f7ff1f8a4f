"""`bulk serve`: the page for the fleet, on loopback."""

import errno
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.commands.cluster import stored
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, AUDITS, RUNS
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.serve.server import Settings

PORT = 8422
CONNECTIONS = 4_000
"""Connections that the page has room for, if the system allows (count): more than there are tabs."""
_PORT_TAKEN = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
SHORTEST_KEY, MOST_KEY_BYTES = 16, 4_096


@click.command(cls=Command)
@click.option(
    "--runs",
    "folders",
    metavar="DIR",
    multiple=True,
    type=ANY_PATH,
    help="A run directory, or a folder of some. Repeatable. Default: runs.",
)
@click.option(
    "--audits",
    metavar="DIR",
    multiple=True,
    type=ANY_PATH,
    help="The history of an audit, or a folder of some. Repeatable. Default: audits.",
)
@click.option(
    "--store", metavar=stored.STORE, help="Also the runs and workers of this store, as for `bulk runs --store`."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="TCP port; 0 takes any free one."
)
@click.option("--read-only", "is_read_only", is_flag=True, help="Nothing can be paused, stopped, set or run again.")
@click.option(
    "--metrics-key",
    metavar="FILE",
    type=ANY_PATH,
    help="Where the key of /metrics is kept; it is made where it is missing.",
)
def serve(
    folders: tuple[Path, ...],
    *,
    audits: tuple[Path, ...],
    store: str | None,
    port: int,
    is_read_only: bool,
    metrics_key: Path | None,
) -> int:
    """Serve a page of the runs and audits below DIR.

    Runs are steered there. It listens on loopback only. The first line on standard output is the address, with the key
    that opens it; each start has a new one. Runs are only read: this command may end at any time. Ctrl-C ends it.
    """
    import platformdirs

    from bulk.platform.environment import room_for_connections
    from bulk.serve.server import Settings

    for name, named, default in (("--runs", folders, RUNS), ("--audits", audits, AUDITS)):
        for folder in named:
            if not folder.is_dir():
                raise UsageError(
                    f"{name}: {folder} is not a folder; name one that is there, or leave {name} out for {default}"
                )
    if store is not None:
        with stored.opened(store, "serve"):  # a store that can't be used is refused at once
            pass
    settings = Settings(
        folders=folders or (RUNS,),
        audits=audits or (AUDITS,),
        store=store or "",
        cache=platformdirs.user_cache_path("bulk") / "serve",
        port=port,
        is_read_only=is_read_only,
        metrics_key="" if metrics_key is None else _kept_key(metrics_key),
    )
    room_for_connections(CONNECTIONS)  # raises the limit of open files
    try:
        event_loop.run(lambda: _served(settings, has_key_file=metrics_key is not None))
    except OSError as error:
        if error.errno not in _PORT_TAKEN:
            raise
        raise UsageError(f"port {port} can't be used: {error.strerror or error}; --port 0 takes any free one") from None
    return 0


async def _served(settings: "Settings", *, has_key_file: bool) -> None:
    import anyio

    from bulk.clock import Clock
    from bulk.serve.server import serving

    async with serving(settings, Clock()) as served:
        output.out(served.address)
        output.say("This address holds the key: give it to nobody who may not see the runs. Ctrl-C ends the page.")
        if not has_key_file:
            output.say("For collectors of metrics name a key of their own with --metrics-key FILE.")
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                break


def _kept_key(path: Path) -> str:
    """Return the key in the file; where there is no file, a new key that is kept there."""
    import secrets

    from bulk.storage.private_files import kept_content

    try:
        key = kept_content(path, f"{secrets.token_urlsafe(32)}\n".encode, MOST_KEY_BYTES + 1).decode("utf-8").strip()
    except OSError as error:
        raise UsageError(f"--metrics-key: {path} can't be used: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--metrics-key: {path} holds no key: it is not UTF-8") from None
    if len(key) > MOST_KEY_BYTES:
        raise UsageError(f"--metrics-key: {path} holds no key: it is longer than {MOST_KEY_BYTES:,} characters")
    if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"--metrics-key: {path} holds no key: at least {SHORTEST_KEY} characters without spaces")
    return key
