"""Attaching configurations: scopes, work in background, what meets it, licenses, and the list of repositories."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from bulk.sandbox import Settings, running
from bulk.sandbox.areas.configurations import enterprise_configurations, organization_configurations
from bulk.sandbox.areas.configurations.attachments import ATTACH_S
from bulk.sandbox.areas.served import AREAS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start, Visit

TEST_AREAS = (enterprise_configurations.AREA, organization_configurations.AREA)
ALL = "/orgs/acme-eng/code-security/configurations"


async def attach(
    platform: Platform, number: int, scope: object = "all", ids: object = None, org: str = "acme-eng"
) -> Any:
    """Ask for an attachment."""
    body: dict[str, object] = {"scope": scope}
    if ids is not None:
        body["selected_repository_ids"] = ids
    return await platform.ask("POST", f"/orgs/{org}/code-security/configurations/{number}/attach", body=body)


async def held(platform: Platform, number: int, org: str = "acme-eng", query: str = "") -> dict[int, str]:
    """Which repositories have a configuration, and how."""
    path = f"/orgs/{org}/code-security/configurations/{number}/repositories{query}"
    return {entry["repository"]["id"]: entry["status"] for entry in (await platform.ask("GET", path)).json()}


async def finish(platform: Platform, clock: HandClock) -> None:
    """Let the attachment that is under way be done."""
    clock.advance(ATTACH_S)
    with anyio.fail_after(60):
        while platform.sandbox.context.state.db.execute("SELECT 1 FROM attachments").fetchone():
            await anyio.lowlevel.checkpoint()


def effects(platform: Platform) -> list[str]:
    """What the journal says was changed."""
    return [line["effect"] for line in platform.journal() if line["effect"]]


async def test_in_background(start: Start, clock: HandClock) -> None:
    """202 at once; until it is done repositories are where they were, then all of them moved at one moment."""
    platform = await start(clock=clock)
    reply = await attach(platform, 2002, "selected", [1002, 1001, 1002])
    assert (reply.status, reply.json()) == (202, {})
    assert (await held(platform, 2002), await held(platform, 2003)) == ({}, {1002: "attached"})
    await finish(platform, clock)
    assert ATTACH_S <= 2
    assert await held(platform, 2002) == {1001: "attached", 1002: "attached"}
    assert (await held(platform, 2001), await held(platform, 2003)) == ({}, {})
    assert effects(platform) == ["configuration 2002 attached to repositories 1001, 1002 of acme-eng"]


@pytest.mark.parametrize(
    ("scope", "ids"),
    [
        ("all", [1001, 1002, 1004]),
        ("public", [1001, 1004]),
        ("private_or_internal", [1002]),
        ("all_without_configurations", [1004]),
    ],
)
async def test_scopes(start: Start, clock: HandClock, scope: str, ids: list[int]) -> None:
    """A scope means the organization's repositories of that kind, and no other organization's."""
    platform = await start(clock=clock)
    await attach(platform, 1001, scope)
    await finish(platform, clock)
    assert await held(platform, 1001) == dict.fromkeys(ids, "attached")
    assert await held(platform, 1001, "acme-ops") == {}


@pytest.mark.parametrize(
    ("scope", "ids", "field", "code"),
    [
        (None, None, "scope", "missing_field"),
        ("some", None, "scope", "invalid"),
        (["all"], None, "scope", "invalid"),
        ("selected", None, "selected_repository_ids", "missing_field"),
        ("selected", "1001", "selected_repository_ids", "invalid"),
        ("selected", [1001, "1002"], "selected_repository_ids", "invalid"),
        ("selected", [True], "selected_repository_ids", "invalid"),
        ("selected", [1001, 1003], "selected_repository_ids", "invalid"),
        ("all", [1001], "selected_repository_ids", "invalid"),
    ],
)
async def test_refused(shared: Platform, scope: object, ids: object, field: str, code: str) -> None:
    """A scope that can't be used, ids without it, or repositories of others are 422; nothing begins."""
    reply = await attach(shared, 2002, scope, ids)
    assert reply.status == 422
    (error,) = reply.json()["errors"]
    assert (error["field"], error["code"]) == (field, code)
    assert not shared.sandbox.context.state.db.execute("SELECT 1 FROM attachments").fetchone()


