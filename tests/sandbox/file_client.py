"""What the tests of files share: reads and writes of contents, and the real `git` on the state directory."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bulk.sandbox.git.repositories import Repositories
from bulk.sandbox.git.revision import Person

if TYPE_CHECKING:
    from bulk.sandbox.git.repository import Change
    from tests.sandbox.conftest import Platform, Reply

OWNER, MEMBER, ADMIN, READ_ONLY = "sbx-org-owner", "sbx-member", "sbx-site-admin", "sbx-read-only"
HELLO = "/repos/acme-eng/hello-world"
NEWER = {"X-Service-Api-Version": "2026-03-10"}


@dataclass(frozen=True, slots=True)
class FileClient:
    """Files of one sandbox. Paths are relative to the base address and percent-encoded already."""

    platform: Platform

    async def get(self, path: str, media: str | None = None, *, token: str | None = OWNER, **headers: str) -> Reply:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if media:
            sent["Accept"] = f"application/vnd.service.{media}+json"
        return await self.platform.ask("GET", path, token=token, headers=sent)

    async def put(
        self, path: str, content: object = b"text\n", *, token: str | None = OWNER, **fields: object
    ) -> Reply:
        """A PUT with a message; a field given as `...` is left out."""
        if isinstance(content, bytes):
            content = base64.b64encode(content).decode()
        return await self._send("PUT", path, token, {"message": "change", "content": content, **fields})

    async def delete(self, path: str, *, token: str | None = OWNER, **fields: object) -> Reply:
        """A DELETE with a message; a field given as `...` is left out."""
        return await self._send("DELETE", path, token, {"message": "remove", **fields})

    async def _send(self, method: str, path: str, token: str | None, fields: dict[str, object]) -> Reply:
        body = {name: value for name, value in fields.items() if value is not ...}
        return await self.platform.ask(method, path, token=token, body=body)

    def home(self, repository: str) -> Path:
        """Where people find the repository `OWNER/NAME` in the state directory."""
        return self.platform.sandbox.state / "repositories" / f"{repository}.git"

    def git(self, repository: str, *arguments: str) -> str:
        """The output of the real `git` in the repository `OWNER/NAME`."""
        return git(self.home(repository), *arguments)


def plant(files: FileClient, changes: dict[str, Change | None]) -> None:
    """Commit to hello-world behind the interface's back: what a PUT can't make."""
    context = files.platform.sandbox.context
    organization = context.state.organization("acme-eng")
    assert organization is not None
    repository = context.state.repository(organization, "hello-world")
    assert repository is not None
    writer = Person("t", "t@example.com", 1_700_000_000)
    context.get(Repositories).git(repository).commit("main", changes, "plant", writer, writer)


def git(home: Path, *arguments: str) -> str:
    """The output of `git` in a repository; fails where git does."""
    command = ["git", "-c", "safe.directory=*", "-C", str(home), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def fsck(home: Path) -> str:
    """What a strict `git fsck` complains about; nothing in a sound repository."""
    return git(home, "fsck", "--strict", "--no-dangling")
