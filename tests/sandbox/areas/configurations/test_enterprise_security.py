"""Legacy security settings of an enterprise: started at once, done a little later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from bulk.sandbox import Settings, running
from bulk.sandbox.areas import licenses
from bulk.sandbox.areas.configurations import enterprise_security
from bulk.sandbox.areas.configurations.enterprise_security import ENABLEMENT_S, PRODUCTS
from bulk.sandbox.areas.organizations import team_organizations

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start, Visit

TEST_AREAS = (enterprise_security.AREA, licenses.AREA, team_organizations.AREA)
URL = "/enterprises/acme/code_security_and_analysis"
SCANNING = "secret_scanning_enabled_for_new_repositories"
PATTERNS = "secret_scanning_non_provider_patterns_enabled_for_new_repositories"
LINK = "secret_scanning_push_protection_custom_link"
STANDARD = {
    "advanced_security_enabled_for_new_repositories": False,
    "dependabot_alerts_enabled_for_new_repositories": False,
    "secret_scanning_enabled_for_new_repositories": False,
    "secret_scanning_push_protection_enabled_for_new_repositories": False,
    "secret_scanning_non_provider_patterns_enabled_for_new_repositories": False,
    "secret_scanning_push_protection_custom_link": None,
}


async def settings(platform: Platform) -> Any:
    """The settings as they are shown."""
    return (await platform.ask("GET", URL)).json()


async def change(platform: Platform, **given: object) -> Any:
    """Ask for a change."""
    return await platform.ask("PATCH", URL, body=given)


async def done(platform: Platform, clock: HandClock) -> None:
    """Let the action in progress come to its end."""
    clock.advance(ENABLEMENT_S)
    db = platform.sandbox.context.state.db
    with anyio.fail_after(60):
        while db.execute("SELECT 1 FROM enterprise_enablements").fetchone():
            await anyio.lowlevel.checkpoint()


def effects(platform: Platform) -> list[str]:
    """What was changed, in order."""
    return [line["effect"] for line in platform.journal() if line["effect"]]


async def test_standard_settings(shared: Platform) -> None:
    """All is off, and the setting that only a body has is not shown."""
    assert await settings(shared) == STANDARD


async def test_changed_a_little_later(start: Start, clock: HandClock) -> None:
    """204 at once; it shows when it is done, within 2 s; what was not given stays, unknown fields are passed over."""
    platform = await start(clock=clock)
    reply = await change(platform, **{SCANNING: True, LINK: "https://x.example/why", "unknown": 1})
    assert (reply.status, reply.content) == (204, b"")
    assert await settings(platform) == STANDARD
    await done(platform, clock)
    assert ENABLEMENT_S <= 2
    assert await settings(platform) == {**STANDARD, SCANNING: True, LINK: "https://x.example/why"}
    assert (await change(platform, **{LINK: None})).status == 204
    await done(platform, clock)
    assert await settings(platform) == {**STANDARD, SCANNING: True}
    assert effects(platform) == [
        f'enterprise acme security: {SCANNING}=true, {LINK}="https://x.example/why"',
        f"enterprise acme security: {LINK}=null",
    ]


async def test_one_action_at_a_time(start: Start, clock: HandClock) -> None:
    """While one is in progress every other is 422 and says so; the moment its effect shows, the next may come."""
    platform = await start(clock=clock)
    await change(platform, **{SCANNING: True})
    for reply in (
        await change(platform, **{SCANNING: False}),
        await platform.ask("POST", "/enterprises/acme/dependabot_alerts/enable_all"),
    ):
        assert (reply.status, "in progress" in reply.json()["errors"][0]) == (422, True)
    await done(platform, clock)
    assert (await change(platform, **{SCANNING: False})).status == 204


async def test_what_is_so_already(start: Start, clock: HandClock) -> None:
    """An action that changes nothing is taken, is over at once, and is not an effect; null is off."""
    platform = await start(clock=clock)
    for given in ({}, {SCANNING: False}, {PATTERNS: None}, {LINK: None}):
        assert (await change(platform, **given)).status == 204
    for _ in range(2):
        assert (await platform.ask("POST", "/enterprises/acme/secret_scanning/enable_all")).status == 204
        await done(platform, clock)
    assert effects(platform) == ["enterprise acme security: secret_scanning enable_all"]


async def test_the_setting_that_is_not_shown(start: Start, clock: HandClock) -> None:
    """It is kept, so that asking for it again changes nothing."""
    platform = await start(clock=clock)
    for _ in range(2):
        assert (await change(platform, advanced_security_enabled_new_user_namespace_repos=True)).status == 204
        await done(platform, clock)
    assert await settings(platform) == STANDARD
    assert len(effects(platform)) == 1


@pytest.mark.parametrize(
    "given",
    [
        {SCANNING: "true"},
        {SCANNING: None},
        {SCANNING: 1},
        {PATTERNS: "no"},
        {LINK: 5},
        {LINK: "docs.example.com"},
        {LINK: "ftp://x"},
        {LINK: "http://[::1"},
    ],
)
async def test_wrong_values(shared: Platform, given: dict[str, object]) -> None:
    """A flag is a boolean (one of them may be null), the link a URL or null; else 422 that names the field."""
    reply = await change(shared, **given)
    (error,) = reply.json()["errors"]
    assert (reply.status, error["field"], error["code"]) == (422, next(iter(given)), "invalid")


@pytest.mark.parametrize("product", PRODUCTS)
async def test_products(start: Start, clock: HandClock, product: str) -> None:
    """Each product can be switched on everywhere, and off again."""
    platform = await start(clock=clock)
    for enablement in ("enable_all", "disable_all", "enable_all"):
        reply = await platform.ask("POST", f"/enterprises/acme/{product}/{enablement}")
        assert (reply.status, reply.content) == (204, b"")
        await done(platform, clock)
    assert len(effects(platform)) == 3


@pytest.mark.parametrize(
    "url",
    [
        "/enterprises/acme/secret_scanning/enable",
        "/enterprises/acme/everything/enable_all",
        "/enterprises/other/secret_scanning/enable_all",
        "/enterprises/acme/secret_scanning/enable_all/now",
        "/enterprises/acme/teams/enable_all",
    ],
)
async def test_what_can_not_be_enabled(shared: Platform, url: str) -> None:
    """An unknown product, enablement or enterprise is 404."""
    assert (await shared.ask("POST", url)).status == 404


async def test_the_catch_all_catches_nothing_else(shared: Platform) -> None:
    """Two segments that belong to another endpoint go there."""
    body: dict[str, object] = {"organization_slugs": []}
    url = "/enterprises/acme/teams/ent:platform/organizations/add"
    assert (await shared.ask("POST", url, body=body)).status == 200
    assert (await shared.ask("GET", "/enterprises/acme/secret_scanning/enable_all")).status == 404


async def test_a_policy(start: Start, clock: HandClock) -> None:
    """Without seats of advanced security, what needs them can't be enabled (422, not in progress); the rest can."""
    platform = await start(clock=clock)
    platform.sandbox.context.state.db.execute("UPDATE licenses SET advanced_security_seats = 0")
    for reply in (
        await change(platform, **{SCANNING: True}),
        await platform.ask("POST", "/enterprises/acme/advanced_security/enable_all"),
    ):
        assert (reply.status, "policy" in reply.json()["errors"][0]) == (422, True)
        assert "progress" not in reply.json()["errors"][0]
    assert (await change(platform, dependabot_alerts_enabled_for_new_repositories=True)).status == 204
    await done(platform, clock)
    for url in ("dependabot_alerts/enable_all", "secret_scanning/disable_all"):
        assert (await platform.ask("POST", f"/enterprises/acme/{url}")).status == 204
        await done(platform, clock)


