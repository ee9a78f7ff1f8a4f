"""Turns entries into rows of the ledger's tables and back. Each query is small; schema.sql explains the columns."""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
import orjson

from bulk.ledger import results
from bulk.ledger.database import has_table
from bulk.ledger.records import Action, Entry, Intent, Minute, Record, RunIdentity, StoredTally, Withdrawn
from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk.redaction import redact, redact_json, suspects
from bulk.status import STATES, RunStatus

_EFFECTS = {effect: effect.value for effect in Effect}
"""The values of the effects: a member of an enumeration gives its value slowly."""

_NAMES: TypeAlias = tuple[str, str, str, str, str]
_JOBS: TypeAlias = Annotated[tuple[tuple[str, str, int], ...], msgspec.Meta(min_length=1)]

ADD_INTENT = "INSERT OR REPLACE INTO intents VALUES (?,?,?,?,?,?,?)"
KEEP_BEFORE = "INSERT OR REPLACE INTO befores VALUES (?,?,?)"
CLOSE_INTENT = "DELETE FROM intents WHERE job = ? AND idx = ?"
ADD_COUNT = """
    INSERT INTO counts VALUES (?,?,?,?,?) ON CONFLICT (job, outcome, code)
    DO UPDATE SET items = items + excluded.items, bytes = bytes + excluded.bytes
"""
ADD_ACTION = "INSERT INTO actions VALUES (?, ?, ?, ?, ?)"
SET_STATUS = "UPDATE status SET json = ?"
SET_TALLY = "INSERT OR REPLACE INTO tallies VALUES (?,?,?)"
SET_MINUTE = "INSERT OR REPLACE INTO timeline VALUES (?,?)"
SET_ELSEWHERE = "INSERT INTO elsewhere VALUES (?)"
END_EPOCH = "UPDATE epochs SET ended_at = ?, exit_code = ?, why = ?, status = ? WHERE number = ?"

BLOCK_ITEMS = 65_536
"""Items whose outcomes are looked up at once by `done_bits` (a multiple of 8)."""

OWN_WORDS = frozenset(word.encode() for word in (*OutcomeKind, *ErrorCode, *STATES))
"""Our own words in a status or a tally: they are not redacted, even where a secret is the same."""


def read_identity(connection: sqlite3.Connection) -> RunIdentity:
    """Return the identity of the run that the ledger belongs to.

    Raises:
        msgspec.ValidationError: it is damaged: a run has jobs, and each value is of its kind.
    """
    meta = connection.execute("SELECT name, base_url, vendor, manifest_digest, items_digest FROM meta").fetchone()
    jobs = connection.execute("SELECT name, operation, items FROM jobs ORDER BY number").fetchall()
    fields = (*msgspec.convert(meta, _NAMES), msgspec.convert(jobs, _JOBS))
    return RunIdentity(*fields)


def read_elsewhere(connection: sqlite3.Connection) -> str:
    """Return the command for a run that goes on in a store (ready for a shell); empty: it goes on here."""
    row = has_table(connection, "elsewhere") and connection.execute("SELECT command FROM elsewhere").fetchone()
    return str(row[0]) if row else ""


