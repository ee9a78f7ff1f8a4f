"""Code security configurations of an enterprise, and what a configuration is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from bulk.sandbox.areas.configurations import enterprise_configurations, organization_configurations
from bulk.sandbox.areas.configurations.configuration_settings import DEFAULTS, UPDATE_ONLY, VALUES

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start

TEST_AREAS = (enterprise_configurations.AREA, organization_configurations.AREA)
ALL = "/enterprises/acme/code-security/configurations"
CREATE_DEFAULTS = {
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
"""The table of the specification."""


async def create(platform: Platform, **body: object) -> Any:
    """Ask for a new configuration."""
    return await platform.ask("POST", ALL, body=body)


async def test_list(shared: Platform) -> None:
    """The standard enterprise has one configuration, shown with every field of the specification."""
    (found,) = (await shared.ask("GET", ALL)).json()[:1]
    assert list(found) == (
        ["id", "target_type", "name", "description", *DEFAULTS, "url", "html_url", "created_at", "updated_at"]
    )
    assert (found["id"], found["target_type"], found["name"]) == (1001, "enterprise", "Acme baseline")
    assert (found["dependabot_alerts"], found["secret_scanning"]) == ("enabled", "enabled")
    assert found["url"] == f"{shared.url}{ALL}/1001"
    assert found["created_at"] == "2025-01-01T00:00:00Z"


async def test_created_with_defaults(start: Start, clock: HandClock) -> None:
    """201: what is not given has the default of the specification; it can be read back at once."""
    platform = await start(clock=clock)
    reply = await create(platform, name="Plain")
    made = reply.json()
    assert (reply.status, made["name"], made["description"], made["target_type"]) == (201, "Plain", "", "enterprise")
    assert {field: made[field] for field in CREATE_DEFAULTS} == CREATE_DEFAULTS
    assert made["created_at"] == made["updated_at"] == "2027-01-15T08:00:00Z"
    assert (await platform.ask("GET", f"{ALL}/{made['id']}")).json() == made
    assert [each["id"] for each in (await platform.ask("GET", ALL)).json()] == [1001, made["id"]]
    (effect,) = [line["effect"] for line in platform.journal() if line["effect"]]
    assert effect == "configuration Plain created in enterprise acme"


async def test_created_as_asked(shared: Platform) -> None:
    """Every field that a creation takes is kept, options with their attributes completed."""
    given: dict[str, object] = {
        field: values[0 if field != "enforcement" else 1]
        for field, values in VALUES.items()
        if field not in UPDATE_ONLY
    }
    options = {
        "dependency_graph_autosubmit_action_options": {"labeled_runners": True},
        "code_scanning_options": {"allow_advanced": True},
        "code_scanning_default_setup_options": {"runner_type": "labeled", "runner_label": "big"},
    }
    made = (await create(shared, name="Full", description="All of it", **given, **options)).json()
    assert {field: made[field] for field in given} == given
    assert {field: made[field] for field in options} == options
    assert made["description"] == "All of it"
    sparse: dict[str, object] = {
        "code_scanning_options": None,
        "code_scanning_default_setup_options": {},
        "dependency_graph_autosubmit_action_options": {},
    }
    made = (await create(shared, name="Sparse", **sparse)).json()
    assert {field: made[field] for field in sparse} == {
        "code_scanning_options": None,
        "code_scanning_default_setup_options": {"runner_type": "not_set", "runner_label": None},
        "dependency_graph_autosubmit_action_options": {"labeled_runners": False},
    }


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "name", "missing_field"),
        ({"name": None}, "name", "missing_field"),
        ({"name": 5}, "name", "invalid"),
        ({"name": " "}, "name", "invalid"),
        ({"name": "a" * 256}, "name", "invalid"),
        ({"name": "Acme baseline"}, "name", "already_exists"),
        ({"name": "x", "description": None}, "description", "invalid"),
        ({"name": "x", "advanced_security": "not_set"}, "advanced_security", "invalid"),
        ({"name": "x", "secret_scanning": "on"}, "secret_scanning", "invalid"),
        ({"name": "x", "secret_scanning": ["enabled"]}, "secret_scanning", "invalid"),
        ({"name": "x", "enforcement": "enabled"}, "enforcement", "invalid"),
        ({"name": "x", "code_scanning_options": []}, "code_scanning_options", "invalid"),
        (
            {"name": "x", "code_scanning_options": {"allow_advanced": 1}},
            "code_scanning_options.allow_advanced",
            "invalid",
        ),
        (
            {"name": "x", "code_scanning_default_setup_options": {"runner_type": "fast"}},
            "code_scanning_default_setup_options.runner_type",
            "invalid",
        ),
        (
            {"name": "x", "code_scanning_default_setup_options": {"runner_label": 5}},
            "code_scanning_default_setup_options.runner_label",
            "invalid",
        ),
        (
            {"name": "x", "dependency_graph_autosubmit_action_options": None},
            "dependency_graph_autosubmit_action_options",
            "invalid",
        ),
        (
            {"name": "x", "dependency_graph_autosubmit_action_options": {"labeled_runners": "yes"}},
            "dependency_graph_autosubmit_action_options.labeled_runners",
            "invalid",
        ),
        ({"name": "x", "secret_scanning_delegated_bypass": "enabled"}, "secret_scanning_delegated_bypass", "invalid"),
    ],
)
async def test_creation_refused(shared: Platform, body: dict[str, object], field: str, code: str) -> None:
    """A body that can't be used is 400 and names the field; nothing is made."""
    before = len((await shared.ask("GET", ALL)).json())
    reply = await create(shared, **body)
    assert (reply.status, reply.json()["message"]) == (400, "Validation Failed")
    (error,) = reply.json()["errors"]
    assert (error["field"], error["code"]) == (field, code)
    assert len((await shared.ask("GET", ALL)).json()) == before


