"""Which instance of a manifest file is shown where several snapshots report it; no endpoint shows it, the state does.

First comes what users submit, then what dependency graph jobs do (applications: installation tokens), then automatic
submissions (a run's own workflow token); analysis of the files themselves, which would be last, submits no snapshots.
Of several submissions of one origin the one with the alphabetically first correlator is shown, and what others of the
same detector resolve is merged into it. A manifest without a file is known by its name. Source: specification,
Dependency snapshot; open-points.md, Decisions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import orjson

from bulk.sandbox.store.records import Token, TokenKind


class Origin(IntEnum):
    """Where a snapshot comes from; the lower, the more it is worth."""

    USER = 0
    JOB = 1
    AUTOMATIC = 2


@dataclass(frozen=True, slots=True)
class Report:
    """One manifest file as one snapshot reports it. `manifest` is its JSON."""

    snapshot_id: int
    origin: int
    correlator: str
    detector: str
    manifest: str


def origin_of(token: Token | None) -> Origin:
    """Return where a snapshot comes from that was submitted with this token."""
    match token.kind if token is not None else None:
        case TokenKind.INSTALLATION:
            return Origin.JOB
        case TokenKind.WORKFLOW:
            return Origin.AUTOMATIC
    return Origin.USER


def by_location(manifests: object) -> dict[str, str]:
    """Return the manifests of a well-formed snapshot by their files; entries for one file are merged, the first
    decides."""
    found: dict[str, dict[str, Any]] = {}
    for manifest in manifests.values() if isinstance(manifests, dict) else ():
        location = (manifest.get("file") or {}).get("source_location") or manifest["name"]
        former = found.get(location)
        found[location] = manifest if former is None else _merged(former, [manifest])
    return {location: orjson.dumps(manifest).decode() for location, manifest in found.items()}


def shown(reports: Sequence[Report]) -> Report:
    """Return what is shown of one file, of at least one report."""
    first, *others = sorted(reports, key=lambda each: (each.origin, each.correlator, each.detector, each.snapshot_id))
    equal = [each for each in others if (each.origin, each.detector) == (first.origin, first.detector)]
    if not equal:
        return first
    merged = _merged(orjson.loads(first.manifest), [orjson.loads(each.manifest) for each in equal])
    return Report(first.snapshot_id, first.origin, first.correlator, first.detector, orjson.dumps(merged).decode())


def replace(db: sqlite3.Connection, repository_id: int, former: int | None, reports: Mapping[str, Report]) -> None:
    """Put a snapshot's reports, by location, in the place of the snapshot `former`, within the caller's transaction."""
    touched = set(reports)
    if former is not None:
        gone = db.execute("DELETE FROM reported_manifests WHERE snapshot_id = ? RETURNING source_location", (former,))
        touched |= {row["source_location"] for row in gone.fetchall()}
    db.executemany(
        "INSERT INTO reported_manifests VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (repository_id, location, each.snapshot_id, each.origin, each.correlator, each.detector, each.manifest)
            for location, each in reports.items()
        ],
    )
    for location in touched:
        _show(db, repository_id, location)


def _show(db: sqlite3.Connection, repository_id: int, location: str) -> None:
    rows = db.execute(
        "SELECT snapshot_id, origin, correlator, detector, manifest FROM reported_manifests "
        "WHERE repository_id = ? AND source_location = ?",
        (repository_id, location),
    ).fetchall()
    if not rows:
        db.execute(
            "DELETE FROM shown_manifests WHERE repository_id = ? AND source_location = ?", (repository_id, location)
        )
        return
    found = shown([Report(*row) for row in rows])
    db.execute(
        "INSERT OR REPLACE INTO shown_manifests VALUES (?, ?, ?, ?, ?, ?)",
        (repository_id, location, found.snapshot_id, found.correlator, found.detector, found.manifest),
    )


def _merged(first: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a manifest that resolves also what others do; where two resolve the same key, the earlier one counts."""
    resolved: dict[str, Any] = {}
    for manifest in (first, *others):
        for key, dependency in (manifest.get("resolved") or {}).items():
            resolved.setdefault(key, dependency)
    return {**first, "resolved": resolved} if resolved else dict(first)
