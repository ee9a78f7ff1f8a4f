"""Rulesets: an organization's owners list and create its rulesets, and an enterprise's administrators read the history
of its rulesets. All other callers get 404.

The name of a ruleset is unique in its organization; a name that is taken is 422. The list has a summary of each of an
organization's rulesets; `_links.self` leads to the whole ruleset, as its creation answered, at an address that the
specification mentions and does not describe.
"""

from __future__ import annotations

import json
import sqlite3

from bulk.sandbox.areas.rulesets import ruleset_rules
from bulk.sandbox.areas.shared import enterprise_rights
from bulk.sandbox.areas.shared.enterprise_rights import Enterprise
from bulk.sandbox.areas.shared.organization_objects import node_id
from bulk.sandbox.clock import iso
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Organization


async def list_organization_rulesets(call: Call) -> Answer:
    """Return summaries, oldest first. `targets` (comma-separated, or an array) keeps only rulesets of these targets."""
    organization = rights.owned_organization(call)
    rows = call.context.state.db.execute(
        "SELECT * FROM rulesets WHERE source_type = 'Organization' AND source_id = ? ORDER BY id", (organization.id,)
    ).fetchall()
    targets = call.query.words("targets")
    if targets:
        rows = [row for row in rows if row["target"] in targets]
    page, headers = paging.cut(call, rows)
    return Answer(body=[_summary(call, organization, row) for row in page], headers=headers)


async def create_organization_ruleset(call: Call) -> Answer:
    """POST /orgs/{org}/rulesets: 201 with the whole ruleset.

    Raises:
        Refused: 422, the body is malformed, or another ruleset of the organization has its name.
    """
    organization = rights.owned_organization(call)
    body = call.json_object()
    faults = ruleset_rules.faults(body)
    if faults:
        raise invalid(*faults)
    state, made = call.context.state, ruleset_rules.completed(body)
    taken = state.db.execute(
        "SELECT 1 FROM rulesets WHERE source_type = 'Organization' AND source_id = ? AND name = ?",
        (organization.id, made["name"]),
    ).fetchone()
    if taken is not None:
        raise invalid(problem("Ruleset", "name", "already_exists", "Name must be unique"))
    with state.transaction() as db:
        row = db.execute(
            "INSERT INTO rulesets VALUES (?, 'Organization', ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
            (
                state.allocate("ruleset"),
                organization.id,
                made["name"],
                made["target"],
                made["enforcement"],
                *(json.dumps(made[member]) for member in ("bypass_actors", "conditions", "rules")),
                call.now,
                call.now,
            ),
        ).fetchone()
    effect = f"ruleset {made['name']} of {organization.login} created"
    return Answer(201, _whole(call, organization, row), effect=effect)


async def get_organization_ruleset(call: Call) -> Answer:
    """Return the whole ruleset; `_links.self` of its summary leads here."""
    organization = rights.owned_organization(call)
    row = _row(call, "Organization", organization.id)
    return Answer(body=_whole(call, organization, row))


async def list_ruleset_history(call: Call) -> Answer:
    """Return the versions of an enterprise's ruleset, newest first."""
    ruleset = _row(call, "Enterprise", _enterprise(call).id)
    rows = call.context.state.db.execute(
        "SELECT * FROM ruleset_versions WHERE ruleset_id = ? ORDER BY version_id DESC", (ruleset["id"],)
    ).fetchall()
    page, headers = paging.cut(call, rows)
    return Answer(body=[_history_entry(row) for row in page], headers=headers)


async def get_ruleset_version(call: Call) -> Answer:
    """Return one version of an enterprise's ruleset, with the state that it had then."""
    enterprise = _enterprise(call)
    ruleset = _row(call, "Enterprise", enterprise.id)
    row = call.context.state.db.execute(
        "SELECT * FROM ruleset_versions WHERE ruleset_id = ? AND version_id = ?",
        (ruleset["id"], _number(call, "version_id")),
    ).fetchone()
    if row is None:
        raise not_found()
    kept = json.loads(row["state_json"])
    state = {
        "id": ruleset["id"],
        "name": kept["name"],
        "target": kept["target"],
        "source_type": "Enterprise",
        "source": enterprise.slug,
        "enforcement": kept["enforcement"],
        "conditions": kept["conditions"],
        "rules": kept["rules"],
    }
    return Answer(body={**_history_entry(row), "state": state})


def _enterprise(call: Call) -> Enterprise:
    return enterprise_rights.administered(call, hidden=True)


def _number(call: Call, parameter: str) -> int:
    """Return a number of the path; text that is not a number, or too large for an id, gives an id that nothing has."""
    text = call.params[parameter]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def _row(call: Call, source_type: str, source_id: int) -> sqlite3.Row:
    """Return the ruleset `{ruleset_id}` of an organization or an enterprise."""
    row: sqlite3.Row | None = call.context.state.db.execute(
        "SELECT * FROM rulesets WHERE source_type = ? AND source_id = ? AND id = ?",
        (source_type, source_id, _number(call, "ruleset_id")),
    ).fetchone()
    if row is None:
        raise not_found()
    return row


def _history_entry(row: sqlite3.Row) -> dict[str, object]:
    return {
        "version_id": row["version_id"],
        "actor": {"id": row["actor_id"], "type": row["actor_type"]},
        "updated_at": iso(row["updated_at"]),
    }


def _summary(call: Call, organization: Organization, row: sqlite3.Row) -> dict[str, object]:
    return {
        "id": row["id"],
        "name": row["name"],
        "source_type": "Organization",
        "source": organization.login,
        "enforcement": row["enforcement"],
        "node_id": node_id("RepositoryRuleset", row["id"]),
        "_links": {
            "self": {"href": f"{call.base_url}/orgs/{organization.login}/rulesets/{row['id']}"},
            "html": {"href": f"{call.site_url}/organizations/{organization.login}/settings/rules/{row['id']}"},
        },
        "created_at": iso(row["created_at"]),
        "updated_at": iso(row["updated_at"]),
    }


def _whole(call: Call, organization: Organization, row: sqlite3.Row) -> dict[str, object]:
    return {
        **_summary(call, organization, row),
        "target": row["target"],
        "bypass_actors": json.loads(row["bypass_actors_json"]),
        "conditions": json.loads(row["conditions_json"]),
        "rules": json.loads(row["rules_json"]),
    }


# The specification names no scopes: those of the organization's and the enterprise's other settings are asked for. It
# names no 403 either, so a token that lacks rights gets 404.
PERMISSION = ("organization_administration", "write")
READ = Access(scopes=("read:org",), permission=PERMISSION, hidden=True)
WRITE = Access(scopes=("write:org",), permission=PERMISSION, hidden=True)
HISTORY = Access(scopes=("read:enterprise",), app_tokens=False, hidden=True)
ALL = "/orgs/{org}/rulesets"
VERSIONS = "/enterprises/{enterprise}/rulesets/{ruleset_id}/history"
AREA = Area(
    "Rulesets",
    (
        Route("GET", ALL, list_organization_rulesets, access=READ),
        Route("POST", ALL, create_organization_ruleset, access=WRITE),
        Route("GET", ALL + "/{ruleset_id}", get_organization_ruleset, access=READ),
        Route("GET", VERSIONS, list_ruleset_history, access=HISTORY),
        Route("GET", VERSIONS + "/{version_id}", get_ruleset_version, access=HISTORY),
    ),
)
