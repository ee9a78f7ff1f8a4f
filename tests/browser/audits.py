"""Histories of audits that were made for the page: one of many nights, and one with hostile names."""

import random
from collections import Counter
from pathlib import Path

import msgspec

from bulk.audit import history as places
from bulk.audit.comparison.drift import Drift, ItemChange
from bulk.audit.history import History, Night
from bulk.audit.policies.judging import FIXED, KNOWN, NEW, WAIVED, Judgement, PolicyResult, Violation, fingerprint
from bulk.audit.result import AuditResult
from bulk.clock import iso_utc
from tests.browser.runs import HOSTILE, write_hostile, write_small
from tests.report.ledgers import START

DAY_S = 86_400.0
NIGHTS, KEPT = 24, 18
"""Nights of the fleet's audit, and how many of them have their findings (counts)."""

POLICIES = (("hooks-use-https", "error", 40), ("owners", "warning", 120), ("names-are-lower-case", "note", 15))
"""Policy, severity, and about how many violations it has."""
WAIVER = "The receiver moves behind TLS in January. (ops@example.com, until 2027-01-31)"


def write_fleet(folder: Path) -> Path:
    """Nights in which violations come and go, with waivers and drift; one was not compared. The findings of
    the last ones are kept, and the run of the last one."""
    folder.mkdir(parents=True)
    dice, history = random.Random(3), History(folder, folder.name)
    before: dict[str, Violation] = {}
    for number in range(NIGHTS):
        at = iso_utc(START - (NIGHTS - number) * DAY_S)
        run = f"{folder.name}-{at[:19].replace('-', '').replace(':', '')}"
        if number == NIGHTS - 4:
            history.commit(Night(run=run, at=at, is_good=False, why="the platform could not be reached", exit_code=3))
            continue
        found = {each.fingerprint: each for each in _found(dice, number, at, before)}
        gone = [msgspec.structs.replace(old, status=FIXED) for key, old in before.items() if key not in found]
        violations, before = (*found.values(), *gone), found
        changes = _changes(dice, at) if number else ()
        night = _night(run, at, violations, changes)
        judgement = Judgement(policies=tuple(_sums(violations)), violations=violations, notes=("waivers.yaml: a note",))
        _commit(history, night, judgement, changes, is_kept=number >= NIGHTS - KEPT)
    write_small(folder / places.RUNS / run)
    return folder


def write_hostile_audit(folder: Path) -> Path:
    """One night whose every name is hostile."""
    folder.mkdir(parents=True)
    at, history = iso_utc(START), History(folder, folder.name)
    violation = Violation(
        policy=HOSTILE, severity="error", key={"repo": HOSTILE}, message=HOSTILE, status=WAIVED, first_seen=at,
        last_seen=at, fingerprint="x", waiver=HOSTILE,
    )  # fmt: skip
    opened = msgspec.structs.replace(violation, status=NEW, waiver="", fingerprint="y")
    sums = PolicyResult(
        name=HOSTILE, severity="error", path=HOSTILE, description=HOSTILE, new=1, known=0, waived=1, fixed=0,
        allowed=0, is_failed=True,
    )  # fmt: skip
    change = ItemChange(
        job=HOSTILE, operation="x.get", id=HOSTILE, item={"repo": HOSTILE}, kind="changed", field=HOSTILE, old=HOSTILE,
        new=HOSTILE, before_at=at, first_seen=at,
    )  # fmt: skip
    judgement = Judgement(policies=(sums,), violations=(opened, violation), notes=(HOSTILE,))
    night = _night("hostile-1", at, (opened, violation), (change,))
    _commit(history, night, judgement, (change,), is_kept=True)
    write_hostile(folder / places.RUNS / "hostile-1")
    return folder


def _commit(
    history: History, night: Night, judgement: Judgement, changes: tuple[ItemChange, ...], *, is_kept: bool
) -> None:
    if is_kept:
        fields = [(change.field, 1) for change in changes[:3]]
        drift = Drift(items=night.drift, changes=night.changes, by_field=tuple(fields))
        result = AuditResult(
            name=history.name, history=str(history.path), night=night, exit_code=night.exit_code, run_exit_code=0,
            drift=drift, changes=changes, judgement=judgement,
        )  # fmt: skip
        history.place(places.JUDGED, night.run, ".json").write_bytes(msgspec.json.encode(result))
    history.commit(night)


def _night(run: str, at: str, violations: tuple[Violation, ...], changes: tuple[ItemChange, ...]) -> Night:
    counts = Counter(each.status for each in violations)
    verdict = (("drift",) if changes else ()) + (("violation",) if counts[NEW] + counts[KNOWN] else ())
    items, fields = len({change.item["repo"] for change in changes}), len(changes)
    return Night(
        run=run, at=at, exit_code=7 if verdict else 0, items=2_400, failed=3, units=140 + fields, drift=items,
        changes=fields, lost_sight=2, verdict=verdict,
        new=counts[NEW], known=counts[KNOWN], fixed=counts[FIXED], waived=counts[WAIVED],
    )  # fmt: skip


def _found(dice: random.Random, night: int, at: str, before: dict[str, Violation]) -> list[Violation]:
    found = []
    for policy, severity, about in POLICIES:
        for number in range(about):
            if dice.random() < 0.25:
                continue
            key = {"owner": f"team-{number % 7}", "repo": f"service-{number:04d}"}
            print_ = fingerprint(policy, key)
            is_waived = policy == POLICIES[0][0] and number % 5 == 0
            status = WAIVED if is_waived else KNOWN if print_ in before else NEW
            found.append(
                Violation(
                    policy=policy, severity=severity, key=key, message=f"{key['owner']}/{key['repo']}: {policy}",
                    status=status, first_seen=before[print_].first_seen if print_ in before else at, last_seen=at,
                    fingerprint=print_, waiver=WAIVER if is_waived else "",
                )
            )  # fmt: skip
    return found


def _sums(violations: tuple[Violation, ...]) -> list[PolicyResult]:
    sums = []
    for policy, severity, _ in POLICIES:
        own = [each.status for each in violations if each.policy == policy]
        open_ = own.count(NEW) + own.count(KNOWN)
        sums.append(
            PolicyResult(
                name=policy, severity=severity, path=f"policies/{policy}.sql", description=f"About {policy}.",
                new=own.count(NEW), known=own.count(KNOWN), waived=own.count(WAIVED), fixed=own.count(FIXED),
                allowed=0, is_failed=open_ > 0 and severity == "error",
            )
        )  # fmt: skip
    return sums


def _changes(dice: random.Random, at: str) -> tuple[ItemChange, ...]:
    before = iso_utc(START - 60 * DAY_S)
    return tuple(
        ItemChange(
            job="hooks", operation="webhook.list", id=None, item={"owner": "acme", "repo": f"service-{number:04d}"},
            kind="changed", field="result[].config.url", old=f"http://old.example.com/{number}",
            new=f"https://new.example.com/{dice.randrange(1000)}", before_at=before, first_seen=at,
        )
        for number in sorted(dice.sample(range(60), dice.randrange(1, 6)))
    )  # fmt: skip
