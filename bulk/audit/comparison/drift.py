"""Compares a run with the last read of each item, field by field; the lines of the run are streamed.

Drift is a field that differs between two reads. An item that can't be read is out of sight, which is not drift, and one
that is new in the list of items, or gone from it, is a change of the list.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bulk.audit.comparison.baseline import Baseline, Read, key_of, next_baseline
from bulk.ledger.database import Index
from bulk.ledger.view import LedgerView
from bulk.model import SUCCESSFUL, OutcomeKind
from bulk.report.diff.field_changes import FieldDifference, FieldRules, canonical, differences, rules_of, without

CHANGED, ADDED, REMOVED, LOST, BACK = "changed", "added", "removed", "lost_sight", "in_sight_again"


class ItemChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field of one item that has changed, or one item that came, went or can't be read.

    Attributes:
        kind: `changed`, `added`, `removed`, `lost_sight` or `in_sight_again`.
        field: as `result.config.url`; of items that can't be read `error.code`; empty for whole items.
        old, new: JSON values; null where there was or is none.
        before_at: when the old value was last read; null where it never was.
        first_seen: when the new value was first read (RFC 3339).
    """

    job: str
    operation: str
    id: str | None
    item: Mapping[str, Any]
    kind: str
    field: str = ""
    old: Any = None
    new: Any = None
    before_at: str | None = None
    first_seen: str | None = None


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a night found (counts).

    Attributes:
        items: items of which a field has changed.
        by_field: how many items changed in which field, the most frequent first; entries of lists count as one field.
        lost_sight: items that could be read before and can't be read now; never_read: items that never could.
        is_first: whether there was no night before to compare with.
    """

    items: int = 0
    changes: int = 0
    by_field: tuple[tuple[str, int], ...] = ()
    added: int = 0
    removed: int = 0
    lost_sight: int = 0
    in_sight_again: int = 0
    never_read: int = 0
    is_first: bool = False

    @property
    def rows(self) -> int:
        """The number of changes of every kind, each of which is a row of the night's table of changes."""
        return self.changes + self.added + self.removed + self.lost_sight + self.in_sight_again


class _Line(msgspec.Struct):
    job: str
    index: Index
    outcome: OutcomeKind
    started_at: str
    id: str | None = None
    item: dict[str, Any] = {}
    result: Any = None
    error: dict[str, Any] | None = None
    missing: bool = False


def compare_night(
    view: LedgerView, run: str, before: Path | None, place: Path, ignored: Collection[str] = ()
) -> tuple[Drift, list[ItemChange]]:
    """Compare a run with the last read of each item; the baseline of this night is then at `place`.

    Args:
        before: the baseline of the last good night; None: there is none.
        ignored: fields of results that are not drift, as `result.html_url`.

    Raises:
        RunDirectoryError: the disk is full, or a file is damaged.
    """
    operations = {name: operation for name, operation, _ in view.identity().jobs}
    rules = {operation: rules_of(operation, is_tabled=True) for operation in operations.values()}
    comparison = _Comparison(operations, rules, frozenset(ignored), is_first=before is None)
    with next_baseline(before, place, run) as baseline:
        for text in view.lines():
            comparison.take(msgspec.json.decode(text, type=_Line), baseline)
        comparison.take_gone(baseline)
    return comparison.drift(), comparison.changes


