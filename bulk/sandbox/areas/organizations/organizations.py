"""Enterprise organization administration: create and rename, for site administrators with a classic token; else 404.

A rename is accepted (202) and done `RENAME_S` later: until then the old name holds and the new one is taken. At that
moment the name changes, and the repositories are found under the new name only. An accepted rename survives a restart.
The `url` of the 202 names the organization by its id, which no rename changes.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

from bulk.sandbox.areas.organizations import new_organizations
from bulk.sandbox.areas.shared.organization_objects import organization_object
from bulk.sandbox.areas.webhooks import deliveries, hook_payloads
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.context import Context
from bulk.sandbox.http.refusals import invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Organization, User
from bulk.sandbox.store.state import State

RENAME_S: Final = 0.5
ENTERPRISE_ID: Final = 1
LOGIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}")


async def create_organization(call: Call) -> Answer:
    """POST /admin/organizations: 201 with the organization; its `admin` becomes its owner.

    It begins with the repositories that the seed file gives to new ones (`new_organizations.py`).

    Raises:
        Refused: 404, the caller is not a site administrator; 422, the login is malformed or taken, or there is no such
            admin.
    """
    _only_site_administrators(call)
    state, body = call.context.state, call.json_object()
    login, admin = _login(state, body), _admin(state, body)
    profile_name = body.get("profile_name")
    if profile_name is not None and not isinstance(profile_name, str):
        raise invalid(problem("Organization", "profile_name", "invalid", "profile_name must be a string"))
    with state.transaction():
        number = state.allocate("organization")
        organization = Organization(number, ENTERPRISE_ID, login, profile_name or login, "", call.now)
        state.add_organization(organization, owners=[admin])
        new_organizations.furnish(state, organization, call.now)
    return Answer(201, organization_object(call, organization), effect=f"organization {login} created")


async def rename_organization(call: Call) -> Answer:
    """PATCH /admin/organizations/{org}: 202 with `message` and `url`.

    Raises:
        Refused: 404, there is no such organization, or the caller is not a site administrator; 422, the name is
            malformed or taken, or a rename of this organization is on its way.
    """
    _only_site_administrators(call)
    state = call.context.state
    organization = rights.organization(call)
    if state.db.execute("SELECT 1 FROM renames WHERE organization_id = ?", (organization.id,)).fetchone():
        raise invalid("A rename of this organization is already in progress")
    login = _login(state, call.json_object(), besides=organization)
    due_at = call.context.clock.now() + RENAME_S
    # Webhooks get the event when the rename is done, with the caller as its sender and the address that he used.
    told = hook_payloads.renamed(call, replace(organization, login=login), organization.login).payload
    with state.transaction() as db:
        db.execute("INSERT INTO renames VALUES (?, ?, ?, ?)", (organization.id, login, due_at, json.dumps(told)))
    _finish_later(call.context, organization.id, due_at)
    message = "Job queued to rename organization. It may take a few minutes to complete."
    return Answer(
        202,
        {"message": message, "url": f"{call.base_url}/organizations/{organization.id}"},
        effect=f"organization {organization.login} renamed to {login}",
    )


async def get_organization_by_id(call: Call) -> Answer:
    """Return the organization under its present name: the `url` of a rename leads here."""
    try:
        organization = call.context.state.organization_by_id(int(call.params["organization_id"]))
    except (KeyError, ValueError):
        raise not_found() from None
    return Answer(body=organization_object(call, organization))


async def take_up_renames(context: Context) -> None:
    """Go on with renames that were accepted before a restart."""
    for row in context.state.db.execute("SELECT organization_id, due_at FROM renames").fetchall():
        _finish_later(context, row["organization_id"], row["due_at"])


def _finish_later(context: Context, organization_id: int, due_at: float) -> None:
    async def finish() -> None:
        await context.clock.sleep(min(max(due_at - context.clock.now(), 0.0), RENAME_S))
        state = context.state
        former = state.organization_by_id(organization_id)
        with state.transaction() as db:
            row = db.execute(
                "DELETE FROM renames WHERE organization_id = ? RETURNING login, event_json", (organization_id,)
            ).fetchone()
            state.rename_organization(former, row["login"])
        state.tell_renamed(former.login, row["login"])
        event = deliveries.Event("organization", json.loads(row["event_json"]))
        deliveries.announce(context, organization_id, event.name, lambda: event)

    context.background.start("rename of an organization", finish)


def _only_site_administrators(call: Call) -> None:
    if not call.caller.site_admin:
        raise not_found()


def _text(body: dict[str, object], field: str) -> str:
    value = body.get(field)
    if value is None:
        raise invalid(problem("Organization", field, "missing_field"))
    if not isinstance(value, str):
        raise invalid(problem("Organization", field, "invalid", f"{field} must be a string"))
    return value


def _login(state: State, body: dict[str, object], besides: Organization | None = None) -> str:
    """Return the body's `login`, if it is well-formed and free; the organization `besides` may take its own in other
    case."""
    login = _text(body, "login")
    if not LOGIN.fullmatch(login):
        rule = "may hold letters, digits and single hyphens, none at its ends, and at most 39 characters"
        raise invalid(problem("Organization", "login", "invalid", f"login {rule}"))
    holder = state.organization(login)
    is_own = besides is not None and holder == besides and login != besides.login
    reserved = state.db.execute("SELECT 1 FROM renames WHERE login = ?", (login,)).fetchone()
    if (holder is not None and not is_own) or state.user(login) or reserved:
        raise invalid(problem("Organization", "login", "already_exists", "login is already taken"))
    return login


def _admin(state: State, body: dict[str, object]) -> User:
    admin = state.user(_text(body, "admin"))
    if admin is None:
        raise invalid(problem("Organization", "admin", "invalid", "admin is not the login of a user"))
    return admin


SITE = Access(scopes=("site_admin",), oauth_tokens=False, hidden=True)
AREA = Area(
    "Enterprise organization administration",
    (
        Route("POST", "/admin/organizations", create_organization, access=SITE),
        Route("PATCH", "/admin/organizations/{org}", rename_organization, access=SITE),
        Route("GET", "/organizations/{organization_id}", get_organization_by_id),
    ),
    start=take_up_renames,
)
