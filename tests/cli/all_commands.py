"""All commands of the command line, with the words that name each."""

from collections.abc import Iterator

import click

from bulk.cli.app import commands


def all_commands(
    group: click.Group = commands, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the words of each command, as ("audit", "test"), and the command; groups are none."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from all_commands(command, (*words, name))
        else:
            yield (*words, name), command
