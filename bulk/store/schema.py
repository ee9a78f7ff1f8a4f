"""The schema of a store: `bulk store init` makes it, and `bulk store upgrade` brings it up to date.

Migrations are numbered, run once each and in order, all of them in one transaction under a lock, so that two commands
at the same time do no harm. Within a release they only add. The functions of the database (`functions.sql`) and the
rights of the roles (`grants.sql`) are made anew each time.
"""

import re
import shlex
from importlib import resources
from importlib.resources.abc import Traversable

import psycopg

from bulk.errors import RunDirectoryError
from bulk.model import ErrorCode, OutcomeKind
from bulk.store.connections import StoreConnection

SCHEMA = "bulk"
ROLES = ("bulk_reader", "bulk_submitter", "bulk_worker")
OLDEST_SERVER = 140_000
_LOCK_KEY = 0x42554C4B
_FILES = resources.files("bulk.store")
_NUMBER = re.compile(r"(\d{4})_\w+\.sql")


def migrations() -> dict[int, Traversable]:
    """Return the migration files by number; numbers count from 1 and none is missing."""
    found = {
        int(match[1]): file
        for file in (_FILES / "migrations").iterdir()
        if (match := _NUMBER.fullmatch(file.name)) is not None
    }
    assert sorted(found) == list(range(1, len(found) + 1))
    return dict(sorted(found.items()))


VERSION = len(migrations())
"""The version of the schema that this program works with."""


def version_of(connection: psycopg.Connection) -> int:
    """Return the version of the store's schema in a database; 0: the database has no such schema."""
    is_there = connection.execute(
        "SELECT FROM pg_attribute WHERE attrelid = to_regclass('bulk.version') AND attname = 'schema' "
        "AND atttypid = 'integer'::regtype"
    ).fetchone()
    if is_there is None:
        return 0
    row = connection.execute("SELECT coalesce(max(schema), 0) FROM bulk.version").fetchone()
    return int(row[0]) if row else 0


def refuse_other(store: StoreConnection) -> None:
    """Check that the store has this program's version of the schema.

    Raises:
        RunDirectoryError: the version is another, or there is no store; the message says which, and the way out.
        RunStopped: the store can't be reached.
    """
    with store.using() as connection:
        found = version_of(connection)
    if found == 0:
        raise RunDirectoryError(
            f"there is no store in {store.address}: bulk store init {shlex.quote(str(store.address))}"
        )
    if found < VERSION:
        raise RunDirectoryError(
            f"the store {store.address} has schema {found}, this version needs {VERSION}: "
            f"bulk store upgrade {shlex.quote(str(store.address))}"
        )
    if found > VERSION:
        raise RunDirectoryError(
            f"the store {store.address} has schema {found}, newer than this version's {VERSION}: use the newer bulk"
        )


def init(store: StoreConnection) -> int:
    """Make the schema and its roles; a second call changes nothing. Returns the version.

    Raises:
        RunDirectoryError: the database is not in UTF-8, its server is too old, it has a schema of this name that is not
            a store or belongs to another user, or this user may not make the schema or the roles.
    """
    return _bring_up(store, is_new=True)


def upgrade(store: StoreConnection) -> int:
    """Bring the schema of a store up to date; returns the version.

    Raises:
        RunDirectoryError: there is no store, the store is newer than this program, or this user may not change it.
    """
    return _bring_up(store, is_new=False)


def _bring_up(store: StoreConnection, *, is_new: bool) -> int:
    with store.unhurried(), store.transaction() as connection:
        _refuse_unfit(store, connection)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
        _refuse_others(store, connection)
        found = version_of(connection)
        if found == 0 and not is_new:
            raise RunDirectoryError(
                f"there is no store in {store.address}: bulk store init {shlex.quote(str(store.address))}"
            )
        if found > VERSION:
            raise RunDirectoryError(
                f"the store {store.address} has schema {found}, newer than this version's {VERSION}: use the newer bulk"
            )
        _make_roles(store, connection)
        if found == 0:
            _refuse_foreign(store, connection)
            try:
                connection.execute("CREATE SCHEMA IF NOT EXISTS bulk")
            except psycopg.errors.InsufficientPrivilege:
                raise _may_not(store, connection, "make a schema", "CREATE on the database") from None
        for number, file in migrations().items():
            if number > found:
                connection.execute(file.read_bytes())
                connection.execute("INSERT INTO version (schema) VALUES (%s)", (number,))
        for name in ("functions.sql", "grants.sql"):
            connection.execute((_FILES / "sql" / name).read_bytes())
        words = [word.value for word in (*OutcomeKind, *ErrorCode)]
        connection.execute("INSERT INTO word (word) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", (words,))
    return VERSION


def _refuse_unfit(store: StoreConnection, connection: psycopg.Connection) -> None:
    info = connection.info
    if info.server_version < OLDEST_SERVER:
        raise RunDirectoryError(
            f"the server of {store.address} is older than PostgreSQL {OLDEST_SERVER // 10_000}, which a store needs"
        )
    if info.parameter_status("server_encoding") != "UTF8":
        raise RunDirectoryError(f"the database of {store.address} is not of UTF8: CREATE DATABASE … ENCODING 'UTF8'")


def _refuse_others(store: StoreConnection, connection: psycopg.Connection) -> None:
    """Refuse any user but the owner of an existing schema, because only the owner can change it."""
    row = connection.execute(
        "SELECT nspowner::regrole::text, pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'bulk'"
    ).fetchone()
    if row is not None and not row[1]:
        raise RunDirectoryError(
            f"the store {store.address} belongs to {row[0]}; the user {connection.info.user} can't change it"
        )


def _refuse_foreign(store: StoreConnection, connection: psycopg.Connection) -> None:
    """Refuse a schema that has tables but is not a store; an empty schema may have been made for this user."""
    query = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('bulk')"
    if connection.execute(query).fetchone() != (0,):
        raise RunDirectoryError(
            f"the database of {store.address} has a schema bulk that is not a store: name another database, or have "
            "its owner rename that schema"
        )


def _make_roles(store: StoreConnection, connection: psycopg.Connection) -> None:
    found = connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", (list(ROLES),))
    known = {row[0] for row in found}
    for role in ROLES:
        if role in known:
            continue
        try:
            with connection.transaction():  # roles are the server's: another database may be made at this moment
                connection.execute(f"CREATE ROLE {role} NOLOGIN".encode())
        except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            continue
        except psycopg.errors.InsufficientPrivilege:
            needs = f"CREATEROLE, or have an administrator make the roles {', '.join(ROLES)}"
            raise _may_not(store, connection, f"make the role {role}", needs) from None


def _may_not(store: StoreConnection, connection: psycopg.Connection, what: str, needs: str) -> RunDirectoryError:
    user = connection.info.user
    return RunDirectoryError(f"the store {store.address}: the user {user} may not {what}; give it {needs}")
