"""Reading contents: files, directories, links, submodules, media types, refs, sizes, rights."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from bulk.sandbox.areas.contents.files import LARGEST_BYTES, REDIRECT_BYTES, base64_lines
from bulk.sandbox.git.repository import Change, blob_sha
from bulk.sandbox.git.standard_repositories import RUNBOOK_COMMIT
from tests.sandbox.conftest import HandClock, Platform, Start
from tests.sandbox.file_client import ADMIN, HELLO, MEMBER, NEWER, OWNER, READ_ONLY, FileClient, fsck, plant

README = b"# Hello World\n\nStandard seed repository.\n"
FILE_KEYS = {"type", "size", "name", "path", "sha", "url", "git_url", "html_url", "download_url", "_links"}


@pytest.fixture
def shown(shared: Platform) -> FileClient:
    """The files of the standard data, for tests that change none."""
    return FileClient(shared)


@pytest.fixture
def files(platform: Platform) -> FileClient:
    """The same, for one test alone."""
    return FileClient(platform)


async def test_the_standard_repositories_are_as_documented(shown: FileClient) -> None:
    """Branches, tag, shown, links and submodules are those of the standard data, and git finds all four sound."""
    names = ["acme-eng/hello-world", "acme-eng/private-notes", "acme-ops/runbook", "acme-eng/empty"]
    assert [fsck(shown.home(name)) for name in names] == [""] * 4
    tree = shown.git("acme-eng/hello-world", "ls-tree", "-r", "main").splitlines()
    assert [(line.split()[0], line.split("\t")[1]) for line in tree] == [
        ("100644", ".gitmodules"),
        ("100644", "README.md"),
        ("100644", "docs/guide.md"),
        ("120000", "docs/latest.md"),
        ("120000", "docs/outside"),
        ("160000", "third_party/ext"),
        ("160000", "third_party/lib"),
    ]
    assert shown.git("acme-eng/hello-world", "cat-file", "blob", "main:README.md") == README.decode().rstrip()
    assert shown.git("acme-eng/hello-world", "cat-file", "blob", "main:docs/outside") == "../../outside"
    refs = shown.git("acme-eng/hello-world", "for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/dev", "refs/heads/main", "refs/tags/v1.0"]
    first = shown.git("acme-eng/hello-world", "rev-list", "--max-parents=0", "main")
    assert {shown.git("acme-eng/hello-world", "rev-parse", ref) for ref in ("dev", "v1.0")} == {first}
    assert shown.git("acme-ops/runbook", "rev-parse", "main") == RUNBOOK_COMMIT
    assert shown.git("acme-eng/empty", "for-each-ref") == ""


async def test_a_file_has_every_field(shown: FileClient) -> None:
    """Content, size and sha fit together, and every URL begins as the caller's own."""
    reply = await shown.get(f"{HELLO}/contents/README.md")
    body = reply.json()
    assert reply.status == 200
    assert set(body) == FILE_KEYS | {"content", "encoding"}
    assert base64.b64decode(body["content"]) == README
    assert (body["type"], body["encoding"], body["size"], body["name"], body["path"]) == (
        "file",
        "base64",
        len(README),
        "README.md",
        "README.md",
    )
    assert body["sha"] == blob_sha(README)
    url, site = shown.platform.url, shown.platform.url.removesuffix("/api/v3")
    assert body["url"] == body["_links"]["self"] == f"{url}{HELLO}/contents/README.md?ref=main"
    assert body["git_url"] == body["_links"]["git"] == f"{url}{HELLO}/git/blobs/{body['sha']}"
    assert body["html_url"] == body["_links"]["html"] == f"{site}/acme-eng/hello-world/blob/main/README.md"
    assert body["download_url"].startswith(f"{url}/")
    assert (await shown.get(body["url"])).json()["sha"] == body["sha"]


async def test_names_are_canonical_whatever_the_case_of_the_request(shown: FileClient) -> None:
    """Owner and repository are found in any case and shown in their own; paths keep theirs."""
    body = (await shown.get("/repos/ACME-Eng/Hello-WORLD/contents/README.md")).json()
    assert "/repos/acme-eng/hello-world/contents/" in body["url"]
    assert (await shown.get(f"{HELLO}/contents/readme.md")).status == 404


