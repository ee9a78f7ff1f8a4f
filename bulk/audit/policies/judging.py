"""Runs policies over tables, applies waivers, and says what is new since the night before."""

import datetime
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bulk.audit.policies.out_of_sight import OutOfSight, unread_by, unread_in
from bulk.audit.policies.policy import SEVERITIES, Policy
from bulk.audit.policies.waivers import ByPolicy, Waiver
from bulk.audit.tables import asking, statements
from bulk.audit.tables.asking import QueryFlaw
from bulk.audit.tables.child import Query, Task
from bulk.audit.tables.columns import COMMON, table_of
from bulk.flaws import Flaws, unknown_name
from bulk.manifest.manifest import Manifest
from bulk.redaction import redact, redact_json, shows_secret
from bulk.report.record import JobReport
from bulk.report.render.formatting import counted

MOST_ROWS = 1_000_000
"""Rows of one policy that are taken (count)."""

NEW, KNOWN, WAIVED, FIXED, UNKNOWN = "new", "known", "waived", "fixed", "unknown"


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a policy.

    Attributes:
        key: the columns of the policy's key and their values.
        message: text about the row, without secrets.
        status: `new`, `known` since an earlier night, `waived`, `fixed`: it was there the night before, or `unknown`:
            it was there, and what it is about can't be read now.
        waiver: why it is waived, for people.
        first_seen, last_seen: the nights in which it was found first and last (RFC 3339).
        fingerprint: the same in each night (SHA-256, hexadecimal).
    """

    policy: str
    severity: str
    key: Mapping[str, Any]
    message: str
    status: str
    first_seen: str
    last_seen: str
    fingerprint: str
    waiver: str = ""


class PolicyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one policy: counts of its violations, and whether it fails.

    Attributes:
        allowed: most violations without a waiver with which the policy does not fail (count).
        unread: items of the tables that it names which nobody has read, so that it could not look at them (count).
    """

    name: str
    severity: str
    path: str
    description: str
    new: int
    known: int
    waived: int
    fixed: int
    unknown: int = 0
    unread: int = 0
    allowed: float
    is_failed: bool

    @property
    def is_unsure(self) -> bool:
        """Whether it fails nothing that was read, and there is more."""
        return not self.is_failed and (self.unknown or self.unread) > 0


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of all policies; `notes`: waivers that have ended, and waivers that fit no violation."""

    policies: tuple[PolicyResult, ...] = ()
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_violated(self) -> bool:
        """Whether a policy of the severity `error` fails."""
        return any(policy.is_failed and policy.severity == SEVERITIES[0] for policy in self.policies)

    @property
    def is_newly_violated(self) -> bool:
        """Whether a failing policy of the severity `error` has a violation that was not there the night before."""
        failed = {policy.name for policy in self.policies if policy.is_failed and policy.severity == SEVERITIES[0]}
        return any(violation.policy in failed and violation.status == NEW for violation in self.violations)


def bind(policies: Sequence[Policy], manifest: Manifest) -> None:
    """Refuse policies that could not be run over the tables of this manifest; nothing is read.

    Raises:
        ManifestError: a policy is not one SELECT, names what is not there, or lacks a column of its key or message.
    """
    if not policies:
        return
    operations = {job.operation.name: job.operation for job in manifest.jobs}
    tables = {table.name: table.columns for table in map(table_of, operations.values())}
    made = (
        f"CREATE TABLE {statements.name(name)} AS {statements.empty(columns)}"
        for name, columns in {**tables, **COMMON}.items()
    )
    flaws, left, setup = Flaws(), list(policies), tuple(made)
    while left:
        queries = tuple(Query(name=policy.name, sql=policy.sql, is_bound_only=True) for policy in left)
        by_name = {policy.name: policy for policy in left}
        try:
            for line in asking.ask(Task(statements=setup, queries=queries)):
                policy = by_name[line["query"]]
                left.remove(policy)
                for column, why in _flaws_of(policy, line["columns"]):
                    flaws.add(policy.path, _line_with(policy.sql, column), column, why)
        except QueryFlaw as flaw:
            policy = by_name[flaw.query]
            left.remove(policy)
            flaws.add(policy.path, _line_of(str(flaw)), "", str(flaw).splitlines()[0])
    flaws.raise_if_any()


def judge(
    policies: Sequence[Policy],
    waivers: Sequence[Waiver],
    task: Task,
    before: Mapping[str, Violation],
    lost: Sequence[tuple[str, Mapping[str, Any]]] = (),
    removed: Sequence[tuple[str, Mapping[str, Any]]] = (),
    *,
    items: int,
    at: str,
    jobs: Iterable[JobReport] = (),
) -> Judgement:
    """Run the policies.

    Args:
        task: task that makes the tables; the queries are added here.
        before: violations of the night before that were not fixed then, by fingerprint.
        lost: items that could be read before and can't be read now, each with the name of its operation's table.
        removed: items that have left the list since the night before, likewise.
        items: items of the run (count).
        at: when the run began (RFC 3339). jobs: how its items ended: what was not read no policy can look at.

    Raises:
        ManifestError: a policy can't be run.
    """
    if not policies:
        return Judgement()
    by_name = {policy.name: policy for policy in policies}
    queries = tuple(Query(name=policy.name, sql=policy.sql, most=MOST_ROWS + 1) for policy in policies)
    found: dict[str, Violation] = {}
    night, rows_of = _Night(ByPolicy(waivers), before, at, datetime.date.fromisoformat(at[:10])), Counter[str]()
    try:
        for policy, rows in _rows(by_name, msgspec.structs.replace(task, queries=queries)):
            rows_of[policy.name] += len(rows)
            for violation in night.violations(policy, rows):
                other = found.setdefault(violation.fingerprint, violation)
                if violation.message < other.message:  # rows of one key come in any order
                    found[violation.fingerprint] = violation
    except QueryFlaw as flaw:
        flaws = Flaws()
        policy = by_name[flaw.query]
        flaws.add(policy.path, _line_of(str(flaw)), "", str(flaw).splitlines()[0])
        flaws.raise_if_any()
    out_of_sight = {policy.name: OutOfSight(policy, lost) for policy in policies}
    gone = [
        msgspec.structs.replace(
            old, status=UNKNOWN if rows_of[old.policy] > MOST_ROWS or out_of_sight[old.policy].hides(old.key) else FIXED
        )
        for print_, old in before.items()
        if print_ not in found and old.policy in by_name
    ]
    violations, unread = (*found.values(), *gone), unread_in(jobs)
    counts = Counter((violation.policy, violation.status) for violation in violations)
    return Judgement(
        policies=tuple(_result(policy, counts, items, unread) for policy in policies),
        violations=tuple(sorted(violations, key=_place)),
        notes=(*_notes(waivers, night.used, night.today), *_cut(rows_of), *_not_read(policies, gone, removed)),
    )


def fingerprint(policy: str, key: Mapping[str, Any]) -> str:
    """Return the fingerprint that tells a violation apart, the same in each night."""
    return hashlib.sha256(msgspec.json.encode([policy, key], order="deterministic")).hexdigest()


def _place(violation: Violation) -> tuple[int, str, str, str]:
    """Return where a violation stands among others, the same each night: rows come in any order."""
    return SEVERITIES.index(violation.severity), violation.policy, violation.message, violation.fingerprint


def _rows(policies: Mapping[str, Policy], task: Task) -> Iterator[tuple[Policy, list[dict[str, Any]]]]:
    policy, columns = None, list[str]()
    for line in asking.ask(task):
        if "rows" not in line:
            policy, columns = policies[line["query"]], line["columns"]
            for column, why in _flaws_of(policy, columns):
                raise QueryFlaw(policy.name, f"{column}: {why}")
        elif policy is not None:
            yield policy, [dict(zip(columns, row, strict=True)) for row in line["rows"]]


def _flaws_of(policy: Policy, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each column that a policy needs and its rows don't have exactly once, with the flaw."""
    for column in policy.columns:
        if column not in columns:
            yield column, f"{unknown_name(column, columns, 'column')}; AS gives a column a name"
        elif columns.count(column) > 1:
            yield column, "is the name of several columns; give the others another name, with AS"


