"""Rulesets. Keys: ("ruleset", organization id, id) -> ruleset; ("history", enterprise, id) -> its versions.

That two rulesets of an organization can't have one name is nowhere said, so here they can.
"""

from typing import Any

from tests.hostile.areas.organizations import organization_id
from tests.hostile.http.messages import Answer, refused, shown
from tests.hostile.http.turn import BASE_URL, Turn, paged

SUMMARY = ("id", "name", "source_type", "source", "enforcement", "node_id", "_links", "created_at", "updated_at")


def history(turn: Turn) -> Answer:
    """The versions of a ruleset of an enterprise, without their state."""
    found = turn.get("history", turn.names["enterprise"], int(turn.names["ruleset_id"]))
    if found is None:
        return refused(404, "no such ruleset")
    return paged(turn, [{name: each[name] for name in ("version_id", "actor", "updated_at")} for each in found])


def version(turn: Turn) -> Answer:
    """One version, with its state."""
    found = turn.get("history", turn.names["enterprise"], int(turn.names["ruleset_id"])) or ()
    for each in found:
        if each["version_id"] == int(turn.names["version_id"]):
            return shown(200, each)
    return refused(404, "no such version")


def listed(turn: Turn) -> Answer:
    """Summaries of an organization's rulesets."""
    org = organization_id(turn, turn.names["org"])
    if org is None:
        return refused(404, "no such organization")
    wanted = [target for targets in turn.ask.query.get("targets", ()) for target in targets.split(",")]
    found = [each for _, each in turn.all("ruleset", org) if not wanted or each["target"] in wanted]
    login = turn.get("organization", org)["login"]
    shown = [{**{name: each[name] for name in SUMMARY}, "source": login} for each in found]
    return paged(turn, turn.normal.listed(shown))


def create(turn: Turn) -> Answer:
    """Create a ruleset."""
    org, body = organization_id(turn, turn.names["org"]), turn.ask.json()
    if org is None:
        return refused(404, "no such organization")
    if not body.get("name") or body.get("enforcement") not in ("disabled", "active", "evaluate"):
        return refused(422, "name and enforcement are needed")
    number, login = turn.state.new_id(), turn.get("organization", org)["login"]
    url = f"{BASE_URL}/orgs/{login}/rulesets/{number}"
    made = {
        "target": "branch",
        **body,
        "name": turn.normal.text(body["name"]),
        "rules": [_rule(turn, rule) for rule in turn.normal.listed(body.get("rules", []))],
        "id": number,
        "node_id": f"RRS_{number}",
        "source_type": "Organization",
        "source": login,
        "_links": {"self": {"href": url}, "html": {"href": url.replace("/api/v3", "")}},
        "created_at": turn.stamp(),
        "updated_at": turn.stamp(),
    }
    turn.change("ruleset created", ("ruleset", org, number), made)
    return shown(201, turn.normal.options(made))


def _rule(turn: Turn, rule: dict[str, Any]) -> dict[str, Any]:
    if "added defaults" in turn.normal:
        return {**rule, "parameters": {"negate": False, **(rule.get("parameters") or {})}}
    return rule
