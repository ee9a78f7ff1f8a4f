"""`bulk worker`: waits for runs in a store, and works on them."""

import contextlib
import logging
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.commands.cluster import stored
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, overriding
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


def _number(_: click.Context, option: click.Parameter, given: float) -> float:
    """Refuse nan, which is neither above nor below the bounds."""
    if math.isnan(given):
        raise click.BadParameter("nan is not a number of seconds.", param=option)
    return given


@click.command(cls=Command)
@stored.needed_store
@click.option(
    "--base-url", "base_urls", metavar="URL", multiple=True, required=True, help="A platform that tokens may go to."
)
@click.option("--dir", "folder", type=ANY_PATH, help="Where it keeps its files. Default: a new folder.")
@click.option("--lease", "lease_s", type=click.FloatRange(2.0, 3_600.0), default=30.0, show_default=True,
              metavar="SECONDS", callback=_number,
              help="How long a shard stays its own after it was last heard of.")  # fmt: skip
@click.option(
    "--secrets",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Files that items may name as env:NAME or file:NAME.",
)
@overriding(
    click.option(
        "--credential",
        "credentials",
        metavar="[NAME=]SOURCE",
        multiple=True,
        help="Where a token is: env:NAME, file:PATH or command:PROGRAM. Repeatable. Default: env:BULK_TOKEN.",
    ),
    click.option(
        "--credentials",
        "credentials_file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="A YAML file with the part `credentials`: tokens, Apps, logins, pools.",
    ),
)
def worker(
    *,
    store: str,
    base_urls: tuple[str, ...],
    folder: Path | None,
    lease_s: float,
    secrets: Path | None,
    overrides: "Overrides",
) -> int:
    """Work on the runs of a store, until a signal comes.

    Start it on any number of machines. The first signal lets requests in flight end and gives the work back; the second
    stops at once. A worker that is killed loses nothing: another one takes over what it had. Tokens are this worker's
    own, and go only to the platforms named here, whatever a run says.
    """
    with stored.opened(store, "worker"):
        pass
    from bulk.bundle.secret_fields import SecretPlaces
    from bulk.cluster.worker import Worker, WorkerSettings
    from bulk.manifest.platform_section import base_url
    from bulk.storage.scratch import scratch_folder
    from bulk.store import address

    try:
        platforms = [base_url(text, way_out="; no worker sends one so") for text in base_urls]
        credentials = _sources(overrides)
    except ValueError as error:
        raise UsageError(f"bulk worker: {error}") from None
    _open_once(credentials)
    places = None if secrets is None else SecretPlaces(secrets.resolve(), None)
    if logging.getLogger().level > logging.INFO:
        logging.getLogger("bulk.cluster").setLevel(logging.INFO)
    with scratch_folder("worker") if folder is None else contextlib.nullcontext(folder) as place:
        settings = WorkerSettings(address.read(store), platforms, credentials, place, ttl_s=lease_s, secrets=places)
        one = Worker(settings)
        event_loop.run(lambda: one.run(lambda: output.say(f"worker {one.name} waits for runs in {store}")))
    return 0


def _open_once(sources: dict[str, str]) -> None:
    """Open every variable and file that a source names, because a worker without a token would wait for ever.

    Raises:
        CredentialMissing: one of them is missing, or not private.
    """
    from bulk.manifest.credential_specs import AppSpec, TokenSpec, kind_of, spec_of
    from bulk.platform.auth.app_keys import PrivateKey
    from bulk.platform.auth.credentials import Credential

    for name, source in sources.items():
        app, token = spec_of(source, AppSpec), spec_of(source, TokenSpec)
        kind: type[Credential] = Credential if app is None else PrivateKey
        places = app.keys if app is not None else (token.source,) if token is not None else (source,)
        for place in places:
            if not kind_of(place) and not place.startswith("command:"):
                kind(name, place, os.environ, Path.cwd()).raw()


def _sources(overrides: "Overrides") -> dict[str, str]:
    """Return the sources of credentials by name; those of the command line replace those of the file.

    Raises:
        ManifestError: the file can't be used. ValueError: a source of the command line is none.
    """
    from bulk.flaws import Flaws
    from bulk.manifest.credentials_section import credentials_in
    from bulk.manifest.platform_section import credential_source
    from bulk.manifest.settings import DEFAULT_SOURCE

    found: dict[str, str] = {}
    if overrides.credentials_file is not None:
        flaws = Flaws()
        found = credentials_in(Path(overrides.credentials_file), flaws)
        flaws.raise_if_any()
    found |= {name: credential_source(source, Path.cwd()) for name, source in overrides.credentials.items()}
    return found or {"default": DEFAULT_SOURCE}
