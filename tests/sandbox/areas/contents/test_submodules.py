"""The addresses of submodules: which of them are on the platform itself, and what `.gitmodules` may hold."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from bulk.sandbox.git.repository import Change, blob_sha
from bulk.sandbox.git.standard_repositories import RUNBOOK_COMMIT
from tests.sandbox.conftest import Platform
from tests.sandbox.file_client import HELLO, FileClient, plant

LIB = f"{HELLO}/contents/third_party/lib"


@pytest.fixture
def files(platform: Platform) -> FileClient:
    """The files of a sandbox for one test alone."""
    return FileClient(platform)


def modules(url: str) -> bytes:
    """A `.gitmodules` in which the submodule `third_party/lib` comes from `url`."""
    return f'[submodule "lib"]\n\tpath = third_party/lib\n\turl = {url}\n'.encode()


async def test_a_submodule_is_hosted_here_however_its_address_is_written(files: FileClient) -> None:
    """Git knows one repository by addresses of http, git and ssh: all of them lead to the platform's own."""
    address = urlsplit(files.platform.url)
    for url in (
        f"http://{address.netloc}/acme-ops/runbook.git",
        f"http://{address.netloc}/acme-ops/runbook",
        f"HTTP://someone:secret@{address.netloc}/acme-ops/runbook.git",
        f"git://{address.netloc}/acme-ops/runbook.git",
        f"ssh://git@{address.hostname}/acme-ops/runbook.git",
        f"ssh://git@{address.hostname}:2222/acme-ops/runbook.git",
        f"git@{address.hostname}:acme-ops/runbook.git",
        f"{address.hostname}:acme-ops/runbook.git",
        "../../acme-ops/runbook.git",
    ):
        plant(files, {".gitmodules": Change(modules(url))})
        shown = (await files.get(LIB)).json()
        place = f"{files.platform.url}/repos/acme-ops/runbook/git/trees/{RUNBOOK_COMMIT}"
        assert (shown["git_url"], shown["_links"]["git"]) == (place, place), url
        assert shown["html_url"] == shown["_links"]["html"] != None, url  # noqa: E711


async def test_a_submodule_of_another_host_has_no_addresses(files: FileClient) -> None:
    """Another host, another port of http, and a path are not the platform."""
    address = urlsplit(files.platform.url)
    for url in (
        "https://git.example.org/acme-ops/runbook.git",
        f"http://{address.hostname}:1/acme-ops/runbook.git",
        "git@git.example.org:acme-ops/runbook.git",
        "ssh://git@git.example.org/acme-ops/runbook.git",
        f"file://{address.hostname}/acme-ops/runbook.git",
        "/srv/git/runbook.git",
    ):
        plant(files, {".gitmodules": Change(modules(url))})
        shown = (await files.get(LIB)).json()
        links = (shown["git_url"], shown["html_url"], shown["_links"]["git"], shown["_links"]["html"])
        assert links == (None, None, None, None), url


@pytest.mark.parametrize("url", ["http://[x", "http://[::1", "ssh://[x/y", "[x:y", "../[x", "http://h:99999999/x"])
async def test_an_address_that_is_none_breaks_no_listing(files: FileClient, url: str) -> None:
    """Anybody may write any address into `.gitmodules`; it is shown as it stands there."""
    former = (await files.get(f"{HELLO}/contents/.gitmodules")).json()["sha"]
    written = await files.put(f"{HELLO}/contents/.gitmodules", modules(url), sha=former)
    assert written.json()["content"]["sha"] == blob_sha(modules(url))
    for path in ("third_party", "third_party/lib"):
        reply = await files.get(f"{HELLO}/contents/{path}")
        assert reply.status == 200, reply.content
