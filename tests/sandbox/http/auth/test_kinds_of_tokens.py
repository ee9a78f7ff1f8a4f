"""Which kinds of tokens may use which groups of endpoints.

Source: specification, Authentication (per endpoint group).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bulk.sandbox.http.auth.rights import ALL_SCOPES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import Platform, Start

HELD = (
    "contents",
    "enterprise_administration",
    "enterprise_teams",
    "organization_administration",
    "organization_hooks",
)
PERMISSIONS = dict.fromkeys(HELD, "write")
TOKENS: list[dict[str, object]] = [
    {"token": "of-classic", "scopes": list(ALL_SCOPES)},
    {"token": "of-oauth", "kind": "oauth", "scopes": list(ALL_SCOPES)},
    {"token": "of-fine-grained", "kind": "fine-grained", "permissions": PERMISSIONS},
    {"token": "of-app-user", "kind": "app-user", "permissions": PERMISSIONS},
    {"token": "of-installation", "kind": "installation", "permissions": PERMISSIONS, "organization": "acme-eng"},
]
CLASSIC, OAUTH, FINE, APPS = {"of-classic"}, {"of-oauth"}, {"of-fine-grained"}, {"of-app-user", "of-installation"}
EVERY = CLASSIC | OAUTH | FINE | APPS
TEAM = "/enterprises/acme/teams/ent:platform/organizations"
LEGACY = "/enterprises/acme/code_security_and_analysis"
THREAD = "/notifications/threads/1"
# A body that can't be used is 422 or 400, and by that shows that the token was let in.
GROUPS = {
    "Enterprise team organizations": (
        CLASSIC | FINE,
        [
            ("GET", TEAM),
            ("POST", f"{TEAM}/add"),
            ("POST", f"{TEAM}/remove"),
            *((method, f"{TEAM}/acme-eng") for method in ("GET", "PUT", "DELETE")),
        ],
    ),
    "Contents": (
        EVERY,
        [
            ("GET", "/repos/acme-eng/private-notes/readme"),
            *((method, "/repos/acme-eng/hello-world/contents/x") for method in ("PUT", "DELETE")),
        ],
    ),
    "Enterprise code security configurations": (
        CLASSIC | OAUTH,
        [
            (method, f"/enterprises/acme/code-security/configurations{rest}")
            for method, rest in (("GET", ""), ("POST", ""), ("GET", "/defaults"), ("GET", "/1001"))
        ],
    ),
    "Organization code security configurations": (
        EVERY,
        [(method, "/orgs/acme-eng/code-security/configurations/2001") for method in ("GET", "PATCH")],
    ),
    "Legacy enterprise security settings": (
        CLASSIC,
        [("GET", LEGACY), ("PATCH", LEGACY), ("POST", "/enterprises/acme/dependabot_alerts/disable_all")],
    ),
    "Enterprise rulesets": (
        CLASSIC | OAUTH,
        [("GET", f"/enterprises/acme/rulesets/3001/history{rest}") for rest in ("", "/32")],
    ),
    "Organization rulesets": (EVERY, [("GET", "/orgs/acme-eng/rulesets"), ("POST", "/orgs/acme-eng/rulesets")]),
    "License": (CLASSIC | OAUTH, [("GET", "/enterprise/settings/license")]),
    "Advanced-security committers": (
        CLASSIC | OAUTH | FINE,
        [("GET", "/enterprises/acme/settings/billing/advanced-security")],
    ),
    "Organization administration": (
        CLASSIC,
        [("POST", "/admin/organizations"), ("PATCH", "/admin/organizations/acme-eng")],
    ),
    "Dependency snapshots": (EVERY, [("POST", "/repos/acme-eng/hello-world/dependency-graph/snapshots")]),
    "Organization webhooks": (EVERY, [("GET", "/orgs/acme-eng/hooks"), ("POST", "/orgs/acme-eng/hooks")]),
    "Notifications": (
        CLASSIC,
        [("GET", "/notifications"), ("PUT", "/notifications"), ("GET", THREAD), ("PATCH", THREAD)],
    ),
    "Rate limit": (EVERY, [("GET", "/rate_limit")]),
}


@pytest.fixture
async def seeded(start: Start, tmp_path: Path) -> Platform:
    """A sandbox with a token of each kind, which holds all that its kind can hold."""
    tokens = [{"user": "octoadmin", **token} for token in TOKENS]
    (tmp_path / "seed.json").write_text(json.dumps({"tokens": tokens}))
    return await start(seed_data=tmp_path / "seed.json")


async def test_each_group_is_for_the_kinds_that_the_table_names(seeded: Platform) -> None:
    """No other kind is let in, whatever it holds, and no kind that the table names is refused."""
    wrong = []
    for group, (kinds, requests) in GROUPS.items():
        for method, path in requests:
            for token in sorted(EVERY):
                body: object = None if method == "GET" else {}
                status = (await seeded.ask(method, path, token=token, body=body)).status
                if (status not in (401, 403, 404)) != (token in kinds):
                    wrong.append((group, method, path, token, status))
    assert wrong == []


async def test_a_token_of_an_oauth_application_says_so(seeded: Platform) -> None:
    """A header names its application; no other kind of token has one."""
    told = [(await seeded.ask("GET", "/rate_limit", token=token)).headers for token in sorted(EVERY)]
    assert ["X-OAuth-Client-Id" in headers for headers in told] == [token in OAUTH for token in sorted(EVERY)]