def read_words(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of each outcome and error code in this ledger."""
    return dict(connection.execute("SELECT word, number FROM words").fetchall())


def read_counts(connection: sqlite3.Connection) -> dict[int, dict[str, int]]:
    """Return how many items have each outcome, by job number and outcome (count)."""
    counts: dict[int, dict[str, int]] = {}
    for job, word, items in connection.execute(
        "SELECT c.job, w.word, sum(c.items) FROM counts c JOIN words w ON w.number = c.outcome "
        "GROUP BY c.job, c.outcome ORDER BY c.job, c.outcome"
    ):
        counts.setdefault(job, {})[word] = items
    return counts


def read_open(connection: sqlite3.Connection) -> dict[tuple[int, int], Intent]:
    """Return the intents of items without an outcome, by job number and index."""
    return _intents(
        connection.execute(
            "SELECT * FROM intents i WHERE NOT EXISTS "
            "(SELECT 1 FROM outcomes o WHERE o.job = i.job AND o.idx = i.idx) ORDER BY job, idx"
        )
    )


def read_late_writes(connection: sqlite3.Connection, unknown: int) -> dict[tuple[int, int], Intent]:
    """Return the intents of items with another outcome than `unknown` (its number), by job number and index."""
    return _intents(
        connection.execute(
            "SELECT i.* FROM intents i JOIN outcomes o ON o.job = i.job AND o.idx = i.idx WHERE o.outcome != ? "
            "ORDER BY i.job, i.idx",
            (unknown,),
        )
    )


def done_bits(connection: sqlite3.Connection, job: int, items: int) -> bytearray:
    """Return one bit for each of the first `items` items of a job, as `Ledger.done_bits` has them."""
    bits = bytearray((items + 7) // 8)
    (last,) = connection.execute("SELECT max(idx) FROM outcomes WHERE job = ?", (job,)).fetchone()
    for first in range(0, min(items, -1 if last is None else last + 1), BLOCK_ITEMS):
        size = min(BLOCK_ITEMS, items - first)
        bits[first // 8 : (first + size + 7) // 8] = block_bits(connection, job, first, size)
    return bits


def block_bits(connection: sqlite3.Connection, job: int, first: int, size: int) -> bytes:
    """Return one bit for each of `size` items of a job from `first` on, as `Ledger.done_bits` has them."""
    where = "FROM outcomes WHERE job = ? AND idx >= ? AND idx < ?"
    span = (job, first, first + size)
    (done,) = connection.execute(f"SELECT count(*) {where}", span).fetchone()
    flags = bytearray(b"1" if done == size else b"0") * size
    if 0 < done < size:
        # One text of many numbers is read twice as fast as many rows.
        (text,) = connection.execute(f"SELECT group_concat(idx - {first}) {where}", span).fetchone()
        for index in msgspec.json.decode(f"[{text}]", type=list[int]):
            flags[index] = 0x31
    return int(bytes(reversed(flags)), 2).to_bytes((size + 7) // 8, "little")


def intent_from_row(row: tuple[Any, ...]) -> Intent:
    """Return an Intent from a row of the table `intents`."""
    job, index, method, path, before, effect, sent_at = row
    return Intent(job, index, method, path, before_of(before), Effect(effect), sent_at)


def before_of(column: bytes | str | None) -> Any:
    """Return the before-image that a column holds; UNSEEN for NULL."""
    return UNSEEN if column is None else orjson.loads(column)


def _intents(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[int, int], Intent]:
    return {(row[0], row[1]): intent_from_row(row) for row in rows}


def images(befores: Iterable[Any]) -> list[bytes | None]:
    """Return the JSON of before-images as they are kept: with `***` in the place of each secret. None: UNSEEN."""
    found = [None if before is UNSEEN else results.dump(before) for before in befores]
    suspected = suspects([image or b"" for image in found])
    return [redact_json(image) if image and place in suspected else image for place, image in enumerate(found)]


def intent_rows(intents: Sequence[Intent]) -> list[tuple[Any, ...]]:
    """Return rows of the table `intents`."""
    kept = images(intent.before for intent in intents)
    return [
        (intent.job, intent.index, intent.method, intent.path, before, _EFFECTS[intent.effect], intent.sent_at)
        for intent, before in zip(intents, kept, strict=True)
    ]


def closing(
    records: Sequence[Record], open_keys: Collection[tuple[int, int]], opened: Collection[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return job and index of each item whose outcome closes its intent.

    Args:
        open_keys: the items that had an intent before. opened: those that got one with this group.
    """
    if not open_keys and not opened:
        return []
    return [
        key
        for record in records
        if record.finished.outcome is not OutcomeKind.UNKNOWN and not record.may_arrive_late
        if (key := (record.job, record.finished.index)) in open_keys or key in opened
    ]


def withdrawn(batch: Sequence[Entry]) -> list[tuple[int, int]]:
    """Return job and index of each intent of a group that is taken back."""
    return [(entry.job, entry.index) for entry in batch if type(entry) is Withdrawn]


def outcome_rows(
    records: Sequence[Record], lengths: Sequence[int], position: int, words: Mapping[str, int]
) -> tuple[list[tuple[Any, ...]], list[tuple[int, int, int, int, int]]]:
    """Return rows of `outcomes`, and rows that they add to `counts`.

    Args:
        lengths: of the records' lines (bytes), as they stand in results.jsonl from `position` on.
        words: the numbers of outcomes and codes.
    """
    rows: list[tuple[Any, ...]] = []
    for record, length in zip(records, lengths, strict=True):
        ended = record.finished
        code = 0 if ended.error is None else words[ended.error.code]
        outcome = words[ended.outcome]
        rows.append((record.job, ended.index, outcome, code, ended.http_status, ended.attempts, position, length))
        position += length
    return rows, count_rows(rows)


def count_rows(outcomes: Iterable[tuple[Any, ...]]) -> list[tuple[int, int, int, int, int]]:
    """Return the rows that rows of `outcomes` add to `counts`."""
    lengths: dict[tuple[int, int, int], list[int]] = {}
    for job, _, outcome, code, _, _, _, length in outcomes:
        key = job, outcome, code
        if key in lengths:
            lengths[key].append(length)
        else:
            lengths[key] = [length]
    return [(*key, len(several), sum(several)) for key, several in lengths.items()]


EndedLine: TypeAlias = tuple[int, int, str, str | None, int | None, int, int, bytes | None]
"""A line that another ledger has kept: job, index, outcome, error code, HTTP status, attempts, length (bytes), and
the before-image (JSON); None: none is kept."""


def rows_of_lines(
    ended: Iterable[EndedLine], position: int, words: Mapping[str, int]
) -> tuple[list[tuple[Any, ...]], list[tuple[int, int, int, int, int]], list[tuple[int, int, bytes]]]:
    """Return what `outcome_rows` and `before_rows` return, for finished lines."""
    rows: list[tuple[Any, ...]] = []
    befores: list[tuple[int, int, bytes]] = []
    for job, index, outcome, code, http_status, attempts, length, before in ended:
        number = 0 if code is None else words[code]
        rows.append((job, index, words[outcome], number, http_status, attempts, position, length))
        position += length
        if before is not None:
            befores.append((job, index, before))
    return rows, count_rows(rows), befores


def before_rows(records: Iterable[Record]) -> list[tuple[int, int, bytes | None]]:
    """Return rows of the table `befores`."""
    seen = [record for record in records if record.before is not UNSEEN]
    kept = images(record.before for record in seen)
    return [(record.job, record.finished.index, image) for record, image in zip(seen, kept, strict=True)]


def action_rows(actions: Iterable[Action]) -> list[tuple[float, str, str, bytes, str]]:
    """Return rows of the table `actions`."""
    found = []
    for action in actions:
        args = redact_json(msgspec.json.encode(action.args))
        found.append((action.at, redact(action.who), action.verb, args, redact(action.result)))
    return found


def status_json(status: RunStatus) -> bytes:
    """Return the JSON for the column `status`; it holds no secret."""
    return redact_json(results.dump(msgspec.to_builtins(status)), OWN_WORDS)


def set_status(connection: sqlite3.Connection, status: RunStatus, minute: Minute | None) -> None:
    """Store the newest status, and with it the figures of its minute for the plots."""
    connection.execute(SET_STATUS, (status_json(status),))
    if minute is not None:
        connection.execute(SET_MINUTE, minute)


def tally_rows(tallies: Mapping[int, StoredTally]) -> list[tuple[int, int, bytes]]:
    """Return rows of the table `tallies`; they hold no secret."""
    return [(job, tally.items, redact_json(tally.json, OWN_WORDS)) for job, tally in tallies.items()]


def marks(values: Sequence[int]) -> str:
    """Return as many question marks as there are values, for `IN (…)`."""
    return ",".join("?" * len(values))
