"""Legacy code security and analysis of an enterprise: settings for new repositories, and enablement everywhere.

Both start an action (204) that is done `ENABLEMENT_S` later; until then the settings are shown as they were, and any
further action is refused as in progress (422). An action that changes nothing is over at once. An action that needs
seats of advanced security is refused where the license has none: our example of a policy that prevents enablement. All
callers but administrators with a classic token get 404. An accepted action survives a restart.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Final
from urllib.parse import urlsplit

from bulk.sandbox.areas.shared import enterprise_rights
from bulk.sandbox.areas.shared.enterprise_rights import Enterprise
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.context import Context
from bulk.sandbox.http.refusals import invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route

ENABLEMENT_S: Final = 0.5
FLAGS: Final = (
    "advanced_security_enabled_for_new_repositories",
    "dependabot_alerts_enabled_for_new_repositories",
    "secret_scanning_enabled_for_new_repositories",
    "secret_scanning_push_protection_enabled_for_new_repositories",
    "secret_scanning_non_provider_patterns_enabled_for_new_repositories",
)
NULLABLE_FLAG: Final = "secret_scanning_non_provider_patterns_enabled_for_new_repositories"
BODY_ONLY_FLAG: Final = "advanced_security_enabled_new_user_namespace_repos"
LINK: Final = "secret_scanning_push_protection_custom_link"
PRODUCTS: Final = (
    "advanced_security",
    "advanced_security_user_namespace",
    "dependabot_alerts",
    "secret_scanning",
    "secret_scanning_push_protection",
    "secret_scanning_non_provider_patterns",
)
ENABLEMENTS: Final = ("enable_all", "disable_all")
FREE: Final = "dependabot_alerts"


async def get_enterprise_security(call: Call) -> Answer:
    """GET …/code_security_and_analysis: the settings, without the one that only a body has."""
    settings = _settings(call, enterprise_rights.administered(call, hidden=True))
    return Answer(body={name: value for name, value in settings.items() if name != BODY_ONLY_FLAG})


async def update_enterprise_security(call: Call) -> Answer:
    """PATCH …/code_security_and_analysis: 204, the given settings are on their way.

    Raises:
        Refused: 422, a value is of a wrong type, an action is in progress, or a policy prevents this one.
    """
    enterprise = enterprise_rights.administered(call, hidden=True)
    given = _given(call.json_object())
    _refuse_in_progress(call, enterprise)
    present = _settings(call, enterprise)
    changed = {name: value for name, value in given.items() if value != present[name]}
    _refuse_unlicensed(call, enterprise, [name for name, value in changed.items() if value is True])
    if not changed:
        return Answer(204)
    _begin(call, enterprise, {"settings": changed})
    shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(changed.items()))
    return Answer(204, effect=f"enterprise {enterprise.slug} security: {shown}")


async def enable_product(call: Call) -> Answer:
    """POST …/{security_product}/{enablement}: 204, all repositories are on their way.

    Raises:
        Refused: 404, there is no such product or enablement; 422, an action is in progress, or a policy prevents it.
    """
    product, enablement = call.params["security_product"], call.params["enablement"]
    if product not in PRODUCTS or enablement not in ENABLEMENTS:
        raise not_found()
    enterprise = enterprise_rights.administered(call, hidden=True)
    _refuse_in_progress(call, enterprise)
    _refuse_unlicensed(call, enterprise, [product] if enablement == "enable_all" else [])
    row = call.context.state.db.execute(
        "SELECT enablement FROM enterprise_products WHERE enterprise_id = ? AND product = ?", (enterprise.id, product)
    ).fetchone()
    if row is not None and row["enablement"] == enablement:
        return Answer(204)
    _begin(call, enterprise, {"product": product, "enablement": enablement})
    return Answer(204, effect=f"enterprise {enterprise.slug} security: {product} {enablement}")


async def take_up_enablements(context: Context) -> None:
    """Go on with actions that were accepted before a restart."""
    for row in context.state.db.execute("SELECT enterprise_id, due_at FROM enterprise_enablements").fetchall():
        _finish_later(context, row["enterprise_id"], row["due_at"])


def _settings(call: Call, enterprise: Enterprise) -> dict[str, object]:
    stored = _stored(call.context.state.db, enterprise.id)
    return {**dict.fromkeys(FLAGS, False), LINK: None, BODY_ONLY_FLAG: False, **stored}


def _stored(db: sqlite3.Connection, enterprise_id: int) -> dict[str, object]:
    """Return the settings that differ from the defaults."""
    row = db.execute(
        "SELECT settings_json FROM enterprise_security WHERE enterprise_id = ?", (enterprise_id,)
    ).fetchone()
    return dict(json.loads(row["settings_json"])) if row else {}


def _given(body: dict[str, object]) -> dict[str, object]:
    """Return the settings of a body; unknown fields are ignored. A null flag is off."""
    given: dict[str, object] = {}
    for name in (*FLAGS, BODY_ONLY_FLAG):
        if name in body:
            value = body[name]
            if not isinstance(value, bool) and not (value is None and name == NULLABLE_FLAG):
                raise invalid(problem("Enterprise", name, "invalid", f"{name} must be true or false"))
            given[name] = bool(value)
    if LINK in body:
        link = body[LINK]
        if link is not None and not _is_url(link):
            raise invalid(problem("Enterprise", LINK, "invalid", f"{LINK} must be a URL or null"))
        given[LINK] = link
    return given


def _is_url(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        url = urlsplit(value)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.hostname)


def _refuse_in_progress(call: Call, enterprise: Enterprise) -> None:
    row = call.context.state.db.execute(
        "SELECT 1 FROM enterprise_enablements WHERE enterprise_id = ?", (enterprise.id,)
    ).fetchone()
    if row is not None:
        raise invalid("Another enablement is already in progress for this enterprise")


def _refuse_unlicensed(call: Call, enterprise: Enterprise, enabled: list[str]) -> None:
    row = call.context.state.db.execute(
        "SELECT advanced_security_seats FROM licenses WHERE enterprise_id = ?", (enterprise.id,)
    ).fetchone()
    refused = [name for name in enabled if not name.startswith(FREE)]
    if refused and row is not None and not row["advanced_security_seats"]:
        raise invalid(f"A policy prevents this: the license has no seats of advanced security for {refused[0]}")


def _begin(call: Call, enterprise: Enterprise, change: dict[str, object]) -> None:
    due_at = call.context.clock.now() + ENABLEMENT_S
    with call.context.state.transaction() as db:
        db.execute("INSERT INTO enterprise_enablements VALUES (?, ?, ?)", (enterprise.id, json.dumps(change), due_at))
    _finish_later(call.context, enterprise.id, due_at)


def _finish_later(context: Context, enterprise_id: int, due_at: float) -> None:
    async def finish() -> None:
        await context.clock.sleep(min(max(due_at - context.clock.now(), 0.0), ENABLEMENT_S))
        with context.state.transaction() as db:
            row = db.execute(
                "DELETE FROM enterprise_enablements WHERE enterprise_id = ? RETURNING change_json", (enterprise_id,)
            ).fetchone()
            _apply(db, enterprise_id, json.loads(row["change_json"]))

    context.background.start("enablement of an enterprise", finish)


def _apply(db: sqlite3.Connection, enterprise_id: int, change: dict[str, Any]) -> None:
    if "product" in change:
        row = (enterprise_id, change["product"], change["enablement"])
        db.execute("INSERT OR REPLACE INTO enterprise_products VALUES (?, ?, ?)", row)
        return
    settings = {**_stored(db, enterprise_id), **change["settings"]}
    db.execute("INSERT OR REPLACE INTO enterprise_security VALUES (?, ?)", (enterprise_id, json.dumps(settings)))


READ = Access(scopes=("read:enterprise",), oauth_tokens=False, hidden=True)
WRITE = Access(scopes=("admin:enterprise",), oauth_tokens=False, hidden=True)
SETTINGS = "/enterprises/{enterprise}/code_security_and_analysis"
AREA = Area(
    "Legacy enterprise code security and analysis",
    (
        Route("GET", SETTINGS, get_enterprise_security, access=READ),
        Route("PATCH", SETTINGS, update_enterprise_security, access=WRITE),
        # Any two segments: the router prefers every pattern with a word in it, so this one comes last by itself.
        Route("POST", "/enterprises/{enterprise}/{security_product}/{enablement}", enable_product, access=WRITE),
    ),
    start=take_up_enablements,
)
