"""Code security configurations in an organization: get, update, delete, defaults, and who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bulk.sandbox.areas.configurations import enterprise_configurations, organization_configurations
from bulk.sandbox.areas.rulesets import rulesets

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start

TEST_AREAS = (enterprise_configurations.AREA, organization_configurations.AREA)
ALL = "/orgs/acme-eng/code-security/configurations"


async def change(platform: Platform, number: int, **body: object) -> Any:
    """Ask for a change of a configuration."""
    return await platform.ask("PATCH", f"{ALL}/{number}", body=body)


async def make_default(platform: Platform, number: int, kind: object) -> Any:
    """Make a configuration a default."""
    return await platform.ask("PUT", f"{ALL}/{number}/defaults", body={"default_for_new_repos": kind})


def effects(platform: Platform) -> list[str]:
    """What the journal says was changed."""
    return [line["effect"] for line in platform.journal() if line["effect"]]


async def test_get(shared: Platform) -> None:
    """The organization's own and the enterprise's configurations are there, under any case of the organization."""
    own = (await shared.ask("GET", "/orgs/ACME-eng/code-security/configurations/2002")).json()
    assert (own["id"], own["target_type"], own["name"]) == (2002, "organization", "Eng strict")
    assert (own["advanced_security"], own["secret_scanning_push_protection"]) == ("enabled", "enabled")
    assert own["url"] == f"{shared.url}{ALL}/2002"
    assert "/organizations/acme-eng/" in own["html_url"]
    above = (await shared.ask("GET", f"{ALL}/1001")).json()
    assert (above["id"], above["target_type"]) == (1001, "enterprise")
    assert "/enterprises/acme/" in above["url"]


@pytest.mark.parametrize(
    "path", ["acme-ops/code-security/configurations/2001", "nobody/code-security/configurations/1001"]
)
async def test_not_of_others(shared: Platform, path: str) -> None:
    """Another organization's configuration is not there."""
    assert (await shared.ask("GET", f"/orgs/{path}")).status == 404


async def test_updated(start: Start, clock: HandClock) -> None:
    """200 with the whole configuration: what was given is changed, the rest as before, and the time of it."""
    platform = await start(clock=clock)
    before = (await platform.ask("GET", f"{ALL}/2003")).json()
    given = {
        "name": "Eng lab",
        "secret_scanning": "enabled",
        "code_scanning_options": {"allow_advanced": None},
        "secret_scanning_delegated_bypass": "enabled",
        "secret_scanning_delegated_bypass_options": {"reviewers": [{"reviewer_id": 501, "reviewer_type": "TEAM"}]},
        "no_such_field": "is passed over",
    }
    reply = await change(platform, 2003, **given)
    shown = {
        "secret_scanning_delegated_bypass_options": {
            "reviewers": [
                {"security_configuration_id": 2003, "reviewer_id": 501, "reviewer_type": "TEAM", "mode": "ALWAYS"}
            ]
        },
        "updated_at": "2027-01-15T08:00:00Z",
    }
    del given["no_such_field"]
    assert (reply.status, reply.json()) == (200, {**before, **given, **shown})
    assert (await platform.ask("GET", f"{ALL}/2003")).json() == reply.json()
    fields = "name, code_scanning_options, secret_scanning, secret_scanning_delegated_bypass, "
    fields += "secret_scanning_delegated_bypass_options"
    assert effects(platform) == [f"configuration 2003 of acme-eng changed: {fields}"]


