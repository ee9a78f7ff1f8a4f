"""Tells violations that are gone from those of items that can't be read now, and what a policy could not see. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bulk.audit.policies.policy import Policy
from bulk.audit.tables.columns import COMMON, table_name
from bulk.model import SUCCESSFUL
from bulk.report.record import JobReport

_UNREAD = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Texts and comments, in which names mean nothing."""
_BEFORE_A_COLUMN = re.compile(
    "select|distinct|all|on|by|where|and|or|not|having|case|when|then|else|like|ilike|glob|in|between|is|similar|to|from|"
    "join|using|over|partition|order|group|limit|offset|qualify|union|except|intersect|any|some|filter",
    re.IGNORECASE,
)
"""Words that may stand right before a column. Any other word, or a value, is what gets the column's name."""


def unread_in(jobs: Iterable[JobReport]) -> Counter[str]:
    """Return how many items of each table nobody has read (counts). What is not found is one: it may be kept away."""
    found = Counter[str]()
    for job in jobs:
        ended = sum(count for outcome, count in job.outcomes.items() if outcome not in SUCCESSFUL)
        left = (1 if job.items is None else 0) if job.left is None else job.left
        found[table_name(job.operation)] += ended + left
    return found


def unread_by(policy: Policy, unread: Mapping[str, int]) -> int:
    """Return how many items that nobody has read a policy would look at (count): those of the tables that it names."""
    reads_any = any(_names(policy, table) for table in COMMON)
    return sum(count for table, count in unread.items() if reads_any or _names(policy, table))


class OutOfSight:
    """The items that can't be read any more, as one policy sees them: those of the tables that its SQL names.

    A column of the policy's key tells a violation apart from such an item where the item has a field of that name, and
    the policy does not put the column together itself: `x AS org`, `x org`, `org: x` and `AS t(org)` make another one.
    """

    def __init__(self, policy: Policy, lost: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Look at the items `lost`, each with the name of the table of its operation."""
        reads_any = any(_names(policy, table) for table in COMMON)
        own = {
            table: _own(policy, table) for table in {table for table, _ in lost} if reads_any or _names(policy, table)
        }
        self._values: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for table, item in lost:
            if table in own:
                columns = tuple(column for column in own[table] if column in item)
                self._values.setdefault(columns, set()).add(_values(columns, item))

    def hides(self, key: Mapping[str, Any]) -> bool:
        """Return whether the violation with this key may be one of these items."""
        return any(_values(columns, key) in values for columns, values in self._values.items())


def _own(policy: Policy, table: str) -> list[str]:
    """Return the columns of the key that are taken as they are, also by a name of the table: `t.org`, `org AS org`."""
    aliases = "|".join({table, *re.findall(rf"\b{table}\s+(?:as\s+)?(\w+)", policy.sql, re.IGNORECASE)})
    plain = _UNREAD.sub(lambda found: "''" if found[0][0] == "'" else " ", policy.sql)
    plain = re.sub(rf"(?<![\w.])(?:{aliases})\.", "", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\b(\w+)\s+as\s+\1\b", r"\1", plain, flags=re.IGNORECASE)
    others = {name.casefold() for name in _made(plain, "|".join(policy.key))}
    return [column for column in policy.key if column.casefold() not in others]


def _made(sql: str, columns: str) -> Iterator[str]:
    """Yield each of `columns` (as a pattern) that is the name of something else in SQL without comments and texts."""
    yield from re.findall(rf'(?:\.|\bas\s+)"?({columns})\b', sql, re.IGNORECASE)
    yield from re.findall(rf'\b({columns})"?\s*:(?!:)', sql, re.IGNORECASE)
    for word, name in re.findall(rf'(\w+|[)\]}}"\'])(?=\s+"?({columns})\b)', sql, re.IGNORECASE):
        if not _BEFORE_A_COLUMN.fullmatch(word):
            yield name
    for named in re.findall(r"\bas\s+\w+\s*\(([^()]*)\)|\b\w+\s*\(([^()]*)\)\s*as\s*\(", sql, re.IGNORECASE):
        yield from re.findall(rf"\b({columns})\b", " ".join(named), re.IGNORECASE)


def _names(policy: Policy, table: str) -> bool:
    return re.search(rf"\b{re.escape(table)}\b", policy.sql, re.IGNORECASE) is not None


def _values(columns: tuple[str, ...], of: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(of.get(column)).casefold() for column in columns)  # the platform's names have no case