async def test_attachments_meet(start: Start, clock: HandClock) -> None:
    """While one is in progress, a second one in the organization is 422, in another organization not."""
    platform = await start(clock=clock)
    assert (await attach(platform, 2002)).status == 202
    for number in (2002, 1001):
        busy = await attach(platform, number)
        assert (busy.status, "in progress" in busy.json()["message"]) == (422, True)
    assert (await attach(platform, 1001, org="acme-ops")).status == 202
    await finish(platform, clock)
    assert (await attach(platform, 1001)).status == 202


async def test_not_deleted_meanwhile(start: Start, clock: HandClock) -> None:
    """409 for deleting what is being attached, until it is done; another configuration can be deleted."""
    platform = await start(clock=clock)
    await attach(platform, 2002)
    assert (await platform.ask("DELETE", f"{ALL}/2002")).status == 409
    assert (await platform.ask("DELETE", f"{ALL}/2003")).status == 204
    await finish(platform, clock)
    assert (await platform.ask("DELETE", f"{ALL}/2002")).status == 204


async def test_twice_is_once(start: Start, clock: HandClock) -> None:
    """Attaching to repositories that have the configuration is accepted and changes nothing."""
    platform = await start(clock=clock)
    for _ in range(2):
        assert (await attach(platform, 2001, "selected", [1001])).status == 202
        await finish(platform, clock)
    assert effects(platform) == []


async def test_survives_a_restart(visit: Visit, clock: HandClock, tmp_path: Path) -> None:
    """An attachment that was accepted is done after a restart."""
    settings = Settings(state=tmp_path / "state")
    async with running(settings, clock=clock, areas=TEST_AREAS) as sandbox:
        assert (await attach(visit(sandbox), 2002)).status == 202
    async with running(settings, clock=clock, areas=TEST_AREAS) as sandbox:
        again = visit(sandbox)
        assert await held(again, 2002) == {}
        await finish(again, clock)
        assert set(await held(again, 2002)) == {1001, 1002, 1004}


async def test_generated_repositories(start: Start, clock: HandClock, tmp_path: Path) -> None:
    """A generated fleet is attached as a whole, listed by cursors, each repository once and by its name."""
    seed = tmp_path / "seed.yaml"
    seed.write_text("repositories: {organization: acme-fleet, count: 250}\n")
    platform = await start(clock=clock, seed_data=seed, areas=AREAS)
    assert (await attach(platform, 1001, org="acme-fleet")).status == 202
    await finish(platform, clock)
    url, names = "/orgs/acme-fleet/code-security/configurations/1001/repositories?per_page=100", []
    while url:
        reply = await platform.ask("GET", url)
        names += [entry["repository"]["name"] for entry in reply.json()]
        links = {rel: to for to, rel in re.findall(r'<([^>]*)>; rel="(\w+)"', reply.headers.get("Link", ""))}
        url = links.get("next", "")
    assert names == [f"repo-{number:05d}" for number in range(250)]
    assert effects(platform) == ["configuration 1001 attached to 250 repositories of acme-fleet"]


async def test_repositories(shared: Platform) -> None:
    """An entry is a status and a whole repository, whose addresses are the caller's; `status` keeps some."""
    (entry,) = (await shared.ask("GET", f"{ALL}/2003/repositories")).json()
    assert list(entry) == ["status", "repository"]
    repository = entry["repository"]
    assert (repository["id"], repository["full_name"]) == (1002, "acme-eng/private-notes")
    assert (repository["private"], repository["fork"], repository["owner"]["login"]) == (True, False, "acme-eng")
    assert repository["contents_url"] == f"{shared.url}/repos/acme-eng/private-notes/contents/{{+path}}"
    for status, ids in (("attached", {1002}), ("failed,attached", {1002}), ("failed", set()), ("all", {1002})):
        assert set(await held(shared, 2003, query=f"?status={status}")) == ids


# Licenses: three people commit to hello-world and runbook, which use advanced security.


def use(platform: Platform) -> set[int]:
    """Which repositories use advanced security."""
    rows = platform.sandbox.context.state.db.execute("SELECT repository_id FROM advanced_security_repositories")
    return {row["repository_id"] for row in rows}


async def licensed(start: Start, clock: HandClock, seats: int) -> Platform:
    """A platform with `seats` seats, where octoadmin commits to private-notes, which does not use them yet."""
    platform = await start(clock=clock)
    db = platform.sandbox.context.state.db
    db.execute("UPDATE licenses SET advanced_security_seats = ?", (seats,))
    db.execute("INSERT INTO committers VALUES (1002, 1, 1748736000)")
    return platform


