"""A real PostgreSQL for the tests, one for all of a session, and stores in it; nothing has to be installed.

The workers of pytest share it; each makes databases of its own. It lives in memory as far as it can, because no test
of ours is about a machine that loses power. In the end every row of every store, and its log, are searched for secrets.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import zstandard

from tests.canaries import found_in

NUMBERS = count(1)
STORES: list[str] = []
"""Addresses of all that this process has made."""


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its superuser's own database."""
    from bulk.store.server.shared_server import FORGETFUL, shared_server

    folder = tmp_path_factory.getbasetemp()
    with shared_server(common(folder) / "postgres", FORGETFUL) as place:
        yield place.store()
        assert found_in((Path(place.folder) / "log").read_bytes()) == [], "PostgreSQL's log has a secret"
        while STORES:
            search_for_secrets(STORES[0])


def search_for_secrets(text: str) -> None:
    """Nothing in that store is one. Of a server that ends before the session does, its test calls this."""
    assert found_in(everything_in(text)) == [], "a store has a secret"
    STORES.remove(text)


def everything_in(text: str) -> bytes:
    """Every value of every row of a store, unpacked."""
    import psycopg

    parts: list[bytes] = []
    with psycopg.connect(text) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('bulk') AND relkind IN ('r', 'p')"
        ).fetchall()
        for (table,) in tables:
            for row in connection.execute(f"SELECT * FROM bulk.{table}".encode()):
                parts += [unpacked(value) for value in row]
    return b"\n".join(parts)


def dumped(text: str) -> bytes:
    """What `pg_dump` writes of a whole store, by the program that comes with the server; behind it all that is in it as
    hexadecimal numbers, unpacked."""
    from bulk.store.server.programs import binaries

    command = [str(binaries() / "pg_dump"), "--no-password", "--inserts", text]
    whole = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    packed = re.findall(rb"\\x([0-9a-f]+)'", whole)
    return b"\n".join([whole, *(unpacked(bytes.fromhex(each.decode())) for each in packed)])


def unpacked(value: object) -> bytes:
    """What a value is in plain bytes."""
    if not isinstance(value, bytes):
        return str(value).encode("utf-8", "replace")
    try:
        return zstandard.decompress(value, 64 * 1024 * 1024)
    except zstandard.ZstdError:
        return value


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
    from bulk.store import address, schema
    from bulk.store.connections import StoreConnection

    text = new_database(postgres)
    with StoreConnection(address.read(text), "tests") as store:
        schema.init(store)
    STORES.append(text)
    return text
