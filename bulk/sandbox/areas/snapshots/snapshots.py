"""Dependency snapshots: taken, checked, and the latest of each (repository, job.correlator, detector.name) kept.

A malformed body is 422, with a sentence for each fault. A well-formed snapshot for the null sha (`000…0`, all 40
digits) is taken (201) and reported as failed: `result` is INVALID and nothing is kept, as for a commit that nobody
ever had. Every other one is SUCCESS.

Where kept snapshots report the same manifest file, `shown_manifests.py` says which one is shown.

Submitting the body that is kept already changes nothing: the answer repeats the id and `created_at` of the kept one,
and the journal's effect is null. Anything else takes the kept one's place under a new id.
"""

from __future__ import annotations

import hashlib
from typing import Final

import orjson

from bulk.sandbox.areas.snapshots import shown_manifests, snapshot_rules
from bulk.sandbox.areas.snapshots.shown_manifests import Report
from bulk.sandbox.clock import iso
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import invalid
from bulk.sandbox.http.routes import Area, Route

NULL_SHA: Final = "0" * 40


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
    # Keys are sorted: the order of members says nothing.
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
            "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *key, digest, text, call.caller.id, call.now),
        )
        origin = shown_manifests.origin_of(call.token)
        reports = {
            location: Report(number, origin, key[1], key[2], manifest)
            for location, manifest in shown_manifests.by_location(body.get("manifests")).items()
        }
        shown_manifests.replace(db, repository.id, kept["id"] if kept is not None else None, reports)
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
