"""The results so far of a run in a store, or of some of its shards, for readers that do not write them: a `RunView`."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any

import msgspec
import orjson
import psycopg
import zstandard

from bulk.errors import RunDirectoryError
from bulk.ledger.records import Minute, RunIdentity
from bulk.model import OutcomeKind
from bulk.store import sql
from bulk.store.connections import StoreConnection, damaged, sound

_SQL = sql.load("view")

EVERY_CHUNK = (0, 2**63 - 1)
PAGE_ROWS = 5_000
"""How many lines are looked up in one statement (count)."""

KEPT_BYTES = 32 * 1024 * 1024
"""The size of the chunks that stay in memory between two pages (bytes): a page in the order of items needs many chunks,
because items do not end in that order."""


def with_tuples(identity: RunIdentity) -> RunIdentity:
    """Return the identity with tuples as its jobs: JSON has arrays, and a compiled class has lost its tuples' types."""
    return msgspec.structs.replace(identity, jobs=tuple((name, kind, items) for name, kind, items in identity.jobs))


class StoreView:
    """A `RunView` that reads on a connection of a ledger, or on a connection of its own.

    Args:
        run: the number of the run in the store.
        shards: read only the results of these; None: of the whole run.
        worker: read the timeline of this worker; None: of all workers.
        until: ends of groups of chunks: lines of each group come before those of the next one.
    """

    def __init__(
        self,
        store: StoreConnection,
        run: int,
        shards: Sequence[int] | None = None,
        worker: int | None = None,
        until: Sequence[int] = EVERY_CHUNK[1:],
    ) -> None:
        self._store, self._run, self._worker, self._until = store, run, worker, until
        self._shards = None if shards is None else list(shards)

    def identity(self) -> RunIdentity:
        """Return the identity of the run, with `jobs` in their order."""
        with self._store.using() as connection:
            found = connection.execute(_SQL["identity"], (self._run,)).fetchone()
        if found is None:
            raise RunDirectoryError(f"the store {self._store.address} does not have the run any more: it was forgotten")
        with sound():
            return with_tuples(msgspec.convert(found[0], RunIdentity))

    def counts(self) -> dict[int, dict[str, int]]:
        """Return how many items ended how: job number -> outcome -> count. Jobs and outcomes without items are left
        out."""
        counts: dict[int, dict[str, int]] = {}
        with self._store.using() as connection:
            for job, word, items in connection.execute(_SQL["counts"], (self._run, self._shards, self._shards)):
                counts.setdefault(job, {})[word] = items
        return counts

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Return job name, error code and how many items ended with it, from sums that each commit keeps up to date."""
        names = [job[0] for job in self.identity().jobs]
        with self._store.using() as connection:
            found = connection.execute(_SQL["error_counts"], (self._run, self._shards, self._shards)).fetchall()
        return [(names[job], word, items) for job, word, items in found]

    def finished(
        self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the current lines, decoded, in the order of jobs and items; a page at a time."""
        for line in self.lines(kinds=kinds, job=job):
            yield orjson.loads(line)

    def lines(self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None) -> Iterator[bytes]:
        """Yield each line of `finished` as it was written, with its newline."""
        number = None
        if job is not None:
            names = [entry[0] for entry in self.identity().jobs]
            number = names.index(job) if job in names else -1
        for between in pairwise((EVERY_CHUNK[0], *self._until)):
            yield from self._lines(kinds, number, between)

    def _lines(
        self, kinds: AbstractSet[OutcomeKind] | None, number: int | None, between: tuple[int, int]
    ) -> Iterator[bytes]:
        chunks = _Chunks(self._store, self._run)
        after = (-1, -1)
        while True:
            with self._store.using() as connection:
                numbers = None if kinds is None else _numbers(connection, kinds)
                where = (number, number, numbers, numbers, self._shards, self._shards, *between)
                values = (self._run, *after, *where, PAGE_ROWS)
                page = connection.execute(_SQL["page"], values).fetchall()
            if not page:
                return
            chunks.fetch({row[2] for row in page})
            for _, _, chunk, position, length in page:
                yield chunks.line(chunk, position, length)
            after = page[-1][:2]

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """Return the current lines of these items of a job, by index; see `RunView`."""
        wanted = list(dict.fromkeys(indexes))
        with self._store.using() as connection:
            rows = connection.execute(_SQL["places"], (self._run, job, wanted)).fetchall()
        places = {index: place for _, index, *place in rows}
        chunks = _Chunks(self._store, self._run)
        found: dict[int, bytes] = {}
        left = most_bytes
        for index in wanted:
            if index in places and left > 0:
                chunk, position, length = places[index]
                chunks.fetch({chunk})
                found[index] = chunks.line(chunk, position, length)
                left -= length
        return found

    def newest_lines(self, size_bytes: int) -> list[bytes]:
        """Return the last lines of the results, at most `size_bytes` of them together (bytes).

        They are read from whole groups in which these shards have a part, so lines of other shards may be among them.
        """
        parts: list[bytes] = []
        size = 0
        with sound(), self._store.transaction() as connection, connection.cursor("newest") as cursor:
            cursor.itersize = 100
            cursor.execute(_SQL["newest_chunks"], (self._run, self._shards, self._shards))
            for (data,) in cursor:
                parts.append(zstandard.decompress(data))
                size += len(parts[-1])
                if size > size_bytes:
                    break
        text = b"".join(reversed(parts))
        lines = text[max(0, len(text) - size_bytes) :].splitlines()
        return lines[1:] if len(text) > size_bytes else lines

    def timeline(self, *, newest: bool = False) -> list[Minute]:
        """Return the figures by time, for plots, in order; a minute comes once for each worker that recorded it."""
        with self._store.using() as connection:
            query = _SQL["newest_minute" if newest else "timeline"]
            return [Minute(*row) for row in connection.execute(query, (self._run, self._worker, self._worker))]


class _Chunks:
    """A cache of unpacked chunks, each of which has the lines of one group; the newest ones stay in memory."""

    def __init__(self, store: StoreConnection, run: int) -> None:
        self._store, self._run = store, run
        self._texts: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0

    def fetch(self, ids: Collection[int]) -> None:
        """Read these chunks into memory, in one statement."""
        missing = [number for number in ids if number not in self._texts]
        while self._texts and self._bytes > KEPT_BYTES:
            number, text = self._texts.popitem(last=False)
            if number in ids:
                missing.append(number)
            self._bytes -= len(text)
        if missing:
            with sound(), self._store.using() as connection:
                for number, data in connection.execute(_SQL["chunks"], (self._run, missing)):
                    self._texts[number] = text = zstandard.decompress(data)
                    self._bytes += len(text)

    def line(self, chunk: int, position: int, length: int) -> bytes:
        """Return one line of a chunk that was fetched."""
        line = self._texts[chunk][position : position + length] if chunk in self._texts else b""
        if len(line) != length or line[-1:] != b"\n":
            raise damaged("an outcome without its line")
        return line


def _numbers(connection: psycopg.Connection, kinds: AbstractSet[OutcomeKind]) -> list[int]:
    found = connection.execute(_SQL["numbers"], ([kind.value for kind in kinds],))
    return [row[0] for row in found]
