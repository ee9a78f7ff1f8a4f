"""`bulk credentials check`: what each credential of a manifest may do, before anything is sent."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import MANIFEST, PLATFORM, as_json, overriding

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.group()
def credentials() -> None:
    """Look at the credentials of a manifest."""


@credentials.command(cls=Command)
@click.argument("manifest", type=click.Path(path_type=Path))
@overriding(*MANIFEST, *PLATFORM)
@as_json
def check(*, manifest: Path, overrides: "Overrides", as_json: bool) -> int:
    """Say for each credential and operation of MANIFEST whether it may, who pays, until when, and what is left.

    Nothing is changed. The exit code is 1 where one may not.
    """
    from bulk.clock import Clock, iso_utc
    from bulk.engine.credentials.credential_check import check_credentials
    from bulk.engine.execution import credentials_of
    from bulk.manifest.reading import read_manifest

    found, clock = read_manifest(manifest, overrides, os.environ), Clock()
    made = credentials_of(found, os.environ, clock)
    rows = event_loop.run(lambda: check_credentials(found, made, clock))
    if as_json:
        output.out_json(rows)
    else:
        head = ["credential", "operation", "may", "payer", "ends", "core left"]
        output.out_table(
            head,
            [
                [
                    row.credential,
                    row.operation,
                    row.may,
                    row.payer,
                    "-" if row.ends_at is None else iso_utc(row.ends_at),
                    f"{row.left['core']:,}" if "core" in row.left else "-",
                ]
                for row in rows
            ],
            right=frozenset((5,)),
        )
    return 1 if any(row.is_refused for row in rows) else 0
