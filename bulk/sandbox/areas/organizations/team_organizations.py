"""The organizations that an enterprise team is assigned to.

A team is addressed by its slug (`ent:…`, in any case) or its id. Members of the enterprise see the assignments, its
administrators change them. To assign an organization twice, or to remove one that is not assigned, is not an error and
changes nothing. The calls for many organizations ignore names that are not organizations: their answers show what was
done.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from bulk.sandbox.areas.shared import enterprise_rights
from bulk.sandbox.areas.shared.enterprise_rights import Enterprise
from bulk.sandbox.areas.shared.organization_objects import organization_object
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Organization


async def list_team_organizations(call: Call) -> Answer:
    """Return the organizations that the team is assigned to, oldest first."""
    team = _team(call, enterprise_rights.joined(call))
    page, headers = paging.cut(call, sorted(_assigned(call, team)))
    state = call.context.state
    shown = [organization_object(call, state.organization_by_id(number)) for number in page]
    return Answer(body=shown, headers=headers)


async def add_team_organizations(call: Call) -> Answer:
    """POST …/add: 200 with those of the named organizations that there are; now the team is assigned to them.

    Raises:
        Refused: 422, `organization_slugs` is missing or no array of strings.
    """
    team = _team(call, enterprise_rights.administered(call))
    named = _named(call)
    effect = _assign(call, team, named)
    return Answer(body=[organization_object(call, organization) for organization in named], effect=effect)


async def remove_team_organizations(call: Call) -> Answer:
    """POST …/remove: 204; the team is assigned to none of the named organizations any more.

    Raises:
        Refused: 422, `organization_slugs` is missing or no array of strings.
    """
    team = _team(call, enterprise_rights.administered(call))
    return Answer(204, effect=_unassign(call, team, _named(call)))


async def get_team_organization(call: Call) -> Answer:
    """GET …/{org}: the organization, if the team is assigned to it; else 404."""
    team = _team(call, enterprise_rights.joined(call))
    organization = rights.organization(call)
    if organization.id not in _assigned(call, team):
        raise not_found()
    return Answer(body=organization_object(call, organization))


async def assign_team_organization(call: Call) -> Answer:
    """PUT …/{org}: 201 with the organization, also where the team was assigned to it before."""
    team = _team(call, enterprise_rights.administered(call))
    organization = rights.organization(call)
    effect = _assign(call, team, [organization])
    return Answer(201, organization_object(call, organization), effect=effect)


async def unassign_team_organization(call: Call) -> Answer:
    """DELETE …/{org}: 204, also where the team was not assigned to it."""
    team = _team(call, enterprise_rights.administered(call))
    return Answer(204, effect=_unassign(call, team, [rights.organization(call)]))


def _team(call: Call, enterprise: Enterprise) -> sqlite3.Row:
    name = call.params["enterprise-team"]
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 19 else -1
    row: sqlite3.Row | None = call.context.state.db.execute(
        "SELECT id, slug FROM teams WHERE enterprise_id = ? AND (slug = ? OR id = ?)", (enterprise.id, name, number)
    ).fetchone()
    if row is None:
        raise not_found()
    return row


def _assigned(call: Call, team: sqlite3.Row) -> set[int]:
    """Return ids of the organizations that a team is assigned to."""
    rows = call.context.state.db.execute(
        "SELECT organization_id FROM team_organizations WHERE team_id = ?", (team["id"],)
    )
    return {row["organization_id"] for row in rows}


def _named(call: Call) -> list[Organization]:
    """Return the organizations of the body's `organization_slugs`, each once, in its order."""
    slugs = call.json_object().get("organization_slugs")
    if slugs is None:
        raise invalid(problem("EnterpriseTeam", "organization_slugs", "missing_field"))
    if not isinstance(slugs, list) or not all(isinstance(slug, str) for slug in slugs):
        expected = "organization_slugs must be an array of strings"
        raise invalid(problem("EnterpriseTeam", "organization_slugs", "invalid", expected))
    found = (call.context.state.organization(slug) for slug in slugs)
    return list({organization.id: organization for organization in found if organization is not None}.values())


def _assign(call: Call, team: sqlite3.Row, organizations: Iterable[Organization]) -> str | None:
    assigned = _assigned(call, team)
    new = [organization for organization in organizations if organization.id not in assigned]
    with call.context.state.transaction() as db:
        db.executemany("INSERT INTO team_organizations VALUES (?, ?)", [(team["id"], each.id) for each in new])
    return _effect(team, "assigned to", new)


def _unassign(call: Call, team: sqlite3.Row, organizations: Iterable[Organization]) -> str | None:
    assigned = _assigned(call, team)
    gone = [organization for organization in organizations if organization.id in assigned]
    with call.context.state.transaction() as db:
        db.executemany(
            "DELETE FROM team_organizations WHERE team_id = ? AND organization_id = ?",
            [(team["id"], each.id) for each in gone],
        )
    return _effect(team, "removed from", gone)


def _effect(team: sqlite3.Row, verb: str, organizations: list[Organization]) -> str | None:
    names = ", ".join(organization.login for organization in organizations)
    return f"team {team['slug']} {verb} {names}" if names else None


READ = Access(
    scopes=("read:enterprise",), permission=("enterprise_teams", "read"), app_tokens=False, oauth_tokens=False
)
WRITE = Access(
    scopes=("admin:enterprise",), permission=("enterprise_teams", "write"), app_tokens=False, oauth_tokens=False
)
ALL = "/enterprises/{enterprise}/teams/{enterprise-team}/organizations"
ONE = ALL + "/{org}"
AREA = Area(
    "Enterprise team organization assignments",
    (
        Route("GET", ALL, list_team_organizations, access=READ),
        Route("POST", f"{ALL}/add", add_team_organizations, access=WRITE),
        Route("POST", f"{ALL}/remove", remove_team_organizations, access=WRITE),
        Route("GET", ONE, get_team_organization, access=READ),
        Route("PUT", ONE, assign_team_organization, access=WRITE),
        Route("DELETE", ONE, unassign_team_organization, access=WRITE),
    ),
)
