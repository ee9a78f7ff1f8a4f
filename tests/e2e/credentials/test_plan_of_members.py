"""`bulk plan` with tokens that may do too little, and with members of a pool of whom nobody says who pays for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bulk.clock import Clock
from tests.e2e.support.platform import Home, served

CHANGE = {"owner": "acme-eng", "repo": "hello-world", "path": "a", "message": "Add a", "content": "YQ=="}
README = {"owner": "acme-eng", "repo": "hello-world"}


def planned(home: Home, base_url: str, tokens: Mapping[str, str], item: Mapping[str, str]) -> str:
    """What a plan says of one item and the pool of these tokens, and of the first of them alone."""
    for member, token in tokens.items():
        home.write(member, token).chmod(0o600)
    credentials: dict[str, object] = {member: f"file:{member}" for member in tokens}
    credentials["all"] = {"pool": list(tokens), "writes": True}
    operation = "contents.put" if "path" in item else "readme.get"
    named = {"path": "alone"} if "path" in item else {}
    jobs = {
        name: {
            "operation": operation,
            "credential": name,
            "items": [item if name == "all" else {**item, **named}],
        }
        for name in ("all", *list(tokens)[-1:])
    }
    about = {"base_url": base_url, "credentials": credentials}
    home.write("m.yaml", json.dumps({"version": 1, "platform": about, "jobs": jobs}))
    ran = home.run("plan", "m.yaml")
    assert ran.exit_code == 0, ran
    return " ".join(ran.out.split())


def test_scopes_that_jobs_need_and_tokens_lack(tmp_path: Path) -> None:
    """A member of a pool, and a credential of its own, that may not do what its jobs do, is named before a run."""
    scopes = {"good": ["repo"], "lesser": ["gist"]}
    tokens = [{"token": f"dora-{name}", "user": "dora", "scopes": held} for name, held in scopes.items()]
    with served(tmp_path / "platform", seed={"users": [{"login": "dora"}], "tokens": tokens}) as platform:
        home = Home(tmp_path / "home")
        said = planned(home, platform.base_url, {name: f"dora-{name}" for name in scopes}, CHANGE)
        assert "pool all: its member 'lesser' may not do all of contents.put: needs repo" in said
        assert "credential lesser may not do all of contents.put: needs repo" in said
        assert "'good'" not in said
        assert "member 'lesser' may not do all of readme.get" in planned(
            home, platform.base_url, {name: f"dora-{name}" for name in scopes}, README
        )


@contextmanager
def installations(limits: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """A platform that tells no token whose it is, and each its own limit and what is left (counts)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            limit, left = limits[self.headers["Authorization"].rpartition(" ")[2]]
            told = {"limit": limit, "remaining": left, "used": limit - left, "reset": int(Clock().now()) + 3_600}
            is_status = self.path.endswith("/rate_limit")
            body = json.dumps({"resources": {"core": told}} if is_status else {"message": "Not accessible"}).encode()
            self.send_response(200 if is_status else 403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/api/v3"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("limits", "together"),
    [
        ({"token-of-a": (5_000, 4_000), "token-of-b": (12_500, 12_000)}, "2 payers, 17,500 requests an hour"),
        ({"token-of-a": (5_000, 4_000), "token-of-b": (5_000, 100)}, "2 payers, 10,000 requests an hour"),
        ({"token-of-a": (5_000, 4_000), "token-of-b": (5_000, 4_000)}, "2 tokens of 1 payer"),
    ],
    ids=["other limits", "other rests", "alike"],
)
def test_members_of_whom_nobody_says_who_pays(
    tmp_path: Path, limits: dict[str, tuple[int, int]], together: str
) -> None:
    """They are one payer in the plan, unless what they are told of their limits contradicts that."""
    with installations(limits) as base_url:
        assert together in planned(Home(tmp_path / "home"), base_url, {name[-1]: name for name in limits}, README)
