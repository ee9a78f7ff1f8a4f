"""The one truth about a run: what was sent and how it ended. One writer; each call returns once its data is on disk.

A group is written in one order: files below `saved/`, then lines of `results.jsonl`, synced, then one transaction that
points to them. So all that is in the ledger is complete, and what a killed process left beside it means nothing. The
class has no clock and makes no decision; calls block, and may come from any one thread at a time. Source: design.md §6,
interface.md §5.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import MappingProxyType

import msgspec

from bulk.errors import RunDirectoryError, RunStopped
from bulk.exit_codes import COMPLETE, SIGNALLED
from bulk.ledger import companion_files, database, results, rows, saved_files, seal
from bulk.ledger.digests import chain as digests
from bulk.ledger.digests.file_digests import forget_files, note_files
from bulk.ledger.directory import RESULTS, Claim, refusing
from bulk.ledger.opening import begin_epoch, refuse_changed, refuse_other_results
from bulk.ledger.records import Action, Entry, Intent, Minute, Point, Record, RunIdentity, StoredTally
from bulk.ledger.view import LedgerView
from bulk.model import ErrorCode, OutcomeKind
from bulk.redaction import redact
from bulk.status import RunStatus
from bulk.storage.bulk_insert import insert
from bulk.storage.private_files import stopped

_COUNT_AGAIN = "INSERT INTO counts SELECT job, outcome, code, count(*), sum(length) FROM outcomes"
_NO_TALLIES: Mapping[int, StoredTally] = MappingProxyType({})


def _nothing(_: Point) -> None:
    pass


class Ledger:
    """The ledger of one run in its run directory: a `RunLedger`, and a context manager that closes it.

    Attributes:
        epoch: how many times the run was opened for writing, this time included.
        sealing: counts the commits, and knows when the run began by the platform's clock.
        chain: the digest chain.
    """

    def __init__(
        self,
        claim: Claim,
        connection: sqlite3.Connection,
        file: results.ResultsFile,
        epoch: int,
        reached: Callable[[Point], None],
    ) -> None:
        self.run_dir, self.epoch = claim.path, epoch
        self._claim, self._connection, self._file, self._reached = claim, connection, file, reached
        self._path = claim.path / database.LEDGER
        self._inode = self._path.stat().st_ino
        self.began_at = float(connection.execute("SELECT min(started_at) FROM epochs").fetchone()[0])
        self._words = rows.read_words(connection)
        self._open = {(job, index) for job, index in connection.execute("SELECT job, idx FROM intents")}
        self._moved: set[str] = set()
        self._is_finished = False
        self._lock = threading.Lock()
        self._chunks = seal.open_chunks(connection, file.fd, file.end)
        self.sealing = seal.Sealing(claim.path, connection)
        self.chain = digests.Chain(connection)

    @classmethod
    def open(
        cls,
        run_dir: Path,
        identity: RunIdentity,
        *,
        now: float,
        claim: Claim | None = None,
        writes: Collection[str] = (),
        reached: Callable[[Point], None] = _nothing,
    ) -> "Ledger":
        """Create the ledger of a run, or resume it.

        All that can be refused is refused before anything is written. After a process that did not end its epoch, the
        file is examined first; then a half-done rewrite of `results.jsonl` is completed or undone, and its torn tail is
        cut off.

        Args:
            now: UTC epoch seconds, this machine's time.
            claim: the claim on the run directory, if it is held already; the ledger releases it when it closes.
            writes: names of jobs that write: their writes must not be sent again.
            reached: called at named moments, so that tests can kill the process there.

        Raises:
            RunDirectoryError: the directory is foreign, in use, damaged, newer, can't be written, or belongs to a run
                with another identity; the message says which, and the way out.
            RunStopped: the disk is full.
        """
        claim = Claim.take(run_dir) if claim is None else claim
        path, results_path = claim.path / database.LEDGER, claim.path / RESULTS
        with contextlib.ExitStack() as undo, refusing(claim.path), database.reading(path, is_opening=True):
            undo.callback(claim.release)
            if path.exists():
                seal.refuse_older(path)
            else:
                database.create(path, identity)
            is_sealed = (claim.path / seal.SEAL).exists()
            generation, end = refuse_changed(path, identity)
            refuse_other_results(path, results.in_force(results_path, generation), end, writes)
            database.migrate(path)
            results.settle_rewrite(results_path, generation)
            file = results.ResultsFile.open(results_path, end)
            undo.callback(file.close)
            connection = database.open_writer(path)
            undo.callback(database.close_writer, connection)
            forget_files(claim.path)
            epoch = begin_epoch(connection, identity, now, is_sealed=is_sealed)
            ledger = cls(claim, connection, file, epoch, reached)
            undo.pop_all()
            return ledger

    def commit(
        self,
        batch: Sequence[Entry],
        status: RunStatus | None = None,
        tallies: Mapping[int, StoredTally] = _NO_TALLIES,
        minute: Minute | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        """Make a group durable: files, then lines, then the transaction that points to them."""
        intents = [entry for entry in batch if type(entry) is Intent]
        records = [entry for entry in batch if type(entry) is Record]
        lines, lengths = results.encode_all(record.finished for record in records)
        line_digests = digests.line_digests(lines, lengths)
        with self._lock:
            self._check_presence()
            self._save(records)
            position = self._append(lines) if lines else self._file.end
            outcomes, sums = rows.outcome_rows(records, lengths, position, self._words)
            opened = {(intent.job, intent.index) for intent in intents}
            intent_rows, before_rows = rows.intent_rows(intents), rows.before_rows(records)
            closed = rows.closing(records, self._open, opened)
            withdrawn = [key for key in rows.withdrawn(batch) if key in self._open and key not in opened]
            try:
                with self._transaction() as connection:
                    if lines:
                        self._chunks.cover(connection, self._file.fd, position, len(lines), line_digests)
                    connection.executemany(rows.ADD_INTENT, intent_rows)
                    insert(connection, "outcomes", outcomes)
                    connection.executemany(rows.CLOSE_INTENT, [*closed, *withdrawn])
                    connection.executemany(rows.KEEP_BEFORE, before_rows)
                    leaves = digests.row_leaves(digests.LeafKind.INTENT, intent_rows)
                    leaves += [digests.withdrawn_leaf(*key) for key in withdrawn]
                    leaves += digests.ended_leaves(before_rows, outcomes, line_digests)
                    self.chain.add(connection, leaves)
                    connection.executemany(rows.ADD_COUNT, sums)
                    connection.executemany(rows.SET_TALLY, rows.tally_rows(tallies))
                    connection.executemany(rows.ADD_ACTION, rows.action_rows(actions))
                    if status is not None:
                        rows.set_status(connection, status, minute)
            except BaseException:
                if lines:
                    self._file.unclaim(position, lines)
                raise
            if lines:
                self._chunks.accept()
            self.chain.accept()
            self._open.update(opened)
            self._open.difference_update(closed, withdrawn)
            self._moved.clear()
        self._reached(Point.COMMITTED)

    def take_lines(self, lines: bytearray, ended: Sequence[rows.EndedLine]) -> None:
        """Make lines of another ledger durable, one behind the other, as a group like that of `commit`."""
        line_digests = digests.line_digests(lines, (length for *_, length, _ in ended))
        with self._lock:
            self._check_presence()
            position = self._append(lines)
            outcomes, sums, befores = rows.rows_of_lines(ended, position, self._words)
            try:
                with self._transaction() as connection:
                    self._chunks.cover(connection, self._file.fd, position, len(lines), line_digests)
                    insert(connection, "outcomes", outcomes)
                    connection.executemany(rows.KEEP_BEFORE, befores)
                    self.chain.add(connection, digests.ended_leaves(befores, outcomes, line_digests))
                    connection.executemany(rows.ADD_COUNT, sums)
            except BaseException:
                self._file.unclaim(position, lines)
                raise
            self._chunks.accept()
            self.chain.accept()

    def view(self) -> LedgerView:
        """Return a view of the ledger; any number of views may read at the same time."""
        return LedgerView(self.run_dir)

    def planned_from(self, guess: float | None) -> float | None:
        """Return when the run began, as the first process of the run guessed: see `RunLedger.planned_from`."""
        return self.sealing.planned_from(guess)

    def done_bits(self, job: int, items: int) -> bytearray:
        """Return one bit for each item, set where it is done: about 4 million items a second, 15 million where whole
        blocks of `rows.BLOCK_ITEMS` are done.
        """
        with self._reading() as connection:
            return rows.done_bits(connection, job, items)

    def open_intents(self) -> dict[tuple[int, int], Intent]:
        """Return the intents of items without an outcome."""
        with self._reading() as connection:
            return rows.read_open(connection)

    def late_writes(self) -> dict[tuple[int, int], Intent]:
        """Return the intents of items with an outcome that is known."""
        with self._reading() as connection:
            return rows.read_late_writes(connection, self._words[OutcomeKind.UNKNOWN])

    def counts(self) -> dict[int, dict[str, int]]:
        """Return the sums that each commit keeps: nothing is counted here."""
        with self._reading() as connection:
            return rows.read_counts(connection)

    def reopen(
        self,
        kinds: AbstractSet[OutcomeKind],
        codes_not: AbstractSet[ErrorCode] = frozenset((ErrorCode.SUPERSEDED,)),
        *,
        below: int | None = None,
        codes: AbstractSet[ErrorCode] = frozenset(),
        jobs: AbstractSet[int] = frozenset(),
    ) -> int:
        """Delete the outcomes of such items; their lines leave `results.jsonl` at the next `finish`."""
        numbers = [self._words[kind] for kind in kinds]
        spared = [self._words[code] for code in codes_not]
        chosen = f"outcome IN ({rows.marks(numbers)}) AND code NOT IN ({rows.marks(spared)})"
        only = [*(self._words[code] for code in codes), *jobs]
        chosen += f" AND code IN ({rows.marks(only[: len(codes)])})" if codes else ""
        chosen += f" AND job IN ({rows.marks(only[len(codes) :])})" if jobs else ""
        with self._lock:
            self._check_presence()
            with self._transaction() as connection:
                words = (*numbers, *spared, *only)
                limited, limit = ("", ()) if below is None else (" AND idx < ?", (below,))
                where, values = f"FROM outcomes WHERE {chosen}{limited}", (*words, *limit)
                items = connection.execute(f"SELECT job, idx {where}", values)
                self.chain.add(connection, (digests.reopened_leaf(*item) for item in items))
                reopened = connection.execute(f"DELETE {where}", values).rowcount
                connection.execute(f"DELETE FROM counts WHERE {chosen}", words)
                connection.execute(f"{_COUNT_AGAIN} WHERE {chosen} GROUP BY job, outcome, code", words)
                if reopened:  # what these items added to a tally can't be taken out again
                    connection.execute("DELETE FROM tallies")
            self.chain.accept()
        return reopened

    def bind_parts(self) -> None:
        """Store the digests of the companion files: see `companion_files.py`."""
        try:
            with self._lock:
                with self._transaction() as connection:
                    companion_files.bind(connection, self.run_dir)
                    identity = msgspec.structs.astuple(rows.read_identity(connection))
                    leaf = digests.parts_leaf(identity, companion_files.bound(connection))
                    self.chain.add(connection, (leaf,))
                self.chain.accept()
                self.sealing.bound()
        except OSError as error:
            raise stopped(error, self.run_dir) from error

    def goes_on_elsewhere(self, command: str) -> None:
        """Note that a store goes on with the run by that command: the ledger is not opened for writing any more."""
        with self._lock, self._transaction() as connection:
            connection.execute(rows.SET_ELSEWHERE, (command,))

    def finish(
        self,
        exit_code: int,
        why: str,
        status: RunStatus,
        minute: Minute | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        """End the epoch; `results.jsonl` is written anew first, where lines of it were replaced."""
        with self._lock:
            self._check_presence()
            if exit_code not in SIGNALLED:
                try:
                    self._compact()
                except RunStopped:
                    if exit_code in COMPLETE:
                        raise
            with self._transaction() as connection:
                rows.set_status(connection, status, minute)
                connection.executemany(rows.ADD_ACTION, rows.action_rows(actions))
                reason = redact(why.encode("utf-8", "replace").decode())
                ended = (status.at, exit_code, reason, rows.status_json(status), self.epoch)
                connection.execute(rows.END_EPOCH, ended)
                self.chain.add(connection, (digests.other_leaf(digests.LeafKind.ENDED, (ended,)),))
            self.chain.accept()
            self._is_finished = True
        self._reached(Point.ENDED)

    def close(self) -> None:
        """Close all files and release the run directory; may be called twice. Without `finish` the epoch has no end."""
        with self._lock:
            database.close_writer(self._connection)
            self._file.close()
            self.sealing.close()
            if self._is_finished:
                note_files(self.run_dir, self.chain.head)
                self._is_finished = False
            self._claim.release()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_presence(self) -> None:
        # SQLite goes on writing to a deleted file, and its commits are then worth nothing.
        try:
            is_there = self._path.stat().st_ino == self._inode
        except OSError:
            is_there = False
        if not is_there:
            raise RunDirectoryError(f"{self._path} was moved or deleted while the run was using it")

    def _check_epoch(self) -> None:
        connection = self._connection
        mine = connection.execute("UPDATE meta SET results_bytes = ? WHERE epoch = ?", (self._file.end, self.epoch))
        if mine.rowcount != 1:
            (epoch,) = connection.execute("SELECT epoch FROM meta").fetchone()
            raise RunDirectoryError(
                f"{self.run_dir} was taken over by another process (epoch {epoch}, this one had {self.epoch}); "
                "nothing more is written by this one"
            )
        self.sealing.count(connection)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, database.reading(self._path):
            yield self._connection

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Begin a commit of this epoch; it is counted."""
        with database.telling(self._path):
            try:
                with database.transaction(self._connection):
                    self._check_epoch()
                    yield self._connection
            except sqlite3.IntegrityError as error:
                raise ValueError(f"an item of this group has an outcome already ({error})") from error
            self.sealing.counted()

    def _save(self, records: Sequence[Record]) -> None:
        files = [record.save for record in records if record.save is not None]
        if not files:
            return
        try:
            saved_files.save(self._claim.fd, files, self._moved)
        except OSError as error:
            raise stopped(error, self.run_dir / saved_files.SAVED / (error.filename or "")) from error
        self._reached(Point.SAVED)

    def _append(self, lines: bytearray) -> int:
        with database.telling(self._path):
            (epoch,) = self._connection.execute("SELECT epoch FROM meta").fetchone()
        if epoch != self.epoch:  # found out before the other process's file is touched
            with self._transaction():
                pass
        try:
            position = self._file.append(lines)
        except OSError as error:
            raise stopped(error, self._file.path) from error
        self._reached(Point.APPENDED)
        return position

    def _compact(self) -> None:
        with database.telling(self._path):
            (current,) = self._connection.execute("SELECT coalesce(sum(bytes), 0) FROM counts").fetchone()
        if current == self._file.end:
            return
        old = self._file
        try:
            with self._transaction() as connection:
                generation, new = results.rewrite(connection, old)
                seal.cover_all(connection, new.fd, new.end)
                self._reached(Point.REWRITTEN)
            # From here on the new file counts, whatever its name; the next open renames it if this process can't.
            self._file = new
            self._chunks = seal.open_chunks(self._connection, new.fd, new.end)
            old.close()
            self._reached(Point.SWITCHED)
            results.rename_rewritten(old.path, generation)
            self._reached(Point.RENAMED)
        except OSError as error:
            raise stopped(error, old.path) from error
