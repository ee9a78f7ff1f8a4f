"""`bulk login`: let an App act for a user, by the device flow."""

import os
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import PLATFORM, overriding
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("name")
@overriding(*PLATFORM[:2])
@click.option("--client-id", required=True, metavar="ID", help="Client id of the App, whose device flow is on.")
def login(*, name: str, overrides: "Overrides", client_id: str) -> int:
    """Log in as NAME: a manifest uses it as `{login: NAME}`.

    A code is shown, which is typed on the platform's own page. The tokens are kept on this machine alone, in a file
    that is closed to others.
    """
    import threading

    from bulk.clock import Clock
    from bulk.manifest.fields import NAME
    from bulk.manifest.reading import read_platform
    from bulk.platform.auth.device_login import Site, log_in
    from bulk.platform.auth.logins import Login, check_place, folder_of, store

    if not NAME.fullmatch(name):
        raise UsageError("NAME: write letters, digits, hyphens, underscores and dots")
    platform, clock = read_platform(overrides, os.environ), Clock()

    def wait(seconds: float) -> None:
        threading.Event().wait(seconds)

    def tell(page: str, code: str) -> None:
        output.say(f"Open {page} and type the code {code}", is_public=True)

    check_place(folder_of(os.environ), name, clock)
    granted = log_in(Site.of(platform.base_url, platform.ca_bundle), client_id, tell, wait)
    bundle = None if platform.ca_bundle is None else str(platform.ca_bundle)
    made = Login.of(platform.base_url, client_id, bundle, granted, clock.now())
    store(folder_of(os.environ), name, made, clock)
    output.out(f"{name} is logged in. A manifest uses it as: credentials: {{{name}: {{login: {name}}}}}")
    return 0
