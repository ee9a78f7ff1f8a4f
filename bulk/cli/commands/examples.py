"""`bulk examples`: copy the manifests that ship to where a user can read, change and run them."""

import shlex
import shutil
from importlib import resources
from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH
from bulk.errors import UsageError
from bulk.storage.new_files import arriving, settle


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", default="bulk-examples", type=ANY_PATH)
def examples(*, folder: Path) -> int:
    """Copy the example manifests into DIR (bulk-examples).

    They come with their items, files and seed files for the sandbox. Nothing that exists is overwritten.
    """
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


def copy_examples(folder: Path) -> None:
    """Copy all examples into `folder`, which is made where it is not there.

    Raises:
        UsageError: the folder holds something already, or can't be written.
    """
    package = Path(str(resources.files("bulk_jobs")))
    # a wheel has the examples in the package, a working copy beside it
    examples = next(place for place in (package / "examples", package.parent / "examples") if place.is_dir())
    try:
        settle(folder)
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise UsageError(f"{folder} exists already, and nothing is overwritten: name a new folder")
        with arriving(folder) as part:
            for file in examples.rglob("*"):
                if file.is_file() and file.suffix != ".py" and "__pycache__" not in file.parts:
                    place = part / file.relative_to(examples)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, place)
    except OSError as error:
        raise UsageError(f"{folder}: can't be written: {error.strerror}; name another folder") from None
