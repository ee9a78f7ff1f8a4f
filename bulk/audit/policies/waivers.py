"""Waivers: violations that are known and accepted, by whom, why, and until when.

- policy: hooks-use-https
  key: {org: acme-ops, id: 4001}
  reason: The receiver moves in January.
  by: ops@example.com
  expires: 2027-01-31
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bulk.audit.policies.policy import Policy
from bulk.flaws import Flaws, shown, unknown_name
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source
from bulk.items.yaml_text import Node, read_document
from bulk.manifest.fields import Fields
from bulk.report.diff.field_changes import canonical

MOST_DAYS = 366
"""Longest time from today to the end of a waiver (days)."""


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """One waiver; `key`: the columns that a violation has to have with these values, all or some of the policy's key.

    Attributes:
        expires: its last day. line: its line in the file.
    """

    policy: str
    key: Mapping[str, Any]
    reason: str
    by: str
    expires: datetime.date
    line: int = 0

    @property
    def said(self) -> str:
        """The reason of the waiver and its last day, for people."""
        return f"{self.reason} ({self.by}, until {self.expires.isoformat()})"


class ByPolicy:
    """Waivers, found by policy and key: there may be thousands of them, and as many violations."""

    def __init__(self, waivers: Sequence[Waiver]) -> None:
        self._found: dict[str, dict[tuple[str, ...], dict[tuple[Any, ...], list[tuple[int, Waiver]]]]] = {}
        for number, waiver in enumerate(waivers):
            by_names = self._found.setdefault(waiver.policy, {})
            names = tuple(waiver.key)
            by_names.setdefault(names, {}).setdefault(_values(waiver.key, names), []).append((number, waiver))

    def fitting(self, policy: str, key: Mapping[str, Any]) -> Iterator[tuple[int, Waiver]]:
        """Yield the waivers of a violation, each with its number."""
        for names, by_values in self._found.get(policy, {}).items():
            yield from by_values.get(_values(key, names), ())


def _values(key: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of some columns; lists and objects as JSON, so that they can be looked up."""
    values = (key.get(name) for name in names)
    return tuple(canonical(value) if isinstance(value, list | dict) else value for value in values)


def read_waivers(
    path: Path | None, policies: Sequence[Policy], today: datetime.date, manifest: Path, line: int = 0
) -> list[Waiver]:
    """Return the waivers in a file; none where there is no file.

    Args:
        manifest: path of the manifest that names the file. line: its line that does.

    Raises:
        ManifestError: the file can't be used: with line and field.
    """
    if path is None:
        return []
    flaws, place = Flaws(), str(path)
    try:
        file = open_source(path)
    except SourceFlaw as flaw:
        flaws.add(str(manifest), line, "audit.waivers", f"{path}: {flaw.message}")
        flaws.raise_if_any()
    try:
        with file:
            root, repeated = read_document(file.read)
    except OSError as error:
        flaws.add(place, 0, "", f"can't be read: {error.strerror}")
        flaws.raise_if_any()
    except SourceFlaw as flaw:
        flaws.add(place, flaw.line, flaw.field, flaw.message)
        flaws.raise_if_any()
    for line, again in repeated:
        flaws.add(place, line, again.field, again.message)
    entries = [] if root is None or root.value is None else root.value
    if not isinstance(entries, list):
        flaws.add(place, 1, "", "expected a list of waivers, each with policy, key, reason, by and expires")
        entries = []
    known = {policy.name: policy for policy in policies}
    found = [_waiver(Fields(place, node, f"[{number}]", flaws), known, today) for number, node in enumerate(entries)]
    flaws.raise_if_any()
    return [waiver for waiver in found if waiver is not None]


def _waiver(fields: Fields, policies: Mapping[str, Policy], today: datetime.date) -> Waiver | None:
    before = len(fields.flaws)
    for name in ("policy", "key", "reason", "by", "expires"):
        if fields.is_object and name not in fields:
            fields.flaw(name, "is missing; a waiver says policy, key, reason, by and expires")
    policy = fields.text("policy", "")
    key = _key(fields, fields.node("key"))
    reason, by = fields.text("reason", ""), fields.text("by", "")
    expires = fields.scalar("expires", today, _date)
    fields.finish()
    if policy and policy not in policies:
        fields.flaw("policy", f"{shown(policy)}: {unknown_name(policy, policies, 'policy')}")
    elif policy:
        for name in key:
            if name not in policies[policy].key:
                fields.flaw(f"key.{name}", unknown_name(name, policies[policy].key))
    if (expires - today).days > MOST_DAYS:
        fields.flaw("expires", "is more than a year ahead: look at it again within one")
    if len(fields.flaws) > before:
        return None
    return Waiver(policy=policy, key=key, reason=reason, by=by, expires=expires, line=fields.line)


def _key(fields: Fields, node: Node | None) -> dict[str, Any]:
    value = node.plain() if node is not None else {}
    if not isinstance(value, dict) or (node is not None and not value):
        fields.flaw("key", "expected columns and their values, such as {org: acme, id: 4001}")
        return {}
    return value


def _date(given: object) -> datetime.date:
    try:
        return datetime.date.fromisoformat(str(given))
    except ValueError:
        raise ValueError("expected a day such as 2027-01-31") from None
