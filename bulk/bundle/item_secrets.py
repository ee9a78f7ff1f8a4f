"""Keeps literal secrets in an items file out of the copies of its items in the run directory.

A stand-in takes the place of each secret in the copy. When such an item is wanted, the items file is read again, once,
and its secrets are kept in memory: those of at most `MOST_ITEMS` items of a job, so that memory is bounded. A plain
.jsonl file is not copied, and has no such limit.
Source: interface.md §2; failures.md rows 61, 62.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from bulk.bundle.checked import JobCheck, changed, refuse_change
from bulk.bundle.secret_fields import replaced
from bulk.capabilities import secret_fields
from bulk.items.decoding import SECRET_PLACES, ItemReader
from bulk.items.sources import ItemsFile
from bulk.manifest.manifest import Job
from bulk.operation import AnyOperation, Item

MOST_ITEMS: Final = 100_000
"""Most items of one job that may hold literal secrets, if the items are copied (count)."""
_STAND_IN: Final = "withheld"


def secrets_in(item: Item, operation: AnyOperation) -> dict[str, str]:
    """Return the literal secrets in an item, by their dotted fields."""
    return {dotted: text for dotted, text in _given(item, operation) if not text.startswith(SECRET_PLACES)}


def places_in(item: Item, operation: AnyOperation) -> dict[str, str]:
    """Return the places of secrets that an item names, by their dotted fields."""
    return {dotted: text for dotted, text in _given(item, operation) if text.startswith(SECRET_PLACES)}


def _given(item: Item, operation: AnyOperation) -> Iterator[tuple[str, str]]:
    for dotted in secret_fields(operation):
        value: object = item
        for name in dotted.split("."):
            value = getattr(value, name, None)
        if isinstance(value, str):
            yield dotted, value


def without(item: Item, secrets: Iterable[str]) -> Item:
    """Return the item with a stand-in in place of each of these secrets (dotted fields)."""
    return _with(item, dict.fromkeys(secrets, _STAND_IN))


def _with(item: Item, values: Mapping[str, str]) -> Item:
    for dotted, value in values.items():
        item = replaced(item, dotted.split("."), partial(_instead, value))
    return item


def _instead(value: str, _: str) -> str:
    return value


class ItemSecrets:
    """Gives the items of one job their secrets back. The file is not read before the first item that had secrets."""

    def __init__(self, path: Path, job: Job, check: JobCheck) -> None:
        """Take the items file at `path`, as it was checked."""
        self._path, self._job, self._check = path, job, check
        self._found: dict[int, dict[str, str]] | None = None

    def restored(self, number: int, item: Item) -> Item:
        """Return the item with index `number` as it was given.

        Raises:
            RunDirectoryError: the items file has changed since it was checked.
            OSError, UNREADABLE: the file can't be read.
        """
        if not secrets_in(item, self._job.operation):
            return item
        if self._found is None:
            self._found = self._read()
        secrets = self._found.get(number)
        if secrets is None:
            raise changed(self._path)
        return _with(item, secrets)

    def _read(self) -> dict[int, dict[str, str]]:
        reader = ItemReader(self._job.operation, self._job.defaults)
        found: dict[int, dict[str, str]] = {}
        number = 0
        with ItemsFile(self._path, self._job.operation) as file:
            refuse_change(file.fileno(), self._check.source, self._path)
            for _, _, row in chain.from_iterable(file.rows()):
                if isinstance(row, bytes) and (not row or row.isspace()):
                    continue
                secrets = secrets_in(reader.row_again(row), self._job.operation)
                if secrets:
                    found[number] = secrets
                number += 1
                if number == self._check.items:
                    break
        return found
