"""What stands in a store: made once, by whoever may; and who may do what in it."""

import re
import threading
from importlib import resources
from pathlib import Path

import psycopg
import pytest

from bulk.errors import RunDirectoryError, RunStopped, UsageError
from bulk.store import schema, sql
from bulk.store.leases import Leases
from bulk.store.ledger import StoreLedger
from tests.ledger.samples import STATUS, intent, record
from tests.store.places import ENGINE, StorePlace, connection_to
from tests.store.postgres import new_database, new_store

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""\bsql\.load\("(\w+)"\)""")


def test_every_statement_is_used() -> None:
    """Each named statement is named in a module that loads its file, and each function of the store is called: what
    nobody runs is right by chance only.
    """
    folder = ROOT / "bulk" / "store" / "sql"
    sources = [path.read_text("utf-8") for path in (ROOT / "bulk").rglob("*.py")]
    files = {path.stem: path.read_text("utf-8") for path in folder.glob("*.sql")}
    unused, found = [], 0
    for name in files:
        users = "".join(source for source in sources if name in LOADED.findall(source))
        named = list(sql.load(name))
        found += len(named)
        unused += [f"{name}.{each}" for each in named if f'"{each}"' not in users]
    code = "".join(text for name, text in files.items() if name != "grants")
    functions = re.findall(r"CREATE OR REPLACE FUNCTION (\w+)", code)
    unused += [each for each in functions if len(re.findall(rf"\b{each}\(", code)) < 2]
    assert unused == []
    assert (found > 50, len(functions) > 5) == (True, True), "they were found"


def as_user(postgres: str, text: str, name: str, *rights: str) -> str:
    """The address of the same database for a new user with these rights."""
    user = f"{name}_{text.rpartition('/')[2]}"
    with psycopg.connect(text, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN".encode())
        for right in rights:
            connection.execute(right.format(user=user).encode())
    return text.replace("postgres@", f"{user}@")


def test_a_store_is_made_once_by_two_at_the_same_time(postgres):
    """However often and by whomever it is made, there is one schema of this version; upgrading changes nothing."""
    text = new_database(postgres)
    done: list[int] = []

    def make() -> None:
        with connection_to(text) as store:
            done.append(schema.init(store))

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [schema.VERSION] * 3
    with connection_to(text) as store:
        assert schema.upgrade(store) == schema.VERSION
        schema.refuse_other(store)
        with store.using() as connection:
            assert connection.execute("SELECT schema FROM version").fetchall() == [
                (number,) for number in schema.migrations()
            ]


def test_an_upgrade_leaves_no_function_of_an_older_version(store_text):
    """Of a function with other arguments there are not two; who may call the new ones is as before."""
    of_store = "FROM pg_proc WHERE pronamespace = 'bulk'::regnamespace"
    query = f"SELECT proname, pronargs, proacl::text {of_store} ORDER BY 1, 2".encode()
    with connection_to(store_text) as store:
        with store.using() as connection:
            before = connection.execute(query).fetchall()
            connection.execute("CREATE FUNCTION fence(of_run bigint) RETURNS void LANGUAGE sql AS ''")
        schema.upgrade(store)
        with store.using() as connection:
            assert connection.execute(query).fetchall() == before
    assert "fence" in {name for name, _, _ in before}


def test_a_store_of_another_version_is_refused(store_text, postgres):
    """No store, an older and a newer one are told apart, each with its way out (failures.md row 86)."""
    with connection_to(new_database(postgres)) as store:
        with pytest.raises(RunDirectoryError, match=r"there is no store in .*: bulk store init"):
            schema.refuse_other(store)
        with pytest.raises(RunDirectoryError, match="bulk store init"):
            schema.upgrade(store)
    with connection_to(store_text) as store:
        with store.using() as connection:
            connection.execute("INSERT INTO version (schema) VALUES (%s)", (schema.VERSION + 1,))
        for call in (schema.refuse_other, schema.init, schema.upgrade):
            with pytest.raises(RunDirectoryError, match=r"newer than this version's .*: use the newer bulk"):
                call(store)
        with store.using() as connection:
            connection.execute("DELETE FROM version")
            connection.execute("INSERT INTO version (schema) VALUES (0)")
        with pytest.raises(RunDirectoryError, match="bulk store"):
            schema.refuse_other(store)


def test_a_schema_of_somebody_else_is_left_alone(postgres):
    """Nothing of it is changed, and the way out is another database; an empty one that was made for this user is
    used (failures.md row 86)."""
    text = new_database(postgres)
    with connection_to(text) as store:
        with store.using() as connection:
            connection.execute("CREATE SCHEMA bulk")
            connection.execute("CREATE TABLE bulk.version (v text)")
        with pytest.raises(RunDirectoryError, match=r"a schema bulk that is not a store: name another database"):
            schema.init(store)
        for call in (schema.refuse_other, schema.upgrade):
            with pytest.raises(RunDirectoryError, match="there is no store in"):
                call(store)
        with store.using() as connection:
            connection.execute("DROP TABLE bulk.version")
        assert schema.init(store) == schema.VERSION


def test_what_is_missing_in_a_store_is_no_stop(store_text):
    """The same command would not find it either, so the way out is named (failures.md row 86)."""
    with connection_to(store_text) as store:
        with store.using() as connection:
            connection.execute("DROP FUNCTION forget_run")
        for query in (b"SELECT forget_run(1)", b"SELECT nothing FROM run", b"SELECT FROM nothing"):
            with pytest.raises(RunDirectoryError, match="bulk store upgrade"), store.using() as connection:
                connection.execute(query)
        schema.upgrade(store)


def test_a_standby_says_that_it_takes_no_writes(store_text):
    """Reads go on; the next connection may lead to another server (failures.md row 81)."""
    with connection_to(store_text) as store:
        with store.using() as connection:
            connection.execute("SET default_transaction_read_only = on")
        schema.refuse_other(store)
        with pytest.raises(RunStopped, match=r"takes no writes .*: it is a standby"), store.using() as connection:
            connection.execute("DELETE FROM outcome")
        with store.using() as connection:
            connection.execute("DELETE FROM outcome")
        assert store.made == 2


def test_migrations_are_numbered_without_a_hole():
    """Each version has its file."""
    names = sorted(file.name for file in (resources.files("bulk.store") / "migrations").iterdir())
    assert [int(name[:4]) for name in names if name.endswith(".sql")] == list(range(1, schema.VERSION + 1))


def test_who_may_not_make_a_store_is_told_what_is_missing(postgres):
    """A user without the right to make a schema is told so, and that nothing else is wrong."""
    text = new_database(postgres)
    with connection_to(new_database(postgres)) as store:
        schema.init(store)  # the roles are there
    with (
        connection_to(as_user(postgres, text, "poor")) as store,
        pytest.raises(RunDirectoryError, match=r"poor.* may not make a schema; give it CREATE on the database"),
    ):
        schema.init(store)
    refused = pytest.raises(RunDirectoryError, match=r"belongs to postgres; the user other.* can't change it")
    with connection_to(new_store(postgres)) as store, store.using() as connection:
        database = connection.info.dbname
    other = as_user(postgres, postgres.rpartition("/")[0] + "/" + database, "other")
    for change in (schema.init, schema.upgrade):
        with connection_to(other) as store, refused:
            change(store)
    maker = as_user(postgres, text, "maker", f"GRANT CREATE ON DATABASE {text.rpartition('/')[2]} TO {{user}}")
    with connection_to(maker) as store:
        assert schema.init(store) == schema.VERSION


def test_each_role_does_its_work_and_no_more(store_text, postgres, tmp_path):
    """A worker works and can't change a table; a reader is told what it may not (failures.md row 86)."""
    place = StorePlace(store_text, tmp_path)
    worker = as_user(postgres, store_text, "worker", "GRANT bulk_worker TO {user}")
    leases = Leases(connection_to(worker), "worker", ENGINE, lambda: 0.0)
    ledger = place.opened(leases=leases)
    with StoreLedger(connection_to(worker), place.run, leases.worker, tmp_path, ledger.holding) as mine:
        mine.commit([intent(1), record(0), record(1, job=1)], STATUS)
        mine.finish(3, "", STATUS)
        leases.tidy()
    leases.close()
    refused = pytest.raises(RunDirectoryError, match="does not let this user do that")
    with connection_to(worker) as store, refused, store.using() as connection:
        connection.execute("DROP TABLE intent")
    reader = as_user(postgres, store_text, "reader", "GRANT bulk_reader TO {user}")
    with connection_to(reader) as store:
        with store.using() as connection:
            assert connection.execute("SELECT count(*) FROM outcome").fetchone() == (2,)
        for query in (b"SELECT FROM bundle_part", b"DELETE FROM outcome", b"SELECT fence(1, '{}', '{}')"):
            with pytest.raises(RunDirectoryError, match="GRANT bulk_worker"), store.using() as connection:
                connection.execute(query)
    place.close()


def test_a_store_that_can_not_be_reached_says_why(postgres):
    """Nobody listening is worth a retry; a database or a user that is not there, or may not, is not."""
    with connection_to("postgresql://127.0.0.1:1/x") as store, pytest.raises(RunStopped, match=r"reached.*refused"):
        schema.refuse_other(store)
    for wrong in (postgres.rpartition("/")[0] + "/nothing", postgres.replace("postgres@", "nobody_here@")):
        with connection_to(wrong) as store, pytest.raises(UsageError, match="does not exist"):
            schema.refuse_other(store)
    for wrong, words in (
        ("postgresql://127.0.0.1:99999/x", "invalid port number"),
        (f"{postgres}?sslmode=sometimes", "invalid sslmode value"),
    ):
        with connection_to(wrong) as store, pytest.raises(UsageError, match=words):
            schema.refuse_other(store)
    text = new_database(postgres)
    revoke = f"REVOKE CONNECT ON DATABASE {text.rpartition('/')[2]} FROM PUBLIC"
    with (
        connection_to(as_user(postgres, text, "kept_out", revoke)) as store,
        pytest.raises(UsageError, match="permission denied for database"),
    ):
        schema.refuse_other(store)
