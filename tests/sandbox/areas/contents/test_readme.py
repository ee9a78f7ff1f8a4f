"""The preferred README: which one it is, and in which forms it comes."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from bulk.sandbox.areas.contents.readme import preferred_readme
from bulk.sandbox.git.directory import GitStore
from bulk.sandbox.git.repository import Change
from bulk.sandbox.git.revision import SYMLINK, Person
from tests.sandbox.conftest import Platform
from tests.sandbox.file_client import HELLO, MEMBER, READ_ONLY, FileClient

README = b"# Hello World\n\nStandard seed repository.\n"


@pytest.fixture
def shown(shared: Platform) -> FileClient:
    """The files of the standard data, for tests that change none."""
    return FileClient(shared)


@pytest.fixture
def files(platform: Platform) -> FileClient:
    """The same, for one test alone."""
    return FileClient(platform)


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["README", "README.md"], "README.md"),
        (["readme.txt", "ReadMe"], "ReadMe"),
        (["readme.txt", "README.MD"], "README.MD"),
        (["README.rst", "readme.adoc"], "README.rst"),
        (["readme.md", "README.md"], "README.md"),
        (["docs/README.md", "readme.org"], "readme.org"),
        (["docs/README.md", "README.md", ".github/readme"], ".github/readme"),
        (["docs/README.md", "src/README.md"], "docs/README.md"),
        (["README.md/file", "README.txt"], "README.txt"),
        (["README-old.md", "readmes.md", "MYREADME.md"], None),
        (["src/README.md"], None),
    ],
)
def test_which_readme_is_preferred(tmp_path: Path, paths: list[str], chosen: str | None) -> None:
    """`.github/` before the root before `docs/`; README.md before README before the others; case does not matter."""
    repository = GitStore(tmp_path, lambda: 0.0).create(1, "acme", "api")
    writer = Person("t", "t@example.com", 0)
    repository.commit("main", {path: Change(path.encode()) for path in paths}, "m", writer, writer)
    revision = repository.revision("main")
    assert revision is not None
    found = preferred_readme(revision)
    assert (found.path if found else None) == chosen


def test_a_readme_may_be_a_link_to_a_file(tmp_path: Path) -> None:
    """A link that leads nowhere is passed over."""
    repository = GitStore(tmp_path, lambda: 0.0).create(1, "acme", "api")
    writer = Person("t", "t@example.com", 0)
    changes = {
        "README.md": Change(b"gone", SYMLINK),
        "README": Change(b"docs/intro", SYMLINK),
        "docs/intro": Change(b"hello"),
    }
    repository.commit("main", changes, "m", writer, writer)
    revision = repository.revision("main")
    assert revision is not None
    found = preferred_readme(revision)
    assert found is not None
    assert found.path == "README"


async def test_the_readme_is_the_file_object(shown: FileClient) -> None:
    """Without a media type, or with the vendor's JSON, it is what a contents read of that file gives."""
    reply = await shown.get(f"{HELLO}/readme")
    body = reply.json()
    assert (reply.status, base64.b64decode(body["content"]), body["path"]) == (200, README, "README.md")
    contents = (await shown.get(f"{HELLO}/contents/README.md")).json()
    assert {**body, "download_url": None} == {**contents, "download_url": None}
    assert (await shown.get(f"{HELLO}/readme", Accept="*/*")).json()["sha"] == body["sha"]


async def test_raw_and_html_on_request(shown: FileClient) -> None:
    """The bytes, or the rendered page."""
    assert (await shown.get(f"{HELLO}/readme", "raw")).content == README
    assert b"<h1>Hello World</h1>" in (await shown.get(f"{HELLO}/readme", "html")).content


async def test_refs_of_a_readme(shown: FileClient) -> None:
    """A branch or tag is read; an unknown one is 404; what can't be a name is 422."""
    statuses = {"v1.0": 200, "dev": 200, "": 200, "gone": 404, "a..b": 422, "a%20b": 422, "%00": 422}
    found = {ref: (await shown.get(f"{HELLO}/readme?ref={ref}")).status for ref in statuses}
    assert found == statuses


@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_a_repository_without_a_readme_is_404(files: FileClient) -> None:
    """Also when it has other files; and with a README above 1 MB only raw is given."""
    await files.put("/repos/acme-eng/empty/contents/file")
    assert (await files.get("/repos/acme-eng/empty/readme")).status == 404
    await files.put("/repos/acme-eng/empty/contents/README.md", bytes(1024 * 1024 + 1))
    assert (await files.get("/repos/acme-eng/empty/readme")).status == 403
    assert (await files.get("/repos/acme-eng/empty/readme", "raw")).status == 200


async def test_who_may_read_a_readme(shown: FileClient) -> None:
    """Public ones everybody, private ones members with the scope; others don't learn that it is there."""
    tokens = [None, READ_ONLY, MEMBER]
    assert [(await shown.get(f"{HELLO}/readme", token=token)).status for token in tokens] == [200, 200, 200]
    private = "/repos/acme-eng/private-notes/readme"
    assert [(await shown.get(private, token=token)).status for token in tokens] == [404, 404, 200]
