"""No wait for a store is without an end: a server that says nothing is given up, and so is who holds its locks."""

import re
import threading
from pathlib import Path

import pytest

import bulk.cluster
import bulk.store
from bulk.clock import Clock
from bulk.errors import RunStopped, UsageError
from bulk.store import address, connections
from bulk.store.connections import IDLE_S, StoreConnection
from tests.store.places import connection_to
from tests.store.proxy import link_to
from tests.tries import quickest

SILENT_S = 0.4
MOST_S = 2.5 * SILENT_S + 1.0


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
        with pytest.raises(RunStopped, match="has said nothing for 0 s"), store.transaction() as connection:
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
