"""`bulk credentials check --probe`: one read for each owner, and what it meets there, judged by the journal."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bulk.operation import find
from tests.e2e.support.platform import Home, Ran, Served, served

SEED: dict[str, Any] = {
    "users": [{"login": "dora"}],
    "organizations": [{"login": "acme-web", "members": ["dora"]}],
    "repositories": [
        {"organization": owner, "name": "app", "private": is_private, "files": {"README.md": "# App"}}
        for owner, is_private in (("acme-web", False), ("acme-labs", True))
    ],
    "tokens": [
        {"token": "dora-classic", "user": "dora", "scopes": ["repo"], "needs_sso": ["acme-web"]},
        {"token": "dora-fine", "user": "dora", "kind": "fine-grained", "permissions": {"contents": "read"}},
        {
            "token": "octo-teams",
            "user": "octoadmin",
            "kind": "fine-grained",
            "permissions": {"enterprise_teams": "read"},
        },
    ],
    "apps": [
        {
            "slug": "fleet",
            "client_id": "Iv1.fleet",
            "permissions": {"metadata": "read", "contents": "read"},
            "installations": [{"organization": "acme-web"}, {"organization": "acme-ops", "suspended": True}],
        }
    ],
}
HERE, THERE = {"owner": "acme-web", "repo": "app"}, {"owner": "acme-eng", "repo": "hello-world"}
TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform"}
SECRET = "quoted-hook-secret-815"
FILE = {"path": "SBOM.json", "message": "Add it", "content": "e30="}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder to work in."""
    return Home(tmp_path / "home")


def manifest(home: Home, platform: Served, credentials: dict[str, Any], jobs: dict[str, Any]) -> None:
    """A manifest; credentials that are not maps are tokens."""
    named = {}
    for name, given in credentials.items():
        named[name] = given
        if isinstance(given, str):
            home.write(f"{name}/token.txt", given).chmod(0o600)
            named[name] = f"file:{name}/token.txt"
    about = {"base_url": platform.base_url, "vendor": "github", "credentials": named}
    home.write("manifest.yaml", json.dumps({"version": 1, "platform": about, "jobs": jobs}))


def probed(home: Home, platform: Served) -> tuple[Ran, dict[tuple[str, str], dict[str, Any]], list[dict[str, Any]]]:
    """What it prints, its rows by credential and owner, and what was asked of owners."""
    before = len(platform.journal())
    ran = home.run("credentials", "check", "manifest.yaml", "--probe", "--json")
    asked = [line for line in platform.journal()[before:] if line["path"].split("/")[3] in ("repos", "orgs")]
    if ran.exit_code not in (0, 1):
        return ran, {}, asked
    return ran, {(row["credential"], row["owner"]): row for row in json.loads(ran.out)["owners"]}, asked


def test_single_sign_on_is_named_with_its_page(home: Home, tmp_path: Path) -> None:
    """A token that single sign-on keeps out is a `no` with the page that lets it in; elsewhere it reaches what is
    there. However many items and operations an owner has, one read is sent there, and nothing is changed."""
    with served(tmp_path / "platform", "--vendor", "github", seed=SEED) as platform:
        jobs = {
            "files": {"operation": "contents.put", "credential": "dora", "items": [{**HERE, **FILE}]},
            "reads": {"operation": "readme.get", "credential": "dora", "items": [HERE, THERE, HERE, {**THERE}]},
        }
        manifest(home, platform, {"dora": "dora-classic"}, jobs)
        ran, rows, asked = probed(home, platform)
        assert ran.exit_code == 1, ran
        assert rows["dora", "acme-eng"]["may"] == "yes"
        refused = rows["dora", "acme-web"]
        assert refused["may"] == "no: needs authorization by single sign-on"
        assert refused["sso_url"].startswith(platform.base_url.removesuffix("/api/v3") + "/orgs/acme-web/sso?auth")
        assert {(line["method"], line["path"][7:]) for line in asked} == {
            ("GET", "/repos/acme-web/app/readme"),
            ("GET", "/repos/acme-eng/hello-world/readme"),
        }
        assert len(asked) == 2
        text = home.run("credentials", "check", "manifest.yaml", "--probe")
        assert refused["sso_url"] in text.out
        assert home.run("credentials", "check", "manifest.yaml").exit_code == 0


def test_what_permissions_hide_is_said(home: Home, tmp_path: Path) -> None:
    """Fine-grained tokens tell nothing before: a read that is refused names the permission that it takes, and one that
    finds nothing stays unknown; members of a pool are asked each."""
    with served(tmp_path / "platform", "--vendor", "github", seed=SEED) as platform:
        jobs = {
            "teams": {"operation": "team-organization.list", "credential": "both", "items": [TEAM]},
            "hooks": {"operation": "webhook.list", "credential": "fine", "items": [{"org": "acme-web"}]},
        }
        manifest(
            home, platform, {"fine": "dora-fine", "teams": "octo-teams", "both": {"pool": ["teams", "fine"]}}, jobs
        )
        ran, rows, _ = probed(home, platform)
        assert {key: row["may"] for key, row in rows.items()} == {
            ("both/teams", "acme"): "yes",
            ("both/fine", "acme"): "no: Resource not accessible by this token (it takes enterprise_teams=read)",
            ("fine", "acme-web"): "can't be known: it is not there, or hidden from this credential (404); it takes "
            "organization_hooks=read",
        }
        assert ran.exit_code == 1
        jobs["teams"]["credential"] = "fine"
        manifest(home, platform, {"fine": "dora-fine"}, {"teams": jobs["teams"]})
        assert home.run("run", "manifest.yaml", "--run-dir", "run").exit_code == 1
        assert home.results("run")[0]["error"]["message"].endswith("(it takes enterprise_teams=read)")


