"""Creating and renaming organizations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from bulk.sandbox import Settings, running
from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.organizations.organizations import RENAME_S
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.areas.snapshots import snapshots

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start, Visit

TEST_AREAS = (organizations.AREA, rate_limit.AREA, rulesets.AREA, snapshots.AREA)
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


async def seen(platform: Platform, name: str, token: str = "sbx-site-admin") -> int:
    """The status of the read that tells whether an organization is there."""
    return (await platform.ask("GET", f"/orgs/{name}/rulesets?per_page=1", token=token)).status


async def rename(platform: Platform, old: str, new: object) -> Any:
    """Ask for a rename."""
    return await platform.ask("PATCH", f"/admin/organizations/{old}", body={"login": new})


async def wait_for(platform: Platform, name: str) -> None:
    """Come back when an organization has this name."""
    with anyio.fail_after(60):
        while await seen(platform, name) != 200:
            await anyio.lowlevel.checkpoint()


async def test_created(shared: Platform) -> None:
    """201 with the whole organization; its admin owns it, others don't; it can be read back at once."""
    body = {"login": "Acme-New", "admin": "BOB", "profile_name": "New"}
    reply = await shared.ask("POST", "/admin/organizations", body=body)
    assert reply.status == 201
    made = reply.json()
    assert list(made) == FIELDS
    assert made["login"] == "Acme-New"
    assert made["id"] > 103
    assert made["url"] == f"{shared.url}/orgs/Acme-New"
    assert made["members_url"] == f"{shared.url}/orgs/Acme-New/members{{/member}}"
    assert made["public_members_url"].endswith("/public_members{/member}")
    assert isinstance(made["description"], str)
    statuses = [await seen(shared, "acme-new", f"sbx-{who}") for who in ("site-admin", "member", "org-owner")]
    assert statuses == [200, 200, 404]


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"admin": "alice"}, "login", "missing_field"),
        ({"login": None, "admin": "alice"}, "login", "missing_field"),
        ({"login": 5, "admin": "alice"}, "login", "invalid"),
        ({"login": "", "admin": "alice"}, "login", "invalid"),
        ({"login": "a b", "admin": "alice"}, "login", "invalid"),
        ({"login": "-a", "admin": "alice"}, "login", "invalid"),
        ({"login": "a-", "admin": "alice"}, "login", "invalid"),
        ({"login": "a--b", "admin": "alice"}, "login", "invalid"),
        ({"login": "é", "admin": "alice"}, "login", "invalid"),
        ({"login": "a\n", "admin": "alice"}, "login", "invalid"),
        ({"login": "a" * 40, "admin": "alice"}, "login", "invalid"),
        ({"login": "ACME-eng", "admin": "alice"}, "login", "already_exists"),
        ({"login": "Alice", "admin": "alice"}, "login", "already_exists"),
        ({"login": "fine"}, "admin", "missing_field"),
        ({"login": "fine", "admin": "nobody"}, "admin", "invalid"),
        ({"login": "fine", "admin": ["alice"]}, "admin", "invalid"),
        ({"login": "fine", "admin": "alice", "profile_name": 5}, "profile_name", "invalid"),
    ],
)
async def test_refused(shared: Platform, body: dict[str, object], field: str, code: str) -> None:
    """A wrong body is 422 and names the field; nothing is made."""
    reply = await shared.ask("POST", "/admin/organizations", body=body)
    assert (reply.status, reply.json()["message"]) == (422, "Validation Failed")
    (error,) = reply.json()["errors"]
    assert (error["resource"], error["field"], error["code"]) == ("Organization", field, code)
    assert shared.sandbox.context.state.organization("fine") is None


async def test_longest_name(shared: Platform) -> None:
    """39 characters with hyphens between are a name."""
    body = {"login": "a-" * 19 + "z", "admin": "alice"}
    assert (await shared.ask("POST", "/admin/organizations", body=body)).status == 201


