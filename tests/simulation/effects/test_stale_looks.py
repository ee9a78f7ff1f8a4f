"""Copies of the platform that lag: two items of a run change one thing that the platform compares with nothing.

The second one looks at it as it was before the first, which may seem to be what it wants, or somebody else's change.
"""

from pathlib import Path

import pytest

from tests.simulation.effects.in_turn import Job, ended_in_turn, stale_reads
from tests.simulation.writes import HOOK

_DROPS = {**HOOK, "drop_secret": True}
_TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform"}
_PLAIN = {"org": "acme-eng", "configuration_id": 2003}
_ALERTS = "dependabot_alerts_enabled_for_new_repositories"
_LISTED = {"url": "http://127.0.0.1:9/hook", "content_type": "json"}
_EVENTS = ["push"]

TO_AND_FRO: dict[str, tuple[Job, ...]] = {
    "webhook": (
        ("webhook.update", {**_DROPS, "active": False}),
        ("webhook.update", {**_DROPS, "active": True, "expect": {"active": False}}),
    ),
    "webhook's configuration": (
        ("webhook.update-config", {**_DROPS, "content_type": "form"}),
        ("webhook.update-config", {**_DROPS, "content_type": "json"}),
    ),
    "configuration": (
        ("organization-configuration.update", {**_PLAIN, "description": "One"}),
        ("organization-configuration.update", {**_PLAIN, "description": "Two", "expect": {"description": "One"}}),
    ),
    "enterprise's settings": (
        ("enterprise-security.update", {"enterprise": "acme", _ALERTS: True}),
        ("enterprise-security.update", {"enterprise": "acme", _ALERTS: False, "wait": True}),
    ),
    "assignment": (
        ("team-organization.assign", {**_TEAM, "org": "acme-ops"}),
        ("team-organization.unassign", {**_TEAM, "org": "acme-ops"}),
        ("team-organization.assign", {**_TEAM, "org": "acme-ops"}),
    ),
    "assignments": (
        ("team-organization.add", {**_TEAM, "organization_slugs": ["acme-ops", "acme-labs"]}),
        ("team-organization.remove", {**_TEAM, "organization_slugs": ["acme-labs"]}),
        ("team-organization.add", {**_TEAM, "organization_slugs": ["acme-labs"]}),
    ),
    "name that is free again": (
        ("organization.rename", {"org": "acme-labs", "login": "acme-research"}),
        ("organization.create", {"login": "acme-labs", "admin": "octoadmin", "if_exists": "unchanged"}),
    ),
    "webhook that makes room": (
        ("webhook.list", {"org": HOOK["org"]}),
        ("webhook.delete", HOOK),
        ("webhook.create", {"org": HOOK["org"], "config": _LISTED, "events": _EVENTS, "if_exists": "unchanged"}),
    ),
    "webhook that is moved away": (
        ("webhook.list", {"org": HOOK["org"]}),
        ("webhook.update", {**_DROPS, "config": {"url": "http://127.0.0.1:9/elsewhere"}}),
        ("webhook.create", {"org": HOOK["org"], "config": _LISTED, "events": _EVENTS}),
    ),
}


@pytest.mark.parametrize("thing", TO_AND_FRO)
def test_what_this_run_has_just_changed_is_looked_at_when_it_shows(folder: Path, thing: str) -> None:
    """failures.md row 21: each item has its one effect, in order; none is unchanged or refused by what is over."""
    jobs = TO_AND_FRO[thing]
    assert ended_in_turn(folder, jobs, stale_reads) == ["succeeded"] * len(jobs)


LIKE: dict[str, tuple[Job, ...]] = {
    "webhook": (
        ("webhook.list", {"org": "acme-eng"}),
        ("webhook.create", {"org": "acme-eng", "config": {"url": "http://127.0.0.1:9/%7Enew"}}),
        ("webhook.create", {"org": "acme-eng", "config": {"url": "http://127.0.0.1:9/~new"}}),
    ),
    "ruleset": (
        ("organization-ruleset.list", {"org": "acme-eng"}),
        (
            "organization-ruleset.create",
            {"org": "acme-eng", "name": "Pushes", "target": "push", "enforcement": "active"},
        ),
        (
            "organization-ruleset.create",
            {"org": "acme-eng", "name": "pushes", "target": "push", "enforcement": "active"},
        ),
    ),
    "configuration": (
        ("enterprise-configuration.list", {"enterprise": "acme"}),
        ("enterprise-configuration.create", {"enterprise": "acme", "name": "Pushes"}),
        ("enterprise-configuration.create", {"enterprise": "acme", "name": " pushes"}),
    ),
}


@pytest.mark.parametrize("thing", LIKE)
def test_what_this_run_has_just_created_is_not_created_again_in_another_spelling(folder: Path, thing: str) -> None:
    """failures.md row 21: the second creation waits until the list shows what the first has made, and sees its like."""
    listed, first, (name, item) = LIKE[thing]
    jobs = (listed, first, (name, {**item, "if_exists": "unchanged"}))
    assert ended_in_turn(folder, jobs, stale_reads) == ["succeeded", "succeeded", "unchanged"]
