"""Who is calling, what tokens bring, and the lock-out."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from bulk.sandbox import ExtraToken
from bulk.sandbox.http.auth.authentication import LOCK_AFTER, LOCK_FOR_S, LOCK_WITHIN_S

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start

WHO = "/orgs/acme-eng/rulesets"


def basic(name: str, password: str) -> dict[str, str]:
    """The header of Basic authentication."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Bearer sbx-org-owner", 200),
        ("bearer sbx-org-owner", 200),
        ("token sbx-org-owner", 200),
        (basic("alice", "sbx-org-owner")["Authorization"], 200),
        (basic("Alice", "sbx-org-owner")["Authorization"], 200),
        (basic("sbx-org-owner", "")["Authorization"], 200),
        (basic("bob", "sbx-org-owner")["Authorization"], 401),
        ("Bearer nonsense", 401),
        ("Bearer", 401),
        ("Basic !!!", 401),
        ("Basic YWxpY2U=", 401),
        ("Digest sbx-org-owner", 401),
        ("sbx-org-owner", 401),
    ],
)
async def test_forms_of_credentials(shared: Platform, header: str, status: int) -> None:
    """Bearer, token and Basic with the user's own token are accepted; anything else is a bad credential."""
    reply = await shared.ask("GET", WHO, token=None, headers={"Authorization": header})
    assert reply.status == status
    if status == 401:
        assert reply.json()["message"] == "Bad credentials"


async def test_anonymous(shared: Platform) -> None:
    """Without a token, only what is public is answered; the rest requires authentication."""
    assert (await shared.ask("GET", "/rate_limit", token=None)).status == 200
    assert (await shared.ask("GET", "/repos/acme-eng/hello-world/readme", token=None)).status == 200
    assert (await shared.ask("GET", "/repos/acme-eng/private-notes/readme", token=None)).status == 404
    refused = await shared.ask("GET", WHO, token=None)
    assert (refused.status, refused.json()["message"]) == (401, "Requires authentication")


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("sbx-site-admin", 200),
        ("sbx-org-owner", 200),
        ("sbx-member", 404),
        ("sbx-read-only", 200),
        ("sbx-fine-grained", 200),
        ("sbx-installation", 200),
    ],
)
async def test_owners_rights(shared: Platform, token: str, status: int) -> None:
    """What is for an organization's owners is 404 for a member, whatever his token brings."""
    assert (await shared.ask("GET", WHO, token=token)).status == status


@pytest.mark.parametrize(
    ("token", "repository", "read", "write"),
    [
        ("sbx-site-admin", "acme-eng/private-notes", 200, 422),
        ("sbx-member", "acme-eng/private-notes", 200, 422),
        ("sbx-member", "acme-ops/runbook", 200, 403),
        ("sbx-read-only", "acme-eng/hello-world", 200, 403),
        ("sbx-read-only", "acme-eng/private-notes", 404, 403),
        ("sbx-fine-grained", "acme-eng/private-notes", 200, 422),
        ("sbx-installation", "acme-eng/private-notes", 200, 422),
        ("sbx-installation", "acme-ops/runbook", 200, 403),
    ],
)
async def test_repositories(shared: Platform, token: str, repository: str, read: int, write: int) -> None:
    """Everybody reads what is public; members read and write what is their organization's, if the token brings it."""
    assert (await shared.ask("GET", f"/repos/{repository}/readme", token=token)).status == read
    path = f"/repos/{repository}/dependency-graph/snapshots"
    assert (await shared.ask("POST", path, token=token, body={})).status == write


async def test_names_in_any_case(shared: Platform) -> None:
    """Owners, organizations and repositories are found in any case."""
    assert (await shared.ask("GET", "/orgs/ACME-Ops/rulesets")).status == 200
    assert (await shared.ask("GET", "/repos/Acme-ENG/Hello-World/readme")).status == 200


async def test_tokens_end(start: Start, clock: HandClock) -> None:
    """A token given for so many seconds, or an installation token after 60 minutes, is a bad credential."""
    platform = await start(clock=clock, tokens=(ExtraToken("short", "alice", 90),))
    clock.advance(89)
    assert (await platform.ask("GET", WHO, token="short")).status == 200
    clock.advance(1)
    assert (await platform.ask("GET", WHO, token="short")).status == 401
    clock.advance(3600 - 91)
    assert (await platform.ask("GET", WHO, token="sbx-installation")).status == 200
    clock.advance(1)
    assert (await platform.ask("GET", WHO, token="sbx-installation")).status == 401


async def test_lock_out_of_a_credential(start: Start, clock: HandClock) -> None:
    """Five bad tries in 60 s lock a credential out with 403 for 60 s; others go on."""
    platform = await start(clock=clock)
    for _ in range(LOCK_AFTER):
        assert (await platform.ask("GET", WHO, token="wrong")).status == 401
    locked = await platform.ask("GET", WHO, token="wrong")
    assert (locked.status, "login attempts" in locked.json()["message"]) == (403, True)
    assert "X-RateLimit-Limit" not in locked.headers
    assert (await platform.ask("GET", WHO, token="another")).status == 401
    assert (await platform.ask("GET", WHO)).status == 200
    clock.advance(LOCK_FOR_S - 0.1)
    assert (await platform.ask("GET", WHO, token="wrong")).status == 403
    clock.advance(0.1)
    assert (await platform.ask("GET", WHO, token="wrong")).status == 401


async def test_lock_out_of_a_user(start: Start, clock: HandClock) -> None:
    """Bad tries under a user's name lock that user out, even with a good token; other users go on."""
    platform = await start(clock=clock)
    for attempt in range(LOCK_AFTER):
        bad = basic("alice", f"guess-{attempt}")
        assert (await platform.ask("GET", WHO, token=None, headers=bad)).status == 401
    assert (await platform.ask("GET", WHO, token="sbx-org-owner")).status == 403
    assert (await platform.ask("GET", WHO, token=None, headers=basic("alice", "sbx-org-owner"))).status == 403
    assert (await platform.ask("GET", WHO, token="sbx-site-admin")).status == 200
    clock.advance(LOCK_FOR_S)
    assert (await platform.ask("GET", WHO, token="sbx-org-owner")).status == 200


async def test_slow_mistakes_lock_nobody(start: Start, clock: HandClock) -> None:
    """Bad tries that are spread over more than a minute never lock out."""
    platform = await start(clock=clock)
    for _ in range(3 * LOCK_AFTER):
        assert (await platform.ask("GET", WHO, token="wrong")).status == 401
        clock.advance(LOCK_WITHIN_S / (LOCK_AFTER - 1) + 0.1)
