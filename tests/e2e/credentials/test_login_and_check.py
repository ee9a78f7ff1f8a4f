"""`bulk login` and `bulk credentials check` against a real sandbox."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.platform import BULK, Home, Served, served

SEED: dict[str, Any] = {
    "users": [{"login": "dora", "password": "dora-password"}],
    "tokens": [
        {"token": "dora-repo", "user": "dora", "scopes": ["repo"]},
        {"token": "dora-fine", "user": "dora", "kind": "fine-grained", "permissions": {"contents": "read"}},
    ],
    "apps": [
        {
            "slug": "fleet",
            "client_id": "Iv1.fleet",
            "interval": 0.2,
            "permissions": {"metadata": "read", "contents": "read"},
            "installations": [{"organization": "acme-eng"}],
        }
    ],
}
ITEMS = [{"owner": "acme-eng", "repo": "hello-world"}]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder to work in."""
    made = Home(tmp_path / "home")
    made.variables["BULK_LOGINS"] = str(tmp_path / "logins")
    return made


def write(home: Home, platform: Served, credentials: dict[str, Any], jobs: dict[str, Any]) -> None:
    """The manifest."""
    about = {"base_url": platform.base_url, "credentials": credentials}
    home.write("manifest.yaml", json.dumps({"version": 1, "platform": about, "jobs": jobs}))


def confirm(page: str, code: str) -> None:
    """Type a code on the platform's page, as dora."""
    who = base64.b64encode(b"dora:dora-password").decode()
    headers = {"Authorization": f"Basic {who}", "User-Agent": "tests"}
    request = urllib.request.Request(page, f"user_code={code}".encode(), headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        assert answer.status == 204


def test_many_processes_refresh_a_login_once(home: Home, tmp_path: Path) -> None:
    """A user logs in once; when his token has ended, several processes at a time refresh it once, and all go on."""
    with served(tmp_path / "platform", seed=SEED) as platform:
        command = [*BULK, "login", "dora", "--client-id", "Iv1.fleet", "--base-url", platform.base_url]
        process = subprocess.Popen(command, env=home.environment(), text=True, stderr=subprocess.PIPE)
        assert process.stderr is not None
        found = re.search(r"Open (\S+) and type the code (\S+)", process.stderr.readline())
        assert found is not None
        confirm(*found.groups())
        assert (process.wait(60), process.stderr.read()) == (0, "")
        process.stderr.close()
        path = tmp_path / "logins" / "dora.json"
        kept = json.loads(path.read_text())
        path.write_text(json.dumps(kept | {"ends_at": 1.0}))  # it has ended
        jobs = {"r": {"operation": "readme.get", "credential": "dora", "items": ITEMS}}
        write(home, platform, {"dora": {"login": "dora"}}, jobs)
        asked = len(platform.requests(path="/login/oauth"))
        runs = [home.start("run", "manifest.yaml", "--run-dir", f"run-{n}", "--progress", "none") for n in range(6)]
        for each in runs:
            each.communicate(timeout=60)
        assert [each.returncode for each in runs] == [0] * 6
        assert len(platform.requests(path="/login/oauth")) == asked + 1
        assert json.loads(path.read_text())["refresh_token"] != kept["refresh_token"]


def test_what_each_credential_may_do(home: Home, tmp_path: Path) -> None:
    """Each credential and operation: yes, what is lacking, or that it can't be known; a `no` is exit code 1."""
    with served(tmp_path / "platform", seed=SEED) as platform:
        key = next((platform.folder / "state").glob("*.private-key.pem"))
        home.write("app.pem", key.read_bytes()).chmod(0o600)
        tokens = {"classic": "dora-repo", "fine": "dora-fine", "admin": "sbx-site-admin"}
        for name, token in tokens.items():
            home.write(f"{name}/token.txt", token).chmod(0o600)
        credentials: dict[str, Any] = {name: f"file:{name}/token.txt" for name in tokens}
        credentials["fleet"] = {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}}
        hook = {"org": "acme-eng"}
        jobs: dict[str, Any] = {}
        for name in credentials:
            jobs[f"{name}-reads"] = {"operation": "readme.get", "credential": name, "items": ITEMS}
            jobs[f"{name}-hooks"] = {"operation": "webhook.list", "credential": name, "items": [hook]}
        jobs["license"] = {"operation": "license.get", "credential": "admin", "items": [{}]}
        write(home, platform, credentials, jobs)
        ran = home.run("credentials", "check", "manifest.yaml", "--json")
        assert ran.exit_code == 1, ran
        rows = {(row["credential"], row["operation"]): row for row in json.loads(ran.out)}
        may = {key: row["may"] for key, row in rows.items()}
        assert may == {
            ("classic", "readme.get"): "yes",
            ("classic", "webhook.list"): "no: needs admin:org_hook",
            ("fine", "readme.get"): "can't be known",
            ("fine", "webhook.list"): "can't be known",
            ("admin", "readme.get"): "yes",
            ("admin", "webhook.list"): "yes",
            ("admin", "license.get"): "yes",
            ("fleet", "readme.get"): "yes",
            ("fleet", "webhook.list"): "no: needs organization_hooks: read in acme-eng",
        }
        assert rows["classic", "readme.get"]["payer"].startswith("user dora")
        assert rows["classic", "readme.get"]["left"]["core"] <= 5000
        text = home.run("credentials", "check", "manifest.yaml")
        assert "no: needs admin:org_hook" in text.out
