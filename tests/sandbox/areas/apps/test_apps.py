"""What an App asks with its JSON web token, and what its installations' tokens may do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bulk.sandbox import Settings, running
from bulk.sandbox.settings import ExtraToken, RateLimit
from tests.sandbox.areas.apps.conftest import Sign, StartApps, public
from tests.sandbox.conftest import START, HandClock, Platform, Visit

README = "/repos/acme-eng/closed/readme"


async def mint(platform: Platform, sign: Sign, organization: str = "acme-eng", **body: object) -> str:
    """A token of the installation in an organization."""
    found = await platform.ask("GET", f"/orgs/{organization}/installation", token=sign())
    path = f"/app/installations/{found.json()['id']}/access_tokens"
    reply = await platform.ask("POST", path, token=sign(), body=body or None)
    assert reply.status == 201, reply.content
    return str(reply.json()["token"])


async def test_an_app_finds_its_installations(start_apps: StartApps, sign: Sign) -> None:
    """It sees itself, and its installations page by page, by organization and by repository; other Apps see none."""
    platform = await start_apps()
    app = (await platform.ask("GET", "/app", token=sign())).json()
    assert (app["slug"], app["installations_count"]) == ("fleet", 5)
    first = await platform.ask("GET", "/app/installations?per_page=4", token=sign())
    assert [each["account"]["login"] for each in first.json()] == ["acme-eng", "acme-ops", "made-1", "made-2"]
    assert "page=2" in first.headers["Link"]
    by_repository = (await platform.ask("GET", "/repos/acme-ops/runbook/installation", token=sign())).json()
    assert (by_repository["repository_selection"], by_repository["permissions"]) == ("selected", {"contents": "read"})
    for path in ("/orgs/acme-labs/installation", "/enterprises/acme/installation", "/repos/acme-eng/no/installation"):
        assert (await platform.ask("GET", path, token=sign())).status == 404
    foreign = sign(1, iss="Iv1.other")
    assert (await platform.ask("GET", f"/app/installations/{by_repository['id']}", token=foreign)).status == 404


@pytest.mark.parametrize(
    ("claims", "status", "message"),
    [
        ({"iss": None}, 401, "Missing 'issuer' claim ('iss')"),
        ({"iss": "Iv1.unknown"}, 404, "Integration not found"),
        ({"which": 1}, 401, "A JSON web token could not be decoded"),
        ({"algorithm": "HS256"}, 401, "A JSON web token could not be decoded"),
        ({"exp": int(START)}, 401, "'Expiration time' claim ('exp') must be a numeric value representing the future"),
        ({"exp": int(START) + 660}, 401, "'Expiration time' claim ('exp') is too far in the future"),
        ({"iat": int(START) + 90}, 401, "'Issued at' claim ('iat') must be an Integer"),
    ],
)
async def test_what_is_wrong_with_a_jwt(
    start_apps: StartApps, sign: Sign, claims: dict[str, object], status: int, message: str
) -> None:
    """A JWT that can't be taken is refused with the reason."""
    reply = await (await start_apps()).ask("GET", "/app", token=sign(**claims))
    assert (reply.status, reply.json()["message"][: len(message)]) == (status, message)


async def test_jwt_and_tokens_are_for_different_routes(start_apps: StartApps, sign: Sign) -> None:
    """A JWT opens nothing but what is about the App, goes with Bearer alone, and no token opens that."""
    platform = await start_apps()
    assert (await platform.ask("GET", "/user", token=sign())).status == 403
    assert (await platform.ask("GET", "/orgs/acme-eng/hooks", token=sign())).status == 403
    assert (await platform.ask("GET", "/app", token=None, headers={"Authorization": f"token {sign()}"})).status == 401
    assert (await platform.ask("GET", "/app", token="sbx-site-admin")).status == 401


async def test_a_token_does_what_its_installation_may(start_apps: StartApps, sign: Sign, clock: HandClock) -> None:
    """It reads its organization, no other one's private things, has a budget of its own, and ends after an hour."""
    platform = await start_apps(rate_limits={"core": RateLimit(100, 3600)})
    token = await mint(platform, sign)
    reply = await platform.ask("GET", README, token=token)
    assert (reply.status, reply.headers["X-RateLimit-Used"]) == (200, "1")
    assert platform.journal()[-1]["payer"].startswith("installation:")
    assert (await platform.ask("GET", README, token=await mint(platform, sign, "made-1"))).status == 404
    assert (await platform.ask("GET", "/user", token=token)).status == 403
    clock.advance(3599)
    assert (await platform.ask("GET", README, token=token)).status == 200
    clock.advance(1)
    assert (await platform.ask("GET", README, token=token)).status == 401


