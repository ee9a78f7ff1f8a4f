"""Files, through clients that other people wrote."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import gidgethub
import github
import pytest
from gidgethub.aiohttp import GitHubAPI

from tests.clients.conftest import Connect
from tests.e2e.support.platform import Served

HELLO = "acme-eng/hello-world"
README = b"# Hello World\n\nStandard seed repository.\n"
KitMaker = Callable[..., Any]
GidgetMaker = Callable[..., GitHubAPI]


def commits(platform: Served, path: str) -> list[str]:
    """What the journal says about the writes to one path."""
    return [line["effect"] for line in platform.requests(path=path) if line["effect"]]


def test_pygithub_reads_a_file(pygithub: Connect) -> None:
    """PyGithub gets a file with its decoded content, blob id and size."""
    found = pygithub().get_repo(HELLO).get_contents("README.md")
    assert not isinstance(found, list)
    assert (found.decoded_content, found.size, found.encoding, found.type) == (README, 41, "base64", "file")
    assert found.sha == "3c389fd0e05434decb47012853513c5250ff84f3"


def test_pygithub_lists_the_root(pygithub: Connect) -> None:
    """PyGithub lists the root, asked for with a trailing slash; in its version a submodule is listed as a file."""
    repository = pygithub().get_repo(HELLO)
    root = repository.get_contents("")
    modules = repository.get_contents("third_party")
    assert isinstance(root, list)
    assert isinstance(modules, list)
    assert {(entry.path, entry.type) for entry in root} >= {("README.md", "file"), ("docs", "dir")}
    assert {entry.type for entry in modules} == {"file"}


def test_pygithub_walks_down_a_listing(pygithub: Connect) -> None:
    """An entry of a listing fetches its own content for PyGithub, from the address that the listing gives."""
    listed = pygithub().get_repo(HELLO).get_contents("docs")
    assert isinstance(listed, list)
    guide = next(entry for entry in listed if entry.name == "guide.md")
    assert guide.decoded_content == b"# Guide\n\nRead the README first.\n"


@pytest.mark.parametrize("ref", ["main", "dev", "v1.0"])
def test_pygithub_reads_the_readme_of_a_branch_or_tag(pygithub: Connect, ref: str) -> None:
    """PyGithub gets the README of any branch or tag."""
    assert pygithub().get_repo(HELLO).get_readme(ref=ref).decoded_content.startswith(b"# Hello World")


def test_pygithub_creates_updates_and_deletes(pygithub: Connect, platform: Served) -> None:
    """PyGithub creates, replaces and deletes a file, each as one commit with the given author."""
    repository, path = pygithub().get_repo(HELLO), "by/PyGithub ü.txt"
    author = github.InputGitAuthor("Ada", "ada@example.com")
    created: Any = repository.create_file(path, "Create", "one", branch="main", author=author)
    assert created["commit"].raw_data["author"]["name"] == "Ada"
    updated: Any = repository.update_file(path, "Update", b"two\xff", created["content"].sha)
    found: Any = repository.get_contents(path)
    assert (found.decoded_content, found.sha) == (b"two\xff", updated["content"].sha)
    repository.delete_file(path, "Delete", found.sha)
    with pytest.raises(github.UnknownObjectException):
        repository.get_contents(path)
    assert len(commits(platform, "by/PyGithub")) == 3


async def test_githubkit_reads_every_kind_of_entry(kit: KitMaker) -> None:
    """Directories, files, symbolic links and submodules become githubkit's own models of them."""
    repos = (await kit()).rest.repos
    seen = {}
    for path in ("", "docs", "README.md", "docs/latest.md", "docs/outside", "third_party/lib", "third_party/ext"):
        seen[path] = (await repos.async_get_content("acme-eng", "hello-world", path)).parsed_data
    listings = [type(entry).__name__ for path in ("", "docs") for entry in seen[path]]
    assert set(listings) == {"ContentDirectoryItems"}
    kinds = {path: type(found).__name__ for path, found in seen.items() if not isinstance(found, list)}
    assert kinds == {
        "README.md": "ContentFile",
        "docs/latest.md": "ContentFile",
        "docs/outside": "ContentSymlink",
        "third_party/lib": "ContentSubmodule",
        "third_party/ext": "ContentSubmodule",
    }


