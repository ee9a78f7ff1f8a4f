"""`bulk forget`: a run is taken out of a store, for good."""

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored
from bulk.cli.logs import Command
from bulk.errors import UsageError


@click.command(cls=Command)
@click.argument("run", metavar="RUN")
@stored.needed_store
@click.option("--yes", is_flag=True, help="Also a run that is not complete: what it has sent is then known nowhere.")
def forget(run: str, store: str, *, yes: bool) -> int:
    """Take a run out of a store, for good.

    Its results and its bundle go too: export it before. Workers must not be at work on it (exit 5).
    """
    with stored.opened(store, "forget") as connection:
        from bulk.store import runs

        found = runs.find(connection, run)
        if found.state != runs.COMPLETE and not yes:
            lost = "what it has sent would be known nowhere"
            raise UsageError(f"{run} is {found.state}: {lost}; --yes forgets it all the same")
        runs.forget(connection, found)
        output.say(f"{run} is forgotten")
    return 0
