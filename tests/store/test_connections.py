"""No wait for a store is without an end: a server that says nothing is given up, and so is who holds its locks. And
what an administrator has set for a database or a user does not change what a session promises.
"""

import re
import socket
import threading
from pathlib import Path

import pytest

import bulk.cluster
import bulk.store
from bulk.clock import Clock
from bulk.errors import RunStopped, UsageError
from bulk.store import address, bundles, connections
from bulk.store.connections import IDLE_S, StoreConnection
from tests.store.places import connection_to
from tests.store.proxy import link_to
from tests.tries import quickest

SILENT_S = 1.0
MOST_S = 2.5 * SILENT_S + 1.0

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
def far(shared_store, monkeypatch):
    """A link to the store, and a connection through it that gives up after `SILENT_S`."""
    monkeypatch.setattr(connections, "SILENT_S", SILENT_S)
    with link_to(shared_store) as (link, text), StoreConnection(address.read(text), "tests") as store:
        yield link, store


def test_a_server_that_says_nothing_is_given_up(far):
    """Within a transaction as well, whose end is not waited for again; the next call has a connection of its own
    (failures.md row 92)."""
    link, store = far
    with store.using() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)

    def given_up(number: int) -> float:
        link.part()
        began = Clock().monotonic()
        with pytest.raises(RunStopped, match="has said nothing for 1 s"), store.transaction() as connection:
            connection.execute("SELECT 2")
        took_s = Clock().monotonic() - began
        link.heal()
        with store.using() as connection:
            assert connection.execute("SELECT 3").fetchone() == (3,)
        assert store.made == 2 + number
        return took_s

    assert SILENT_S <= quickest(given_up, MOST_S) < MOST_S


def test_who_answers_late_is_waited_for_where_there_is_no_hurry(far):
    """A statement over a whole run has its time, on a connection that is there and on one that is made for it."""
    link, store = far
    for _ in range(2):
        link.part()
        healing = threading.Timer(3 * SILENT_S, link.heal)
        healing.start()
        with store.unhurried(), store.using() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        healing.join()
    assert store.made == 1
    link.part()
    with pytest.raises(RunStopped), store.using() as connection:
        connection.execute("SELECT 2")
    link.heal()


def test_what_ends_while_nothing_is_asked_is_made_anew(shared_store):
    """An administrator, or a limit of his for idle connections, ends one between two calls: the next call is given all
    the same, because nothing of it was under way (failures.md row 81)."""
    with connection_to(shared_store) as store, connection_to(shared_store) as other:
        for made in (1, 2, 3):
            with store.using() as connection:
                row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert store.made == made
            with other.using() as connection:
                assert connection.execute("SELECT pg_terminate_backend(%s, 10000)", row).fetchone() == (True,)
        with pytest.raises(RunStopped), store.transaction() as connection:  # here something was under way
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        with store.using() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_transaction_of_who_fell_silent_ends(shared_store):
    """Whoever was stopped with locks in hand loses them: the server is told when it opens the connection."""
    with connection_to(shared_store) as store, store.using() as connection:
        for setting, value in (
            ("idle_in_transaction_session_timeout", f"{IDLE_S}s"),
            ("lock_timeout", f"{connections.LOCK_S}s"),
        ):
            assert connection.execute(f"SHOW {setting}".encode()).fetchone() == (value,)


def test_no_transaction_is_without_that_end(shared_store):
    """After `executemany` the server would wait for ever, behind a proxy that keeps the connection; nothing of the
    store uses it, and many rows are one statement, after which the server does count."""
    for module in [*Path(bulk.store.__file__).parent.rglob("*.py"), *Path(bulk.cluster.__file__).parent.rglob("*.py")]:
        assert not re.search(r"\.(executemany|pipeline)\(", module.read_text()), module
    with connection_to(shared_store) as store, connection_to(shared_store) as other, store.using() as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '300ms'")
        number = connection.info.backend_pid
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM unnest(%s::int[], %s::bytea[])", ([1, 2], [b"a", b"b"]))
        with other.using() as looking:
            ends = Clock().monotonic() + 30.0
            while looking.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (number,)).fetchall():
                assert Clock().monotonic() < ends, "its transaction is idle, and it is still there"


def test_who_was_reached_before_is_only_away_when_it_refuses(store_text):
    """A database that is dropped and brought back, a changed password, an old certificate: the call can be given again,
    though the first call of a process would be told that its address is wrong (failures.md row 95)."""
    base, _, name = store_text.rpartition("/")
    with connection_to(f"{base}/postgres") as admin, connection_to(store_text) as store:

        def rename(old: str, new: str) -> None:
            with admin.using() as connection:
                ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
                connection.execute(ended, (old,))
                connection.execute(f"ALTER DATABASE {old} RENAME TO {new}".encode())

        with store.using() as connection:
            connection.execute("SELECT 1")
        rename(name, f"{name}_away")
        with pytest.raises(RunStopped, match=r"refuses: .*does not exist.*; it was reached before"), store.using():
            pass
        with pytest.raises(UsageError, match="refuses"), connection_to(store_text) as other, other.using():
            pass
        rename(f"{name}_away", name)
        with store.using() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.fixture
def set_store(store_text):
    """A connection to a store in a database with settings that do harm."""
    with connection_to(store_text) as before, before.using() as connection:
        for name, (value, _) in SET.items():
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {name} = '{value}'".encode())
    with connection_to(store_text) as made:
        yield made


def test_settings_of_a_database_do_not_count(set_store):
    """Each session has those that the store relies on: a commit is on disk, two who finish at once see each other."""
    with set_store.using() as connection:
        for name, (_, expected) in SET.items():
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (expected,), name
        connection.execute("SELECT pg_sleep(0.2)")
        with connection.transaction():
            assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


def test_what_was_uploaded_comes_back_whatever_strings_mean(set_store, tmp_path):
    """A database in which a backslash means something else keeps a bundle byte for byte."""
    (tmp_path / "manifest.yaml").write_bytes(bytes(range(256)))
    digest = bundles.upload(set_store, tmp_path, ["manifest.yaml"])
    assert bundles.download(set_store, digest, tmp_path / "there") == ["manifest.yaml"]
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
    """Waiting would not help, so that it is not a stop that the same command goes on from."""
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
