"""A run goes out of the store into an ordinary run directory, so that reports and comparisons need no database.

An export reads the run as it stands at one moment. The directory gets its name when it is complete; the next export
deletes the files that a killed export left behind. Lines stand in the order in which they were written, as in a run on
one machine.
"""

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import zstandard

from bulk import exit_codes
from bulk.errors import RunDirectoryError
from bulk.ledger.database import LEDGER
from bulk.ledger.directory import refusing
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Action, Minute
from bulk.ledger.rows import EndedLine, intent_from_row
from bulk.ledger.view import LedgerView
from bulk.model import ErrorCode, OutcomeKind
from bulk.status import JobStatus, RunStatus, Tell, buckets_of_all, telling, untold
from bulk.storage.locks import try_lock
from bulk.storage.private_files import DIRECTORY_MODE, open_directory
from bulk.store import bundles, runs, sql
from bulk.store.connections import StoreConnection, damaged, sound
from bulk.store.saved import bring
from bulk.store.view import StoreView

_SQL = sql.load("export")

UNFINISHED = "exported before it was complete; the store goes on with it"
_PAGE_ROWS = 10_000
_PAGE_CHUNKS = 64
_GROUP_ROWS = 20_000
"""How many lines go into the run directory in one commit, at least (count)."""

Row = tuple[int, int, int, int, int, int | None, int, int, int, str | None]
"""Chunk, job, index, numbers of outcome and code, HTTP status, attempts, position in the chunk, length, and the
before-image (JSON)."""


def export(
    store: StoreConnection,
    run: runs.StoredRun,
    run_dir: Path,
    merged: Callable[[Sequence[Minute]], list[Minute]],
    tell: Tell = untold,
) -> RunStatus:
    """Write the run directory of a run; returns the status of the run.

    Args:
        run_dir: the directory must not exist, or must be empty.
        merged: merges the figures that several workers have recorded for the same minute.
        tell: is told how many items are written (count), now and then.

    Raises:
        RunDirectoryError: the run directory exists already, can't be written, or another export writes it.
        RunStopped: the store can't be reached, or the disk is full.
    """
    with refusing(run_dir, "name another --run-dir"), _part_of(run_dir) as part:
        status = _write(store, run, part, merged, tell)
        part.rename(run_dir)
    return status


def end_wait(store: StoreConnection, run: runs.StoredRun) -> None:
    """Note that the results of a run are at home: the same manifest and items are a new run from now on.

    Raises:
        BulkError: the store can't be reached, or this user may not do that.
    """
    with store.using() as connection:
        connection.execute(_SQL["end_wait"], (run.id,))


def is_export_of(run: runs.StoredRun, run_dir: Path) -> bool:
    """Return whether the directory has the results of a complete run: who exported it may have been killed before the
    reports were written.

    Raises:
        RunDirectoryError: the directory can't be read.
    """
    return run.state == runs.COMPLETE and _moments_of(run_dir) == (run.began_at, run.ended_at)


def is_awaited_export(store: StoreConnection, run_dir: Path) -> bool:
    """Return whether the directory has the results of a run, and the store does not know that they are at home.

    Raises:
        BulkError: the store can't be reached, or the directory can't be read.
    """
    moments = _moments_of(run_dir)
    if moments is None:
        return False
    with store.using() as connection:
        return connection.execute(_SQL["awaited_export"], moments).fetchone() is not None


def _moments_of(run_dir: Path) -> tuple[float, float | None] | None:
    """Return when the exported run began and ended, by which it is known: each completion has a moment of its own."""
    if not (run_dir / LEDGER).is_file():
        return None
    view = LedgerView(run_dir)
    exported = view.epochs()[:1]
    return None if view.elsewhere() or not exported else (exported[0].started_at, exported[0].ended_at)


def refuse_taken(run_dir: Path) -> Path:
    """Check that a run can be exported to the directory; returns the absolute path.

    Raises:
        RunDirectoryError: the directory exists and is not empty, or it is the current folder.
    """
    place = run_dir.resolve()
    with refusing(run_dir, "name another --run-dir"):
        if place == Path.cwd() or (place.exists() and not (place.is_dir() and not any(place.iterdir()))):
            raise _taken(run_dir)
    return place


def _taken(run_dir: Path) -> RunDirectoryError:
    return RunDirectoryError(f"{run_dir} is there already; name another folder with --run-dir")


def try_place(run_dir: Path) -> None:
    """Try whether a run can be exported to the directory, before the run is waited for.

    Raises:
        BulkError: see `refuse_taken`; or the directory can't be made, or another export writes it.
    """
    with refusing(run_dir, "name another --run-dir"), _part_of(run_dir) as part:
        part.rmdir()


