"""How a group of ledger entries becomes the arguments of the SQL function `commit_group`: one array for each column.

Arrays are written in PostgreSQL's own text form, which takes a fraction of the time of a list that psycopg adapts value
by value.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import zstandard

from bulk.ledger import results, rows
from bulk.ledger.records import Action, Entry, Intent, Record

_LEVEL = 1
_NOTHING = "\x01"
_QUOTED_NOTHING = f'"{_NOTHING}"'
"""The element that stands for NULL in an array of texts; JSON, methods and encoded paths have no such character."""


class Group:
    """A group of ledger entries, as it goes to the store.

    Attributes:
        arguments: the arguments of `commit_group` from `sent_job` to `image`.
        shards: the shards that the group touches, in order; -1 stands for items of shards that are not held.
        opened: keys of its intents; closed: keys of the intents that its outcomes close, or that are taken back.
        digest: a digest of the entries; equal entries have the same one.
        entries: how many entries the group has, actions included (count).
    """

    __slots__ = ("arguments", "closed", "digest", "entries", "opened", "shards")

    def __init__(
        self,
        batch: Sequence[Entry],
        actions: Sequence[Action],
        shard_of: Callable[[int, int], int],
        words: Mapping[str, int],
        open_keys: set[tuple[int, int]],
    ) -> None:
        latest = {(entry.job, entry.index): entry for entry in batch if type(entry) is Intent}
        records = [entry for entry in batch if type(entry) is Record]
        self.opened = latest.keys()
        withdrawn = [key for key in rows.withdrawn(batch) if key in open_keys and key not in latest]
        self.closed = rows.closing(records, open_keys, self.opened) + withdrawn
        intents = _intent_columns([*latest.values()], shard_of)
        lines, outcomes, sums = _outcome_columns(records, shard_of, words)
        shards = {*intents[2], *outcomes[2], *(shard_of(*key) for key in withdrawn)}
        self.shards = sorted(shards)
        born = [name for record in records for name in record.new_names]
        images = [list(column) for column in zip(*rows.before_rows(records), strict=True)] or [[], [], []]
        self.entries = len(batch) + len(actions)
        packed = zstandard.compress(bytes(lines), _LEVEL) if lines else b""
        digest = hashlib.blake2b(packed, digest_size=16)
        for column in (
            *intents[:2],
            *intents[3:],
            *outcomes[:2],
            *outcomes[3:5],
            born,
            *images,
            withdrawn,
            actions,
        ):  # the shards are not part of the digest
            digest.update(repr(column).encode())
        self.digest = digest.digest()
        self.arguments: tuple[Any, ...] = (
            *(array(column) for column in intents[:3]),
            *(text_array(column) for column in intents[3:7]),
            array(intents[7]),
            packed,
            *(array(column) for column in outcomes),
            *(array(column) for column in sums),
            array([job for job, _ in self.closed]),
            array([index for _, index in self.closed]),
            text_array(born),
            *(array(column) for column in images[:2]),
            text_array([image.decode() for image in images[2]]),
        )


def array(numbers: Iterable[float | None]) -> str:
    """Return an array of numbers as PostgreSQL writes it."""
    return "{" + str(numbers if type(numbers) is list else list(numbers))[1:-1].replace("None", "NULL") + "}"


def text_array(texts: Sequence[str | None]) -> str:
    """Return an array of texts as PostgreSQL writes it; a NUL, which it can't hold, is left out."""
    joined = "\0".join([_NOTHING if text is None else text.replace("\0", "") for text in texts])
    quoted = joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","')
    return f'{{"{quoted}"}}'.replace(_QUOTED_NOTHING, "NULL") if texts else "{}"


def _intent_columns(intents: Sequence[Intent], shard_of: Callable[[int, int], int]) -> list[list[Any]]:
    columns: list[list[Any]] = [[], [], [], [], [], [], [], []]
    for job, index, method, path, before, effect, sent_at in rows.intent_rows(intents):
        image = None if before is None else before.decode()
        row = job, index, shard_of(job, index), method, path, image, effect, sent_at
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def _outcome_columns(
    records: Sequence[Record], shard_of: Callable[[int, int], int], words: Mapping[str, int]
) -> tuple[bytearray, list[list[Any]], list[list[int]]]:
    """Return the result lines, the columns of the table `outcome`, and the columns that are added to `count`."""
    lines, lengths = results.encode_all(record.finished for record in records)
    jobs, indexes, shards, outcomes, codes, statuses, attempts = [], [], [], [], [], [], []
    sums: dict[tuple[int, int, int, int], int] = {}
    for record in records:
        ended, job = record.finished, record.job
        index = ended.index
        shard = shard_of(job, index)
        outcome, code = words[ended.outcome], 0 if ended.error is None else words[ended.error.code]
        jobs.append(job)
        indexes.append(index)
        shards.append(shard)
        outcomes.append(outcome)
        codes.append(code)
        statuses.append(ended.http_status)
        attempts.append(ended.attempts)
        key = (shard, job, outcome, code)
        sums[key] = sums.get(key, 0) + 1
    summed = [list(column) for column in zip(*((*key, items) for key, items in sums.items()), strict=True)]
    return lines, [jobs, indexes, shards, outcomes, codes, statuses, attempts, lengths], summed or [[], [], [], [], []]
