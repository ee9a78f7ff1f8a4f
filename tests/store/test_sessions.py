"""What an administrator has set for a database or a user does not change what a store promises."""

import socket
import threading

import pytest

from bulk.errors import UsageError
from bulk.store import bundles
from tests.store.places import connection_to
from tests.store.proxy import link_to

SET = {
    "standard_conforming_strings": ("off", "on"),
    "array_nulls": ("off", "on"),
    "default_transaction_isolation": ("repeatable read", "read committed"),
    "synchronous_commit": ("off", "on"),
    "statement_timeout": ("100ms", "30min"),
    "lock_timeout": ("1ms", "10s"),
    "idle_in_transaction_session_timeout": ("100ms", "10s"),
    "search_path": ("public", "bulk,pg_temp"),
    "timezone": ("Asia/Kolkata", "UTC"),
}
"""Settings: what was set for the database, and what a session has."""


@pytest.fixture
def store(store_text):
    """A connection to a store in a database with settings that do harm."""
    with connection_to(store_text) as before, before.using() as connection:
        for name, (value, _) in SET.items():
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {name} = '{value}'".encode())
    with connection_to(store_text) as made:
        yield made


def test_settings_of_a_database_do_not_count(store):
    """Each session has those that the store relies on: a commit is on disk, two who finish at once see each other."""
    with store.using() as connection:
        for name, (_, expected) in SET.items():
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (expected,), name
        connection.execute("SELECT pg_sleep(0.2)")
        with connection.transaction():
            assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


def test_what_was_uploaded_comes_back_whatever_strings_mean(store, tmp_path):
    """A database in which a backslash means something else keeps a bundle byte for byte."""
    (tmp_path / "manifest.yaml").write_bytes(bytes(range(256)))
    digest = bundles.upload(store, tmp_path, ["manifest.yaml"])
    assert bundles.download(store, digest, tmp_path / "there") == ["manifest.yaml"]
    assert (tmp_path / "there" / "manifest.yaml").read_bytes() == bytes(range(256))


def test_a_pooler_that_leaves_them_out_is_refused(store_text):
    """It would look like an empty database, or a commit could be lost: the message names the way out."""
    with link_to(store_text) as (link, text):
        with connection_to(text) as store, store.using() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        link.is_pooler = True
        refused = "leaves out search_path.*; a pooler between .* name the server itself"
        with pytest.raises(UsageError, match=refused), connection_to(text) as store, store.using():
            pass


def test_a_pooler_that_refuses_them_is_told_apart_from_silence(store_text):
    """Waiting would not help, so that it is no stop that the same command goes on from."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(10_000)
                said = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
                client.sendall(b"E" + (len(said) + 4).to_bytes(4, "big") + said)
                client.recv(1)

        answering = threading.Thread(target=refuse)
        answering.start()
        text = f"postgresql://me@127.0.0.1:{listener.getsockname()[1]}/none?sslmode=disable&gssencmode=disable"
        refused = r"refuses: .*name the server itself"
        with pytest.raises(UsageError, match=refused), connection_to(text) as store, store.using():
            pass
        answering.join()