@contextlib.contextmanager
def _part_of(run_dir: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes the run directory, and that no other export writes into.

    Raises:
        RunDirectoryError: the run directory exists already, or another export writes it.
    """
    place = refuse_taken(run_dir)
    part = place.with_name(place.name + ".part")
    part.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    held = open_directory(part)
    try:
        if not try_lock(held):
            raise RunDirectoryError(f"another command exports to {run_dir}; wait until it has ended")
        if not (part.exists() and os.path.samestat(os.fstat(held), part.stat())):  # another export has just renamed it
            raise _taken(run_dir)
        for left in part.iterdir():  # left behind by an export that was killed
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield part
    finally:
        os.close(held)


def _write(
    store: StoreConnection,
    run: runs.StoredRun,
    part: Path,
    merged: Callable[[Sequence[Minute]], list[Minute]],
    tell: Tell,
) -> RunStatus:
    if run.bundle and _has_bundle(store, run.bundle):
        _bring_companions(store, run.bundle, part)
    with Ledger.open(part, run.identity, now=run.began_at) as ledger:
        ledger.bind_parts()
        with sound(), store.unhurried(), store.transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # the transaction is idle while the disk is written; it only reads, so nobody waits for its locks
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            run = _as_it_stands(store, run)
            bring(connection, run.id, part, damaged("a file that is not whole"))
            _copy_planned(connection, run.id, ledger)
            _copy_lines(connection, run.id, ledger, tell)
            intents = [intent_from_row(row) for row in connection.execute(_SQL["intents"], (run.id,))]
            ledger.commit(intents, actions=_actions(connection, run.id))
            if ledger.counts() != StoreView(store, run.id).counts():
                raise damaged("other outcomes than it has counted, or it has just forgotten the run")
            for minute in merged([Minute(*row) for row in connection.execute(_SQL["minutes"], (run.id,))]):
                ledger.commit((), _status(run, ledger.counts(), ()), minute=minute)
            status = _status(run, ledger.counts(), runs.participants(store, run.id))
            superseded = sum(
                items for _, code, items in StoreView(store, run.id).error_counts() if code == ErrorCode.SUPERSEDED
            )
        is_complete = run.state == runs.COMPLETE
        outcomes = {kind.value: sum(job.outcomes.get(kind.value, 0) for job in status.jobs) for kind in OutcomeKind}
        code = exit_codes.of_run(outcomes, superseded, is_complete=is_complete, stopped_with=None)
        if not is_complete:
            ledger.goes_on_elsewhere(shlex.join(["bulk", "resume", run.name, "--store", str(store.address)]))
        ledger.finish(code, status.why, status)
    return status


def _as_it_stands(store: StoreConnection, run: runs.StoredRun) -> runs.StoredRun:
    """Return the run at the moment that is exported: since it was found, somebody may have had it done again."""
    found = runs.numbered(store, run.id)
    if found is None:
        raise RunDirectoryError(f"the store {store.address} does not have {run.name} any more: it was forgotten")
    return found


def _bring_companions(store: StoreConnection, bundle: bytes, part: Path) -> None:
    """Bring the files that lie beside the ledger in a run directory, without items and the files that they name."""
    with tempfile.TemporaryDirectory(dir=part) as folder:  # where the next export removes it, if this one is killed
        for name in bundles.download(store, bundle, Path(folder)):
            if "/" not in name:
                (Path(folder) / name).rename(part / name)


def _has_bundle(store: StoreConnection, digest: bytes) -> bool:
    with store.using() as connection:
        found = connection.execute("SELECT FROM bundle_part WHERE bundle = %s LIMIT 1", (digest,)).fetchone()
    return found is not None


def _copy_planned(connection: psycopg.Connection, run: int, ledger: Ledger) -> None:
    found = connection.execute(_SQL["planned"], (run,)).fetchone()
    if found is not None and found[0] is not None:
        ledger.planned_from(found[0])


def _copy_lines(connection: psycopg.Connection, run: int, ledger: Ledger, tell: Tell) -> None:
    words: dict[int, str] = dict(connection.execute(_SQL["words"]).fetchall())
    lines, ended = bytearray(), list[EndedLine]()
    with connection.cursor("outcomes", binary=True) as found, connection.cursor("chunks", binary=True) as chunks:
        chunks.itersize = _PAGE_CHUNKS
        found.execute(_SQL["outcomes"], (run,))
        chunks.execute(_SQL["chunks"], (run,))
        texts = iter(chunks)
        pages = iter(lambda: found.fetchmany(_PAGE_ROWS), [])
        for chunk, rows in groupby(telling(chain.from_iterable(pages), tell), itemgetter(0)):
            text = _text_of(chunk, texts)
            for _, job, index, outcome, code, http_status, attempts, position, length, before in rows:
                line = text[position : position + length]
                if len(line) != length or line[-1:] != b"\n":
                    raise damaged("an outcome without its line")
                lines += line
                image = None if before is None else before.encode()
                ended.append((job, index, words[outcome], words.get(code), http_status, attempts, length, image))
            if len(ended) >= _GROUP_ROWS:
                ledger.take_lines(lines, ended)
                lines, ended = bytearray(), []
    if ended:
        ledger.take_lines(lines, ended)


def _text_of(chunk: int, texts: Iterator[Any]) -> bytes:
    for number, data in texts:
        if number == chunk:
            return zstandard.decompress(data)
    raise damaged("an outcome without its line")


def _actions(connection: psycopg.Connection, run: int) -> list[Action]:
    return [
        Action(at=at, who=who, verb=verb, args=msgspec.json.decode(args), result=result)
        for at, who, verb, args, result in connection.execute(_SQL["actions"], (run,))
    ]


def _status(
    run: runs.StoredRun, counts: dict[int, dict[str, int]], participants: Sequence[runs.Participant]
) -> RunStatus:
    """Return the status of the run, from its outcomes and the last status of each worker."""
    told = [
        msgspec.json.decode(each.status, type=RunStatus, strict=False)
        for each in participants
        if each.status is not None
    ]
    is_complete = run.state == runs.COMPLETE
    return RunStatus(
        name=run.identity.name,
        state="complete" if is_complete else "stopped",
        at=run.ended_at or run.at,
        started_at=run.began_at,
        jobs=tuple(
            JobStatus(
                name=name,
                operation=operation,
                items=items if items >= 0 else sum(counts.get(no, {}).values()) if is_complete else None,
                outcomes=counts.get(no, {}),
            )
            for no, (name, operation, items) in enumerate(run.identity.jobs)
        ),
        buckets=buckets_of_all(told),
        requests=sum(status.requests for status in told),
        retries=sum(status.retries for status in told),
        settled=sum(status.settled for status in told),
        why="" if is_complete else run.why or UNFINISHED,
    )
