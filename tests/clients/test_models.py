"""Answers of the other areas fit the models that githubkit has of them, and PyGithub's where it has any."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.clients.conftest import Connect

RULESET: dict[str, Any] = {
    "name": "No new tags",
    "target": "tag",
    "enforcement": "active",
    "conditions": {
        "ref_name": {"include": ["~ALL"], "exclude": []},
        "repository_name": {"include": ["*"], "exclude": []},
    },
    "rules": [
        {"type": "creation"},
        {"type": "commit_message_pattern", "parameters": {"operator": "contains", "pattern": "x"}},
    ],
}
SNAPSHOT: dict[str, Any] = {
    "version": 0,
    "job": {"id": "1", "correlator": "models"},
    "sha": "a" * 40,
    "ref": "refs/heads/main",
    "detector": {"name": "tests", "version": "1", "url": "https://example.com/tests"},
    "scanned": datetime(2026, 1, 1, tzinfo=UTC),
    "manifests": {"a.txt": {"name": "a.txt", "resolved": {"x": {"package_url": "pkg:pypi/x@1"}}}},
}


@pytest.mark.parametrize(
    ("area", "method", "arguments"),
    [
        ("code_security", "async_get_configurations_for_enterprise", ("acme",)),
        ("code_security", "async_get_single_configuration_for_enterprise", ("acme", 1001)),
        ("code_security", "async_get_default_configurations_for_enterprise", ("acme",)),
        ("code_security", "async_get_configuration", ("acme-eng", 2001)),
        ("code_security", "async_get_repositories_for_configuration", ("acme-eng", 2001)),
        ("repos", "async_get_org_rulesets", ("acme-ops",)),
    ],
)
async def test_a_read_fits_the_model(kit: Callable[..., Any], area: str, method: str, arguments: tuple[Any]) -> None:
    """What is read is there, and has every field that githubkit needs, of its type."""
    reply = await getattr(getattr((await kit()).rest, area), method)(*arguments)
    assert reply.status_code == 200
    assert reply.parsed_data


async def test_configurations_fit_the_model(kit: Callable[..., Any]) -> None:
    """githubkit creates, changes, attaches and makes default, and reads every answer."""
    security = (await kit()).rest.code_security
    made = await security.async_create_configuration_for_enterprise("acme", name="Models", description="Of tests")
    assert made.parsed_data.dependency_graph == "enabled"
    changed = await security.async_update_configuration("acme-eng", 2003, description="Changed")
    assert changed.parsed_data.description == "Changed"
    default = await security.async_set_configuration_as_default("acme-eng", 2003, default_for_new_repos="public")
    assert default.parsed_data.default_for_new_repos == "public"
    attached = await security.async_attach_configuration(
        "acme-eng", 2003, scope="selected", selected_repository_ids=[1002]
    )
    assert attached.status_code == 202


async def test_a_new_ruleset_fits_the_model(kit: Callable[..., Any]) -> None:
    """githubkit creates a ruleset and reads its rules and conditions back."""
    made = (await (await kit()).rest.repos.async_create_org_ruleset("acme-labs", **RULESET)).parsed_data
    assert [rule.type for rule in made.rules] == ["creation", "commit_message_pattern"]
    assert made.conditions.ref_name.include == ["~ALL"]


async def test_a_snapshot_fits_the_model(kit: Callable[..., Any]) -> None:
    """githubkit submits a dependency snapshot and reads how it was taken."""
    graph = (await kit()).rest.dependency_graph
    reply = await graph.async_create_repository_snapshot("acme-eng", "hello-world", **SNAPSHOT)
    assert (reply.status_code, reply.parsed_data.result) == (201, "SUCCESS")


def test_pygithub_reads_a_configuration(pygithub: Connect) -> None:
    """PyGithub reads an organization's configuration and the repositories that have it."""
    organization = pygithub().get_organization("acme-eng")
    found = organization.get_code_security_config(2001)
    assert (found.name, found.target_type) == ("Eng default", "organization")
    listed = organization.get_repos_for_code_security_config(2001)
    assert [each.repository.full_name for each in listed] == ["acme-eng/hello-world"]
