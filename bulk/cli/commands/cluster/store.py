"""`bulk store`: makes the store of runs that several machines work on, and brings it up to date."""

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored
from bulk.cli.logs import Command


@click.group()
def store() -> None:
    """Make a store, or bring it up to date.

    A store keeps runs that several machines work on.

    STORE is a database of PostgreSQL: postgresql://USER@HOST/DATABASE, or service=NAME of a service file. A password
    stands in neither, but in the file that PGPASSFILE names.
    """


@store.command(cls=Command)
@click.argument("address", metavar=stored.STORE)
def init(address: str) -> int:
    """Make the schema `bulk` and its roles in STORE; where they are there, nothing changes.

    The user needs the right to make a schema and roles. Who submits, works or looks gets a role of its own: GRANT
    bulk_submitter (or bulk_worker, bulk_reader) TO the user.
    """
    with stored.reached(address, "store init") as connection:
        from bulk.store import schema

        version = schema.init(connection)
        output.say(f"{connection.address} is a store with schema {version}")
    return 0


@store.command(cls=Command)
@click.argument("address", metavar=stored.STORE)
def upgrade(address: str) -> int:
    """Bring STORE up to date, for workers of this version; older workers refuse it from then on."""
    with stored.reached(address, "store upgrade") as connection:
        from bulk.store import schema

        version = schema.upgrade(connection)
        output.say(f"{connection.address} has schema {version}")
    return 0
