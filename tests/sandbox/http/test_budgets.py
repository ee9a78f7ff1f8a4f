"""Rate limits: windows, what counts, what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bulk.sandbox import DEFAULT_RATE_LIMITS, RateLimit
from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.areas.snapshots import snapshots

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start

CORE = "/orgs/acme-ops/rulesets"
SNAPSHOTS = "/repos/acme-eng/hello-world/dependency-graph/snapshots"
TEST_AREAS = (organizations.AREA, rate_limit.AREA, rulesets.AREA, snapshots.AREA)


async def status(platform: Platform, token: str | None = "sbx-site-admin", **options: Any) -> dict[str, Any]:
    """What GET /rate_limit shows."""
    reply = await platform.ask("GET", "/rate_limit", token=token, **options)
    assert reply.status == 200
    found: dict[str, Any] = reply.json()
    return found


async def test_status(start: Start, clock: HandClock) -> None:
    """GET /rate_limit shows all categories, full, and a reset as if a window began now; asking counts nothing."""
    platform = await start(clock=clock)
    for _ in range(3):
        found = await status(platform)
    assert set(found["resources"]) == set(DEFAULT_RATE_LIMITS)
    for category, limit in DEFAULT_RATE_LIMITS.items():
        assert found["resources"][category] == {
            "limit": limit.limit,
            "used": 0,
            "remaining": limit.limit,
            "reset": 1_800_000_000 + limit.seconds,
        }
    assert found["rate"] == found["resources"]["core"]


async def test_rate_is_gone_in_the_newest_version(shared: Platform) -> None:
    """The object `rate` is removed in 2026-03-10."""
    assert set(await status(shared, headers={"X-Service-Api-Version": "2026-03-10"})) == {"resources"}


async def test_a_window(start: Start, clock: HandClock) -> None:
    """A window begins at the whole second of its first request and ends at its reset; the next comes when asked."""
    platform = await start(clock=clock, rate_limits={"core": RateLimit(2, 5)})
    clock.advance(10.5)
    left = []
    for _ in range(2):
        reply = await platform.ask("GET", CORE)
        left.append((reply.status, reply.headers["X-RateLimit-Remaining"], reply.headers["X-RateLimit-Used"]))
        assert reply.headers["X-RateLimit-Reset"] == "1800000015"
        assert reply.headers["X-RateLimit-Limit"] == "2"
        clock.advance(1)
    assert left == [(200, "1", "1"), (200, "0", "2")]
    # 1800000012.75: 2.25 s to go
    clock.advance(2.24)
    refused = await platform.ask("GET", CORE)
    assert refused.status == 403
    assert refused.json()["message"].startswith("API rate limit exceeded")
    assert (refused.headers["X-RateLimit-Remaining"], refused.headers["X-RateLimit-Used"]) == ("0", "2")
    clock.advance(0.01)
    assert (await status(platform))["resources"]["core"]["remaining"] == 2
    clock.advance(1)
    again = await platform.ask("GET", CORE)
    assert (again.status, again.headers["X-RateLimit-Reset"]) == (200, "1800000021")


async def test_categories_are_apart(start: Start) -> None:
    """A category that is spent holds up no other."""
    platform = await start(rate_limits={"core": RateLimit(1, 60), "dependency_snapshots": RateLimit(1, 60)})
    assert [(await platform.ask("GET", CORE)).status for _ in range(2)] == [200, 403]
    replies = [await platform.ask("POST", SNAPSHOTS, body={}) for _ in range(2)]
    assert [reply.status for reply in replies] == [422, 403]
    assert replies[1].headers["X-RateLimit-Resource"] == "dependency_snapshots"


async def test_payers_are_apart(start: Start) -> None:
    """Every user has budgets of his own, which all of his tokens share; an installation has others."""
    platform = await start(rate_limits={"core": RateLimit(1, 60)})
    for token in ("sbx-site-admin", "sbx-org-owner"):
        assert [(await platform.ask("GET", CORE, token=token)).status for _ in range(2)] == [200, 403]
    refused = await platform.ask("GET", CORE, token="sbx-fine-grained")
    assert refused.json()["message"] == "API rate limit exceeded for user ID 1."
    assert (await platform.ask("GET", CORE, token="sbx-installation")).status == 404
    assert (await status(platform, "sbx-member"))["resources"]["core"]["remaining"] == 1


async def test_anonymous_callers_share_a_small_budget(start: Start) -> None:
    """Without a token there are 60 requests an hour for each address."""
    platform = await start(areas=AREAS)
    reply = await platform.ask("GET", "/repos/acme-eng/hello-world/readme", token=None)
    assert (reply.headers["X-RateLimit-Limit"], reply.headers["X-RateLimit-Remaining"]) == ("60", "59")
    assert (await status(platform, None))["resources"]["core"]["used"] == 1


async def test_refusals_count(start: Start) -> None:
    """What was refused after authentication counts, what was refused before it does not; a 401 is of the address."""
    platform = await start()
    await platform.ask("GET", "/nothing")
    await platform.ask("POST", "/admin/organizations", body={})
    await platform.ask("GET", CORE, headers={"X-Service-Api-Version": "1"})
    bad = await platform.ask("GET", CORE, token="wrong")
    assert (bad.status, bad.headers["X-RateLimit-Limit"], bad.headers["X-RateLimit-Remaining"]) == (401, "60", "59")
    assert (await status(platform))["resources"]["core"]["used"] == 2


async def test_not_modified_is_free(start: Start) -> None:
    """A 304 leaves the budget as it was; the last request of a window may be repeated so, until the budget is spent."""
    platform = await start(rate_limits={"core": RateLimit(2, 60)})
    first = await platform.ask("GET", CORE)
    for _ in range(5):
        again = await platform.ask("GET", CORE, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status, again.headers["X-RateLimit-Remaining"], again.content) == (304, "1", b"")
    await platform.ask("GET", CORE)
    spent = await platform.ask("GET", CORE, headers={"If-None-Match": first.headers["ETag"]})
    assert spent.status == 403


async def test_limits_off(start: Start) -> None:
    """With limits off, /rate_limit is 404, nothing is ever refused, and no answer speaks of limits."""
    platform = await start(rate_limit_off=True, rate_limits={"core": RateLimit(1, 60)})
    assert (await platform.ask("GET", "/rate_limit")).status == 404
    for _ in range(3):
        reply = await platform.ask("GET", CORE)
        assert reply.status == 200
        assert not [name for name in reply.headers if name.lower().startswith("x-ratelimit")]
