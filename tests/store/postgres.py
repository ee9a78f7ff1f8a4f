"""A real PostgreSQL for the tests, one for all of a session, and stores in it; nothing has to be installed.

The workers of pytest share it; each makes databases of its own. It lives in memory as far as it can, because no test
of ours is about a machine that loses power.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its superuser's own database."""
    from bulk.store.database.private_server import shared_server

    folder = tmp_path_factory.getbasetemp()
    with shared_server(common(folder) / "postgres", is_durable=False) as place:
        yield place.store()


def common(folder: Path) -> Path:
    """The folder that all workers of a session share."""
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def shared_store(postgres: str) -> str:
    """A store for the tests of one worker, of which each has runs of its own."""
    return new_store(postgres)


@pytest.fixture
def store_text(postgres: str) -> str:
    """A store of the test's own: for tests of what belongs to no run."""
    return new_store(postgres)


def new_database(postgres: str) -> str:
    """The address of a new, empty database."""
    import psycopg

    name = f"t{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres.rpartition("/")[0] + "/" + name


def new_store(postgres: str) -> str:
    """The address of a new database that holds a store."""
    from bulk.store.database import address, schema
    from bulk.store.database.connections import StoreConnection

    text = new_database(postgres)
    with StoreConnection(address.read(text), "tests") as store:
        schema.init(store)
    return text