async def test_ids_are_never_those_of_organizations(start: Start) -> None:
    """A thousand enterprise configurations later, an id that an organization's configuration has is passed over."""
    platform = await start()
    platform.sandbox.context.state.db.execute(
        "UPDATE sequences SET next = 2001 WHERE name = 'enterprise-configuration'"
    )
    assert (await create(platform, name="Next")).json()["id"] == 2004


async def test_cursors(start: Start) -> None:
    """The list is read by cursors: after leads on, before leads back, and page is none of its parameters."""
    platform = await start()
    ids = [1001] + [(await create(platform, name=f"Number {number}")).json()["id"] for number in range(6)]
    seen, url = [], f"{ALL}?per_page=3"
    while url:
        reply = await platform.ask("GET", url)
        seen.append([each["id"] for each in reply.json()])
        links = {rel: link for link, rel in re.findall(r'<([^>]*)>; rel="(\w+)"', reply.headers.get("Link", ""))}
        assert all("after=" in link or "before=" in link for link in links.values())
        url = links.get("next", "")
    assert seen == [ids[:3], ids[3:6], ids[6:]]
    back = await platform.ask("GET", links["prev"])
    assert [each["id"] for each in back.json()] == ids[3:6]


async def test_defaults(shared: Platform) -> None:
    """The baseline is the default for public repositories; `defaults` is not an id."""
    (entry,) = (await shared.ask("GET", f"{ALL}/defaults")).json()
    assert list(entry) == ["default_for_new_repos", "configuration"]
    assert (entry["default_for_new_repos"], entry["configuration"]["id"]) == ("public", 1001)


async def test_unchanged_is_free(shared: Platform) -> None:
    """A configuration that did not change answers 304 to its validator."""
    etag = (await shared.ask("GET", f"{ALL}/1001")).headers["ETag"]
    assert (await shared.ask("GET", f"{ALL}/1001", headers={"If-None-Match": etag})).status == 304


@pytest.mark.parametrize("number", ["9", "2001", "x", "-1", "9" * 30])
async def test_of_nothing(shared: Platform, number: str) -> None:
    """What is not a configuration of the enterprise is 404, an organization's too."""
    assert (await shared.ask("GET", f"{ALL}/{number}")).status == 404


@pytest.mark.parametrize("path", [ALL, f"{ALL}/defaults", f"{ALL}/1001"])
@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("sbx-site-admin", 200),
        ("sbx-org-owner", 403),
        ("sbx-member", 403),
        ("sbx-read-only", 403),
        ("sbx-fine-grained", 403),
        ("sbx-installation", 403),
        (None, 401),
    ],
)
async def test_who_reads(shared: Platform, path: str, token: str | None, status: int) -> None:
    """Administrators of the enterprise with a classic token read; others and other tokens are refused."""
    assert (await shared.ask("GET", path, token=token)).status == status


@pytest.mark.parametrize("token", ["sbx-org-owner", "sbx-member", "sbx-read-only", "sbx-fine-grained"])
async def test_who_creates(shared: Platform, token: str) -> None:
    """Nobody but an administrator of the enterprise creates a configuration."""
    assert (await shared.ask("POST", ALL, token=token, body={"name": "Mine"})).status == 403
    assert (await shared.ask("POST", ALL.replace("acme", "other"), body={"name": "Mine"})).status == 404