async def test_a_path_may_be_sent_as_one_encoded_segment(shown: FileClient) -> None:
    """`docs%2Fguide.md`, as some clients send it, is `docs/guide.md`."""
    assert (await shown.get(f"{HELLO}/contents/docs%2Fguide.md")).json()["path"] == "docs/guide.md"


async def test_what_is_not_there_is_404(shown: FileClient) -> None:
    """Missing shown, paths through shown, and paths that name no file of git."""
    for path in ("nope", "README.md/below", "docs/", "docs//guide.md", "docs/../README.md", "%00", "."):
        assert (await shown.get(f"{HELLO}/contents/{path}")).status == 404, path


@pytest.mark.parametrize("path", ["/contents", "/contents/"])
async def test_a_directory_is_a_list_in_gits_order(shown: FileClient, path: str) -> None:
    """The root is asked with and without a slash; entries have no content; directories have no download URL."""
    listed = (await shown.get(f"{HELLO}{path}")).json()
    assert [(entry["name"], entry["type"]) for entry in listed] == [
        (".gitmodules", "file"),
        ("README.md", "file"),
        ("docs", "dir"),
        ("third_party", "dir"),
    ]
    assert all(set(entry) == FILE_KEYS for entry in listed)
    assert [entry["download_url"] is None for entry in listed] == [False, False, True, True]
    assert listed[2]["git_url"].endswith(f"/git/trees/{listed[2]['sha']}")
    assert (listed[1]["size"], listed[2]["size"]) == (len(README), 0)
    below = (await shown.get(listed[2]["url"])).json()
    assert [(entry["path"], entry["type"]) for entry in below] == [
        ("docs/guide.md", "file"),
        ("docs/latest.md", "symlink"),
        ("docs/outside", "symlink"),
    ]


async def test_an_object_holds_a_directorys_entries(shown: FileClient) -> None:
    """With the object media type a directory is an object with `entries`; a file is as in JSON."""
    body = (await shown.get(f"{HELLO}/contents/docs", "object")).json()
    assert (body["type"], body["path"], body["size"]) == ("dir", "docs", 0)
    assert [entry["name"] for entry in body["entries"]] == ["guide.md", "latest.md", "outside"]
    assert set(body) == FILE_KEYS | {"entries"}
    assert (await shown.get(f"{HELLO}/contents/README.md", "object")).json()["encoding"] == "base64"


async def test_a_listing_ends_at_a_thousand(files: FileClient) -> None:
    """A directory of 1,001 files shows the first 1,000."""
    plant(files, {f"many/{number:04d}": Change(b"x") for number in range(1001)})
    listed = (await files.get(f"{HELLO}/contents/many")).json()
    assert (len(listed), listed[-1]["name"]) == (1000, "0999")
    assert len((await files.get(f"{HELLO}/contents/many", "object")).json()["entries"]) == 1000


@pytest.mark.parametrize(("ref", "status"), [("dev", 200), ("v1.0", 200), ("refs/heads/dev", 200), ("gone", 404)])
async def test_a_ref_chooses_the_revision(shown: FileClient, ref: str, status: int) -> None:
    """Branch, tag and full name show the first commit, which has no links yet; an unknown name is 404."""
    assert (await shown.get(f"{HELLO}/contents/docs?ref={ref}")).status == status
    assert (await shown.get(f"{HELLO}/contents/docs/latest.md?ref={ref}")).status == 404
    if status == 200:
        body = (await shown.get(f"{HELLO}/contents/README.md?ref={ref}")).json()
        assert body["url"].endswith(f"?ref={ref}")
        assert f"/blob/{ref}/" in body["html_url"]


async def test_a_ref_may_be_a_commit(shown: FileClient) -> None:
    """The full sha of a commit, or its first digits."""
    sha = shown.git("acme-eng/hello-world", "rev-parse", "v1.0")
    assert (await shown.get(f"{HELLO}/contents/docs?ref={sha}")).status == 200
    assert (await shown.get(f"{HELLO}/contents/docs/latest.md?ref={sha[:8]}")).status == 404


