"""The `RunLedger` in a store, for the shards of a run that this worker holds.

A group is one statement, so all of it is kept or none. The statement begins with the fence, which checks that this
worker still holds each shard that the group touches. After a lost answer the client does not know whether the group was
kept: the next connection asks the store, so that no group is written twice. The class has no clock and makes no
decision; calls block, and may come from any one thread at a time.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import orjson
import psycopg

from bulk.errors import RunDirectoryError
from bulk.ledger import rows
from bulk.ledger.records import Action, Entry, Intent, Minute, Record, StoredTally
from bulk.model import ErrorCode, OutcomeKind
from bulk.redaction import redact
from bulk.status import RunStatus
from bulk.store import sql
from bulk.store.connections import StoreConnection, sound
from bulk.store.groups import Group, array
from bulk.store.holding import Holding
from bulk.store.saved import Keeping
from bulk.store.view import StoreView

_SQL = sql.load("ledger")
_NO_TALLIES: Mapping[int, StoredTally] = MappingProxyType({})


class StoreWentBack(RunDirectoryError):
    """The store has less than it has confirmed: it was restored from a copy that is older."""


class StoreLedger:
    """A `RunLedger`, and a context manager that closes it.

    Attributes:
        run, worker: their numbers in the store.
        holding: the shards that this worker holds. The caller that claims shards enters them there, and calls `took`.
        written: how many groups of this worker the store has confirmed (count).
    """

    def __init__(
        self, store: StoreConnection, run: int, worker: int, run_dir: Path, holding: Holding, written: int = 0
    ) -> None:
        """Open the ledger of a run.

        Args:
            store: a connection that this ledger alone uses.
            run_dir: where this process keeps its files of the run; files that items save go into the store.
            written: how many groups this worker has written before (count).

        Raises:
            RunStopped: the store can't be reached.
            RunDirectoryError: the store has no such run.
            StoreWentBack: the store has not all that this worker has written. So do all methods that write.
        """
        self.run, self.worker, self.run_dir, self.holding = run, worker, run_dir, holding
        self._store = store
        self._lock = threading.Lock()
        self._link, self._made = 0, -1
        self._asked: bytes | None = None
        self.written = written
        self._kept: set[bytes] = set()
        self._open: set[tuple[int, int]] = set()
        self._keeping = Keeping(store, run, holding, run_dir)
        self._made_until: dict[int, list[int]] = {}
        with store.using() as connection:
            found = connection.execute(_SQL["began"], (run,)).fetchone()
            if found is None:
                raise RunDirectoryError(f"the store {store.address} has no run with the number {run}: it was forgotten")
            self._words = self._read_words(connection)
            self._ensure_link(connection)
            came = connection.execute(_SQL["come_back"], (run, worker)).fetchone()
        self.began_at, self._planned_from = float(found[0]), found[1]
        said = None if came is None else came[0]
        with sound():
            self.before = None if said is None else msgspec.json.decode(said, type=RunStatus, strict=False)
        self.took(holding.shards())

    def took(self, shards: Collection[int]) -> None:
        """Learn which writes of the shards that were claimed are open."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["open_keys"], (self.run, list(shards))).fetchall()
        with self._lock:
            self._open.update(found)

    def commit(
        self,
        batch: Sequence[Entry],
        status: RunStatus | None = None,
        tallies: Mapping[int, StoredTally] = _NO_TALLIES,
        minute: Minute | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        """Make a group durable in one round trip. Tallies are not kept, because an export makes them anew."""
        group = Group(batch, actions, self.holding.shard_of, self._words, self._open)
        with self._lock:
            self._keeping.keep([entry for entry in batch if type(entry) is Record])
            with self._store.using() as connection:
                self._ensure_link(connection)
                if group.digest not in self._kept:
                    if group.entries or status is not None or minute is not None:
                        self._send(connection, group, _more(status, minute, actions))
                    self._asked = None
                self._kept.discard(group.digest)
                self._open.update(group.opened)
                self._open.difference_update(group.closed)

    def _send(self, connection: psycopg.Connection, group: Group, more: tuple[Any, ...]) -> None:
        self._asked = group.digest if group.entries else None  # a status may well be written twice
        epochs = [self.holding.epoch_of(shard) for shard in group.shards]
        head = (self.run, self.worker, self._link, group.digest, array(group.shards), array(epochs))
        connection.execute(_SQL["commit"], (*head, *group.arguments, *more))
        self.written += 1

    def _ensure_link(self, connection: psycopg.Connection) -> None:
        """Connect anew: give up the earlier connection, and learn whether its last group was kept."""
        if self._made == self._store.made:
            return
        found = connection.execute(_SQL["begin_link"], (self.run, self.worker)).fetchone()
        assert found is not None
        if found[2] < self.written:
            raise StoreWentBack(
                f"the store {self._store.address} lacks what this worker has recorded: an older copy has taken its "
                "place, and nobody knows what else was sent since then"
            )
        self._link, digest, self.written = found
        if self._asked is not None and digest == self._asked:
            self._kept.add(self._asked)
        self._asked, self._made = None, self._store.made

    def view(self) -> StoreView:
        """Return a view of the results of the shards that this worker holds now."""
        return StoreView(self._store, self.run, self.holding.shards(), self.worker)

    def sources(self, job: int) -> StoreView:
        """Return a view of the results of the whole run, from which the items of that job are made.

        Results that were there when the items were made before come first, so that the same items get the same indexes.
        """
        with self._lock, self._store.using() as connection:
            found = connection.execute(_SQL["made_until"], (self.run, self.holding.shard_of(job, 0))).fetchone()
        if found is None:
            raise RunDirectoryError(f"this worker does not hold job {job}, whose items are to be made")
        self._made_until[job] = [*found[0], found[1]]
        return StoreView(self._store, self.run, until=self._made_until[job])

    def made(self, job: int, items: int) -> None:
        """Record how many items were made (count) and from which results, so that another worker makes the same."""
        shard = self.holding.shard_of(job, 0)
        values = (self.run, shard, self.holding.epoch_of(shard), self._made_until[job], items)
        with self._lock, self._store.using() as connection:
            connection.execute(_SQL["note_made"], values)

    def planned_from(self, guess: float | None) -> float | None:
        """Return the first guess that any worker of the run has made; a first `guess` is stored at once."""
        if self._planned_from is None and guess is not None:
            with self._lock, self._store.using() as connection:
                found = connection.execute(_SQL["plan"], (guess, self.run)).fetchone()
            assert found is not None
            self._planned_from = found[0]
        return None if self._planned_from is None else float(self._planned_from)

    def done_bits(self, job: int, items: int) -> bytearray:
        """Return one bit for each item: 0 only for items of held shards that have no outcome, because all other items
        are not this worker's.
        """
        bits = bytearray(b"\xff" * ((items + 7) // 8))
        if items & 7:
            bits[-1] = (1 << (items & 7)) - 1  # bits behind the last item belong to no item
        listed = [index for index in self.holding.items_of(job) if index < items]
        spans = [(span.first, min(span.behind, items)) for span in self.holding.spans_of(job) if span.first < items]
        ended: list[tuple[int]] = []
        with self._lock, self._store.using() as connection:
            if listed:
                ended += connection.execute(_SQL["ended_among"], (self.run, job, array(listed))).fetchall()
            for first, behind in spans:
                ended += connection.execute(_SQL["ended_in_range"], (self.run, job, first, behind)).fetchall()
        for index in listed:
            bits[index >> 3] &= ~(1 << (index & 7))
        for first, behind in spans:
            _clear(bits, first, behind)
        for (index,) in ended:
            bits[index >> 3] |= 1 << (index & 7)
        return bits

    def open_intents(self, shards: Collection[int] | None = None) -> dict[tuple[int, int], Intent]:
        """Return the intents of items without an outcome in held shards; `shards`: only in these."""
        return self._intents("open_intents", shards)

    def late_writes(self, shards: Collection[int] | None = None) -> dict[tuple[int, int], Intent]:
        """Return the intents that are still open though the item has an outcome other than `unknown`, in held shards;
        `shards`: only in these.
        """
        return self._intents("late_writes", shards, self._words[OutcomeKind.UNKNOWN])

    def _intents(self, name: str, shards: Collection[int] | None, *more: int) -> dict[tuple[int, int], Intent]:
        chosen = self.holding.shards() if shards is None else list(shards)
        with self._lock, self._store.using() as connection:
            found = connection.execute(_SQL[name], (self.run, chosen, *more)).fetchall()
        with sound():
            return {(row[0], row[1]): rows.intent_from_row(row) for row in found}

    def counts(self, shards: Collection[int] | None = None) -> dict[int, dict[str, int]]:
        """Return how many items of held shards ended how: job number -> outcome -> count; `shards`: only of these."""
        return StoreView(self._store, self.run, self.holding.shards() if shards is None else list(shards)).counts()

    def recent_creations(self, settle_s: float, names: Collection[str] | None = None) -> set[str]:
        """Return the names of things that any worker of the run has created in the last `settle_s` seconds; `names`:
        only those among these.
        """
        chosen = None if names is None else list(names)
        with self._lock, self._store.using() as connection:
            rows = connection.execute(_SQL["recent_creations"], (self.run, settle_s, chosen, chosen))
            return {row[0] for row in rows}

    def reopen(
        self,
        kinds: AbstractSet[OutcomeKind],
        codes_not: AbstractSet[ErrorCode] = frozenset((ErrorCode.SUPERSEDED,)),
        *,
        below: int | None = None,
        codes: AbstractSet[ErrorCode] = frozenset(),
        jobs: AbstractSet[int] = frozenset(),
    ) -> int:
        """Reopen items of the shards that this worker holds; a whole run is reopened by `runs.reopen`."""
        shards = self.holding.shards()
        epochs = [self.holding.epoch_of(shard) for shard in shards]
        numbers = [self._words[kind] for kind in kinds]
        spared = [self._words[code] for code in codes_not]
        only = (array([self._words[code] for code in codes]) if codes else None, array(list(jobs)) if jobs else None)
        with self._lock, self._store.using() as connection:
            self._ensure_link(connection)
            found = connection.execute(
                _SQL["reopen"], (self.run, array(shards), array(epochs), array(numbers), array(spared), below, *only)
            ).fetchone()
            assert found is not None
            self._open.update(connection.execute(_SQL["open_keys"], (self.run, shards)))
        return int(found[0])

    def bind_parts(self) -> None:
        """Do nothing, because the bundle is named by its digest and can't change."""

    def finish(
        self,
        exit_code: int,
        why: str,
        status: RunStatus,
        minute: Minute | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        """Record that this worker's part in the run has ended; `Leases` finishes or releases the shards."""
        reason = redact(why.encode("utf-8", "replace").decode()).replace("\0", "")
        with self._lock, self._store.using() as connection:
            self._ensure_link(connection)
            values = (exit_code, reason, rows.status_json(status), self.run, self.worker, self._link)
            connection.execute(_SQL["finish"], values)
        self.commit((), status, minute=minute, actions=actions)

    def close(self) -> None:
        """Close the connection; may be called twice. The leases end by themselves, or are released."""
        self._store.close()

    def __enter__(self) -> "StoreLedger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_words(self, connection: psycopg.Connection) -> dict[str, int]:
        """Return the numbers of outcomes and error codes; words that the store does not have yet are added."""
        words: dict[str, int] = dict(connection.execute(_SQL["words"]).fetchall())
        missing = [word.value for word in (*OutcomeKind, *ErrorCode) if word not in words]
        if missing:
            connection.execute(_SQL["add_words"], (missing,))
            words = dict(connection.execute(_SQL["words"]).fetchall())
        return words


def _more(status: RunStatus | None, minute: Minute | None, actions: Sequence[Action]) -> tuple[Any, ...]:
    """Return the last arguments of `commit_group`."""
    newest = None if status is None else rows.status_json(status)
    acts = [[at, who, verb, args.decode(), result] for at, who, verb, args, result in rows.action_rows(actions)]
    told = orjson.dumps(acts).decode().replace("\\u0000", "") if acts else None
    return (newest, *(minute or (None, None)), told)


def _clear(bits: bytearray, first: int, behind: int) -> None:
    """Make bits 0 from `first` on, before `behind`."""
    while first < behind and first & 7:
        bits[first >> 3] &= ~(1 << (first & 7))
        first += 1
    whole = (behind - first) // 8 if behind > first else 0
    bits[first >> 3 : (first >> 3) + whole] = bytes(whole)
    for index in range(first + whole * 8, behind):
        bits[index >> 3] &= ~(1 << (index & 7))
