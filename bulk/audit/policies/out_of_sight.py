"""Whether a violation that is not found any more may be one of an item that can't be read now. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bulk.audit.policies.policy import Policy
from bulk.audit.tables.columns import COMMON


class OutOfSight:
    """The items that can't be read any more, as one policy sees them: those of the tables that its SQL names.

    A column of the policy's key tells a violation apart from such an item where the item has a field of that name, and
    the policy does not put the column together itself.
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
    plain = re.sub(rf"(?<![\w.])(?:{aliases})\.", "", policy.sql, flags=re.IGNORECASE)
    plain = re.sub(r"\b(\w+)\s+as\s+\1\b", r"\1", plain, flags=re.IGNORECASE)
    made = re.findall(rf'(?:\.|\bas\s+)"?({"|".join(policy.key)})\b', plain, re.IGNORECASE)
    others = {name.casefold() for name in made}
    return [column for column in policy.key if column.casefold() not in others]


def _names(policy: Policy, table: str) -> bool:
    return re.search(rf"\b{re.escape(table)}\b", policy.sql, re.IGNORECASE) is not None


def _values(columns: tuple[str, ...], of: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(of.get(column)).casefold() for column in columns)  # the platform's names have no case
