"""Organization webhooks: their lives, who sees them, and what a body may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.webhooks import webhooks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start

TEST_AREAS = (organizations.AREA, webhooks.AREA)
URL = "http://127.0.0.1:9/hook"
FIELDS = [
    "id",
    "url",
    "ping_url",
    "deliveries_url",
    "name",
    "events",
    "active",
    "config",
    "updated_at",
    "created_at",
    "type",
]
NEW: dict[str, Any] = {"name": "web", "config": {"url": URL, "secret": "s3cret"}, "active": False}


async def make(platform: Platform, org: str = "acme-eng", token: str = "sbx-org-owner", **body: object) -> Any:
    """Make a webhook; its JSON."""
    reply = await platform.ask("POST", f"/orgs/{org}/hooks", token=token, body={**NEW, **body})
    assert reply.status == 201, reply.content
    return reply.json()


async def update(platform: Platform, number: int, body: object, org: str = "acme-eng", part: str = "") -> Any:
    """Change a webhook; the answer."""
    return await platform.ask("PATCH", f"/orgs/{org}/hooks/{number}{part}", token="sbx-org-owner", body=body)


def effects(platform: Platform) -> list[str | None]:
    """What the requests that changed something or tried to have done."""
    return [line["effect"] for line in platform.journal() if line["method"] != "GET"]


async def test_created(platform: Platform) -> None:
    """201 with all fields, defaults filled in, the secret masked; it can be read back and is listed."""
    made = await make(platform)
    assert list(made) == FIELDS
    assert made["events"] == ["push"]
    assert made["config"] == {"url": URL, "content_type": "form", "insecure_ssl": "0", "secret": "********"}
    assert (made["name"], made["type"], made["active"]) == ("web", "Organization", False)
    assert made["url"] == f"{platform.url}/orgs/acme-eng/hooks/{made['id']}"
    assert made["deliveries_url"] == made["url"] + "/deliveries"
    assert (await platform.ask("GET", made["url"])).json() == made
    assert (await platform.ask("GET", "/orgs/ACME-eng/hooks")).json() == [made]
    assert effects(platform) == [f"webhook {made['id']} of acme-eng created for {URL}"]


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"name": None}, "name", "missing_field"),
        ({"name": "email"}, "name", "invalid"),
        ({"config": None}, "config", "missing_field"),
        ({"config": "x"}, "config", "invalid"),
        ({"config": {"content_type": "json"}}, "config.url", "missing_field"),
        ({"config": {"url": "ftp://127.0.0.1/x"}}, "config.url", "invalid"),
        ({"config": {"url": "http://"}}, "config.url", "invalid"),
        ({"config": {"url": "http://a b/"}}, "config.url", "invalid"),
        ({"config": {"url": 5}}, "config.url", "invalid"),
        ({"config": {"url": URL, "content_type": "xml"}}, "config.content_type", "invalid"),
        ({"config": {"url": URL, "insecure_ssl": "2"}}, "config.insecure_ssl", "invalid"),
        ({"config": {"url": URL, "insecure_ssl": True}}, "config.insecure_ssl", "invalid"),
        ({"config": {"url": URL, "secret": 5}}, "config.secret", "invalid"),
        ({"config": {"url": URL, "username": "a:b"}}, "config.username", "invalid"),
        ({"events": "push"}, "events", "invalid"),
        ({"events": []}, "events", "invalid"),
        ({"events": ["Push!"]}, "events", "invalid"),
        ({"active": "yes"}, "active", "invalid"),
    ],
)
async def test_refused(shared: Platform, change: dict[str, object], field: str, code: str) -> None:
    """A wrong body is 422 and names the field; nothing is made."""
    body = {name: value for name, value in {**NEW, **change}.items() if value is not None}
    reply = await shared.ask("POST", "/orgs/acme-labs/hooks", body=body)
    (error,) = reply.json()["errors"]
    assert (reply.status, error["resource"], error["field"], error["code"]) == (422, "Hook", field, code)
    assert (await shared.ask("GET", "/orgs/acme-labs/hooks")).json() == []


async def test_settings_are_kept_as_given(platform: Platform) -> None:
    """Numbers become text, all events swallow single ones, and two alike may be made: nothing says they must differ."""
    config = {"url": URL, "content_type": "json", "insecure_ssl": 1, "username": "u", "password": "p"}
    made = [await make(platform, config=config, events=["push", "*", "push"]) for _ in range(2)]
    assert made[0]["events"] == ["*"]
    assert made[0]["config"] == {"url": URL, "content_type": "json", "insecure_ssl": "1"}
    assert made[0]["id"] != made[1]["id"]


async def test_the_vendor_that_refuses_doubles(start: Start) -> None:
    """With the vendor `github` a second webhook of the same configuration is 422."""
    platform = await start(vendor="github")
    await make(platform)
    reply = await platform.ask("POST", "/orgs/acme-eng/hooks", body=NEW)
    assert (reply.status, reply.json()["errors"][0]["message"]) == (422, "Hook already exists on this organization")
    other = {**NEW, "config": {"url": URL + "2"}}
    assert (await platform.ask("POST", "/orgs/acme-eng/hooks", body=other)).status == 201


async def test_updated(start: Start, clock: HandClock) -> None:
    """What is sent changes, the rest stays, and `updated_at` moves; the effect names what is different."""
    platform = await start(clock=clock)
    made = await make(platform)
    clock.advance(5)
    reply = await update(
        platform, made["id"], {"config": {"url": URL + "2", "secret": "s3cret"}, "events": ["push", "repository"]}
    )
    assert reply.status == 200
    changed = reply.json()
    assert changed["config"] == {**made["config"], "url": URL + "2"}
    assert (changed["events"], changed["active"]) == (["push", "repository"], False)
    assert changed["created_at"] == made["created_at"] < changed["updated_at"]
    again = await update(platform, made["id"], {"config": {"url": URL + "2", "secret": "s3cret"}})
    assert again.json() == changed
    assert effects(platform)[1:] == [f"webhook {made['id']} of acme-eng updated: config.url, events", None]


@pytest.mark.parametrize("body", [{"active": False}, {"config": {"url": URL}}, {"events": ["push"], "name": "web"}])
async def test_an_update_drops_the_secret(platform: Platform, body: dict[str, object]) -> None:
    """Whatever is updated, a secret that is not sent again is gone, and the effect says so."""
    made = await make(platform)
    reply = await update(platform, made["id"], body)
    assert "secret" not in reply.json()["config"]
    assert effects(platform)[-1] == f"webhook {made['id']} of acme-eng updated: config.secret"


async def test_a_mask_sent_back_becomes_the_secret(platform: Platform) -> None:
    """The mask is taken for what it is given as: the old secret is lost."""
    made = await make(platform)
    await update(platform, made["id"], {"config": made["config"]})
    state = platform.sandbox.context.state
    (row,) = state.db.execute("SELECT config_json FROM hooks WHERE id = ?", (made["id"],)).fetchall()
    assert '"secret": "********"' in row[0]


@pytest.mark.parametrize(
    ("body", "field"),
    [({"config": {"secret": "x"}}, "config.url"), ({"name": "x"}, "name"), ({"events": []}, "events")],
)
async def test_update_refused(shared: Platform, body: dict[str, object], field: str) -> None:
    """A configuration without its URL, another name, no event: 422."""
    reply = await update(shared, 4001, body, org="acme-ops")
    assert (reply.status, reply.json()["errors"][0]["field"]) == (422, field)


async def test_configuration(platform: Platform) -> None:
    """It is read and changed alone: unsent fields stay, except the secret; a flaw is 422 and names its field."""
    made = await make(platform)
    place = f"/orgs/acme-eng/hooks/{made['id']}/config"
    assert (await platform.ask("GET", place)).json() == made["config"]
    kept = await update(platform, made["id"], {"content_type": "json", "secret": "new"}, part="/config")
    assert (kept.status, kept.json()) == (200, {**made["config"], "content_type": "json"})
    dropped = await update(platform, made["id"], {"insecure_ssl": "1"}, part="/config")
    assert dropped.json() == {"url": URL, "content_type": "json", "insecure_ssl": "1"}
    wrong = await update(platform, made["id"], {"url": "nowhere"}, part="/config")
    assert (wrong.status, wrong.json()["errors"][0]["field"]) == (422, "url")


async def test_deleted(platform: Platform) -> None:
    """204, once; then it is 404, and its deliveries are too."""
    for status in (204, 404):
        assert (await platform.ask("DELETE", "/orgs/acme-ops/hooks/4001")).status == status
    assert (await platform.ask("GET", "/orgs/acme-ops/hooks/4001/deliveries")).status == 404
    assert effects(platform) == ["webhook 4001 of acme-ops deleted", None]


@pytest.mark.parametrize("number", ["4002", "x", "9" * 30, "-1"])
@pytest.mark.parametrize("part", ["", "/config", "/deliveries"])
async def test_what_is_not_there(shared: Platform, number: str, part: str) -> None:
    """A webhook that is not there, or not this organization's, is 404."""
    assert (await shared.ask("GET", f"/orgs/acme-ops/hooks/{number}{part}")).status == 404
    assert (await shared.ask("GET", f"/orgs/acme-eng/hooks/4001{part}")).status == 404


