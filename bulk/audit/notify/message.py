"""The message about a night: names, counts and keys, and values only for a target that asks for them. Pure."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from bulk.audit.history import Night
from bulk.audit.policies.judging import FIXED, NEW, UNKNOWN, Violation
from bulk.audit.result import AuditResult
from bulk.exit_codes import COMPLETE, MEANINGS
from bulk.manifest.audit_section import Target
from bulk.report.tally import label, shortened

MOST_KEYS = 10
BLIND = "nothing could be read, so that nobody knows how it is"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The message that a command gets as JSON, and that the text for other targets is made from.

    Attributes:
        events: why the target is told: `drift`, `violation`, `failure`, `recovery`.
        counts: items, changed, lost_sight, new, known, fixed, unknown, waived (counts).
        new, fixed, unknown: the first ten violations of each status, by policy and key.
        changed: the first ten items that changed, and in which field.
        details: old and new values of these changes, where the target asks for them; otherwise empty.
        page: path of the audit page.
    """

    version: int = 1
    name: str
    run: str
    at: str
    events: tuple[str, ...]
    exit_code: int
    meaning: str
    why: str
    counts: dict[str, int]
    new: tuple[str, ...]
    fixed: tuple[str, ...]
    unknown: tuple[str, ...]
    changed: tuple[str, ...]
    details: tuple[dict[str, Any], ...]
    page: str

    @property
    def title(self) -> str:
        """The title, in one line."""
        return f"{self.name}: {', '.join(self.events)} (exit {self.exit_code})"

    @property
    def text(self) -> str:
        """A few lines for people."""
        said = [self.why or self.meaning]
        said.append(", ".join(f"{number:,} {word.replace('_', ' ')}" for word, number in self.counts.items() if number))
        listed = {"New": self.new, "Fixed": self.fixed, "Unknown": self.unknown, "Changed": self.changed}
        said += [f"{word}: {'; '.join(each)}" for word, each in listed.items() if each]
        if self.page:
            said.append(self.page)
        return "\n".join(line for line in said if line)


def events_of(
    result: AuditResult, target: Target, before: Sequence[Night], told: Collection[str], told_s: float | None
) -> tuple[str, ...]:
    """Return why `target` is told of a night; empty where it is not told.

    A violation that stays, or may, is told again only after `remind`. The recovery is told once, and not while an item
    that could be read before can't be read: nobody knows how it is.

    Args:
        before: the nights before this one, oldest first.
        told: what this target was told of this night: one that failed may have gone on.
        told_s: seconds since this target was last told of anything; None: never.
    """
    night, found = result.night, list[str]()
    if result.run_exit_code not in COMPLETE or night.is_blind:
        found.append("failure")
    else:
        is_reminded = target.remind_s is not None and (told_s is None or told_s >= target.remind_s)
        if "drift" in night.verdict:
            found.append("drift")
        if ("violation" in night.verdict and night.new) or (
            is_reminded and {"violation", "unknown"} & {*night.verdict}
        ):
            found.append("violation")
        if not night.verdict and ("failure" in told or _is_bad(before)):
            found.append("recovery")
    return tuple(event for event in found if event in target.on)


def _is_bad(before: Sequence[Night]) -> bool:
    """Return whether something was bad when it was last known."""
    for night in reversed(before):
        if night.is_blind or night.verdict != ("unknown",):
            return bool(night.verdict) or not night.is_good or night.is_blind
    return False


def message_of(result: AuditResult, target: Target, events: tuple[str, ...], page: str) -> Message:
    """Return the message for `target`."""
    night = result.night
    counts = {"items": night.items, "changed": night.drift}
    counts |= {name: getattr(night, name) for name in ("lost_sight", "new", "known", "fixed", "unknown", "waived")}
    changes = [change for change in result.changes if change.kind == "changed"][:MOST_KEYS]
    violations = result.judgement.violations
    return Message(
        name=result.name,
        run=night.run,
        at=night.at,
        events=events,
        exit_code=result.exit_code,
        meaning=MEANINGS.get(result.exit_code, ""),
        why=BLIND if night.is_blind else result.why,
        counts=counts,
        new=_first(violations, NEW),
        fixed=_first(violations, FIXED),
        unknown=_first(violations, UNKNOWN),
        changed=tuple(f"{label(each.item)} {each.field}" for each in changes),
        details=tuple(
            {"job": each.job, "item": each.item, "field": each.field, "old": each.old, "new": each.new}
            for each in (changes if target.details else ())
        ),
        page=page,
    )


def again(events: tuple[str, ...]) -> tuple[str, ...]:
    """Return the events of a message that a person asks for again."""
    return events or ("report",)


def _first(violations: Sequence[Violation], status: str) -> tuple[str, ...]:
    found = (each for each in violations if each.status == status)
    return tuple(_key(each.policy, each.key) for each in itertools.islice(found, MOST_KEYS))


def _key(policy: str, key: Any) -> str:
    return shortened(f"{policy} {', '.join(f'{name} {value}' for name, value in key.items())}")
