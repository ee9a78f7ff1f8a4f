"""`bulk examples`: the manifests that ship, copied out."""

import shlex
from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", default="bulk-examples", type=click.Path(path_type=Path))
def examples(*, folder: Path) -> int:
    """Copy the example manifests into DIR (bulk-examples).

    They come with their items, files and seed files for the sandbox. Nothing that exists is overwritten.
    """
    from bulk.cli.examples import copy_examples

    copy_examples(folder)
    for path in sorted(folder.glob("*.yaml")):
        output.out(str(path))
    names = ("sandbox/fleet.yaml", "readmes.yaml", "sandbox/migration.yaml", "migration.yaml")
    fleet, readmes, seed, migration = (shlex.quote(str(folder / name)) for name in names)
    output.say("To try them, in two terminals:")
    output.say(f"  bulk sandbox --seed-data {fleet}      # says what to export in the other one")
    output.say(f"  bulk run {readmes}")
    output.say("To rehearse the migration, which has a platform of its own:")
    output.say(f"  bulk sandbox --seed-data {seed}")
    output.say(f"  HOOK_SECRET=rehearsal bulk run {migration}")
    return 0
