"""The option `--store`, and the connection that commands with this option share."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.store.connections import StoreConnection

STORE = "STORE"
_FORM = "postgresql://USER@HOST/DATABASE or service=NAME, without a password"


def _only_one(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Return the only store given; of two stores, the wrong one would be noticed too late."""
    if len(set(given)) > 1:
        raise click.BadOptionUsage(option.name or "", f"--store is given {len(given)} times: name one store")
    return given[0] if given else None


_options: dict[str, Any] = {"metavar": STORE, "multiple": True, "callback": _only_one}
in_store = click.option("--store", help=f"The run is in this store: {_FORM}.", **_options)
needed_store = click.option("--store", required=True, help=f"The store: {_FORM}.", **_options)


def need_client(what: str) -> None:
    """Require the client of PostgreSQL, which `what` needs.

    Raises:
        UsageError: the client is not installed.
    """
    try:
        import psycopg as _needed  # noqa: F401 - plain Bulk is without it
    except ImportError:
        raise UsageError(f"{what} needs PostgreSQL's client: pip install 'bulkops[cluster]'") from None


def who() -> str:
    """Return the user and the machine that give the command, for the table of actions."""
    from bulk.control.place import user_name

    return f"{user_name()}@{socket.gethostname()}"


@contextlib.contextmanager
def reached(text: str, purpose: str) -> Iterator["StoreConnection"]:
    """Connect to the store at the address `text`, whatever its version.

    Raises:
        UsageError: `text` is not an address, or a package that a store needs is not installed.
    """
    need_client("a store")
    from bulk.cluster.local.folder_beside import END
    from bulk.store import address
    from bulk.store.connections import StoreConnection
    from bulk.store.server.shared_server import looked_at

    if text.endswith(END) and "://" not in text and not Path(text).exists():  # in an address may be a password
        why = f"the store that --workers makes is removed when the run has ended: bulk status {text.removesuffix(END)}"
        raise UsageError(f"--store: there is no folder {text}; {why}")

    with (
        looked_at(Path(text)) as place,
        StoreConnection(address.read(text if place is None else place.store()), purpose) as store,
    ):
        yield store


@contextlib.contextmanager
def opened(text: str, purpose: str) -> Iterator["StoreConnection"]:
    """Connect to a store of this version.

    Raises:
        UsageError: see `reached`.
        RunStopped: the store can't be reached.
        RunDirectoryError: the store is of another version, or there is no store.
    """
    with reached(text, purpose) as store:
        from bulk.store.schema import refuse_other

        refuse_other(store)
        yield store