def test_installations_are_asked_each(home: Home, tmp_path: Path) -> None:
    """An App is asked for with a token of each owner's installation, also where a new token is not taken at once; where
    it is not installed, or suspended, that is a `no`, and nothing is sent."""
    with served(tmp_path / "platform", "--vendor", "github", "--mint-lag", "1.5", seed=SEED) as platform:
        key = next((platform.folder / "state").glob("*.private-key.pem"))
        home.write("app.pem", key.read_bytes()).chmod(0o600)
        items = [HERE, THERE, {"owner": "acme-ops", "repo": "runbook"}]
        fleet = {"fleet": {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}}}
        manifest(home, platform, fleet, {"r": {"operation": "readme.get", "credential": "fleet", "items": items}})
        ran, rows, asked = probed(home, platform)
        assert ran.exit_code == 1, ran
        assert rows["fleet", "acme-web"]["may"] == "yes"
        assert rows["fleet", "acme-eng"]["may"] == "no: the App is not installed there"
        assert "gives no token" in rows["fleet", "acme-ops"]["may"]
        reads = Counter(line["path"][7:] for line in asked if not line["path"].endswith("/installation"))
        assert set(reads) == {"/repos/acme-web/app/readme"}
        assert reads.total() > 1, "the token was taken at once"


def test_writes_are_never_sent(home: Home, tmp_path: Path) -> None:
    """Of an owner all of whose items begin with a write nothing is asked, and that is said; an owner whose write begins
    with a read is asked that."""
    with served(tmp_path / "platform", "--vendor", "github", seed=SEED) as platform:
        example = dict(find("snapshot.create").example)
        jobs = {
            "snapshots": {"operation": "snapshot.create", "credential": "dora", "items": [example]},
            "files": {"operation": "contents.put", "credential": "dora", "items": [{**HERE, **FILE}]},
        }
        manifest(home, platform, {"dora": "dora-fine"}, jobs)
        ran, rows, asked = probed(home, platform)
        assert ran.exit_code == 0, ran
        assert rows["dora", "acme-eng"]["may"] == "can't be known: no item there begins with a read"
        assert rows["dora", "acme-web"]["may"].startswith("can't be known: it is not there")
        assert [(line["method"], line["path"][7:]) for line in asked] == [
            ("GET", "/repos/acme-web/app/contents/SBOM.json")
        ]


def test_items_that_can_not_be_used_are_said_first(home: Home, tmp_path: Path) -> None:
    """With --probe the items are checked, and nothing is sent where one of them is wrong (exit 2)."""
    with served(tmp_path / "platform", "--vendor", "github", seed=SEED) as platform:
        jobs = {"r": {"operation": "readme.get", "credential": "dora", "items": [{"owner": "acme-web"}]}}
        manifest(home, platform, {"dora": "dora-fine"}, jobs)
        ran, _, asked = probed(home, platform)
        assert (ran.exit_code, asked) == (2, [])
        assert "repo" in ran.err


def test_a_token_that_is_refused_is_shown_no_further(home: Home, tmp_path: Path) -> None:
    """However many owners there are: the platform locks out who shows a bad token five times. Each has its row."""
    with served(tmp_path / "platform", "--vendor", "github", seed=SEED) as platform:
        items = [{"owner": f"org-{number}", "repo": "api"} for number in range(7)]
        manifest(home, platform, {}, {"r": {"operation": "readme.get", "items": items}})
        home.token = "a-token-that-was-revoked"
        ran, rows, asked = probed(home, platform)
        assert (ran.exit_code, len(asked)) == (1, 1), ran.err
        assert {row["may"] for row in rows.values()} == {"no: Bad credentials"}
        assert len(rows) == 7
        assert [line["status"] for line in platform.journal()] == [401, 401]


class Echo(BaseHTTPRequestHandler):
    """A platform without limits that shows a webhook's secret in whatever it refuses."""

    def do_GET(self) -> None:
        """Refuse it."""
        status = 422 if "/orgs/" in self.path else 404
        body = json.dumps({"message": f"no hook with {SECRET}"}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


def test_secrets_of_items_are_not_shown(home: Home) -> None:
    """failures.md row 62: the platform quotes the secret of an item, which nothing has sent yet."""
    config = {"url": "https://hooks.example.com/a", "secret": "env:HOOK_SECRET"}
    jobs = {"hooks": {"operation": "webhook.create", "items": [{"org": "acme", "config": config}]}}
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        base_url = f"http://127.0.0.1:{server.server_address[1]}/api/v3"
        home.write("manifest.yaml", json.dumps({"version": 1, "platform": {"base_url": base_url}, "jobs": jobs}))
        home.variables["HOOK_SECRET"] = SECRET
        ran = home.run("credentials", "check", "manifest.yaml", "--probe")
        server.shutdown()
        thread.join()
    assert "no hook with ***" in ran.out
    assert SECRET not in ran.out + ran.err
