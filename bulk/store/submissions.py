"""A run comes into a store, all of it or nothing, and once, whoever submits it and however often. Calls block."""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import psycopg

from bulk.errors import RunDirectoryError, RunStopped
from bulk.ledger.records import RunIdentity
from bulk.store import sql
from bulk.store.connections import StoreConnection
from bulk.store.leases import Shard

_SQL = sql.load("runs")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as it is submitted.

    Attributes:
        name: the name of the run, which people use in commands.
        bundle: the digest of its bundle, which was uploaded before.
        engine: version and digest of the operations: only workers with the same ones take the run.
        limits: the limits of the manifest, which may be changed while the run goes on.
        grace_s: the sum of a request's time limit and `leases.GRACE_S` (seconds).
        groups: the group of each job, by the job's number.
        shards: the shards of all groups; their numbers count from 0.
        is_gated: whether people open the waves after the first. names_secrets: whether its items name secrets.
        is_awaited: whether who submits it waits for its end and takes its results home.
    """

    name: str
    identity: RunIdentity
    bundle: bytes
    engine: str
    limits: Mapping[str, Any]
    grace_s: float
    groups: Sequence[int]
    shards: Sequence[Shard]
    is_gated: bool = False
    names_secrets: bool = False
    is_awaited: bool = False


class NameTaken(RunDirectoryError):
    """The store has a run of that name, of another manifest or other items."""


def identity_digest(identity: RunIdentity) -> bytes:
    """Return a digest of 32 bytes, which is the same for the same manifest, items and platform."""
    whose = (identity.base_url, identity.manifest_digest, identity.items_digest)
    return hashlib.sha256("\n".join(whose).encode()).digest()


def submit(store: StoreConnection, submission: Submission) -> tuple[str, bool]:
    """Submit a run, all of it or nothing; returns its name, and whether it is new.

    A second submission of the same manifest and items returns the earlier run, while that run is not complete, or while
    it is awaited, as this one is, and its results are not at home (`export.end_wait`).

    Raises:
        NameTaken: the store has a run of this name with another manifest or other items.
        RunStopped: the store can't be reached.
    """
    digest = identity_digest(submission.identity)
    try:
        with store.unhurried(), store.transaction() as connection:
            connection.execute(_SQL["hold_name"], (submission.name,))
            found = _going_on(store, connection, submission, digest)
            if found is not None:
                return found, False
            _make(connection, submission, digest)
            connection.execute(_SQL["drop_bundles"])
    except ValueError:  # another command has submitted the run at this moment
        with store.using() as connection:
            found = _going_on(store, connection, submission, digest)
        if found is None:
            raise
        return found, False
    except RunStopped as lost:
        # It may have been the last answer that was lost. The same command would begin a second run if this one has
        # become complete by then.
        if not _was_made(store, submission, digest, lost):
            raise
    return submission.name, True


def _was_made(store: StoreConnection, submission: Submission, digest: bytes, lost: RunStopped) -> bool:
    try:
        with store.transaction() as connection:
            connection.execute(_SQL["hold_name"], (submission.name,))  # what the server still does comes first
            return connection.execute(_SQL["was_made"], (submission.name, digest)).fetchone() is not None
    except RunStopped:
        look = f"bulk runs --store {shlex.quote(str(store.address))}"
        raise RunStopped(f"{lost}; whether {submission.name} was submitted, `{look}` tells") from lost


def _going_on(
    store: StoreConnection, connection: psycopg.Connection, submission: Submission, digest: bytes
) -> str | None:
    name, is_awaited = submission.name, submission.is_awaited
    values = {"name": name, "digest": digest, "is_awaited": is_awaited}
    row = connection.execute(_SQL["going_on"], values).fetchone()
    if row is None:
        return None
    if row[2] != digest:
        raise NameTaken(
            f"the store {store.address} has a run {name}, of another manifest; name this one otherwise, or forget that "
            f"one: bulk forget {shlex.quote(name)} --store {shlex.quote(str(store.address))}"
        )
    if is_awaited:
        connection.execute(_SQL["await"], (row[0],))
    return str(row[1])


def _make(connection: psycopg.Connection, submission: Submission, digest: bytes) -> None:
    identity = msgspec.json.encode(submission.identity).decode()
    limits = msgspec.json.encode(submission.limits).decode()
    values = (submission.name, identity, digest, submission.bundle, submission.engine, limits, submission.grace_s)
    made = connection.execute(_SQL["make"], values).fetchone()
    assert made is not None
    run = made[0]
    jobs = submission.identity.jobs
    numbers, items = list(range(len(jobs))), [job[2] for job in jobs]
    connection.execute(_SQL["add_jobs"], (run, numbers, list(submission.groups), items))
    with connection.cursor() as cursor, cursor.copy(_SQL["copy_shards"]) as copy:
        for shard in submission.shards:
            copy.write_row(
                (run, shard.no, shard.kind.value, shard.job_group, shard.modulus, shard.remainder, list(shard.apart),
                 shard.first, shard.behind, shard.items, list(shard.needs), list(shard.after), shard.wave)
            )  # fmt: skip
    connection.execute(_SQL["count_waves"], (run, run))
    connection.execute(
        _SQL["note_demands"], (submission.is_gated, submission.names_secrets, submission.is_awaited, run)
    )
    connection.execute(_SQL["end_empty_jobs"], (run,))
    connection.execute(_SQL["end_empty_run"], (run,))
    connection.execute("SELECT pg_notify('bulk_shard', %s)", (str(run),))


def is_taken(store: StoreConnection, name: str) -> bool:
    """Return whether there is a run of that name."""
    with store.using() as connection:
        return connection.execute(_SQL["is_taken"], (name,)).fetchone() is not None