@pytest.mark.parametrize("token", ["sbx-member", "sbx-read-only", "sbx-fine-grained"])
async def test_owners_only(shared: Platform, token: str) -> None:
    """Members, and tokens without the scope or permission, find no webhooks at all."""
    for method, path in (
        ("GET", "/orgs/acme-eng/hooks"),
        ("POST", "/orgs/acme-eng/hooks"),
        ("GET", "/orgs/acme-ops/hooks/4001"),
        ("PATCH", "/orgs/acme-ops/hooks/4001/config"),
    ):
        assert (await shared.ask(method, path, token=token, body=NEW)).status == 404
    assert (await shared.ask("GET", "/orgs/acme-ops/hooks", token=None)).status == 401


async def test_an_installation_has_its_own_organization(shared: Platform) -> None:
    """An installation token with the permission reaches the webhooks of its organization and of no other."""
    made = await make(shared, token="sbx-installation")
    assert (await shared.ask("GET", made["url"], token="sbx-installation")).status == 200
    assert (await shared.ask("GET", "/orgs/acme-ops/hooks", token="sbx-installation")).status == 404


async def test_those_of_applications_are_apart(start: Start, tmp_path: Path) -> None:
    """What an OAuth application made is not there for other tokens, and theirs not for it."""
    seed = tmp_path / "seed.yaml"
    seed.write_text("tokens: [{token: app, user: alice, kind: oauth}]")
    platform = await start(seed_data=seed)
    theirs, ours = await make(platform, token="app"), await make(platform)
    for token, sees, misses in (("app", theirs, ours), ("sbx-org-owner", ours, theirs)):
        assert (await platform.ask("GET", "/orgs/acme-eng/hooks", token=token)).json() == [sees]
        assert (await platform.ask("GET", misses["url"], token=token)).status == 404
        assert (await platform.ask("DELETE", misses["url"], token=token)).status == 404