@pytest.mark.parametrize(
    "token", ["sbx-org-owner", "sbx-member", "sbx-fine-grained", "sbx-installation", "sbx-read-only"]
)
async def test_site_administrators_only(shared: Platform, token: str) -> None:
    """For everybody else, and for tokens of other kinds, the administration isn't there."""
    body = {"login": "fine", "admin": "alice"}
    assert (await shared.ask("POST", "/admin/organizations", token=token, body=body)).status == 404
    assert (await shared.ask("PATCH", "/admin/organizations/acme-eng", token=token, body=body)).status == 404


async def test_renamed(start: Start, clock: HandClock) -> None:
    """202 with message and url; until it is done the old name holds, then only the new one, and repositories follow."""
    platform = await start(clock=clock, areas=AREAS)
    reply = await rename(platform, "ACME-ops", "acme-run")
    assert (reply.status, set(reply.json())) == (202, {"message", "url"})
    assert (await seen(platform, "acme-ops"), await seen(platform, "acme-run")) == (200, 404)
    clock.advance(RENAME_S)
    await wait_for(platform, "acme-run")
    assert RENAME_S <= 2
    assert await seen(platform, "acme-ops") == 404
    assert (await platform.ask("GET", "/repos/acme-run/runbook/readme")).status == 200
    assert (await platform.ask("GET", "/repos/acme-ops/runbook/readme")).status == 404
    shown = await platform.ask("GET", reply.json()["url"])
    assert (shown.json()["login"], shown.json()["id"]) == ("acme-run", 102)
    effects = [line["effect"] for line in platform.journal() if line["effect"]]
    assert effects == ["organization acme-ops renamed to acme-run"]


async def test_renames_meet(start: Start, clock: HandClock) -> None:
    """While a rename is on its way, a second one of it is 422, and its new name is taken for all."""
    platform = await start(clock=clock)
    await rename(platform, "acme-ops", "acme-run")
    busy = await rename(platform, "acme-ops", "acme-walk")
    assert (busy.status, "in progress" in busy.json()["errors"][0]) == (422, True)
    for reply in (
        await rename(platform, "acme-labs", "Acme-Run"),
        await platform.ask("POST", "/admin/organizations", body={"login": "acme-run", "admin": "alice"}),
    ):
        assert (reply.status, reply.json()["errors"][0]["code"]) == (422, "already_exists")
    clock.advance(RENAME_S)
    await wait_for(platform, "acme-run")
    # The old name is free again.
    assert (await rename(platform, "acme-labs", "acme-ops")).status == 202


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ("acme-eng", "already_exists"),
        ("bob", "already_exists"),
        ("acme-ops", "already_exists"),
        ("a b", "invalid"),
        (None, "missing_field"),
    ],
)
async def test_rename_refused(shared: Platform, new: object, code: str) -> None:
    """A name that is taken, its own, or malformed is 422."""
    reply = await rename(shared, "acme-ops", new)
    assert (reply.status, reply.json()["errors"][0]["code"]) == (422, code)


async def test_rename_in_case_only(start: Start, clock: HandClock) -> None:
    """An organization may take its own name in another case."""
    platform = await start(clock=clock)
    assert (await rename(platform, "acme-ops", "Acme-Ops")).status == 202
    clock.advance(RENAME_S)
    with anyio.fail_after(60):
        while (await platform.ask("GET", "/organizations/102")).json()["login"] != "Acme-Ops":
            await anyio.lowlevel.checkpoint()


async def test_rename_of_nothing(shared: Platform) -> None:
    """An organization that isn't there is 404, by name and by id."""
    assert (await rename(shared, "nobody", "somebody")).status == 404
    for number in ("99", "x"):
        assert (await shared.ask("GET", f"/organizations/{number}")).status == 404


async def test_a_rename_survives_a_restart(visit: Visit, clock: HandClock, tmp_path: Path) -> None:
    """A rename that was accepted is done after a restart."""
    settings = Settings(state=tmp_path / "state")
    async with running(settings, clock=clock) as sandbox:
        assert (await rename(visit(sandbox), "acme-ops", "acme-run")).status == 202
    async with running(settings, clock=clock) as sandbox:
        again = visit(sandbox)
        assert await seen(again, "acme-ops") == 200
        clock.advance(RENAME_S)
        await wait_for(again, "acme-run")