async def test_an_empty_repository_has_nothing(shown: FileClient) -> None:
    """Reads of it say that it is empty."""
    for path in ("contents/", "contents/README.md", "readme"):
        reply = await shown.get(f"/repos/acme-eng/empty/{path}")
        assert (reply.status, reply.json()["message"]) == (404, "This repository is empty.")


async def test_raw_is_the_bytes(shown: FileClient) -> None:
    """Raw gives a file's bytes, a link's file, or what a dangling link says; a directory stays JSON."""
    reply = await shown.get(f"{HELLO}/contents/README.md", "raw")
    assert (reply.status, reply.content) == (200, README)
    assert reply.headers["Content-Type"] == "application/vnd.service.raw; charset=utf-8"
    assert (await shown.get(f"{HELLO}/contents/docs/latest.md", "raw")).content.startswith(b"# Guide")
    assert (await shown.get(f"{HELLO}/contents/docs/outside", "raw")).content == b"../../outside"
    assert len((await shown.get(f"{HELLO}/contents/docs", "raw")).json()) == 3


async def test_html_is_rendered_and_harmless(files: FileClient) -> None:
    """Markdown is rendered, other files are shown; no markup, script or script link of a file gets through."""
    evil = b"# Title\n\n<script>alert(1)</script> [x](javascript:alert(1))\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    plant(files, {"evil.md": Change(evil), "evil.txt": Change(b"<b>&\xff"), 'q"<.md': Change(b"x")})
    page = await files.get(f"{HELLO}/contents/evil.md", "html")
    text = page.content.decode()
    assert page.headers["Content-Type"] == "application/vnd.service.html; charset=utf-8"
    assert "<h1>Title</h1>" in text
    assert "<table>" in text
    assert "<script" not in text
    assert 'href="javascript' not in text
    assert "<pre>&lt;b&gt;&amp;\ufffd</pre>" in (await files.get(f"{HELLO}/contents/evil.txt", "html")).content.decode()
    assert 'data-path="q&quot;&lt;.md"' in (await files.get(f"{HELLO}/contents/q%22%3C.md", "html")).content.decode()


async def test_a_link_to_a_file_shows_that_file(shown: FileClient) -> None:
    """The content, size and sha are the target's, the name and path the link's."""
    link = (await shown.get(f"{HELLO}/contents/docs/latest.md")).json()
    guide = (await shown.get(f"{HELLO}/contents/docs/guide.md")).json()
    assert (link["type"], link["path"], link["sha"], link["content"]) == (
        "file",
        "docs/latest.md",
        guide["sha"],
        guide["content"],
    )


async def test_a_link_elsewhere_describes_itself(shown: FileClient) -> None:
    """A link out of the repository is an object of type symlink with its target."""
    body = (await shown.get(f"{HELLO}/contents/docs/outside")).json()
    assert (body["type"], body["target"], body["size"]) == ("symlink", "../../outside", 13)
    assert set(body) == FILE_KEYS | {"target"}


@pytest.mark.parametrize(("headers", "kind"), [({}, "file"), (NEWER, "submodule")])
async def test_submodules_in_listings(shown: FileClient, headers: dict[str, str], kind: str) -> None:
    """Their type depends on the version; one that is hosted elsewhere has null addresses."""
    listed = (await shown.get(f"{HELLO}/contents/third_party", **headers)).json()
    ext, lib = listed
    assert [entry["type"] for entry in listed] == [kind, kind]
    assert (ext["submodule_git_url"], ext["git_url"], ext["html_url"]) == (
        "https://git.example.org/vendor/ext.git",
        None,
        None,
    )
    assert (ext["_links"]["git"], ext["_links"]["html"]) == (None, None)
    assert ext["_links"]["self"] == ext["url"]
    url, site = shown.platform.url, shown.platform.url.removesuffix("/api/v3")
    assert lib["submodule_git_url"] == f"{site}/acme-ops/runbook.git"
    assert lib["git_url"] == f"{url}/repos/acme-ops/runbook/git/trees/{RUNBOOK_COMMIT}"
    assert lib["html_url"] == f"{site}/acme-ops/runbook/tree/{RUNBOOK_COMMIT}"
    assert (lib["sha"], lib["download_url"], lib["size"]) == (RUNBOOK_COMMIT, None, 0)
    single = (await shown.get(f"{HELLO}/contents/third_party/lib", **headers)).json()
    assert single == {**lib, "type": "submodule"}