async def test_nothing_changes(start: Start, clock: HandClock) -> None:
    """204 without a body, a change or an effect, where the configuration is as the body asks."""
    platform = await start(clock=clock)
    before = (await platform.ask("GET", f"{ALL}/2003")).json()
    same: list[dict[str, object]] = [
        {},
        {"enforcement": "unenforced"},
        {"name": "Eng scratch", "dependency_graph": "enabled"},
    ]
    for body in same:
        reply = await change(platform, 2003, **body)
        assert (reply.status, reply.content) == (204, b"")
    assert (await platform.ask("GET", f"{ALL}/2003")).json() == before
    assert effects(platform) == []


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"name": "Eng strict"}, "name", "already_exists"),
        ({"name": None}, "name", "invalid"),
        ({"description": 5}, "description", "invalid"),
        ({"dependency_graph": "yes"}, "dependency_graph", "invalid"),
        ({"dependabot_delegated_alert_dismissal": "enabled"}, "dependabot_delegated_alert_dismissal", "invalid"),
        ({"secret_scanning_delegated_bypass_options": None}, "secret_scanning_delegated_bypass_options", "invalid"),
        (
            {"secret_scanning_delegated_bypass_options": {"reviewers": {}}},
            "secret_scanning_delegated_bypass_options.reviewers",
            "invalid",
        ),
        (
            {"secret_scanning_delegated_bypass_options": {"reviewers": [5]}},
            "secret_scanning_delegated_bypass_options.reviewers[0]",
            "invalid",
        ),
        (
            {"secret_scanning_delegated_bypass_options": {"reviewers": [{"reviewer_type": "TEAM"}]}},
            "secret_scanning_delegated_bypass_options.reviewers[0].reviewer_id",
            "missing_field",
        ),
        (
            {"secret_scanning_delegated_bypass_options": {"reviewers": [{"reviewer_id": 1, "reviewer_type": "USER"}]}},
            "secret_scanning_delegated_bypass_options.reviewers[0].reviewer_type",
            "invalid",
        ),
        (
            {
                "secret_scanning_delegated_bypass_options": {
                    "reviewers": [{"reviewer_id": 1, "reviewer_type": "TEAM", "mode": "NEVER"}]
                }
            },
            "secret_scanning_delegated_bypass_options.reviewers[0].mode",
            "invalid",
        ),
    ],
)
async def test_update_refused(shared: Platform, body: dict[str, object], field: str, code: str) -> None:
    """A change that can't be made is 422 and names the field."""
    before = (await shared.ask("GET", f"{ALL}/2003")).json()
    reply = await change(shared, 2003, **body)
    assert reply.status == 422
    (error,) = reply.json()["errors"]
    assert (error["field"], error["code"]) == (field, code)
    assert (await shared.ask("GET", f"{ALL}/2003")).json() == before


async def test_dismissal_needs_alerts(start: Start) -> None:
    """Delegated dismissal goes with dependency alerts: with them it is taken, and they can't be switched off alone."""
    platform = await start()
    field = "dependabot_delegated_alert_dismissal"
    assert (await change(platform, 2001, **{field: "enabled"})).status == 200
    assert (await change(platform, 2001, dependabot_alerts="disabled")).status == 422
    assert (await change(platform, 2001, **{field: "disabled", "dependabot_alerts": "disabled"})).status == 200


async def test_deleted(start: Start) -> None:
    """204: it is gone for good; its repository is free of it, and nothing else is touched."""
    platform = await start()
    assert (await platform.ask("DELETE", f"{ALL}/2003")).status == 204
    assert (await platform.ask("GET", f"{ALL}/2003")).status == 404
    assert (await platform.ask("DELETE", f"{ALL}/2003")).status == 404
    db = platform.sandbox.context.state.db
    held = [tuple(row) for row in db.execute("SELECT repository_id, configuration_id FROM configuration_repositories")]
    assert held == [(1001, 2001)]
    assert effects(platform) == ["configuration 2003 of acme-eng deleted"]


async def test_a_default_is_not_deleted(start: Start) -> None:
    """400 while it is a default for new repositories; once it is none, it can be deleted."""
    platform = await start()
    await make_default(platform, 2002, "public")
    reply = await platform.ask("DELETE", f"{ALL}/2002")
    assert (reply.status, "default" in reply.json()["message"]) == (400, True)
    await make_default(platform, 2002, "none")
    assert (await platform.ask("DELETE", f"{ALL}/2002")).status == 204


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_the_enterprise_s_are_not_changed_here(shared: Platform, method: str) -> None:
    """A configuration of the enterprise is 403 for a change or a deletion in an organization."""
    assert (await shared.ask(method, f"{ALL}/1001", body={"name": "Mine"})).status == 403


async def test_default(start: Start) -> None:
    """200 repeats what was asked, with the configuration; the second time nothing changes."""
    platform = await start()
    reply = await make_default(platform, 1001, "all")
    assert (reply.status, list(reply.json())) == (200, ["default_for_new_repos", "configuration"])
    assert (reply.json()["default_for_new_repos"], reply.json()["configuration"]["id"]) == ("all", 1001)
    assert (await make_default(platform, 1001, "all")).status == 200
    assert effects(platform) == ["configuration 1001 made default of acme-eng for all new repositories"]


