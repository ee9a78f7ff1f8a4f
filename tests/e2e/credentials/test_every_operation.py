"""`bulk credentials check` of every operation with six kinds of tokens: what it says is what a sandbox does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from bulk.clock import Clock
from bulk.engine.credentials.credential_check import PUBLIC_ONLY, UNKNOWN, YES, check_credentials
from bulk.manifest.reading import Overrides, read_manifest
from bulk.operation import find, names
from bulk.platform.auth.manifest_credentials import credentials_of
from bulk.sandbox import Settings, running

KINDS: dict[str, dict[str, Any]] = {
    "classic": {"kind": "classic", "scopes": ["repo", "read:org", "notifications"]},
    "oauth": {"kind": "oauth", "scopes": ["admin:org", "admin:org_hook", "read:enterprise", "notifications"]},
    "fine": {"kind": "fine-grained", "permissions": {"contents": "read", "organization_hooks": "read"}},
    "app-user": {"kind": "app-user", "permissions": {"contents": "write", "notifications": "read"}},
    "installation": {"kind": "installation", "organization": "acme-eng", "permissions": {"contents": "read"}},
    "workflow": {"kind": "workflow", "permissions": {"contents": "write"}},
}
REFUSED = (401, 403, 404)


def first_request(name: str) -> Any:
    """What an operation sends first for its example."""
    operation = find(name)
    fixed = {"last_read_at": "2026-01-01T00:00:00Z"} if "last_read_at" in operation.Item.__struct_fields__ else {}
    item = msgspec.json.decode(msgspec.json.encode({**operation.example, **fixed}), type=operation.Item)
    return next(operation.steps(item))


async def asked(session: aiohttp.ClientSession, base_url: str, request: Any, token: str) -> int:
    """The status of a request with a token."""
    url = URL(base_url + request.path + (f"?{request.query}" if request.query else ""), encoded=True)
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "tests", "Content-Type": "application/json"}
    body = None if request.body is None else json.dumps(request.body)
    async with session.request(request.method, url, headers=headers, data=body) as answer:
        return answer.status


async def test_what_is_said_of_every_operation_is_so(tmp_path: Path) -> None:
    """A `yes` is never refused, and a `no` always is, where the first request of the operation is the one that counts;
    classic and OAuth tokens are never unknown."""
    tokens = [{"token": f"token-of-{name}", "user": "octoadmin", **about} for name, about in KINDS.items()]
    (tmp_path / "seed.json").write_text(json.dumps({"tokens": tokens}))
    settings = Settings(state=tmp_path / "state", seed_data=tmp_path / "seed.json", rate_limit_off=True)
    async with running(settings) as sandbox:
        for name in KINDS:
            (tmp_path / name).write_text(f"token-of-{name}")
            (tmp_path / name).chmod(0o600)
        jobs = {
            f"{kind}.{name}": {"operation": name, "credential": kind, "items": [find(name).example]}
            for kind in KINDS
            for name in names()
        }
        platform = {"base_url": sandbox.base_url, "credentials": {kind: f"file:{kind}" for kind in KINDS}}
        manifest = tmp_path / "m.json"
        manifest.write_text(json.dumps({"version": 1, "platform": platform, "jobs": jobs}))
        found, clock = read_manifest(manifest, Overrides(), {}), Clock()
        rows = await check_credentials(found, credentials_of(found, {}, clock), clock)
        assert len(rows) == len(KINDS) * len(names())
        wrong, compared = [], 0
        async with aiohttp.ClientSession() as session:
            for row in rows:
                request = first_request(row.operation)
                is_decisive = find(row.operation).is_read or request.method != "GET"
                status = await asked(session, sandbox.base_url, request, f"token-of-{row.credential}")
                is_refused = status in REFUSED
                if is_refused and status == 404:  # hidden from it, or not there for anybody
                    is_refused = await asked(session, sandbox.base_url, request, "sbx-site-admin") != 404
                is_unknown = row.may.startswith(UNKNOWN)
                if row.credential == "oauth" and "webhook" in row.operation and status == 404:
                    continue  # webhooks that it has not made are hidden from it, whatever it may
                if is_unknown:
                    assert row.may == PUBLIC_ONLY or row.credential not in ("classic", "oauth"), row
                elif is_refused if row.may == YES else (is_decisive and not is_refused):
                    wrong.append((row.credential, row.operation, row.may, request.method, request.path, status))
                compared += not is_unknown
        assert not wrong, "\n".join(map(str, wrong))
        assert compared >= 2 * len(names())
