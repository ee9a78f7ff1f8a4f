"""Enterprise teams and the organizations that they are assigned to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.configurations import enterprise_security
from bulk.sandbox.areas.organizations import organizations, team_organizations
from bulk.sandbox.store.records import TokenKind

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start

TEST_AREAS = (enterprise_security.AREA, organizations.AREA, rate_limit.AREA, team_organizations.AREA)
ALL = "/enterprises/acme/teams/ent:platform/organizations"
FIELDS = [
    "login",
    "id",
    "node_id",
    "url",
    "repos_url",
    "events_url",
    "hooks_url",
    "issues_url",
    "members_url",
    "public_members_url",
    "avatar_url",
    "description",
]


async def assigned(platform: Platform, url: str = ALL) -> list[str]:
    """The names of the organizations that a team is assigned to."""
    return [each["login"] for each in (await platform.ask("GET", url)).json()]


def effects(platform: Platform) -> list[str]:
    """What was changed, in order."""
    return [line["effect"] for line in platform.journal() if line["effect"]]


async def post(platform: Platform, verb: str, *slugs: str) -> Any:
    """Add or remove several."""
    return await platform.ask("POST", f"{ALL}/{verb}", body={"organization_slugs": list(slugs)})


async def test_list(shared: Platform) -> None:
    """The standard team is assigned to one organization, shown with all its fields."""
    reply = await shared.ask("GET", ALL)
    assert reply.status == 200
    (shown,) = reply.json()
    assert list(shown) == FIELDS
    assert (shown["login"], shown["id"]) == ("acme-eng", 101)
    assert shown["url"] == f"{shared.url}/orgs/acme-eng"
    assert await assigned(shared, "/enterprises/acme/teams/ent:security/organizations") == []


@pytest.mark.parametrize("team", ["ent:platform", "ent%3Aplatform", "ENT:Platform", "501"])
@pytest.mark.parametrize("enterprise", ["acme", "ACME"])
async def test_how_a_team_is_addressed(shared: Platform, enterprise: str, team: str) -> None:
    """By slug, encoded or not and in any case, or by id."""
    assert await assigned(shared, f"/enterprises/{enterprise}/teams/{team}/organizations") == ["acme-eng"]


@pytest.mark.parametrize(
    "url",
    [
        "/enterprises/other/teams/ent:platform/organizations",
        "/enterprises/acme/teams/platform/organizations",
        "/enterprises/acme/teams/599/organizations",
        f"/enterprises/acme/teams/{'9' * 30}/organizations",
        f"{ALL}/acme-ops",
        f"{ALL}/nobody",
    ],
)
async def test_what_is_not_there(shared: Platform, url: str) -> None:
    """An enterprise, a team or an organization that is not there is 404, and so is one that is not assigned."""
    assert (await shared.ask("GET", url)).status == 404


async def test_one_organization(start: Start) -> None:
    """PUT assigns (201, also again), GET finds it in any case, DELETE removes (204, also again): one effect each."""
    platform = await start()
    url = f"{ALL}/Acme-Ops"
    for _ in range(2):
        made = await platform.ask("PUT", url)
        assert (made.status, made.json()["login"]) == (201, "acme-ops")
    found = await platform.ask("GET", f"{ALL}/ACME-OPS")
    assert (found.status, list(found.json())) == (200, FIELDS)
    assert await assigned(platform) == ["acme-eng", "acme-ops"]
    for _ in range(2):
        gone = await platform.ask("DELETE", url)
        assert (gone.status, gone.content) == (204, b"")
    assert (await platform.ask("GET", url)).status == 404
    assert effects(platform) == ["team ent:platform assigned to acme-ops", "team ent:platform removed from acme-ops"]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_one_that_is_no_organization(shared: Platform, method: str) -> None:
    """To assign or remove what does not exist is 404."""
    assert (await shared.ask(method, f"{ALL}/nobody")).status == 404


async def test_several_organizations(start: Start) -> None:
    """add answers with those of the named ones that there are, remove with nothing; only changes are effects."""
    platform = await start()
    reply = await post(platform, "add", "ACME-labs", "nobody", "acme-eng", "acme-labs")
    assert (reply.status, [each["login"] for each in reply.json()]) == (200, ["acme-labs", "acme-eng"])
    assert list(reply.json()[0]) == FIELDS
    assert await assigned(platform) == ["acme-eng", "acme-labs"]
    for _ in range(2):
        gone = await post(platform, "remove", "acme-eng", "Acme-Labs", "acme-ops", "nobody")
        assert (gone.status, gone.content) == (204, b"")
    assert await assigned(platform) == []
    assert (await post(platform, "add")).json() == []
    assert effects(platform) == [
        "team ent:platform assigned to acme-labs",
        "team ent:platform removed from acme-eng, acme-labs",
    ]


@pytest.mark.parametrize("verb", ["add", "remove"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "missing_field"),
        ({"organization_slugs": None}, "missing_field"),
        ({"organization_slugs": "acme-ops"}, "invalid"),
        ({"organization_slugs": ["acme-ops", 102]}, "invalid"),
    ],
)
async def test_bodies(shared: Platform, verb: str, body: object, code: str) -> None:
    """`organization_slugs` is an array of strings, else 422, and nothing is changed."""
    reply = await shared.ask("POST", f"{ALL}/{verb}", body=body)
    (error,) = reply.json()["errors"]
    assert (reply.status, error["field"], error["code"]) == (422, "organization_slugs", code)
    assert await assigned(shared) == ["acme-eng"]


async def test_pages(start: Start) -> None:
    """The list comes in pages, with links that lead through them."""
    platform = await start()
    await post(platform, "add", "acme-labs", "acme-ops")
    assert await assigned(platform, f"{ALL}?per_page=2") == ["acme-eng", "acme-ops"]
    reply = await platform.ask("GET", f"{ALL}?per_page=2")
    assert f'<{platform.url}{ALL}?per_page=2&page=2>; rel="next"' in reply.headers["Link"]
    assert await assigned(platform, f"{ALL}?per_page=2&page=2") == ["acme-labs"]


async def test_a_renamed_organization_stays_assigned(start: Start, clock: HandClock) -> None:
    """The assignment follows the organization, not its name."""
    platform = await start(clock=clock)
    await platform.ask("PATCH", "/admin/organizations/acme-eng", body={"login": "acme-new"})
    clock.advance(organizations.RENAME_S)
    with anyio.fail_after(60):
        while await assigned(platform) != ["acme-new"]:
            await anyio.lowlevel.checkpoint()


async def test_who_sees_and_who_changes(start: Start) -> None:
    """Members see, administrators change, strangers find nothing; tokens need their scope or permission."""
    platform = await start()
    state = platform.sandbox.context.state
    octoadmin, carol = state.user("octoadmin"), state.user("carol")
    assert octoadmin is not None
    assert carol is not None
    state.add_token("carol", carol, scopes=("admin:enterprise",))
    state.add_token("reads", octoadmin, scopes=("read:enterprise",))
    state.add_token("fine-read", octoadmin, kind=TokenKind.FINE_GRAINED, permissions={"enterprise_teams": "read"})
    state.add_token("fine-write", octoadmin, kind=TokenKind.FINE_GRAINED, permissions={"enterprise_teams": "write"})
    state.add_token("app", octoadmin, kind=TokenKind.APP_USER, permissions={"enterprise_teams": "write"})
    expected = {
        "sbx-site-admin": (200, 201),
        "sbx-org-owner": (200, 403),
        "sbx-member": (200, 403),
        "carol": (404, 404),
        "reads": (200, 403),
        "sbx-read-only": (403, 403),
        "sbx-fine-grained": (403, 403),
        "fine-read": (200, 403),
        "fine-write": (200, 201),
        "app": (403, 403),
        "sbx-installation": (403, 403),
    }
    found = {}
    for token in expected:
        read = await platform.ask("GET", f"{ALL}/acme-eng", token=token)
        write = await platform.ask("PUT", f"{ALL}/acme-eng", token=token)
        found[token] = (read.status, write.status)
        for verb in ("add", "remove"):
            several = await platform.ask("POST", f"{ALL}/{verb}", token=token, body={"organization_slugs": []})
            assert several.status == (write.status if write.status != 201 else 200 if verb == "add" else 204)
    assert found == expected
    assert (await platform.ask("GET", ALL, token=None)).status == 401
