"""Basic authentication, whom a token acts for, and what an App may know of its own tokens."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from bulk.sandbox import running
from bulk.sandbox.settings import Settings
from tests.sandbox.areas.apps.conftest import StartApps
from tests.sandbox.conftest import Start, Visit


def basic(name: str, password: str) -> dict[str, str]:
    """The header."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


async def test_user_name_and_password(start_apps: StartApps) -> None:
    """A user name and password are a credential. Source: specification, Authentication 3."""
    platform = await start_apps()
    for name, password, status in (
        ("dora", "dora-password", 200),
        ("octoadmin", "sbx-password", 200),
        ("dora", "sbx-password", 401),
        ("carol", "sbx-password", 401),
    ):
        reply = await platform.ask("GET", "/user", token=None, headers=basic(name, password))
        assert reply.status == status
        assert status == 401 or reply.json()["login"] == name


async def test_an_app_checks_its_tokens(start_apps: StartApps) -> None:
    """With client id and secret as Basic it learns whose a token is; of others' tokens it learns nothing.

    Source: specification, Authentication 3.
    """
    platform, mine = await start_apps(), basic("Iv1.fleet", "fleet-secret")
    path, body = "/applications/Iv1.fleet/token", {"access_token": "dora-oauth"}
    found = await platform.ask("POST", path, token=None, headers=mine, body=body)
    assert (found.status, found.json()["user"]["login"], found.json()["scopes"]) == (200, "dora", ["repo"])
    for body, status in (({"access_token": "sbx-site-admin"}, 404), ({}, 422)):
        assert (await platform.ask("POST", path, token=None, headers=mine, body=body)).status == status
    wrong = basic("Iv1.fleet", "wrong")
    assert (await platform.ask("POST", path, token=None, headers=wrong, body=body)).status == 401
    assert (await platform.ask("POST", path, token="sbx-site-admin", body=body)).status == 404
    assert (await platform.ask("GET", "/user", token=None, headers=mine)).status == 403


async def test_what_headers_say_of_a_token(start: Start) -> None:
    """Classic tokens show their scopes, fine-grained ones what is needed and, where they never end, the present."""
    platform = await start(vendor="github")
    reply = await platform.ask("GET", "/user", token="sbx-read-only")
    assert (reply.headers["X-OAuth-Scopes"], reply.json()["site_admin"]) == ("read:org", True)
    path = "/orgs/acme-eng/hooks"
    refused = await platform.ask("GET", path, token="sbx-fine-grained")
    assert (refused.status, refused.headers["X-Accepted-GitHub-Permissions"]) == (404, "organization_hooks=read")
    assert refused.headers["GitHub-Authentication-Token-Expiration"].endswith(" UTC")


async def test_validators_are_of_a_token(start: Start) -> None:
    """With `--etag token`, the default of `--vendor github`, an answer has another validator for each token; with
    `--etag content` it has one."""
    assert Settings(vendor="github").etag_is_of_token
    for options, is_same in (
        ({"vendor": "github"}, False),
        ({"vendor": "github", "etag": "content"}, True),
        ({}, True),
    ):
        platform = await start(**options)
        path = "/orgs/acme-ops/hooks"
        one, other = [(await platform.ask("GET", path, token=who)).headers["ETag"] for who in TOKENS]
        assert (one == other) is is_same
        again = await platform.ask("GET", path, headers={"If-None-Match": one})
        assert again.status == 304


TOKENS = ("sbx-site-admin", "sbx-org-owner")


async def test_single_sign_on_keeps_a_token_out(visit: Visit, tmp_path: Path) -> None:
    """A token that was not authorized for an organization's single sign-on gets 403 with the page that does so for what
    is in it, also what is public; elsewhere it is good, and so is it after a restart."""
    seed = tmp_path / "seed.json"
    seed.write_text('{"tokens": [{"token": "outside", "user": "octoadmin", "needs_sso": ["acme-eng"]}]}')
    for given in (seed, None):
        async with running(Settings(vendor="github", seed_data=given, state=tmp_path / "state")) as sandbox:
            platform = visit(sandbox)
            for path in ("/orgs/acme-eng/hooks", "/repos/acme-eng/hello-world/readme"):
                reply = await platform.ask("GET", path, token="outside")
                assert reply.status == 403
                page = reply.headers["X-GitHub-SSO"]
                assert re.fullmatch(r"required; url=http://\S+/orgs/acme-eng/sso\?\S+", page)
            for path, token in (("/orgs/acme-ops/hooks", "outside"), ("/orgs/acme-eng/hooks", "sbx-site-admin")):
                assert (await platform.ask("GET", path, token=token)).status == 200
