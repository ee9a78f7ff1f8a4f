"""Connects to a store, and says which error means that it can't be reached.

A lost connection is made anew by the next call. If the server closed a connection while it was idle, the next call
makes a new one without an error. Errors pass on the message of PostgreSQL, because it names the cause; no password is
in it. Nothing here retries, because only the caller knows how long that makes sense. Nothing waits without an end: a
silent server, for example behind a proxy that keeps its connections open, is given up after a while, and so is a
transaction whose process has fallen silent, because others wait for its locks.
"""

import contextlib
import math
import re
import select
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

import psycopg
import zstandard
from psycopg import errors, pq

from bulk.clock import Clock
from bulk.errors import BulkError, RunDirectoryError, RunStopped, UsageError
from bulk.exit_codes import ExitCode
from bulk.ledger.database import UNREADABLE
from bulk.redaction import redact
from bulk.store.address import PASSWORD_FILE, VERIFIED, StoreAddress, is_here

FENCED, GIVEN_UP, AT_WORK = "BU001", "BU002", "BU003"
"""The codes of the errors that the store's own functions raise."""

CONNECT_S = 10
LOCK_S = 10

SILENT_S = 20.0
"""How long a server may say nothing while a request to it is open, before it is given up (seconds). This is more than
`LOCK_S`, after which a server reports that it waited for a lock."""

UNHURRIED_S = 1_800.0
"""The value of `SILENT_S` while one statement reads or writes a whole run (seconds)."""

ENDING_S = 4.0
"""The value of `SILENT_S` for a process that is to end (seconds), and the connect timeout of every connection that has
an `Ending`."""

IDLE_S = 10
"""How long a transaction may be idle before the server ends it (seconds): its process may have been stopped, or its
machine may be gone, and it holds locks. A server does not count after a pipeline, as `executemany` makes one, because
what is sent last is not a statement (`Flush`): so many rows are one statement over arrays."""