async def test_enough_licenses(start: Start, clock: HandClock) -> None:
    """A seat for each distinct committer suffices: all features are on."""
    platform = await licensed(start, clock, seats=4)
    await attach(platform, 2002)
    await finish(platform, clock)
    assert set((await held(platform, 2002)).values()) == {"attached"}
    assert use(platform) == {1001, 1002, 1003, 1004}


async def test_too_few_licenses(start: Start, clock: HandClock) -> None:
    """One seat less: only the free features are on, and the list says that it failed; with more seats it works."""
    platform = await licensed(start, clock, seats=3)
    assert (await attach(platform, 2002, "selected", [1002])).status == 202
    await finish(platform, clock)
    assert await held(platform, 2002) == {1002: "failed"}
    assert use(platform) == {1001, 1003}
    platform.sandbox.context.state.db.execute("UPDATE licenses SET advanced_security_seats = 4")
    await attach(platform, 2002, "selected", [1002])
    await finish(platform, clock)
    assert await held(platform, 2002) == {1002: "attached"}
    assert use(platform) == {1001, 1002, 1003}
    assert len(effects(platform)) == 2


async def test_promised_licenses_are_taken(start: Start, clock: HandClock) -> None:
    """Seats that an attachment was promised are not given to another organization's before it is done."""
    platform = await licensed(start, clock, seats=4)
    db = platform.sandbox.context.state.db
    db.execute('UPDATE configurations SET settings_json = \'{"advanced_security": "enabled"}\' WHERE id = 1001')
    db.execute("INSERT INTO users VALUES (9, 'dora', 'Dora', 'dora@acme.example', 0, 0, 0)")
    db.execute("INSERT INTO repositories VALUES (1009, 103, 'lab', 0, '', 'main', 0)")
    db.execute("INSERT INTO committers VALUES (1009, 9, 1748736000)")
    await attach(platform, 2002, "selected", [1002])
    await attach(platform, 1001, org="acme-labs")
    await finish(platform, clock)
    assert await held(platform, 2002) == {1002: "attached"}
    assert await held(platform, 1001, "acme-labs") == {1009: "failed"}


async def test_free_features_need_no_licenses(start: Start, clock: HandClock) -> None:
    """A configuration without advanced security is attached whatever the seats; its repositories give theirs up."""
    platform = await licensed(start, clock, seats=0)
    await attach(platform, 2001)
    await finish(platform, clock)
    assert set((await held(platform, 2001)).values()) == {"attached"}
    assert use(platform) == {1003}


async def test_an_update_is_spread(start: Start, clock: HandClock) -> None:
    """A configuration that begins to ask for advanced security gives it to the repositories that have it."""
    platform = await licensed(start, clock, seats=4)
    assert (await platform.ask("PATCH", f"{ALL}/2003", body={"advanced_security": "enabled"})).status == 200
    assert use(platform) == {1001, 1002, 1003}
    platform.sandbox.context.state.db.execute("UPDATE licenses SET advanced_security_seats = 3")
    assert (await platform.ask("PATCH", f"{ALL}/2003", body={"advanced_security": "disabled"})).status == 200
    assert use(platform) == {1001, 1003}
    assert (await platform.ask("PATCH", f"{ALL}/2003", body={"secret_protection": "enabled"})).status == 200
    assert (use(platform), await held(platform, 2003)) == ({1001, 1003}, {1002: "failed"})


@pytest.mark.parametrize(
    ("before", "after", "status"), [(None, "enabled", "failed"), ("enabled", "disabled", "attached")]
)
async def test_an_update_meanwhile(start: Start, clock: HandClock, before: str | None, after: str, status: str) -> None:
    """What counts for the seats is what the configuration asks for when it arrives."""
    platform = await licensed(start, clock, seats=3)
    await platform.ask("PATCH", f"{ALL}/2001", body={"advanced_security": before} if before else {})
    await attach(platform, 2001, "selected", [1002])
    assert (await platform.ask("PATCH", f"{ALL}/2001", body={"advanced_security": after})).status == 200
    await finish(platform, clock)
    assert (await held(platform, 2001))[1002] == status
    assert 1002 not in use(platform)
