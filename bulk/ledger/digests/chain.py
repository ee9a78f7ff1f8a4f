"""The digest chain: each commit adds a link over all that it makes durable, in the same transaction.

A link is `head = SHA-256(head before it ‖ leaves)`. A leaf names its kind and its item, and has 16 bytes of
SHA-256 of what was written: an intent, a line of the results, a before-image, that an item was reopened or its intent
taken back, or the files that the run was begun with. Leaves are kept, because rows of intents are deleted and lines are
replaced: so each leaf can be looked up, and the last leaf of an item says how its line must be now.
"""

import hashlib
import sqlite3
import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

LEAF: Final = struct.Struct(">BIQ16s")
"""Kind, job, index, digest."""

GENESIS: Final = bytes(32)
"""The head of a chain without links."""

NOTHING: Final = bytes(16)
"""The digest of a leaf that only says that something of an item was taken away."""


class LeafKind(IntEnum):
    """What a leaf is a digest of."""

    PARTS = 1  # the files that the check has made, and the run's identity
    INTENT = 2
    LINE = 3  # of results.jsonl, with its newline
    BEFORE = 4
    REOPENED = 5  # the item's line does not count any more
    ENDED = 6  # the end of an epoch
    WITHDRAWN = 7  # the item's intent was taken back, because its write did not leave


class Chain:
    """The chain of an open ledger.

    Attributes:
        head: head of the last link that is durable (32 bytes).
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        last = connection.execute("SELECT number, head FROM links ORDER BY number DESC LIMIT 1").fetchone()
        number, head = (0, GENESIS) if last is None else last
        if not isinstance(number, int) or not isinstance(head, bytes):
            raise TypeError("a link has no number or no head")
        self._number: int = number
        self.head: bytes = head
        self._next = self._number, self.head

    def add(self, connection: sqlite3.Connection, leaves: Iterable[bytes]) -> None:
        """Add a link, within the transaction that writes what the leaves stand for; then call `accept`."""
        data = b"".join(leaves)
        self._next = self._number, self.head
        if data:
            head = hashlib.sha256(self.head + data).digest()
            connection.execute("INSERT INTO links VALUES (?, ?, ?)", (self._number + 1, head, data))
            self._next = self._number + 1, head

    def accept(self) -> None:
        """Note that the transaction of the last `add` is durable."""
        self._number, self.head = self._next


def digest(data: bytes | bytearray | memoryview) -> bytes:
    """Return the digest of `data` that a leaf holds."""
    return hashlib.sha256(data).digest()[:16]


def line_digests(lines: bytes | bytearray, lengths: Iterable[int]) -> list[bytes]:
    """Return the digest of each line (32 bytes).

    Args:
        lengths: lengths of the lines, which stand one behind the other (bytes).
    """
    sha256, found, start = hashlib.sha256, list[bytes](), 0
    with memoryview(lines) as view:
        for length in lengths:
            end = start + length
            found.append(sha256(view[start:end]).digest())
            start = end
    return found


def row_leaves(kind: LeafKind, rows: Iterable[tuple[Any, ...]]) -> list[bytes]:
    """Return leaves of rows whose first columns are job and index, with the `row_digest` of each."""
    pack, sha256, number = LEAF.pack, hashlib.sha256, int(kind)
    return [pack(number, row[0], row[1], sha256(repr(row).encode("utf-8", "surrogatepass")).digest()) for row in rows]


def ended_leaves(
    befores: Iterable[tuple[Any, ...]], outcomes: Iterable[tuple[Any, ...]], line_digests: Iterable[bytes]
) -> list[bytes]:
    """Return the leaves of items that have ended: of their before-images, and of the lines of their outcomes."""
    pack, kind = LEAF.pack, int(LeafKind.LINE)
    lines = [pack(kind, row[0], row[1], digest) for row, digest in zip(outcomes, line_digests, strict=True)]
    return row_leaves(LeafKind.BEFORE, befores) + lines


def row_digest(row: Sequence[Any]) -> bytes:
    """Return a digest of all columns of a row, taken from its literal, because that is the quickest to make."""
    return digest(repr(tuple(row)).encode("utf-8", "surrogatepass"))


def reopened_leaf(job: int, index: int) -> bytes:
    """Return the leaf that says that an item is to be done again."""
    return LEAF.pack(LeafKind.REOPENED, job, index, NOTHING)


def withdrawn_leaf(job: int, index: int) -> bytes:
    """Return the leaf that says that an item's write did not leave."""
    return LEAF.pack(LeafKind.WITHDRAWN, job, index, NOTHING)


def other_leaf(kind: LeafKind, rows: Iterable[Sequence[Any]]) -> bytes:
    """Return the leaf of something that belongs to no item."""
    return LEAF.pack(kind, 0, 0, digest(b"".join(row_digest(row) for row in rows)))


def parts_leaf(identity: Sequence[Any], parts: Mapping[str, tuple[int, str]]) -> bytes:
    """Return the leaf of what a run was begun with: its identity, and size and digest of each file by name."""
    rows = [identity, *((name, *part) for name, part in sorted(parts.items()))]
    return other_leaf(LeafKind.PARTS, rows)