async def test_pages(platform: Platform) -> None:
    """The list comes in pages, oldest first."""
    numbers = [(await make(platform))["id"] for _ in range(3)]
    reply = await platform.ask("GET", "/orgs/acme-eng/hooks?per_page=2")
    assert [hook["id"] for hook in reply.json()] == numbers[:2]
    assert 'page=2>; rel="next"' in reply.headers["Link"]


async def test_recorded_deliveries(shared: Platform) -> None:
    """The standard ones, newest first, with every field of a record; `Link` leads on by cursor, filtered too."""
    path = "/orgs/acme-ops/hooks/4001/deliveries"
    found = (await shared.ask("GET", path)).json()
    assert [record["id"] for record in found] == [9003, 9002, 9001]
    assert found[1] == {
        "id": 9002,
        "guid": "00000000-0000-4000-8000-000000009002",
        "delivered_at": "2025-01-13T00:00:00Z",
        "redelivery": False,
        "duration": 0.31,
        "status": "Internal Server Error",
        "status_code": 500,
        "event": "push",
        "action": None,
        "installation_id": None,
        "repository_id": 1003,
        "throttled_at": None,
    }
    seen, following = [], f"{shared.url}{path}?status=success&per_page=1"
    while following:
        reply = await shared.ask("GET", following)
        seen += [record["id"] for record in reply.json()]
        link = reply.headers.get("Link", "")
        assert not link or ("status=success" in link and "cursor=" in link and link.endswith('rel="next"'))
        following = link.partition("<")[2].partition(">")[0]
    assert seen == [9003, 9001]
    assert [each["id"] for each in (await shared.ask("GET", path + "?status=failure")).json()] == [9002]


@pytest.mark.parametrize("query", ["status=odd", "cursor=x", "cursor=v1_x", "cursor=9001"])
async def test_deliveries_refused(shared: Platform, query: str) -> None:
    """An unknown status and a cursor of somebody else's are 422."""
    assert (await shared.ask("GET", f"/orgs/acme-ops/hooks/4001/deliveries?{query}")).status == 422
