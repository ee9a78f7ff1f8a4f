"""Code security configurations of enterprises and organizations, their defaults, and who has them.

Keys: ("configuration", owner, id) where owner is ("enterprise", slug) or ("organization", id); ("default", owner, id);
("attached", organization id, repository id) -> configuration id.
"""

from typing import Any

from tests.hostile.areas.organizations import organization_id
from tests.hostile.http.messages import Answer, nothing, refused, shown
from tests.hostile.http.turn import BASE_URL, Turn, cursor_paged, paged

DEFAULTS: dict[str, Any] = {
    "advanced_security": "disabled",
    "dependency_graph": "enabled",
    "dependency_graph_autosubmit_action": "disabled",
    "dependency_graph_autosubmit_action_options": {"labeled_runners": False},
    "dependabot_alerts": "disabled",
    "dependabot_security_updates": "disabled",
    "code_scanning_default_setup": "disabled",
    "code_scanning_delegated_alert_dismissal": "disabled",
    "secret_scanning": "disabled",
    "secret_scanning_push_protection": "disabled",
    "secret_scanning_validity_checks": "disabled",
    "secret_scanning_non_provider_patterns": "disabled",
    "secret_scanning_generic_secrets": "disabled",
    "secret_scanning_delegated_alert_dismissal": "disabled",
    "secret_scanning_extended_metadata": "disabled",
    "private_vulnerability_reporting": "disabled",
    "enforcement": "enforced",
}
NEW_ONES = ("all", "none", "private_and_internal", "public")
SCOPES = ("all", "all_without_configurations", "public", "private_or_internal", "selected")
ATTACH_S = 1.5
"""How long attaching takes in the background (seconds)."""


def _kept(turn: Turn, body: dict[str, Any]) -> dict[str, Any]:
    kept = {**body}
    for name in ("name", "description"):
        if name in kept:
            kept[name] = turn.normal.text(kept[name])
    options = kept.get("code_scanning_default_setup_options")
    if "added defaults" in turn.normal and options is not None:
        kept["code_scanning_default_setup_options"] = {"runner_type": "not_set", "runner_label": None, **options}
    return kept


def _shown(turn: Turn, configuration: dict[str, Any]) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if "nulls for nothing" in turn.normal:
        more = {"code_scanning_options": None, "code_scanning_default_setup_options": None, "description": None}
    url = f"{BASE_URL}{turn.ask.path.partition('/configurations')[0]}/configurations/{configuration['id']}"
    return {**more, **turn.normal.options(configuration), "url": url, "html_url": url.replace("/api/v3", "")}


def of_enterprise(turn: Turn) -> Answer:
    """All of an enterprise."""
    if turn.get("enterprise", turn.names["enterprise"]) is None:
        return refused(404, "no such enterprise")
    owner = ("enterprise", turn.names["enterprise"])
    found = [_shown(turn, each) for _, each in turn.all("configuration", owner)]
    return cursor_paged(turn, turn.normal.listed(found))


def create(turn: Turn) -> Answer:
    """Create one; its name is unique within the enterprise."""
    owner, body = ("enterprise", turn.names["enterprise"]), turn.ask.json()
    if turn.get("enterprise", turn.names["enterprise"]) is None:
        return refused(404, "no such enterprise")
    if not body.get("name"):
        return refused(400, "name is needed")
    kept = _kept(turn, body)
    if any(each["name"] == kept["name"] for _, each in turn.all("configuration", owner)):
        return refused(400, f"there is a configuration {kept['name']}")
    made = {
        **DEFAULTS,
        **kept,
        "id": turn.state.new_id(),
        "target_type": "enterprise",
        "created_at": turn.stamp(),
        "updated_at": turn.stamp(),
    }
    turn.change("configuration created", ("configuration", owner, made["id"]), made)
    return shown(201, _shown(turn, made))


def defaults(turn: Turn) -> Answer:
    """What new repositories of an enterprise get."""
    if turn.get("enterprise", turn.names["enterprise"]) is None:
        return refused(404, "no such enterprise")
    owner, found = ("enterprise", turn.names["enterprise"]), []
    for key, value in turn.all("default", owner):
        configuration = _shown(turn, turn.get("configuration", owner, key[2]))
        found.append({"default_for_new_repos": value, "configuration": configuration})
    return shown(200, found)


