"""Rulesets. Served so far: the list of an organization's rulesets, for its owners; 404 for everybody else."""

from __future__ import annotations

import sqlite3

from bulk.sandbox import paging, rights
from bulk.sandbox.answers import Answer
from bulk.sandbox.call import Call
from bulk.sandbox.clock import iso
from bulk.sandbox.objects import node_id
from bulk.sandbox.records import Organization
from bulk.sandbox.routes import Access, Area, Route


async def list_organization_rulesets(call: Call) -> Answer:
    """Summaries, oldest first. `targets` (comma-separated) keeps only rulesets of these targets."""
    organization = rights.owned_organization(call)
    rows = call.context.state.db.execute(
        "SELECT * FROM rulesets WHERE source_type = 'Organization' AND source_id = ? ORDER BY id", (organization.id,)
    ).fetchall()
    targets = call.query.get("targets")
    if targets:
        wanted = {target.strip() for target in targets.split(",")}
        rows = [row for row in rows if row["target"] in wanted]
    page, headers = paging.cut(call, rows)
    return Answer(body=[_summary(call, organization, row) for row in page], headers=headers)


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


# The specification names no scope; one that reads organizations is asked for, and 404 hides the rest.
READ = Access(scopes=("read:org",), permission=("organization_administration", "read"), hidden=True)
AREA = Area("Rulesets", (Route("GET", "/orgs/{org}/rulesets", list_organization_rulesets, access=READ),))
