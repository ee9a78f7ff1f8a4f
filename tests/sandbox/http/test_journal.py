"""The journal: one line for each request, there when the answer is."""

from __future__ import annotations

import stat
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from bulk.sandbox import SettingError
from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.snapshots import snapshots

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Start

TEST_AREAS = (organizations.AREA, rate_limit.AREA, rulesets.AREA, snapshots.AREA)
KEYS = [
    "at",
    "elapsed_ms",
    "user",
    "payer",
    "method",
    "path",
    "status",
    "applied",
    "effect",
    "category",
    "remaining",
    "fault",
]


async def test_lines(start: Start, clock: HandClock) -> None:
    """Each request has one line with exactly the documented keys; a reader that has the answer finds it."""
    platform = await start(clock=clock)
    asked = [
        ("POST", "/admin/organizations", {"login": "new-one", "admin": "bob"}, 201),
        ("POST", "/admin/organizations", {"login": "new-one", "admin": "bob"}, 422),
        ("GET", "/orgs/acme-eng/rulesets?per_page=1", None, 200),
        ("GET", "/rate_limit", None, 200),
        ("GET", "/nothing", None, 404),
    ]
    for place, (method, path, body, status) in enumerate(asked):
        assert (await platform.ask(method, path, body=body)).status == status
        assert len(platform.journal()) == place + 1
    lines = platform.journal()
    assert all(list(line) == KEYS for line in lines)
    assert [line["at"] for line in lines] == ["2027-01-15T08:00:00.250000Z"] * 5
    assert datetime.fromisoformat(lines[0]["at"]).timestamp() == clock.now()
    shown = [
        tuple(line[key] for key in ("user", "method", "path", "status", "applied", "effect", "category", "remaining"))
        for line in lines
    ]
    admin, path = "octoadmin", "/api/v3/admin/organizations"
    assert shown == [
        (admin, "POST", path, 201, True, "organization new-one created", "core", 4999),
        (admin, "POST", path, 422, False, None, "core", 4998),
        (admin, "GET", "/api/v3/orgs/acme-eng/rulesets", 200, True, None, "core", 4997),
        (admin, "GET", "/api/v3/rate_limit", 200, True, None, None, None),
        (admin, "GET", "/api/v3/nothing", 404, False, None, "core", 4996),
    ]


async def test_who_is_unknown(start: Start) -> None:
    """An anonymous caller and a bad credential have no user; a refused one no category; no token is ever written."""
    platform = await start()
    await platform.ask("GET", "/rate_limit", token=None)
    await platform.ask("GET", "/rate_limit?access_token=sbx-secret", token="sbx-wrong")
    lines = platform.journal()
    assert [(line["user"], line["status"], line["category"]) for line in lines] == [
        (None, 200, None),
        (None, 401, None),
    ]
    path = platform.sandbox.journal
    assert path is not None
    assert "sbx-" not in path.read_text()


async def test_a_304_and_limits_off(start: Start) -> None:
    """A 304 was carried out and its budget is back; without limits nothing remains to be shown."""
    platform = await start()
    etag = (await platform.ask("GET", "/orgs/acme-eng/rulesets")).headers["ETag"]
    await platform.ask("GET", "/orgs/acme-eng/rulesets", headers={"If-None-Match": etag})
    line = platform.journal()[-1]
    assert (line["status"], line["applied"], line["remaining"]) == (304, True, 4999)
    other = await start(rate_limit_off=True)
    await other.ask("GET", "/orgs/acme-eng/rulesets")
    assert (other.journal()[-1]["category"], other.journal()[-1]["remaining"]) == ("core", None)


async def test_the_file(start: Start, tmp_path: Path) -> None:
    """The file is closed to others and goes on where it ended; without one nothing is written."""
    for count in (1, 2):
        platform = await start(journal=tmp_path / "j.jsonl")
        await platform.ask("GET", "/rate_limit")
        assert len(platform.journal()) == count
    assert stat.S_IMODE((tmp_path / "j.jsonl").stat().st_mode) == 0o600
    assert (await (await start(journal=None)).ask("GET", "/rate_limit")).status == 200


async def test_a_file_that_can_not_be_written(start: Start, tmp_path: Path) -> None:
    """A journal that can't be opened is a SettingError."""
    with pytest.raises(SettingError, match=r"--journal .*: name a file that can be written"):
        await start(journal=tmp_path / "missing" / "j.jsonl")
