"""The list of audits and the page of one audit, as data: its nights, and each policy over time."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from bulk.audit.comparison.drift import Drift
from bulk.audit.history import Night
from bulk.audit.policies.judging import WAIVED, PolicyResult
from bulk.audit.policies.policy import SEVERITIES
from bulk.serve.audits.histories import Audit, Histories, place_of
from bulk.serve.fleet import Fleet, FleetRun

MOST_AUDITS = 200
MOST_NIGHTS = 400
MOST_FIELDS = 20
MOST_WAIVERS = 200
TREND = 30
"""How many nights a row of the list shows (count)."""


class Going(msgspec.Struct, frozen=True, kw_only=True):
    """The run of a night that does not count yet."""

    name: str
    state: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An audit in the list.

    Attributes:
        why: why the audit can't be read; empty where it can.
        trend: violations that are not waived, for each of its last nights, oldest first (count); None: the night was
            not compared.
    """

    name: str
    path: str
    nights: int = 0
    last: Night | None = None
    going: Going | None = None
    trend: Sequence[int | None] = ()
    why: str = ""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy: its result in the last night that was compared, and its violations in every night that is kept.

    Attributes:
        trend: violations that are not waived, one count for each of `AuditPage.judged`; None: the night had no such
            policy.
    """

    now: PolicyResult
    trend: Sequence[int | None]


class Waived(msgspec.Struct, frozen=True, kw_only=True):
    """A waiver that is in use, and how many violations it covers."""

    policy: str
    words: str
    violations: int


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """All data of the page of an audit.

    Attributes:
        nights: the newest first; `total`: how many there are (count). runs: run of a night -> name of the run in the
            fleet, for runs whose directories are kept.
        judged: the nights whose policies are kept, oldest first; the page is about the last one.
        severities: severity -> violations that are not waived, one count for each of `judged`.
        is_cut: whether the results of the last night are too large to be read here.
    """

    name: str
    path: str
    going: Going | None
    nights: Sequence[Night]
    total: int
    runs: Mapping[str, str]
    judged: Sequence[Night]
    severities: Mapping[str, Sequence[int]]
    policies: Sequence[Policy]
    drift: Drift
    waivers: Sequence[Waived]
    notes: Sequence[str]
    is_cut: bool


class _Last(msgspec.Struct, frozen=True):
    """The part of the last night's results that the page needs."""

    drift: Drift
    waivers: Sequence[Waived]
    notes: Sequence[str]


class AuditPages:
    """Makes the list of audits, and the page of each."""

    def __init__(self, histories: Histories, fleet: Fleet) -> None:
        self._histories, self._fleet = histories, fleet

    def listed(self) -> list[Row]:
        """Return all audits: first those that can't be read, then those whose last night had an exit code above 0."""
        going = self._going()
        rows = [self._row(audit, going.get(audit.name)) for audit in self._histories.all()]
        rows.sort(key=lambda row: (not row.why, row.last is None or not row.last.exit_code, row.name))
        return rows[:MOST_AUDITS]

    def of(self, name: str) -> AuditPage | None:
        """Return the page of an audit; None where there is no audit of that name, or it can't be read."""
        audit = self._histories.find(name)
        if audit is None or audit.history is None:
            return None
        history = audit.history
        found = [(night, self._histories.policies(audit, night.run)) for night in history.good()[-MOST_NIGHTS:]]
        judged = [(night, policies) for night, policies in found if policies is not None]
        last = self._last(audit, judged[-1][0].run) if judged else None
        nights = history.nights[::-1][:MOST_NIGHTS]
        kept = {night.run: audit.run_name(night.run) for night in nights}
        return AuditPage(
            name=name,
            path=str(audit.path),
            going=_as_going(self._going().get(name)),
            nights=nights,
            total=len(history.nights),
            runs={run: known for run, known in kept.items() if self._histories.run_dir(known) is not None},
            judged=[night for night, _ in judged],
            severities=_by_severity([policies for _, policies in judged]),
            policies=_by_policy([policies for _, policies in judged]),
            drift=last.drift if last else Drift(),
            waivers=last.waivers if last else (),
            notes=last.notes if last else (),
            is_cut=bool(judged) and last is None,
        )

    def _last(self, audit: Audit, run: str) -> _Last | None:
        def made(_: object) -> _Last | None:
            result = self._histories.judged(audit, run)
            if result is None:
                return None
            found = Counter((each.policy, each.waiver) for each in result.judgement.violations if each.status == WAIVED)
            return _Last(
                drift=msgspec.structs.replace(result.drift, by_field=result.drift.by_field[:MOST_FIELDS]),
                waivers=[
                    Waived(policy=policy, words=words, violations=violations)
                    for (policy, words), violations in found.most_common(MOST_WAIVERS)
                ],
                notes=(*result.judgement.notes, *result.notes),
            )

        return self._histories.cached(place_of(audit, run), "last", made)

    def _going(self) -> dict[str, FleetRun]:
        return {run.audit: run for run in self._fleet.runs() if run.audit}

    def _row(self, audit: Audit, going: FleetRun | None) -> Row:
        if audit.history is None:
            return Row(name=audit.name, path=str(audit.path), why=audit.why)
        nights = audit.history.nights
        return Row(
            name=audit.name,
            path=str(audit.path),
            nights=len(nights),
            last=nights[-1] if nights else None,
            going=_as_going(going),
            trend=[night.new + night.known if night.is_good else None for night in nights[-TREND:]],
        )


def _as_going(run: FleetRun | None) -> Going | None:
    return None if run is None else Going(name=run.name, state=run.listed.state)


def _by_severity(nights: Sequence[Sequence[PolicyResult]]) -> dict[str, list[int]]:
    found = {
        severity: [sum(each.new + each.known for each in policies if each.severity == severity) for policies in nights]
        for severity in SEVERITIES
    }
    return {severity: counts for severity, counts in found.items() if any(counts)}


def _by_policy(nights: Sequence[Sequence[PolicyResult]]) -> list[Policy]:
    if not nights:
        return []
    open_ = [{each.name: each.new + each.known for each in policies} for policies in nights]
    found = [Policy(now=now, trend=[counts.get(now.name) for counts in open_]) for now in nights[-1]]
    found.sort(key=lambda each: (not each.now.is_failed, SEVERITIES.index(each.now.severity), each.now.name))
    return found