class _Night:
    """The waivers and the night before, by which violations are judged.

    Attributes:
        used: numbers of the waivers that fit a violation.
    """

    def __init__(self, waivers: ByPolicy, before: Mapping[str, Violation], at: str, today: datetime.date) -> None:
        self._waivers, self._before, self._at = waivers, before, at
        self.today = today
        self.used = set[int]()

    def violations(self, policy: Policy, rows: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
        """Yield the violations that many rows of a policy are, in order."""
        keys = [{name: row[name] for name in policy.key} for row in rows]
        messages = _without_secrets([policy.said(row) for row in rows])
        for key, shown, message in zip(keys, _shown(keys), messages, strict=True):
            print_ = fingerprint(policy.name, key)
            waiver, old = self._waiver(policy, key), self._before.get(print_)
            yield Violation(
                policy=policy.name,
                severity=policy.severity,
                key=shown,
                message=message,
                status=WAIVED if waiver is not None else NEW if old is None or old.waiver else KNOWN,
                waiver="" if waiver is None else waiver.said,
                first_seen=self._at if old is None else old.first_seen,
                last_seen=self._at,
                fingerprint=print_,
            )

    def _waiver(self, policy: Policy, key: Mapping[str, Any]) -> Waiver | None:
        waiver = None
        for number, each in self._waivers.fitting(policy.name, key):
            self.used.add(number)
            waiver = each if each.expires >= self.today else waiver
        return waiver


def _without_secrets(messages: list[str]) -> list[str]:
    """Return messages without secrets: all are looked at together, and each alone only where one may hold any."""
    if shows_secret("\n".join(messages).encode("utf-8", "surrogatepass")):
        return [redact(message) for message in messages]
    return messages


def _shown(keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the keys without secrets: they are in messages to people, and in files."""
    if shows_secret(msgspec.json.encode(keys)):
        return [msgspec.json.decode(redact_json(msgspec.json.encode(key))) for key in keys]
    return keys


def _result(
    policy: Policy, counts: Mapping[tuple[str, str], int], items: int, unread: Mapping[str, int]
) -> PolicyResult:
    found = {status: counts.get((policy.name, status), 0) for status in (NEW, KNOWN, WAIVED, FIXED, UNKNOWN)}
    allowed = policy.allowed(items)
    return PolicyResult(
        name=policy.name,
        severity=policy.severity,
        path=policy.path,
        description=policy.description,
        allowed=allowed,
        unread=unread_by(policy, unread),
        is_failed=found[NEW] + found[KNOWN] > allowed,
        **found,
    )


def _notes(waivers: Sequence[Waiver], used: set[int], today: datetime.date) -> Iterator[str]:
    for number, waiver in enumerate(waivers):
        key = ", ".join(f"{name} {value}" for name, value in waiver.key.items())
        if waiver.expires < today:
            yield f"The waiver of {waiver.policy} for {key} ended on {waiver.expires.isoformat()}; {waiver.by} gave it."
        elif number not in used:
            yield f"The waiver of {waiver.policy} for {key} fits nothing, and may go."


def _cut(rows_of: Mapping[str, int]) -> Iterator[str]:
    for policy, rows in rows_of.items():
        if rows > MOST_ROWS:
            yield f"{policy} returns more than {MOST_ROWS:,} rows: no more were looked at, and others may be next time."


def _not_read(
    policies: Sequence[Policy], gone: Sequence[Violation], removed: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[str]:
    for policy in policies if removed else ():
        fixed = [violation for violation in gone if violation.policy == policy.name and violation.status == FIXED]
        left = OutOfSight(policy, removed)
        unread = sum(left.hides(violation.key) for violation in fixed)
        if unread:
            of = f"{unread:,} of its {counted(len(fixed), 'fixed violation')}"
            yield f"{policy.name}: {of} may be of items that left the list, which nobody has read again."


def _line_of(message: str) -> int:
    """Return the line that DuckDB names, else the first."""
    place = message.find("LINE ")
    digits = message[place + 5 :].partition(":")[0] if place >= 0 else ""
    return int(digits) if digits.isdecimal() else 1


def _line_with(text: str, column: str) -> int:
    """Return the line that names a column first: that is the one with the key, or with the message."""
    found = re.search(rf"\b{re.escape(column)}\b", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1
