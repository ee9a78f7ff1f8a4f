"""Organization webhooks: owners make, read, change and remove them, and read the deliveries of their events.

All other callers get 404. Webhooks that an OAuth application made are hidden from other tokens, and other webhooks from
that application. Every update overwrites the secret: a secret that is not sent again is gone. Nothing says that two
webhooks of one organization must differ, so they need not; the vendor `github` refuses a second one with the same
configuration.

Source: specification, Organization webhooks; the delivery record and its listing: open-points.md. The events themselves
are in `deliveries.py` and `hook_payloads.py`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Final
from urllib.parse import urlencode

from bulk.sandbox.areas.webhooks import hook_payloads, hook_settings
from bulk.sandbox.areas.webhooks.deliveries import Deliveries
from bulk.sandbox.clock import iso
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.context import Context
from bulk.sandbox.http.refusals import invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Organization, TokenKind

NUMBER: Final = re.compile(r"[0-9]{1,18}")
OUTCOMES: Final = {"success": "status_code BETWEEN 200 AND 399", "failure": "status_code NOT BETWEEN 200 AND 399"}


async def list_hooks(call: Call) -> Answer:
    """GET /orgs/{org}/hooks: all webhooks that the caller may see, oldest first."""
    organization = rights.owned_organization(call)
    rows = call.context.state.db.execute(
        "SELECT * FROM hooks WHERE organization_id = ? AND creator_kind = ? ORDER BY id",
        (organization.id, _kind(call)),
    ).fetchall()
    page, headers = paging.cut(call, rows)
    return Answer(body=[_shown(call, organization, row) for row in page], headers=headers)


async def create_hook(call: Call) -> Answer:
    """POST /orgs/{org}/hooks: 201 with the webhook, which is sent a ping.

    Raises:
        Refused: 404, the organization is not the caller's; 422, the body is wrong.
    """
    organization = rights.owned_organization(call)
    body = call.json_object()
    hook_settings.check_name(body, is_new=True)
    given = hook_settings.config_in(body)
    if given is None:
        raise invalid(problem("Hook", "config", "missing_field"))
    config = {**hook_settings.DEFAULTS, **hook_settings.configuration(given)}
    events = hook_settings.events_in(body) or list(hook_settings.DEFAULT_EVENTS)
    active = hook_settings.active_in(body)
    _refuse_double(call, organization, config)
    state = call.context.state
    with state.transaction() as db:
        number = state.allocate("hook")
        row = db.execute(
            "INSERT INTO hooks (id, organization_id, creator_kind, active, events_json, config_json, created_at, "
            "updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
            (
                number,
                organization.id,
                _kind(call),
                active is not False,
                json.dumps(events),
                json.dumps(config),
                call.now,
                call.now,
            ),
        ).fetchone()
    made = _shown(call, organization, row)
    if row["active"]:
        call.context.get(Deliveries).post(number, hook_payloads.ping(call, organization, number, made))
    return Answer(
        201,
        made,
        headers={"Location": str(made["url"])},
        effect=f"webhook {number} of {organization.login} created for {config['url']}",
    )


async def get_hook(call: Call) -> Answer:
    """GET /orgs/{org}/hooks/{hook_id}."""
    organization, row = _hook(call)
    return Answer(body=_shown(call, organization, row))


async def update_hook(call: Call) -> Answer:
    """PATCH /orgs/{org}/hooks/{hook_id}: 200 with the webhook. Without `config.secret`, it has no secret afterwards.

    Raises:
        Refused: 404, there is no such webhook; 422, the body is wrong.
    """
    organization, row = _hook(call)
    body = call.json_object()
    hook_settings.check_name(body, is_new=False)
    given = hook_settings.config_in(body)
    events, active = hook_settings.events_in(body), hook_settings.active_in(body)
    config = _overwritten(row, hook_settings.configuration(given) if given is not None else {})
    changed, what = _update(call, row, config, events, active)
    return Answer(body=_shown(call, organization, changed), effect=_effect(organization, row, what))


async def delete_hook(call: Call) -> Answer:
    """DELETE /orgs/{org}/hooks/{hook_id}: 204; its deliveries go with it."""
    organization, row = _hook(call)
    with call.context.state.transaction() as db:
        db.execute("DELETE FROM hooks WHERE id = ?", (row["id"],))
        db.execute("DELETE FROM deliveries WHERE hook_id = ?", (row["id"],))
    return Answer(204, effect=f"webhook {row['id']} of {organization.login} deleted")


async def get_hook_config(call: Call) -> Answer:
    """GET /orgs/{org}/hooks/{hook_id}/config."""
    _, row = _hook(call)
    return Answer(body=hook_settings.shown(json.loads(row["config_json"])))


async def update_hook_config(call: Call) -> Answer:
    """PATCH /orgs/{org}/hooks/{hook_id}/config: 200 with the configuration. A secret that is not sent is gone.

    Raises:
        Refused: 404, there is no such webhook; 422, the body is wrong.
    """
    organization, row = _hook(call)
    config = _overwritten(row, hook_settings.configuration(call.json_object(), prefix=""))
    _, what = _update(call, row, config, None, None)
    return Answer(body=hook_settings.shown(config), effect=_effect(organization, row, what))


async def list_deliveries(call: Call) -> Answer:
    """GET /orgs/{org}/hooks/{hook_id}/deliveries: newest first; `Link` leads on by `cursor`. `status` keeps one kind.

    Raises:
        Refused: 404, there is no such webhook; 422, cursor or status can't be understood.
    """
    _, row = _hook(call)
    status, cursor = call.query.get("status"), call.query.get("cursor")
    if status and status not in OUTCOMES:
        raise invalid(problem("HookDelivery", "status", "invalid", "status must be success or failure"))
    if cursor and not (cursor.startswith("v1_") and NUMBER.fullmatch(cursor[3:])):
        raise invalid(problem("HookDelivery", "cursor", "invalid", "cursor must come from a Link header"))
    per_page = paging.entries_on_page(call)
    rows = call.context.state.db.execute(
        f"SELECT * FROM deliveries WHERE hook_id = ? AND id <= ? AND {OUTCOMES[status] if status else '1'} "
        "ORDER BY id DESC LIMIT ?",
        (row["id"], int(cursor[3:]) if cursor else 2**62, per_page + 1),
    ).fetchall()
    headers = {}
    if len(rows) > per_page:
        pairs = [*call.query.without("cursor"), ("cursor", f"v1_{rows[per_page]['id']}")]
        headers["Link"] = f'<{call.base_url}{call.path}?{urlencode(pairs)}>; rel="next"'
    return Answer(body=[_delivery(each) for each in rows[:per_page]], headers=headers)


async def begin_deliveries(context: Context) -> None:
    """Make the queues of events."""
    context.put(Deliveries(context))


def _kind(call: Call) -> str:
    """Return the kind of webhooks that the caller makes and sees."""
    return "oauth" if call.token is not None and call.token.kind is TokenKind.OAUTH else "user"


def _hook(call: Call) -> tuple[Organization, sqlite3.Row]:
    organization = rights.owned_organization(call)
    number = call.params["hook_id"]
    row = None
    if NUMBER.fullmatch(number):
        row = call.context.state.db.execute(
            "SELECT * FROM hooks WHERE id = ? AND organization_id = ? AND creator_kind = ?",
            (int(number), organization.id, _kind(call)),
        ).fetchone()
    if row is None:
        raise not_found()
    return organization, row


def _refuse_double(call: Call, organization: Organization, config: dict[str, str]) -> None:
    if call.context.vendor.name != "github":
        return
    rows = call.context.state.db.execute("SELECT config_json FROM hooks WHERE organization_id = ?", (organization.id,))
    wanted = hook_settings.shown(config)
    if any(hook_settings.shown(json.loads(row["config_json"])) == wanted for row in rows):
        raise invalid({"resource": "Hook", "code": "custom", "message": "Hook already exists on this organization"})


def _overwritten(row: sqlite3.Row, given: dict[str, str]) -> dict[str, str]:
    """Return the configuration after an update: settings that were not given stay, except the secret."""
    kept = {name: value for name, value in json.loads(row["config_json"]).items() if name != "secret"}
    return {**kept, **given}


def _update(
    call: Call, row: sqlite3.Row, config: dict[str, str], events: list[str] | None, active: bool | None
) -> tuple[sqlite3.Row, list[str]]:
    """Update a webhook; return the webhook after that, and the names of the settings that have changed."""
    before = json.loads(row["config_json"])
    what = [f"config.{name}" for name in sorted({*before, *config}) if before.get(name) != config.get(name)]
    if events is not None and events != json.loads(row["events_json"]):
        what.append("events")
    if active is not None and active != bool(row["active"]):
        what.append("active")
    if not what:
        return row, what
    with call.context.state.transaction() as db:
        changed = db.execute(
            "UPDATE hooks SET config_json = ?, events_json = ?, active = ?, updated_at = ? WHERE id = ? RETURNING *",
            (
                json.dumps(config),
                row["events_json"] if events is None else json.dumps(events),
                row["active"] if active is None else active,
                call.now,
                row["id"],
            ),
        ).fetchone()
    return changed, what


def _effect(organization: Organization, row: sqlite3.Row, what: list[str]) -> str | None:
    return f"webhook {row['id']} of {organization.login} updated: {', '.join(what)}" if what else None


def _shown(call: Call, organization: Organization, row: sqlite3.Row) -> dict[str, object]:
    url = f"{call.base_url}/orgs/{organization.login}/hooks/{row['id']}"
    return {
        "id": row["id"],
        "url": url,
        "ping_url": f"{url}/pings",
        "deliveries_url": f"{url}/deliveries",
        "name": "web",
        "events": json.loads(row["events_json"]),
        "active": bool(row["active"]),
        "config": hook_settings.shown(json.loads(row["config_json"])),
        "updated_at": iso(row["updated_at"]),
        "created_at": iso(row["created_at"]),
        "type": "Organization",
    }


def _delivery(row: sqlite3.Row) -> dict[str, object]:
    return {
        "id": row["id"],
        "guid": row["guid"],
        "delivered_at": iso(row["delivered_at"]),
        "redelivery": bool(row["redelivery"]),
        "duration": row["duration"],
        "status": row["status"],
        "status_code": row["status_code"],
        "event": row["event"],
        "action": row["action"],
        "installation_id": None,
        "repository_id": row["repository_id"],
        "throttled_at": None,
    }


READ = Access(scopes=("admin:org_hook",), permission=("organization_hooks", "read"), hidden=True)
WRITE = Access(scopes=("admin:org_hook",), permission=("organization_hooks", "write"), hidden=True)
HOOKS = "/orgs/{org}/hooks"
HOOK = f"{HOOKS}/{{hook_id}}"
AREA = Area(
    "Organization webhooks",
    (
        Route("GET", HOOKS, list_hooks, access=READ),
        Route("POST", HOOKS, create_hook, access=WRITE),
        Route("GET", HOOK, get_hook, access=READ),
        Route("PATCH", HOOK, update_hook, access=WRITE),
        Route("DELETE", HOOK, delete_hook, access=WRITE),
        Route("GET", f"{HOOK}/config", get_hook_config, access=READ),
        Route("PATCH", f"{HOOK}/config", update_hook_config, access=WRITE),
        Route("GET", f"{HOOK}/deliveries", list_deliveries, access=READ),
    ),
    start=begin_deliveries,
)