async def test_sizes_decide_the_media_type(files: FileClient) -> None:
    """Up to 1 MB everything; up to 100 MB raw and object without content; above it nothing."""
    mib = 1024 * 1024
    sizes = {"one": mib, "more": mib + 1, "hundred": LARGEST_BYTES, "beyond": LARGEST_BYTES + 1}
    plant(files, {name: Change(bytes(size)) for name, size in sizes.items()})
    found: dict[tuple[str, str], Any] = {}
    for name in sizes:
        for media in ("json", "html", "object", "raw"):
            found[name, media] = await files.get(f"{HELLO}/contents/{name}", media)
    statuses = {name: [found[name, media].status for media in ("json", "html", "object", "raw")] for name in sizes}
    assert statuses == {
        "one": [200, 200, 200, 200],
        "more": [403, 403, 200, 200],
        "hundred": [403, 403, 200, 302],
        "beyond": [403, 403, 403, 403],
    }
    assert found["more", "json"].json()["errors"] == [{"resource": "Blob", "field": "data", "code": "too_large"}]
    for name in ("more", "hundred"):
        body = found[name, "object"].json()
        assert (body["content"], body["encoding"], body["size"]) == ("", "none", sizes[name])
    assert len(found["more", "raw"].content) == sizes["more"]


async def test_a_large_raw_read_is_redirected(files: FileClient) -> None:
    """Above 10 MB raw answers 302 to a download URL, which needs no token and gives the bytes."""
    data = bytes(range(256)) * (REDIRECT_BYTES // 256) + b"."
    plant(files, {"large": Change(data), "limit": Change(data[:-1])})
    reply = await files.get(f"{HELLO}/contents/large", "raw")
    assert reply.status == 302
    assert (await files.get(reply.headers["Location"], token=None)).content == data
    assert (await files.get(f"{HELLO}/contents/limit", "raw")).status == 200


async def test_a_download_url_is_good_once(files: FileClient) -> None:
    """The first use gives the bytes without a token; the second is 404. Each answer has a URL of its own."""
    urls = [(await files.get(f"{HELLO}/contents/README.md")).json()["download_url"] for _ in range(2)]
    assert urls[0] != urls[1]
    first = await files.get(urls[0], token=None)
    assert (first.status, first.content, first.headers["Content-Type"]) == (200, README, "text/plain; charset=utf-8")
    assert [(await files.get(url, token=None)).status for url in (urls[0], urls[1], urls[1])] == [404, 200, 404]


async def test_a_download_url_ends(start: Start, clock: HandClock) -> None:
    """After five minutes it is 404, a second before it is good."""
    files = FileClient(await start(clock=clock))
    urls = [(await files.get(f"{HELLO}/contents/README.md")).json()["download_url"] for _ in range(2)]
    clock.advance(299)
    assert (await files.get(urls[0], token=None)).status == 200
    clock.advance(1)
    assert (await files.get(urls[1], token=None)).status == 404


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("README.md", "README.mx"),
        ("acme-eng/hello-world", "acme-eng/private-notes"),
        (r"token=[0-9a-f]+", "token=ffffffff"),
        (r"\.[0-9a-f]+$", ".0123456789abcdef01234567"),
        (r"token=.*", "token=a.b"),
        (r"\?token=.*", ""),
    ],
)
async def test_a_forged_download_url_is_404(shown: FileClient, old: str, new: str) -> None:
    """A URL that was changed anywhere gives nothing, and the true one is still good."""
    url = (await shown.get(f"{HELLO}/contents/README.md")).json()["download_url"]
    forged = re.sub(old, new, url)
    assert forged != url
    assert (await shown.get(forged, token=None)).status == 404
    assert (await shown.get(url, token=None)).status == 200


