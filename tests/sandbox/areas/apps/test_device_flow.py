"""The device flow: codes, who confirms them, and refresh tokens that work once."""

from __future__ import annotations

from typing import Any

from tests.sandbox.areas.apps.conftest import StartApps
from tests.sandbox.areas.apps.test_token_check import basic
from tests.sandbox.conftest import HandClock, Platform

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


async def post(platform: Platform, path: str, **fields: str) -> Any:
    """The JSON that a form gets."""
    site = platform.url.removesuffix("/api/v3")
    body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    reply = await platform.ask("POST", site + path, token=None, raw=body, headers=form)
    assert reply.status == 200
    return reply.json()


async def test_a_user_lets_an_app_act(start_apps: StartApps, clock: HandClock) -> None:
    """The program waits until its user confirms; asking too often slows it down; then it acts for the user."""
    platform = await start_apps()
    code = await post(platform, "/login/device/code", client_id="Iv1.fleet")
    asked = {"client_id": "Iv1.fleet", "grant_type": GRANT, "device_code": code["device_code"]}
    assert (await post(platform, "/login/oauth/access_token", **asked))["error"] == "authorization_pending"
    assert (await post(platform, "/login/oauth/access_token", **asked))["error"] == "slow_down"
    confirmed = f"user_code={code['user_code']}".encode()
    headers = basic("dora", "dora-password")
    reply = await platform.ask("POST", code["verification_uri"], token=None, raw=confirmed, headers=headers)
    assert reply.status == 204
    clock.advance(2)
    pair = await post(platform, "/login/oauth/access_token", **asked)
    me = await platform.ask("GET", "/user", token=pair["access_token"])
    assert (me.json()["login"], pair["expires_in"]) == ("dora", 28_800)
    assert (await post(platform, "/login/oauth/access_token", **asked))["error"] == "incorrect_device_code"


async def test_a_refresh_token_works_once(start_apps: StartApps, clock: HandClock) -> None:
    """It gives a new pair, ends the old one, and is worth nothing then."""
    platform = await start_apps()
    app, dora = platform.sandbox.context.apps.app("Iv1.fleet"), platform.sandbox.context.state.user("dora")
    assert app is not None
    assert dora is not None
    pair = platform.sandbox.context.apps.grant(app, dora)
    fields = {"client_id": "Iv1.fleet", "grant_type": "refresh_token", "refresh_token": str(pair["refresh_token"])}
    fresh = await post(platform, "/login/oauth/access_token", **fields)
    assert (await platform.ask("GET", "/user", token=str(pair["access_token"]))).status == 401
    assert (await platform.ask("GET", "/user", token=fresh["access_token"])).status == 200
    assert (await post(platform, "/login/oauth/access_token", **fields))["error"] == "bad_refresh_token"
    clock.advance(28_800)
    assert (await platform.ask("GET", "/user", token=fresh["access_token"])).status == 401
