"""A small audit that tests run night after night against a sandbox of their own."""

import base64
import json
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bulk.audit.history import History
from tests.e2e.support.platform import Home, Ran, Served

FILES = [
    {"owner": "acme-eng", "repo": "hello-world", "path": "README.md"},
    {"owner": "acme-eng", "repo": "hello-world", "path": "docs/guide.md"},
    {"owner": "acme-ops", "repo": "runbook", "path": "README.md"},
]
VAULT = {"owner": "acme-eng", "repo": "vault"}
"""A private repository."""

ABSENT = {"owner": "acme-eng", "repo": "hello-world", "path": "CODEOWNERS"}
POLICY = """-- policy: owners
-- severity: error
-- key: owner, repo
-- message: {owner}/{repo} has no {path}
SELECT owner, repo, path FROM contents_get WHERE missing
"""


@dataclass
class Nights:
    """A home with an audit of files, and what changes them."""

    home: Home
    sandbox: Served
    items: list[dict[str, Any]] = field(default_factory=lambda: list(FILES))

    @property
    def folder(self) -> Path:
        """Where everything lies."""
        return self.home.folder

    def write(self, **audit: Any) -> None:
        """The manifest, with this part `audit`."""
        self.home.lines("files.jsonl", self.items)
        jobs = {"files": {"operation": "contents.get", "missing": "ok", "items": "files.jsonl"}}
        self.home.manifest(self.sandbox.base_url, jobs, "files.yaml", audit=audit)

    def audit(self, *options: str) -> Ran:
        """One night."""
        return self.home.run("audit", "files.yaml", "--progress", "none", *options)

    def result(self, *options: str) -> tuple[int, dict[str, Any]]:
        """One night: its exit code, and what it found."""
        ran = self.audit("--format", "json", *options)
        return ran.exit_code, json.loads(ran.out)

    def put(self, item: dict[str, Any], text: str) -> None:
        """Change a file."""
        item = {**item, "message": "Change", "content": base64.b64encode(text.encode()).decode()}
        self.home.manifest(self.sandbox.base_url, {"put": {"operation": "contents.put", "items": [item]}}, "put.yaml")
        run_dir = f"runs/put-{len(list(self.folder.glob('runs/*')))}"
        assert self.home.run("run", "put.yaml", "--run-dir", run_dir).exit_code == 0

    def text(self, item: dict[str, Any]) -> str:
        """What a file says now."""
        url = f"{self.sandbox.base_url}/repos/{item['owner']}/{item['repo']}/contents/{item['path']}"
        asking = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.home.token}"})
        with urllib.request.urlopen(asking, timeout=60) as answer:
            return base64.b64decode(json.load(answer)["content"]).decode()

    def history(self) -> History:
        """Its history."""
        return History.open(self.folder / "audits" / "files")

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Rows of an answer over all nights."""
        ran = self.home.run("sql", "audits/files", query, "--json")
        assert ran.exit_code == 0, ran.err
        return [json.loads(line) for line in ran.out.splitlines()]
