"""Dependency snapshots: taken, checked, and the latest of each (repository, job.correlator, detector.name) kept.

A malformed body is 422, with a sentence for each fault. A well-formed snapshot for the null sha (`000…0`, all 40
digits) is taken (201) and reported as failed: `result` is INVALID and nothing is kept, as for a commit that nobody
ever had. Every other one is SUCCESS.

Where kept snapshots report the same manifest file, one instance is shown. Submissions of users come first, then those
of dependency graph jobs (applications: installation tokens), then automatic ones (a run's own workflow token);
analysis of the files themselves, which would be last, submits no snapshots. Of several submissions of one origin the
one with the alphabetically first correlator is shown, with the packages of others of the same detector merged into it.
No endpoint shows it: the view `shown_manifests` of `schema.sql` does. Source: specification, Dependency snapshot;
open-points.md, Decisions.

Submitting the body that is kept already changes nothing: the answer repeats the id and `created_at` of the kept
snapshot, and the journal's effect is null. Any other body replaces the kept snapshot under a new id.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import Final

import orjson

from bulk.sandbox.areas.snapshots import snapshot_rules
from bulk.sandbox.clock import iso
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import invalid
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Token, TokenKind

NULL_SHA: Final = "0" * 40


class Origin(IntEnum):
    """The origin of a snapshot; a lower value goes before a higher one."""

    USER = 0
    JOB = 1
    AUTOMATIC = 2

    @classmethod
    def of(cls, token: Token | None) -> Origin:
        """Return the origin of a snapshot that was submitted with this token."""
        match token.kind if token is not None else None:
            case TokenKind.INSTALLATION:
                return cls.JOB
            case TokenKind.WORKFLOW:
                return cls.AUTOMATIC
        return cls.USER


async def create_snapshot(call: Call) -> Answer:
    """POST /repos/{owner}/{repo}/dependency-graph/snapshots: 201 with `id`, `created_at`, `message`, `result`.

    Raises:
        Refused: 404 or 403, without access to the repository; 422, the body is malformed.
    """
    repository = rights.repository(call, write=True)
    body = call.json_object()
    faults = snapshot_rules.faults(body)
    if faults:
        raise invalid(*faults, message="Invalid request.")
    state = call.context.state
    if body["sha"] == NULL_SHA:
        number = state.allocate("snapshot")
        return _taken(number, call.now, "INVALID", f"The snapshot was not processed: commit {NULL_SHA} does not exist.")
    key = (repository.id, *snapshot_rules.identity(body))
    # Keys are sorted, because the order of members does not matter.
    text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text).digest()
    message = f"Dependency results for the repo have been successfully updated by {key[2]}."
    kept = state.db.execute(
        "SELECT id, digest, created_at FROM snapshots WHERE repository_id = ? AND correlator = ? AND detector = ?", key
    ).fetchone()
    if kept is not None and kept["digest"] == digest:
        return _taken(kept["id"], kept["created_at"], "SUCCESS", message)
    with state.transaction() as db:
        number = state.allocate("snapshot")
        db.execute("DELETE FROM snapshots WHERE repository_id = ? AND correlator = ? AND detector = ?", key)
        db.execute(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *key, Origin.of(call.token), digest, call.caller.id, call.now, text.decode()),
        )
    answer = _taken(number, call.now, "SUCCESS", message)
    answer.effect = f"snapshot {state.full_name(repository)} {key[1]} {key[2]} {digest.hex()[:12]}"
    return answer


def _taken(number: int, created_at: float, result: str, message: str) -> Answer:
    return Answer(201, {"id": number, "created_at": iso(created_at), "message": message, "result": result})


AREA = Area(
    "Dependency snapshots",
    (
        Route(
            "POST",
            "/repos/{owner}/{repo}/dependency-graph/snapshots",
            create_snapshot,
            category="dependency_snapshots",
            access=Access(scopes=("repo",), permission=("contents", "write")),
        ),
    ),
)