async def test_each_kind_has_one_default(start: Start) -> None:
    """A configuration takes a kind of repository from another, which keeps what is left; none gives it up."""
    platform = await start()

    def defaults() -> dict[int, str]:
        db = platform.sandbox.context.state.db
        rows = db.execute("SELECT * FROM configuration_defaults WHERE target_type = 'organization' ORDER BY 4")
        return {row["configuration_id"]: row["default_for_new_repos"] for row in rows}

    steps: list[tuple[int, str, dict[int, str]]] = [
        (2001, "all", {2001: "all"}),
        (2002, "public", {2001: "private_and_internal", 2002: "public"}),
        (2003, "private_and_internal", {2002: "public", 2003: "private_and_internal"}),
        (2003, "public", {2003: "public"}),
        (2003, "none", {}),
    ]
    for number, kind, after in steps:
        assert (await make_default(platform, number, kind)).status == 200
        assert defaults() == after
    kept = (await platform.ask("GET", "/enterprises/acme/code-security/configurations/defaults")).json()
    assert [entry["configuration"]["id"] for entry in kept] == [1001]


@pytest.mark.parametrize(("kind", "code"), [(None, "missing_field"), ("private", "invalid"), (["all"], "invalid")])
async def test_default_refused(shared: Platform, kind: object, code: str) -> None:
    """A value that is not one of the known ones is refused with 422."""
    reply = await make_default(shared, 2001, kind)
    assert (reply.status, reply.json()["errors"][0]["code"]) == (422, code)


WRITES = [("PATCH", ""), ("DELETE", ""), ("POST", "/attach"), ("PUT", "/defaults")]


@pytest.mark.parametrize("path", ["", "/repositories"])
@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("sbx-site-admin", 200),
        ("sbx-org-owner", 200),
        ("sbx-read-only", 200),
        ("sbx-fine-grained", 200),
        ("sbx-installation", 200),
        ("sbx-member", 404),
        (None, 401),
    ],
)
async def test_who_reads(shared: Platform, path: str, token: str | None, status: int) -> None:
    """Owners of the organization and its installation read; for members there is nothing to see."""
    assert (await shared.ask("GET", f"{ALL}/2001{path}", token=token)).status == status


@pytest.mark.parametrize(("method", "path"), WRITES)
@pytest.mark.parametrize(("token", "status"), [("sbx-read-only", 403), ("sbx-member", 404), (None, 401)])
async def test_who_writes(shared: Platform, method: str, path: str, token: str | None, status: int) -> None:
    """A token that only reads gets 403, a member 404; nothing is changed."""
    body = {"name": "Mine", "scope": "all", "default_for_new_repos": "all"}
    assert (await shared.ask(method, f"{ALL}/2001{path}", token=token, body=body)).status == status
    assert not any(line["effect"] for line in shared.journal())


@pytest.mark.parametrize("token", ["sbx-org-owner", "sbx-fine-grained", "sbx-installation"])
async def test_tokens_that_write(start: Start, token: str) -> None:
    """An owner's token, a fine-grained one and an installation's, with the permission to write, may change things."""
    platform = await start()
    reply = await platform.ask("PATCH", f"{ALL}/2001", token=token, body={"description": "Changed."})
    assert reply.status == 200


async def test_an_installation_elsewhere(shared: Platform) -> None:
    """An installation of one organization sees nothing of another."""
    path = "/orgs/acme-ops/code-security/configurations/1001"
    assert (await shared.ask("GET", path, token="sbx-installation")).status == 404
    assert (await shared.ask("GET", path)).status == 200


async def test_security_managers(start: Start, tmp_path: Path) -> None:
    """A security manager of the organization reads and changes its configurations, and is not an owner otherwise."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(
        "users: [{login: erin}]\ntokens: [{token: erin, user: erin}]\n"
        "organizations: [{login: acme-web, owners: [alice], security_managers: [erin]}]\n"
    )
    platform = await start(seed_data=seed, areas=(*TEST_AREAS, rulesets.AREA))
    one = "/orgs/acme-web/code-security/configurations/1001"
    assert (await platform.ask("GET", one, token="erin")).status == 200
    body = {"default_for_new_repos": "all"}
    assert (await platform.ask("PUT", f"{one}/defaults", token="erin", body=body)).status == 200
    assert (await platform.ask("GET", "/orgs/acme-web/rulesets", token="erin")).status == 404
    assert (await platform.ask("GET", f"{ALL}/2001", token="erin")).status == 404
