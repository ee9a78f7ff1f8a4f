"""The history of an enterprise's ruleset, and its single versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.rulesets import rulesets

if TYPE_CHECKING:
    from tests.sandbox.conftest import Platform

TEST_AREAS = (organizations.AREA, rulesets.AREA)
PATH = "/enterprises/acme/rulesets/3001/history"


async def test_newest_first(shared: Platform) -> None:
    """An entry has the specification's fields; the newest version comes first."""
    entries = (await shared.ask("GET", PATH)).json()
    assert [entry["version_id"] for entry in entries] == [33, 32, 31]
    assert entries[0] == {
        "version_id": 33,
        "actor": {"id": 1, "type": "User"},
        "updated_at": "2025-01-22T00:00:00Z",
    }


async def test_pages(shared: Platform) -> None:
    """The history comes in pages."""
    reply = await shared.ask("GET", f"{PATH}?per_page=2")
    assert [entry["version_id"] for entry in reply.json()] == [33, 32]
    assert 'rel="next"' in reply.headers["Link"]


async def test_a_version_has_the_state_of_its_time(shared: Platform) -> None:
    """A version is its entry of the history with the ruleset as it was then."""
    version = (await shared.ask("GET", f"{PATH}/31")).json()
    state = version.pop("state")
    assert version == (await shared.ask("GET", PATH)).json()[-1]
    assert list(state) == (["id", "name", "target", "source_type", "source", "enforcement", "conditions", "rules"])
    assert (state["id"], state["source_type"], state["source"], state["enforcement"]) == (
        3001, "Enterprise", "acme", "disabled",
    )  # fmt: skip
    assert state["conditions"]["organization_name"] == {"include": ["acme-eng"]}
    assert state["rules"] == [{"type": "repository_delete"}]


@pytest.mark.parametrize(
    "path",
    [
        "/enterprises/acme/rulesets/3002/history",
        "/enterprises/acme/rulesets/3101/history",
        "/enterprises/other/rulesets/3001/history",
        "/enterprises/acme/rulesets/x/history",
        f"{PATH}/30",
        f"{PATH}/x",
        f"{PATH}/{'9' * 30}",
        "/enterprises/acme/rulesets/3101/history/31",
    ],
)
async def test_what_is_not_there(shared: Platform, path: str) -> None:
    """Another ruleset, an organization's included, another enterprise and another version are 404."""
    assert (await shared.ask("GET", path)).status == 404


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (None, 401),
        ("sbx-site-admin", 200),
        ("sbx-org-owner", 404),
        ("sbx-member", 404),
        ("sbx-fine-grained", 404),
        ("sbx-installation", 404),
        ("sbx-read-only", 404),
    ],
)
async def test_who_sees_it(shared: Platform, token: str | None, status: int) -> None:
    """Administrators of the enterprise with a classic token see it; for everybody else there is none."""
    assert (await shared.ask("GET", PATH, token=token)).status == status
    assert (await shared.ask("GET", f"{PATH}/33", token=token)).status == status