_SESSION = {
    "search_path": "bulk,pg_temp",
    "timezone": "UTC",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "default_transaction_isolation": r"read\ committed",
    "synchronous_commit": "on",
    "lock_timeout": f"{LOCK_S}s",
    "statement_timeout": f"{UNHURRIED_S:.0f}s",
    "idle_in_transaction_session_timeout": f"{IDLE_S}s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""Settings of every session, whatever an administrator has set for the database or the user: with others, what is
written would not be what is read, a commit could be lost when the server crashes, two workers would not see what the
other one has just finished, or a statement over a whole run would never come to its end."""

_SEEN = ("search_path", "standard_conforming_strings", "default_transaction_isolation", "synchronous_commit")
"""Those of `_SESSION` without which nothing is right. A pooler between may leave all of them out."""

_SETTINGS = {
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": " ".join(f"-c {name}={value}" for name, value in _SESSION.items()),
}
_UNUSABLE = ("42", "3F")
"""The beginnings of PostgreSQL's error codes for tables or functions that are not those of this version."""

_DAMAGED = ("22", "XX001", "XX002")
"""The beginnings of PostgreSQL's error codes for values that are not what they have to be, and for damaged files."""

_HOPELESS = (
    "does not exist",
    "no password supplied",
    "authentication failed",
    "no pg_hba.conf",
    "is not permitted",
    "permission denied for database",
    "definition of service",
    "does not support SSL",
    "certificate verify failed",
    "does not match host name",
    "invalid port number",
    "invalid sslmode value",
    "invalid integer value",
    "unsupported startup parameter",
)
"""Messages about a user, a database, a certificate or a pooler that can't be used: trying again would not help."""

_POOLER = "a pooler between has to pass on the settings of a session: name the server itself"


T = TypeVar("T")


class GivenUp(BulkError):
    """The process is to end and the store says nothing, so that the process sends it no more requests."""

    exit_code = ExitCode.STOPPED


class Ending:
    """Tells all connections of a process that it is to end.

    From then on a connection waits only `ENDING_S` for a word of the server, and once one of them has waited in vain,
    none asks any more. The leases of the process end by themselves, and other workers go on with its shards.

    Attributes:
        silent_s: how long a server may say nothing, whatever is asked (seconds).
        is_given_up: whether no connection of the process asks any more.
    """

    def __init__(self) -> None:
        self.silent_s, self.is_given_up = math.inf, False

    def begin(self) -> None:
        """Have all connections wait no longer than `ENDING_S`."""
        self.silent_s = ENDING_S

    def give_up(self) -> None:
        """Have all connections wait no longer, and ask no more."""
        self.silent_s, self.is_given_up = 0.0, True


class Connection(psycopg.Connection):
    """A connection that gives up a server that says nothing.

    Attributes:
        silent_s: how long the server may say nothing before it is given up (seconds).
        ending: tells whether the process is to end, and so has to give up sooner.
    """

    silent_s = SILENT_S
    ending: Ending | None = None

    def wait(self, gen: Generator[Any, Any, T], *given: Any, **named: Any) -> T:
        """See `psycopg.Connection`, which asks again every tenth of a second while nothing comes."""
        return super().wait(self._while_it_talks(gen), *given, **named)

    def _while_it_talks(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        now = Clock().monotonic
        heard_at = now()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard_at = now()
                elif (silent_s := now() - heard_at) >= (patience_s := self._patience_s()):
                    self.pgconn.finish()  # nothing more is asked on it, no end of a transaction either
                    if self.ending is not None and silent_s >= self.ending.silent_s:
                        self.ending.give_up()
                    raise errors.OperationalError(f"it has said nothing for {patience_s or silent_s:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _patience_s(self) -> float:
        return self.silent_s if self.ending is None else min(self.silent_s, self.ending.silent_s)


def connect(address: StoreAddress, purpose: str, ending: Ending | None = None) -> Connection:
    """Return a connection on which every statement is a transaction of its own, unless one is begun.

    Args:
        purpose: shown in the server's list of connections. ending: tells whether the process is to end; None: the
            process may take the usual time.

    Raises:
        RunStopped: the store can't be reached.
        GivenUp: the process is to end, and the store can't be reached.
        UsageError: the store is reached, and refuses this user; or the connection is not encrypted as it must be, or a
            pooler leaves out what a session needs.
    """
    if ending is not None and ending.is_given_up:
        raise GivenUp(f"the store {address} says nothing, and this process is to end; nothing recorded is lost")
    timeout_s = CONNECT_S if ending is None else int(ENDING_S)
    try:
        connection = Connection.connect(
            address.conninfo,
            autocommit=True,
            prepare_threshold=1,
            application_name=f"bulk {purpose}",
            **{**_SETTINGS, "connect_timeout": timeout_s},  # type: ignore[arg-type]
        )
    except psycopg.Error as error:
        if ending is not None and ending.silent_s < math.inf:
            ending.give_up()
        raise _unreached(address, error) from None
    connection.ending = ending
    try:
        _refuse_pooler(address, connection)
    except psycopg.Error as error:
        connection.close()
        raise _unreached(address, error) from None
    info = connection.info  # the host that libpq really took, from service files, the environment and host names
    if not (is_here(info.host) and is_here(info.hostaddr)) and info.get_parameters().get("sslmode") != VERIFIED:
        connection.close()
        raise UsageError(f"STORE: {address} is another machine: it needs sslmode={VERIFIED}")
    return connection


def _refuse_pooler(address: StoreAddress, connection: Connection) -> None:
    """Check that the session has the settings that were asked for.

    Raises:
        UsageError: it has others.
    """
    names = ", ".join(f"current_setting('{name}')" for name in _SEEN)
    found = connection.execute(f"SELECT {names}".encode(), prepare=False).fetchone() or ()
    wrong = [name for name, value in zip(_SEEN, found, strict=True) if value != _SESSION[name].replace("\\", "")]
    if wrong:
        connection.close()
        raise UsageError(f"STORE: {address} leaves out {', '.join(wrong)}; {_POOLER}")


def _unreached(address: StoreAddress, error: psycopg.Error) -> BulkError:
    said = said_by(error)
    if any(phrase in said for phrase in _HOPELESS):
        ways_out = {"no password supplied": f"; {PASSWORD_FILE}", "unsupported startup parameter": f"; {_POOLER}"}
        way_out = "".join(way_out for phrase, way_out in ways_out.items() if phrase in said)
        return UsageError(f"STORE: {address} refuses: {said}{way_out}")
    return RunStopped(f"the store {address} can't be reached: {said}; nothing recorded is lost")


def said_by(error: psycopg.Error) -> str:
    """Return the message of the database, or of libpq, about an error, on one line."""
    detail = error.diag.message_primary or str(error)
    return redact("; ".join(line.strip() for line in detail.splitlines() if line.strip()))


def refusal(error: psycopg.Error, address: StoreAddress) -> BulkError | ValueError:
    """Return the error that tells the user what an error of PostgreSQL means: a stop that can be retried, or a store
    that can't be used."""
    said = said_by(error)
    match error:
        case errors.UniqueViolation():
            return ValueError(f"an item of this group has an outcome already ({said})")
        case errors.InsufficientPrivilege():
            return RunDirectoryError(
                f"the store {address} does not let this user do that ({said}); its owner grants the role: "
                "GRANT bulk_worker (or bulk_submitter, bulk_reader) TO the user"
            )
        case errors.ReadOnlySqlTransaction():
            return RunStopped(
                f"the store {address} takes no writes ({said}): it is a standby, or was made read-only; nothing "
                "recorded is lost, and the same command goes on where it does (of several hosts, "
                "target_session_attrs=read-write finds that one)"
            )
    if (error.sqlstate or "").startswith(_UNUSABLE):
        return RunDirectoryError(
            f"{address} holds no store that this version can use ({said}): bulk store init, or bulk store upgrade"
        )
    if (error.sqlstate or "").startswith(_DAMAGED):
        return damaged(f"what PostgreSQL can't read: {said}")
    if error.sqlstate in (FENCED, GIVEN_UP):
        message = f"the store {address}: another worker took over ({said}); nothing of this group was kept"
        return ShardsLost(message, tuple(map(int, re.findall(r"-?\d+", said))))
    if error.sqlstate == AT_WORK:
        return RunDirectoryError(f"the store {address}: {said}; pause the run, and wait for them to stop")
    return RunStopped(f"the store {address}: {said}; nothing recorded is lost, and the same command goes on")


def damaged(what: str) -> RunDirectoryError:
    """Return the error for a store that has something that this project has never written, or has lost something."""
    return RunDirectoryError(f"the store is damaged: it has {what}; restore it from a copy")


@contextlib.contextmanager
def sound() -> Iterator[None]:
    """Turn values that can't be ours into a report of damage, because PostgreSQL takes any value of the right type."""
    try:
        yield
    except (*UNREADABLE, zstandard.ZstdError) as error:
        raise damaged(f"a value that can't be read ({type(error).__name__})") from error


class ShardsLost(RunDirectoryError):
    """Shards are another worker's now, or their leases are over. Nothing of the group was kept.

    Attributes:
        shards: their numbers.
    """

    def __init__(self, message: str, shards: tuple[int, ...]) -> None:
        super().__init__(message)
        self.shards = shards


def _was_hung_up(connection: Connection) -> bool:
    """Return whether the server has sent something on an idle connection: the notice that the connection is over, for
    example because it was idle for too long. No request is lost then, so the caller can safely use a new connection."""
    if connection.closed or connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return False
    looking = select.poll()
    looking.register(connection.fileno(), select.POLLIN)
    return bool(looking.poll(0))


class StoreConnection:
    """One connection, which is made when it is needed and made anew when it was lost; for one thread at a time.

    Attributes:
        made: how often the connection was made (count).
    """

    def __init__(self, address: StoreAddress, purpose: str, ending: Ending | None = None) -> None:
        self.address, self._purpose, self._ending = address, purpose, ending
        self.made = 0
        self._connection: Connection | None = None
        self._silent_s = SILENT_S
        self._lock = threading.RLock()
        self._is_closed = False

    @contextlib.contextmanager
    def using(self) -> Iterator[psycopg.Connection]:
        """Lend the connection, and turn errors of PostgreSQL into those of this project.

        Raises:
            RunStopped: the store can't be reached, or the connection was lost; it is not known then whether the
                statement that was under way took effect.
            GivenUp: see `Ending`.
            RunDirectoryError: the store can't be used.
            UsageError: the store refuses this user. If it did not before, that is `RunStopped`: an administrator may
                be at work on it, or a certificate or a password be changed.
        """
        with self._lock:
            if self._is_closed:
                raise ValueError("the connection to the store was closed")
            if self._connection is not None and _was_hung_up(self._connection):
                self._connection.close()
            if self._connection is None or self._connection.closed:
                self._connection = self._reached()
                self._connection.silent_s = self._silent_s
                self.made += 1
            try:
                yield self._connection
            except psycopg.Error as error:
                is_idle = self._connection.pgconn.transaction_status == pq.TransactionStatus.IDLE
                if self._connection.closed or not is_idle or isinstance(error, errors.ReadOnlySqlTransaction):
                    self._connection.close()  # the next connection may lead to another server
                raise refusal(error, self.address) from error

    def _reached(self) -> Connection:
        try:
            return connect(self.address, self._purpose, self._ending)
        except UsageError as refused:
            if not self.made:
                raise
            raise RunStopped(f"{refused}; it was reached before, and nothing recorded is lost") from None

    @contextlib.contextmanager
    def unhurried(self) -> Iterator[None]:
        """Wait up to `UNHURRIED_S` for each answer, because a statement reads or writes a whole run."""
        before, self._silent_s = self._silent_s, UNHURRIED_S
        try:
            if self._connection is not None:
                self._connection.silent_s = UNHURRIED_S
            yield
        finally:
            self._silent_s = before
            if self._connection is not None:
                self._connection.silent_s = before

    @contextlib.contextmanager
    def transaction(self) -> Iterator[psycopg.Connection]:
        """Lend the connection as `using` does, in a transaction: all statements of the block take effect, or none."""
        with self.using() as connection, connection.transaction():
            yield connection

    def close(self) -> None:
        """Close the connection for good; may be called twice."""
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()

    def __enter__(self) -> "StoreConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
