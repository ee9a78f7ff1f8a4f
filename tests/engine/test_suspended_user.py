"""What `bulk credentials check` says of a token whose user was suspended."""

import json
from pathlib import Path

import pytest
from aiohttp import web

from bulk.clock import Clock
from bulk.engine.credentials.credential_check import check_credentials
from bulk.manifest.reading import Overrides, read_manifest
from bulk.platform.auth.manifest_credentials import credentials_of

SAID = "Sorry. Your account was suspended."


async def suspended(_: web.BaseRequest) -> web.StreamResponse:
    """What the platform says to everything that he asks."""
    return web.json_response({"message": SAID}, status=403)


@pytest.mark.anyio
async def test_a_suspended_user_may_nothing(tmp_path: Path) -> None:
    """It is a `no` with the platform's words, and not something that can't be known."""
    runner = web.ServerRunner(web.Server(suspended))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/api/v3"
        job = {"operation": "readme.get", "items": [{"owner": "acme-eng", "repo": "hello-world"}]}
        manifest = {"version": 1, "platform": {"base_url": base_url}, "jobs": {"reads": job}}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        found, clock = read_manifest(tmp_path / "manifest.json", Overrides(), {}), Clock()
        rows = await check_credentials(found, credentials_of(found, {"BULK_TOKEN": "tok-of-a-user"}, clock), clock)
        assert [row.may for row in rows] == [f"no: the platform refused it (403): {SAID}"]
    finally:
        await runner.cleanup()