async def test_githubkit_sees_submodules_of_its_version(kit: KitMaker) -> None:
    """In the version that githubkit speaks, a listing calls a submodule a submodule."""
    listed = await (await kit()).rest.repos.async_get_content("acme-eng", "hello-world", "third_party")
    assert {entry.type for entry in listed.parsed_data} == {"submodule"}


async def test_githubkit_creates_updates_and_deletes(kit: KitMaker, platform: Served) -> None:
    """githubkit creates, replaces and deletes a file, and every answer fits its models."""
    repos, place = (await kit()).rest.repos, ("acme-eng", "hello-world", "by/githubkit.txt")
    one, two = (base64.b64encode(text).decode() for text in (b"one", b"two"))
    created = await repos.async_create_or_update_file_contents(*place, message="Create", content=one)
    sha = created.parsed_data.content.sha
    updated = await repos.async_create_or_update_file_contents(*place, message="Update", content=two, sha=sha)
    deleted = await repos.async_delete_file(*place, message="Delete", sha=updated.parsed_data.content.sha)
    assert (created.status_code, updated.status_code, deleted.status_code) == (201, 200, 200)
    assert deleted.parsed_data.content is None
    assert len(commits(platform, "by/githubkit")) == 3


@pytest.mark.parametrize(
    ("accept", "begins", "kind"),
    [
        ("application/vnd.github.raw+json", "# Guide", "application/vnd.github.raw; charset=utf-8"),
        ("application/vnd.github.html+json", "<div", "application/vnd.github.html; charset=utf-8"),
        ("application/vnd.github.object+json", "{", "application/json; charset=utf-8"),
    ],
)
async def test_githubkit_chooses_the_media_type(kit: KitMaker, accept: str, begins: str, kind: str) -> None:
    """githubkit gets a file raw, as HTML or as an object, as its Accept header says."""
    got = await (await kit()).rest.repos.async_get_content(
        "acme-eng", "hello-world", "docs/guide.md", headers={"Accept": accept}
    )
    assert got.text.startswith(begins)
    assert got.headers["content-type"] == kind


async def test_a_download_address_needs_no_token_and_serves_once(kit: KitMaker, githubkit: Any) -> None:
    """The download address of a private file gives its bytes to a client without a token, once."""
    found = await (await kit()).rest.repos.async_get_readme("acme-eng", "private-notes")
    nobody = await kit(None)
    got = await nobody.arequest("GET", found.parsed_data.download_url)
    assert got.content == base64.b64decode(found.parsed_data.content)
    with pytest.raises(githubkit.exception.RequestFailed) as refused:
        await nobody.arequest("GET", found.parsed_data.download_url)
    assert refused.value.response.status_code == 404


async def test_gidgethub_reads_raw_bytes_by_a_short_media_type(gidget: GidgetMaker) -> None:
    """gidgethub gets the README's text, asked for in the short form of the raw media type."""
    text = await gidget().getitem(f"/repos/{HELLO}/readme", accept="application/vnd.github.v3.raw")
    assert text == README.decode()


async def test_gidgethub_creates_updates_and_deletes(gidget: GidgetMaker, platform: Served) -> None:
    """gidgethub, which expands URL templates, creates, replaces and deletes a file."""
    client, url = gidget(), "/repos/{owner}/{repo}/contents/by/{name}"
    place = {"owner": "acme-eng", "repo": "hello-world", "name": "gidget hub.txt"}
    one, two = (base64.b64encode(text).decode() for text in (b"one", b"two"))
    created = await client.put(url, place, data={"message": "Create", "content": one})
    sha = created["content"]["sha"]
    updated = await client.put(url, place, data={"message": "Update", "content": two, "sha": sha})
    sha = updated["content"]["sha"]
    await client.delete(url, place, data={"message": "Delete", "sha": sha})
    with pytest.raises(gidgethub.BadRequest):
        await client.getitem(url, place)
    assert len(commits(platform, "by/gidget")) == 3