async def test_private_repositories_are_for_members(shown: FileClient) -> None:
    """Everybody reads public ones; outsiders, and tokens without the scope, get 404 for private ones."""
    public, private = f"{HELLO}/contents/README.md", "/repos/acme-eng/private-notes/contents/README.md"
    tokens = [None, READ_ONLY, MEMBER, OWNER, ADMIN]
    assert [(await shown.get(public, token=token)).status for token in tokens] == [200] * 5
    assert [(await shown.get(private, token=token)).status for token in tokens] == [404, 404, 200, 200, 200]


async def test_the_host_that_the_caller_named_is_in_every_url(shown: FileClient) -> None:
    """Called by another name of the same server, all URLs carry that name."""
    port = urlsplit(shown.platform.url).port
    body = (await shown.get(f"{HELLO}/contents/README.md", Host=f"code.example.com:{port}")).json()
    urls = [body["url"], body["git_url"], body["html_url"], body["download_url"]]
    assert all(url.startswith(f"http://code.example.com:{port}/") for url in urls)


async def test_what_did_not_change_is_304_until_it_does(files: FileClient) -> None:
    """Files, listings, raw and README keep their ETag while their content stays, and lose it with the content."""
    reads = [("contents/README.md", None), ("contents/README.md", "raw"), ("contents/", None), ("readme", None)]
    before = {read: (await files.get(f"{HELLO}/{read[0]}", read[1])).headers["ETag"] for read in reads}
    assert len(set(before.values())) == 3  # the README is that very file
    for (path, media), etag in before.items():
        assert (await files.get(f"{HELLO}/{path}", media, If_None_Match=etag)).status == 304
    sha = blob_sha(README)
    assert (await files.put(f"{HELLO}/contents/README.md", b"new\n", sha=sha)).status == 200
    for (path, media), etag in before.items():
        assert (await files.get(f"{HELLO}/{path}", media, If_None_Match=etag)).status == 200


async def test_a_listing_changes_with_the_address_of_a_submodule(files: FileClient) -> None:
    """Another address in `.gitmodules` is another answer for the directory, though its tree stays."""
    path = f"{HELLO}/contents/third_party"
    etag = (await files.get(path)).headers["ETag"]
    plant(files, {".gitmodules": Change(b'[submodule "x"]\n\tpath = third_party/lib\n\turl = ssh://elsewhere/lib\n')})
    reply = await files.get(path, If_None_Match=etag)
    assert [entry["submodule_git_url"] for entry in reply.json()] == [None, "ssh://elsewhere/lib"]
    plant(files, {".gitmodules": Change(b"[[not a configuration")})
    assert [entry["submodule_git_url"] for entry in (await files.get(path)).json()] == [None, None]


async def test_last_modified_is_when_the_branch_moved(start: Start, clock: HandClock) -> None:
    """It is sent only when the second of the write is over, so that a second write within it can't be missed."""
    files = FileClient(await start(clock=clock))
    old = (await files.get(f"{HELLO}/contents/README.md")).headers["Last-Modified"]
    assert old == "Thu, 02 Jan 2025 09:00:00 GMT"
    await files.put(f"{HELLO}/contents/new", committer={"name": "x", "email": "x@y", "date": "2001-01-01T00:00:00Z"})
    assert "Last-Modified" not in (await files.get(f"{HELLO}/contents/new")).headers
    assert (await files.get(f"{HELLO}/contents/README.md", If_Modified_Since=old)).status == 200
    clock.advance(1)
    recent = (await files.get(f"{HELLO}/contents/new")).headers["Last-Modified"]
    assert recent == "Fri, 15 Jan 2027 08:00:00 GMT"
    assert (await files.get(f"{HELLO}/contents/new", If_Modified_Since=recent)).status == 304


@pytest.mark.parametrize("size", [0, 1, 44, 45, 46, 90, 3000])
def test_base64_comes_in_lines_of_sixty(size: int) -> None:
    """Every line but the last has 60 characters, each ends with a newline, and together they are the bytes."""
    data = bytes(index % 251 for index in range(size))
    lines = base64_lines(data).split("\n")
    assert lines.pop() == ""
    assert all(len(line) == 60 for line in lines[:-1])
    assert base64.b64decode("".join(lines)) == data
