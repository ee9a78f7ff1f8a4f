"""Webhooks of organizations. Keys: ("hook", organization id, id) -> hook with its secret; ("deliveries", id).

That two hooks of an organization can't be equal is nowhere said, so here they can.
"""

from typing import Any

from tests.hostile.areas.organizations import organization_id
from tests.hostile.http.messages import Answer, nothing, refused, shown
from tests.hostile.http.turn import BASE_URL, Turn, paged
from tests.hostile.store.state import Key

MASK = "(hidden)"


def _config(turn: Turn, sent: dict[str, Any]) -> dict[str, Any]:
    kept = {"content_type": "form", "insecure_ssl": "0", **sent}
    kept["url"] = turn.normal.url(kept["url"])
    if "numbers for strings" in turn.normal:
        kept["insecure_ssl"] = int(kept["insecure_ssl"])
    return kept


def _config_shown(hook: dict[str, Any]) -> dict[str, Any]:
    config = {key: value for key, value in hook["config"].items() if key not in ("secret", "username", "password")}
    return {**config, "secret": MASK} if hook["config"].get("secret") else config


def _shown(turn: Turn, hook: dict[str, Any]) -> dict[str, Any]:
    url = f"{BASE_URL}/orgs/{turn.names['org']}/hooks/{hook['id']}"
    return {
        **hook,
        "config": _config_shown(hook),
        "url": url,
        "ping_url": f"{url}/pings",
        "deliveries_url": f"{url}/deliveries",
        "type": "Organization",
        "last_response": None,
    }


def _hook(turn: Turn) -> tuple[Key, dict[str, Any] | None]:
    org = organization_id(turn, turn.names["org"])
    key = ("hook", org, int(turn.names["hook_id"]))
    return key, None if org is None else turn.get(*key)


def listed(turn: Turn) -> Answer:
    """All hooks of an organization."""
    org = organization_id(turn, turn.names["org"])
    if org is None:
        return refused(404, "no such organization")
    return paged(turn, turn.normal.listed([_shown(turn, hook) for _, hook in turn.all("hook", org)]))


def create(turn: Turn) -> Answer:
    """Create a hook."""
    org, body = organization_id(turn, turn.names["org"]), turn.ask.json()
    if org is None:
        return refused(404, "no such organization")
    if body.get("name") != "web" or not (body.get("config") or {}).get("url"):
        return refused(422, "name and config.url are needed")
    made = {
        "id": turn.state.new_id(),
        "name": "web",
        "active": body.get("active", True),
        "events": turn.normal.events(body.get("events") or ["push"]),
        "config": _config(turn, body["config"]),
        "created_at": turn.stamp(),
        "updated_at": turn.stamp(),
    }
    turn.change("hook created", ("hook", org, made["id"]), made)
    return shown(201, _shown(turn, made))


def get(turn: Turn) -> Answer:
    """One hook."""
    _, hook = _hook(turn)
    return refused(404, "no such hook") if hook is None else shown(200, _shown(turn, hook))


def update(turn: Turn) -> Answer:
    """Change a hook; a secret that is not sent again is removed."""
    key, hook = _hook(turn)
    body = turn.ask.json()
    if hook is None:
        return refused(404, "no such hook")
    changed = {**hook, **{name: body[name] for name in ("active",) if name in body}}
    if "events" in body:
        changed["events"] = turn.normal.events(body["events"])
    if "config" in body and not body["config"].get("url"):
        return refused(422, "config.url is needed")
    changed["config"] = _config_changed(turn, hook, body.get("config") or {})
    _change(turn, key, hook, changed)
    return shown(200, _shown(turn, changed))


def get_config(turn: Turn) -> Answer:
    """Where its events go."""
    _, hook = _hook(turn)
    return refused(404, "no such hook") if hook is None else shown(200, _config_shown(hook))


def update_config(turn: Turn) -> Answer:
    """Change where its events go; a secret that is not sent again is removed."""
    key, hook = _hook(turn)
    if hook is None:
        return refused(404, "no such hook")
    changed = {**hook, "config": _config_changed(turn, hook, turn.ask.json())}
    _change(turn, key, hook, changed)
    return shown(200, _config_shown(changed))


def _config_changed(turn: Turn, hook: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    before = {name: value for name, value in hook["config"].items() if name != "secret"}
    return _config(turn, {**before, **sent})


def _change(turn: Turn, key: Key, before: dict[str, Any], after: dict[str, Any]) -> None:
    """The same again is not an effect."""
    if after != before:
        turn.change("hook updated", key, {**after, "updated_at": turn.stamp()})


def delete(turn: Turn) -> Answer:
    """Remove a hook."""
    key, hook = _hook(turn)
    if hook is None:
        return refused(404, "no such hook")
    turn.change("hook deleted", key, None)
    return nothing(204)


def deliveries(turn: Turn) -> Answer:
    """What it was sent; the specification does not show the fields of a record."""
    _, hook = _hook(turn)
    if hook is None:
        return refused(404, "no such hook")
    return paged(turn, list(turn.get("deliveries", hook["id"]) or ()))