class _Comparison:
    """The work of `compare_night`: counts, and the changes."""

    def __init__(
        self, operations: Mapping[str, str], rules: Mapping[str, FieldRules], ignored: frozenset[str], *, is_first: bool
    ) -> None:
        self._operations, self._rules, self._ignored, self._is_first = operations, rules, ignored, is_first
        self._kinds: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()
        self.changes: list[ItemChange] = []

    def take(self, line: _Line, baseline: Baseline) -> None:
        """Compare one item with what it was when it was last read."""
        line.item.pop("id", None)
        key = key_of(line.job, line.id, line.item)
        old, operation = baseline.get(key), self._operations[line.job]
        if line.outcome not in SUCCESSFUL:
            self._unread(line, old)
            if old is not None:
                baseline.lose(key)
            else:
                baseline.put(key, _never_read(line, operation))
            return
        result = self._rules[operation].steady(line.result)
        if self._ignored:
            result = without(result, "result", self._ignored)
        new = Read(
            job=line.job,
            operation=operation,
            id=line.id,
            item=line.item,
            is_missing=line.missing,
            result=canonical(result),
            read_at=line.started_at,
        )
        self._read(new, old)
        baseline.put(key, new)

    def take_gone(self, baseline: Baseline) -> None:
        """Note the items that are not in this run any more as removed."""
        for read in baseline.take_gone():
            self._tell(read, REMOVED, before_at=read.read_at or None)

    def drift(self) -> Drift:
        """Return how often each kind of difference was found (counts)."""
        return Drift(
            items=self._kinds[CHANGED],
            changes=sum(change.kind == CHANGED for change in self.changes),
            by_field=tuple(self._fields.most_common()),
            added=self._kinds[ADDED],
            removed=self._kinds[REMOVED],
            lost_sight=self._kinds[LOST],
            in_sight_again=self._kinds[BACK],
            never_read=self._kinds["never"],
            is_first=self._is_first,
        )

    def _unread(self, line: _Line, old: Read | None) -> None:
        if old is None or not old.result:
            self._kinds["never"] += 1
            return
        code = (line.error or {}).get("code")
        self._tell(old, LOST, "error.code", new=code, before_at=old.read_at, first_seen=line.started_at)

    def _read(self, new: Read, old: Read | None) -> None:
        if old is None:
            if not self._is_first:
                self._tell(new, ADDED, first_seen=new.read_at)
            return
        if old.is_lost:
            self._tell(new, BACK, before_at=old.read_at or None, first_seen=new.read_at)
        if not old.result:
            return
        if (old.result, old.is_missing) == (new.result, new.is_missing):
            return
        found = list(self._differences(old, new))
        self._kinds[CHANGED] += bool(found)
        self._fields.update({field_group(each.field) for each in found})
        self.changes.extend(
            ItemChange(
                job=new.job,
                operation=new.operation,
                id=new.id,
                item=new.item,
                kind=CHANGED,
                field=each.field,
                old=_value(each.old),
                new=_value(each.new),
                before_at=old.read_at,
                first_seen=new.read_at,
            )
            for each in found
        )

    def _differences(self, old: Read, new: Read) -> Iterator[FieldDifference]:
        if old.is_missing != new.is_missing:
            yield FieldDifference("missing", old.is_missing, new.is_missing)
            return
        results = msgspec.json.decode(old.result), msgspec.json.decode(new.result)
        yield from differences(*results, "result", self._rules[new.operation])

    def _tell(self, read: Read, kind: str, field: str = "", **values: Any) -> None:
        self._kinds[kind] += 1
        change = ItemChange(
            job=read.job, operation=read.operation, id=read.id, item=read.item, kind=kind, field=field, **values
        )
        self.changes.append(change)


def _never_read(line: _Line, operation: str) -> Read:
    return Read(
        job=line.job,
        operation=operation,
        id=line.id,
        item=line.item,
        is_missing=False,
        result=b"",
        read_at="",
        is_lost=True,
    )


def field_group(field: str) -> str:
    """Return `result[].config.url` for `result[id=4001].config.url`: one field, whichever entry it is of."""
    parts, depth = list[str](), 0
    for letter in field:
        depth += letter == "["
        if not depth or letter == "[":
            parts.append(letter)
        depth -= letter == "]"
        if letter == "]" and not depth:
            parts.append("]")
    return "".join(parts)


def _value(value: Any) -> Any:
    return None if isinstance(value, msgspec.UnsetType) else value