async def test_tokens_for_less(start_apps: StartApps, sign: Sign) -> None:
    """A token may be asked for with fewer repositories and permissions, and not with more."""
    platform = await start_apps()
    narrow = await mint(platform, sign, repositories=["hello-world"], permissions={"contents": "read"})
    assert (await platform.ask("GET", README, token=narrow)).status == 404
    found = (await platform.ask("GET", "/orgs/acme-eng/installation", token=sign())).json()
    path = f"/app/installations/{found['id']}/access_tokens"
    for body, message in (
        ({"permissions": {"administration": "write"}}, "The permissions requested are not granted"),
        ({"repositories": ["nowhere"]}, "There is at least one repository that does not exist"),
        ({"repository_ids": [1003]}, "There is at least one repository that does not exist"),
    ):
        reply = await platform.ask("POST", path, token=sign(), body=body)
        assert (reply.status, reply.json()["message"].startswith(message)) == (422, True)


async def test_suspended_and_removed(start_apps: StartApps, sign: Sign) -> None:
    """While an installation is suspended its tokens are refused with 403; when it is gone, with 401."""
    platform = await start_apps()
    token = await mint(platform, sign)
    one = f"/app/installations/{(await platform.ask('GET', '/orgs/acme-eng/installation', token=sign())).json()['id']}"
    assert (await platform.ask("PUT", f"{one}/suspended", token=sign())).status == 204
    for path, bearer in ((README, token), (f"{one}/access_tokens", sign())):
        reply = await platform.ask("GET" if path == README else "POST", path, token=bearer)
        assert (reply.status, reply.json()["message"]) == (403, "This installation has been suspended")
    assert (await platform.ask("DELETE", f"{one}/suspended", token=sign())).status == 204
    assert (await platform.ask("GET", README, token=token)).status == 200
    new = {"X-Service-Api-Version": "2026-03-10"}
    assert (await platform.ask("DELETE", one, token=sign(), headers=new)).status == 202
    assert (await platform.ask("GET", README, token=token)).status == 401
    assert (await platform.ask("POST", f"{one}/access_tokens", token=sign())).status == 404


async def test_new_tokens_are_late(start_apps: StartApps, sign: Sign, clock: HandClock) -> None:
    """With a lag, a new token gets 401 at first, one for less 403, and nobody is locked out for it."""
    platform = await start_apps(mint_lag_s=4.0)
    whole, narrow = await mint(platform, sign), await mint(platform, sign, permissions={"contents": "read"})
    for _ in range(6):
        assert (await platform.ask("GET", README, token=whole)).status == 401
        assert (await platform.ask("GET", README, token=narrow)).status == 403
    clock.advance(4.0)
    assert [(await platform.ask("GET", README, token=token)).status for token in (whole, narrow)] == [200, 200]


async def test_keys_are_exchanged(start_apps: StartApps, sign: Sign, keys, tmp_path: Path) -> None:
    """The file of a public key counts as it is when a JWT comes."""
    platform = await start_apps()
    (tmp_path / "app.pub").write_bytes(public(keys[1]))
    assert (await platform.ask("GET", "/app", token=sign())).status == 401
    assert (await platform.ask("GET", "/app", token=sign(1))).status == 200


async def test_what_has_ended_stays_so(
    start_apps: StartApps, visit: Visit, sign: Sign, clock: HandClock, tmp_path: Path
) -> None:
    """A restart with the same state makes no ended token good, whether minted, seeded or of the command line."""
    await start_apps()  # writes the seed
    lent = (ExtraToken("lent", "alice", 90),)
    settings = Settings(state=tmp_path / "state", seed_data=tmp_path / "seed.yaml", tokens=lent)
    async with running(settings, clock=clock) as sandbox:
        token = await mint(visit(sandbox), sign)
        assert (await visit(sandbox).ask("GET", "/user", token="lent")).status == 200
    clock.advance(3601)
    async with running(settings, clock=clock) as sandbox:
        again = visit(sandbox)
        for ended in (token, "sbx-installation", "lent"):
            assert (await again.ask("GET", README, token=ended)).status == 401
        fresh = {"iat": int(clock.now()) - 60, "exp": int(clock.now()) + 540}
        assert (await again.ask("GET", "/app", token=sign(**fresh))).json()["installations_count"] == 5


async def test_nothing_is_installed_that_checks(
    start_apps: StartApps, sign: Sign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that was made elsewhere may have Apps: their tokens are not taken unseen, and the answer says why."""
    platform = await start_apps()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    reply = await platform.ask("GET", "/app", token=sign())
    assert (reply.status, "pip install 'bulkops[app]'" in reply.json()["message"]) == (401, True)
