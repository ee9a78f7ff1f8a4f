"""`bulk credentials check`: what each credential of a manifest may do, before anything is sent."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, MANIFEST, PLATFORM, as_json, overriding
from bulk.storage.scratch import scratch_folder

if TYPE_CHECKING:
    from bulk.engine.credentials.credential_check import CredentialRow
    from bulk.engine.credentials.probes import OwnerRow
    from bulk.manifest.reading import Overrides


@click.group()
def credentials() -> None:
    """Look at the credentials of a manifest."""


@credentials.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@click.option("--probe", "is_probing", is_flag=True, help="Also send one read for each owner of items.")
@overriding(*MANIFEST, *PLATFORM)
@as_json
def check(*, manifest: Path, is_probing: bool, overrides: "Overrides", as_json: bool) -> int:
    """Say for each credential and operation of MANIFEST whether it may, who pays, until when, and what is left.

    With --probe all items are checked, and one read for each owner shows what is in the way there: single sign-on, with
    the page that authorizes the credential, or a permission. Nothing is changed. The exit code is 1 where one may not.
    """
    from bulk.clock import Clock
    from bulk.engine.credentials.credential_check import check_credentials
    from bulk.engine.credentials.probes import ProbedCredentials, probe_owners
    from bulk.engine.execution import check_items
    from bulk.manifest.reading import read_manifest
    from bulk.platform.auth.manifest_credentials import credentials_of
    from bulk.status import Silence

    found, clock = read_manifest(manifest, overrides, os.environ), Clock()
    made = credentials_of(found, os.environ, clock)

    async def asked() -> tuple[list["CredentialRow"], list["OwnerRow"]]:
        if not is_probing:
            return await check_credentials(found, made, clock), []
        with scratch_folder("probe") as folder:
            checked = await check_items(found, folder, Silence(), clock, None)
            rows = await check_credentials(found, made, clock)
            return rows, await probe_owners(checked, made, folder, clock, os.environ)

    rows, owners = event_loop.run(asked)
    if as_json:
        output.out_json(ProbedCredentials(rows, owners) if is_probing else rows)
    else:
        _print(rows, owners)
    for note in found.notes:
        output.say(f"note: {note}")
    return 1 if any(row.is_refused for row in rows) or any(row.is_refused for row in owners) else 0


def _print(rows: Sequence["CredentialRow"], owners: Sequence["OwnerRow"]) -> None:
    from bulk.clock import iso_utc

    output.out_table(
        ["credential", "operation", "may", "payer", "ends", "core left"],
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
    if owners:
        output.out("")
        output.out_table(
            ["credential", "owner", "asked", "reaches it"],
            [
                [
                    row.credential,
                    row.owner or "-",
                    f"GET {row.asked}" if row.asked else "-",
                    row.may if row.sso_url is None else f"{row.may}: {row.sso_url}",
                ]
                for row in owners
            ],
        )