async def test_administrators_with_a_classic_token_only(shared: Platform) -> None:
    """For everybody else none of it is there."""
    state = shared.sandbox.context.state
    octoadmin = state.user("octoadmin")
    assert octoadmin is not None
    state.add_token("reads", octoadmin, scopes=("read:enterprise",))
    tokens = ("sbx-org-owner", "sbx-member", "sbx-fine-grained", "sbx-installation", "sbx-read-only")
    for token in tokens:
        assert (await shared.ask("GET", URL, token=token)).status == 404
    assert (await shared.ask("GET", URL, token="reads")).status == 200
    for token in (*tokens, "reads"):
        assert (await shared.ask("PATCH", URL, token=token, body={})).status == 404
        assert (await shared.ask("POST", "/enterprises/acme/secret_scanning/enable_all", token=token)).status == 404
    assert (await shared.ask("GET", URL, token=None)).status == 401


async def test_an_action_survives_a_restart(visit: Visit, clock: HandClock, tmp_path: Path) -> None:
    """What was accepted is done after a restart."""
    options = Settings(state=tmp_path / "state")
    async with running(options, clock=clock, areas=TEST_AREAS) as sandbox:
        assert (await change(visit(sandbox), **{SCANNING: True})).status == 204
    async with running(options, clock=clock, areas=TEST_AREAS) as sandbox:
        again = visit(sandbox)
        assert (await settings(again))[SCANNING] is False
        await done(again, clock)
        assert (await settings(again))[SCANNING] is True