def _owner(turn: Turn) -> tuple[str, Any]:
    if "enterprise" in turn.names:
        return ("enterprise", turn.names["enterprise"])
    return ("organization", organization_id(turn, turn.names["org"]))


def _configuration(turn: Turn) -> tuple[tuple[str, Any], int, dict[str, Any] | None]:
    owner, number = _owner(turn), int(turn.names["configuration_id"])
    return owner, number, turn.get("configuration", owner, number)


def get(turn: Turn) -> Answer:
    """One configuration."""
    _, _, found = _configuration(turn)
    return refused(404, "no such configuration") if found is None else shown(200, _shown(turn, found))


def update(turn: Turn) -> Answer:
    """Change the fields that are sent; 204 where nothing changes."""
    owner, number, found = _configuration(turn)
    if found is None:
        return refused(404, "no such configuration")
    kept = _kept(turn, turn.ask.json())
    others = [each for key, each in turn.all("configuration", owner) if key[2] != number]
    if any(each["name"] == kept.get("name") for each in others):
        return refused(422, f"there is another configuration {kept['name']}")
    changed = {**found, **kept}
    if changed == found:
        return nothing(204)
    changed["updated_at"] = turn.stamp()
    turn.change("configuration updated", ("configuration", owner, number), changed)
    return shown(200, _shown(turn, changed))


def delete(turn: Turn) -> Answer:
    """Delete one; its repositories keep their settings."""
    owner, number, found = _configuration(turn)
    if found is None:
        return refused(404, "no such configuration")
    turn.change("configuration deleted", ("configuration", owner, number), None)
    for key, attached in turn.all("attached", owner[1]):
        if attached == number:
            turn.state.set(key, None, turn.now)
    return nothing(204)


def attach(turn: Turn) -> Answer:
    """Attach one to repositories, in the background; the specification shows no body."""
    owner, number, found = _configuration(turn)
    body = turn.ask.json()
    if found is None:
        return refused(404, "no such configuration")
    if body.get("scope") not in SCOPES:
        return refused(422, "scope is needed")
    repositories = {repo["id"]: repo for _, repo in turn.all("repository") if repo["organization"] == owner[1]}
    chosen = set(body.get("selected_repository_ids", ())) & set(repositories)
    for number_of_repo, repo in repositories.items():
        has = turn.get("attached", owner[1], number_of_repo)
        is_meant = {
            "all": True,
            "all_without_configurations": has is None,
            "public": not repo["private"],
            "private_or_internal": repo["private"],
            "selected": number_of_repo in chosen,
        }[body["scope"]]
        if is_meant and turn.coming("attached", owner[1], number_of_repo) != number:
            turn.change("attached", ("attached", owner[1], number_of_repo), number, ATTACH_S)
    return nothing(202)


def set_default(turn: Turn) -> Answer:
    """Make one the default for new repositories."""
    owner, number, found = _configuration(turn)
    value = turn.ask.json().get("default_for_new_repos")
    if found is None:
        return refused(404, "no such configuration")
    if value not in NEW_ONES:
        return refused(422, "default_for_new_repos is needed")
    if turn.get("default", owner, number) != value:
        turn.change("default set", ("default", owner, number), value)
    return shown(200, {"default_for_new_repos": value, "configuration": _shown(turn, found)})


def repositories(turn: Turn) -> Answer:
    """The repositories that have one; of the entries the specification shows nothing."""
    owner, number, found = _configuration(turn)
    if found is None:
        return refused(404, "no such configuration")
    ids = {key[2] for key, attached in turn.all("attached", owner[1]) if attached == number}
    listed = [
        {"status": "attached", "repository": {name: repo[name] for name in ("id", "name", "full_name", "private")}}
        for _, repo in turn.all("repository")
        if repo["id"] in ids
    ]
    return paged(turn, turn.normal.listed(listed))
