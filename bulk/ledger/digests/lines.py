"""Compares lines of `results.jsonl` with the last leaf of each item, to find those that are not as they were written.

First all lines are looked at in their places, which takes about two microseconds each. Only if some are not as they
should be, the whole file is searched for them: a line that is found elsewhere was moved, and a line that is not found
was changed or removed. So of a file that lost its first line one line is named, and not all lines behind it.
"""

import hashlib
import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from bulk.ledger.digests.chain import LEAF, NOTHING, LeafKind
from bulk.status import Tell, untold

PAGE_ROWS: Final = 10_000
READ_BYTES: Final = 4 * 1024 * 1024

_SIZE: Final = len(NOTHING)


class Place(NamedTuple):
    """Where the ledger says that an item's line stands."""

    job: int
    item: int
    position: int
    length: int


class LastLeaves:
    """The last leaf of each item's line: 16 bytes for each item, whatever the order of the leaves."""

    def __init__(self) -> None:
        self._by_job: dict[int, bytearray] = {}

    def add(self, leaves: bytes) -> Iterator[tuple[int, int, int, bytes]]:
        """Take in the leaves of a link; yield the leaves that are not of lines: kind, job, index, digest."""
        by_job, line, reopened = self._by_job, int(LeafKind.LINE), int(LeafKind.REOPENED)
        for kind, job, index, digest in LEAF.iter_unpack(leaves):
            if kind != line:
                yield kind, job, index, digest
                if kind != reopened:
                    continue
            digests = by_job.get(job)
            if digests is None:
                digests = by_job[job] = bytearray()
            start = index * _SIZE
            if start > len(digests):
                digests.extend(bytes(start - len(digests)))
            digests[start : start + _SIZE] = digest

    def of(self, job: int, index: int) -> bytes:
        """Return the digest that the line of an item must have; NOTHING where there is no leaf."""
        start = index * _SIZE
        return bytes(self._by_job.get(job, b"")[start : start + _SIZE]) or NOTHING

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield the items that have a line: job and index."""
        for job, digests in self._by_job.items():
            for start in range(0, len(digests), _SIZE):
                if digests[start : start + _SIZE] != NOTHING:
                    yield job, start // _SIZE

    def count(self) -> int:
        """Return how many items have a line."""
        return sum(1 for _ in self.items())


def wrong_lines(
    connection: sqlite3.Connection, fd: int, last: LastLeaves, tell: Tell = untold
) -> Iterator[tuple[Place, bool]]:
    """Yield each place that does not hold the line written last for its item, and whether the item has a leaf.

    Without a leaf the line can't be judged: its item ended before the chain began.

    Args:
        tell: is told how many items were looked at (count), now and then.
    """
    done = 0
    rows = connection.execute("SELECT job, idx, position, length FROM outcomes ORDER BY job, idx")
    sha256, of = hashlib.sha256, last.of
    while page := rows.fetchmany(PAGE_ROWS):
        for span in _spans(page):
            start = span[0][2]
            data = memoryview(os.pread(fd, span[-1][2] + span[-1][3] - start, start))
            for job, index, position, length in span:
                at, wanted = position - start, of(job, index)
                if sha256(data[at : at + length]).digest()[:_SIZE] != wanted:
                    yield Place(job, index, position, length), wanted != NOTHING
        done += len(page)
        tell(done)


def _spans(page: list[tuple[int, int, int, int]]) -> Iterator[list[tuple[int, int, int, int]]]:
    """Yield groups of rows whose lines stand one behind the other, of at most `READ_BYTES` (or one line)."""
    span: list[tuple[int, int, int, int]] = []
    start = end = 0
    for row in page:
        position, length = row[2], row[3]
        if span and (position != end or end + length - start > READ_BYTES):
            yield span
            span = []
        if not span:
            start = position
        span.append(row)
        end = position + length
    if span:
        yield span


def divided(places: Iterable[Place], fd: int, last: LastLeaves) -> tuple[list[Place], list[Place]]:
    """Return the wrong lines that are nowhere in the file, and those that stand in another order than they should.

    A line that is only further to the front, because a line before it is gone, is in neither list.
    """
    wanted = {last.of(place.job, place.item): place for place in places}
    found = [wanted[digest] for digest in _digests_of_lines(fd) if digest in wanted]
    there = set(found)
    gone = sorted(place for place in wanted.values() if place not in there)
    ordered = sorted(there, key=lambda place: place.position)
    swapped = {place for pair in zip(found, ordered, strict=False) if pair[0] != pair[1] for place in pair}
    return gone, sorted(swapped)


def _digests_of_lines(fd: int) -> Iterator[bytes]:
    with open(os.dup(fd), "rb") as file:
        file.seek(0)
        for line in itertools.takewhile(bool, iter(file.readline, b"")):
            yield hashlib.sha256(line).digest()[:_SIZE]
