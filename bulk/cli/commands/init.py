"""`bulk init`: a manifest and CSV files to fill in."""

import shlex
from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import OperationName
from bulk.errors import UsageError


@click.command(cls=Command)
@click.argument("operations", metavar="OPERATION...", nargs=-1, required=True, type=OperationName())
@click.option(
    "-o",
    "--out",
    "folder",
    metavar="DIR",
    default=".",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write into, made where it is not there. Default: this one.",
)
def init(*, operations: tuple[str, ...], folder: Path) -> int:
    """Write a manifest and CSV files to fill in.

    There is a job and a file for each OPERATION; `bulk operations` lists them. Comments explain each column. Nothing
    that exists is overwritten.
    """
    from bulk import operation
    from bulk.cli.catalog.beginnings import MANIFEST, beginnings, files_of
    from bulk.storage.new_files import arriving, settle

    try:
        found = [operation.find(name) for name in operations]
    except operation.UnknownOperation as unknown:
        raise UsageError(str(unknown)) from None
    files = files_of(beginnings(found))
    settle(folder)
    there = [name for name in files if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        raise UsageError(f"{folder / there[0]} exists already; name another folder with -o, or move it away")
    try:
        with arriving(folder) as part:
            for name, text in files.items():
                (part / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {folder}: can't be written: {error.strerror}; name another folder") from None
    for name in files:
        output.out(str(folder / name))
    filled = ", ".join(name for name in files if name != MANIFEST)
    check = shlex.join(["bulk", "check", str(folder / MANIFEST)])
    output.say(f"Fill in {filled}, then: {check}" if filled else f"Next: {check}")
    return 0
