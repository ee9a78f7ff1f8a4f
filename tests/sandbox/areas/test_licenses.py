"""The license, and the committers that take seats of advanced security."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bulk.sandbox.areas import licenses
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.store.records import TokenKind

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start

TEST_AREAS = (licenses.AREA, organizations.AREA)
LICENSE = "/enterprise/settings/license"
COMMITTERS = "/enterprises/acme/settings/billing/advanced-security"


async def test_license(start: Start, clock: HandClock) -> None:
    """Seats, how many users take one, and the days that are left, counted up."""
    platform = await start(clock=clock)
    reply = await platform.ask("GET", LICENSE)
    assert reply.status == 200
    assert reply.json() == {
        "seats": 100,
        "seats_used": 4,
        "seats_available": 96,
        "kind": "standard",
        "days_until_expiration": 1082,
        "expire_at": "2030-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("sbx-site-admin", 200),
        ("sbx-read-only", 200),
        ("sbx-org-owner", 404),
        ("sbx-member", 404),
        ("sbx-fine-grained", 404),
        ("sbx-installation", 404),
        (None, 401),
    ],
)
async def test_who_sees_the_license(shared: Platform, token: str | None, status: int) -> None:
    """Administrators with any classic token; for everybody else it is not there."""
    assert (await shared.ask("GET", LICENSE, token=token)).status == status


async def test_no_license(start: Start) -> None:
    """Where there is none it is 404, and no seats were bought."""
    platform = await start()
    platform.sandbox.context.state.db.execute("DELETE FROM licenses")
    assert (await platform.ask("GET", LICENSE)).status == 404
    assert (await platform.ask("GET", COMMITTERS)).json()["purchased_advanced_security_committers"] == 0


async def test_committers(shared: Platform) -> None:
    """Who commits to two repositories takes one seat: three logins, although the repositories have two each."""
    reply = await shared.ask("GET", COMMITTERS)
    assert reply.status == 200
    report = reply.json()
    repositories = report.pop("repositories")
    assert report == {
        "total_advanced_security_committers": 3,
        "total_count": 2,
        "maximum_advanced_security_committers": 3,
        "purchased_advanced_security_committers": 10,
    }
    assert [(each["name"], each["advanced_security_committers"]) for each in repositories] == [
        ("acme-eng/hello-world", 2),
        ("acme-ops/runbook", 2),
    ]
    assert repositories[0]["advanced_security_committers_breakdown"] == [
        {"user_login": "alice", "last_pushed_date": "2025-06-01", "last_pushed_email": "alice@acme.example"},
        {"user_login": "bob", "last_pushed_date": "2025-05-31", "last_pushed_email": "bob@acme.example"},
    ]


async def test_pages_of_committers(shared: Platform) -> None:
    """Pages cut the repositories; the totals are those of all."""
    reply = await shared.ask("GET", f"{COMMITTERS}?per_page=1&page=2")
    report = reply.json()
    assert [each["name"] for each in report["repositories"]] == ["acme-ops/runbook"]
    assert (report["total_count"], report["total_advanced_security_committers"]) == (2, 3)
    assert 'rel="prev"' in reply.headers["Link"]


async def test_the_product(start: Start) -> None:
    """Named it must be where the products are licensed one by one, and must not be elsewhere."""
    platform = await start()
    asked = [None, "code_security", "secret_protection", "other"]

    async def statuses() -> list[int]:
        urls = (COMMITTERS if each is None else f"{COMMITTERS}?advanced_security_product={each}" for each in asked)
        return [(await platform.ask("GET", url)).status for url in urls]

    assert await statuses() == [200, 422, 422, 422]
    platform.sandbox.context.state.db.execute("UPDATE licenses SET standalone = 1")
    assert await statuses() == [422, 200, 200, 422]
    (error,) = (await platform.ask("GET", COMMITTERS)).json()["errors"]
    assert (error["field"], error["code"]) == ("advanced_security_product", "missing_field")


async def test_who_sees_the_committers(start: Start) -> None:
    """Administrators with a scope or the permission to write; members are refused, strangers find nothing."""
    platform = await start()
    state = platform.sandbox.context.state
    octoadmin, carol = state.user("octoadmin"), state.user("carol")
    assert octoadmin is not None
    assert carol is not None
    state.add_token("carol", carol, scopes=("admin:enterprise",))
    state.add_token("billing", octoadmin, scopes=("manage_billing:enterprise",))
    for name, level in (("fine-read", "read"), ("fine-write", "write")):
        permissions = {"enterprise_administration": level}
        state.add_token(name, octoadmin, kind=TokenKind.FINE_GRAINED, permissions=permissions)
    expected = {
        "sbx-site-admin": 200,
        "billing": 200,
        "fine-write": 200,
        "fine-read": 403,
        "sbx-read-only": 403,
        "sbx-installation": 403,
        "sbx-org-owner": 403,
        "sbx-member": 403,
        "carol": 404,
        None: 401,
    }
    assert {token: (await platform.ask("GET", COMMITTERS, token=token)).status for token in expected} == expected
    assert (await platform.ask("GET", COMMITTERS.replace("acme", "other"))).status == 404


async def test_billing_managers_see_the_committers(start: Start, tmp_path: Path) -> None:
    """A billing manager of the enterprise does, who is neither administrator nor member, and sees no more of it."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(
        "users: [{login: erin, billing_manager: true}]\n"
        "tokens: [{token: erin, user: erin, scopes: [admin:enterprise]}, {token: e2, user: erin, scopes: [repo]}]\n"
    )
    platform = await start(seed_data=seed)
    others = (LICENSE, "/enterprises/acme/code_security_and_analysis")
    answers = [(await platform.ask("GET", path, token="erin")).status for path in (COMMITTERS, *others)]
    assert answers == [200, 404, 404]
    assert (await platform.ask("GET", COMMITTERS, token="e2")).status == 403
