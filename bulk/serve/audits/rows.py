"""The lists of an audit: violations, and changes in the nights that are kept; filtered, searched, in pages.

Each list is made once from the files of the nights, as the JSON that is sent, and kept until another night counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bulk.audit.comparison.drift import ItemChange
from bulk.audit.history import NAME, Night
from bulk.audit.policies.judging import FIXED
from bulk.report.tally import label
from bulk.serve.audits.histories import Audit, Histories

PAGE = 100
MOST_ROWS = 20_000
"""The most rows of a list that are kept (count): the newest changes, or the first violations."""
MOST_VALUE = 300
"""The length after which values are cut (characters of their JSON)."""


class Row(msgspec.Struct, frozen=True):
    """One row of a list; `text`: the text that is searched, in lower case; `facts`: the values that filters compare."""

    data: msgspec.Raw
    text: str
    facts: Mapping[str, str]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page: its rows, the place of its first row among those that fit (from 0), and how many rows fit (count).

    Attributes:
        values: the values of each fact that a filter can choose. night: the run of the night that the list is about,
            or an empty text for all nights that are kept.
        is_cut: whether there are more rows than are listed here; `bulk sql` has them all.
    """

    rows: Sequence[msgspec.Raw]
    first: int
    fitting: int
    total: int
    values: Mapping[str, Sequence[str]]
    night: str
    nights: Sequence[Night]
    is_cut: bool


class _List(msgspec.Struct, frozen=True):
    rows: Sequence[Row]
    nights: Sequence[Night]
    is_cut: bool


class AuditRows:
    """Makes the lists of audits."""

    def __init__(self, histories: Histories) -> None:
        self._histories = histories

    def violations(self, audit: Audit, night: str, wanted: Mapping[str, str], query: str, first: int) -> Page:
        """Return a page of the violations of a night; `night`: its run, or empty for the last night.

        Args:
            wanted: facts that rows must have: `policy`, `severity` and `status`.
        """
        nights = self._kept(audit)
        shown = next((each.run for each in reversed(nights) if night in ("", each.run)), None)
        if shown is None:  # nothing is kept of other nights, whose names come from outside
            return _page(_List((), nights, is_cut=False), night, wanted, query, first)
        found = self._list(audit, f"violations {shown}", lambda: self._violations_of(audit, nights, shown))
        return _page(found, shown, wanted, query, first)

    def changes(self, audit: Audit, night: str, wanted: Mapping[str, str], query: str, first: int) -> Page:
        """Return a page of the changes, the newest first; `night`: only those of the night of that run; empty: all.

        Args:
            wanted: facts that rows must have: `job` and `kind`.
        """
        found = self._list(audit, "changes", lambda: self._changes_of(audit))
        return _page(found, night, {**wanted, "night": night}, query, first)

    def _list(self, audit: Audit, what: str, make: Any) -> _List:
        return self._histories.cached(audit.path / NAME, what, lambda _: make()) or _List((), (), is_cut=False)

    def _violations_of(self, audit: Audit, nights: Sequence[Night], run: str) -> _List:
        result = self._histories.judged(audit, run)
        if result is None:
            return _List((), nights, is_cut=True)
        found = sorted(result.judgement.violations, key=lambda each: each.status == FIXED)
        rows = [
            Row(
                msgspec.Raw(msgspec.json.encode(each)),
                "\t".join((each.policy, each.message, each.waiver, *map(str, each.key.values()))).lower(),
                {"policy": each.policy, "severity": each.severity, "status": each.status},
            )
            for each in found[:MOST_ROWS]
        ]
        return _List(rows, nights, is_cut=len(found) > MOST_ROWS)

    def _changes_of(self, audit: Audit) -> _List:
        nights, rows, is_cut = self._kept(audit), list[Row](), False
        later: dict[tuple[str, str | None, bytes, str], str | None] = {}
        for night in reversed(nights):
            result = self._histories.judged(audit, night.run)
            if result is None:
                is_cut = True
                continue
            is_cut = is_cut or result.drift.changes > len(result.changes)
            for change in result.changes:
                if len(rows) >= MOST_ROWS:
                    return _List(rows, nights, is_cut=True)
                whose = (change.job, change.id, msgspec.json.encode(change.item, order="sorted"), change.field)
                rows.append(_row(change, night.run, later.get(whose)))
                later[whose] = change.before_at
        return _List(rows, nights, is_cut)

    def _kept(self, audit: Audit) -> list[Night]:
        good = audit.history.good() if audit.history is not None else []
        return [night for night in good if self._histories.policies(audit, night.run) is not None]


def _row(change: ItemChange, night: str, last_seen: str | None) -> Row:
    name = label(change.item)
    data = {
        "night": night,
        "job": change.job,
        "id": change.id,
        "label": name,
        "kind": change.kind,
        "field": change.field,
        "old": _value(change.old),
        "new": _value(change.new),
        "before_at": change.before_at,
        "first_seen": change.first_seen,
        "last_seen": last_seen,
    }
    text = "\t".join((change.job, change.id or "", name, change.field, data["old"] or "", data["new"] or "")).lower()
    return Row(msgspec.Raw(msgspec.json.encode(data)), text, {"job": change.job, "kind": change.kind, "night": night})


def _value(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_VALUE else f"{text[:MOST_VALUE]}…"


def _page(found: _List, night: str, wanted: Mapping[str, str], query: str, first: int) -> Page:
    needle, facts = query.lower(), {name: value for name, value in wanted.items() if value}
    fitting = [
        row
        for row in found.rows
        if needle in row.text and all(row.facts.get(name) == value for name, value in facts.items())
    ]
    return Page(
        rows=[row.data for row in fitting[first : first + PAGE]],
        first=first,
        fitting=len(fitting),
        total=len(found.rows),
        values=dict(_values(found.rows)),
        night=night,
        nights=found.nights[::-1],
        is_cut=found.is_cut,
    )


def _values(rows: Sequence[Row]) -> Iterator[tuple[str, list[str]]]:
    for name in rows[0].facts if rows else ():
        if name != "night":
            yield name, sorted({row.facts[name] for row in rows})
