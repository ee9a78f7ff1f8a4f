"""Writing contents: commits, refusals, overlaps, rights, and what the journal says of each."""

from __future__ import annotations

import base64

import anyio
import pytest

from bulk.sandbox.git.repository import blob_sha
from tests.sandbox.conftest import HandClock, Platform, Start
from tests.sandbox.file_client import ADMIN, HELLO, MEMBER, OWNER, READ_ONLY, FileClient, fsck

NAME = "acme-eng/hello-world"
README = b"# Hello World\n\nStandard seed repository.\n"
SHA = blob_sha(README)
PERSON = {"name": "Ann", "email": "ann@example.com"}


@pytest.fixture
def files(platform: Platform) -> FileClient:
    """The files of a sandbox with the standard data."""
    return FileClient(platform)


async def tip(files: FileClient) -> str:
    """The commit that main of hello-world is at."""
    return files.git(NAME, "rev-parse", "main")


async def test_a_new_file_is_201_and_in_git(files: FileClient) -> None:
    """A PUT without sha creates the file in one commit by the caller, and the answer has every field of it."""
    before, at = await tip(files), files.platform.sandbox.context.clock.now()
    reply = await files.put(f"{HELLO}/contents/new%20folder/%C3%BC.txt", b"hello\n", message="Add a file\n\nwhy")
    commit, content = reply.json()["commit"], reply.json()["content"]
    assert reply.status == 201
    assert files.git(NAME, "log", "-1", "--format=%H %P %T", "main") == (
        f"{commit['sha']} {before} {commit['tree']['sha']}"
    )
    assert files.git(NAME, "cat-file", "blob", "main:new folder/ü.txt") == "hello"
    assert files.git(NAME, "log", "-1", "--format=%an|%ae|%cn|%ce|%B", "main").rstrip() == (
        "Alice Arnold|alice@acme.example|Alice Arnold|alice@acme.example|Add a file\n\nwhy"
    )
    assert abs(int(files.git(NAME, "log", "-1", "--format=%ct", "main")) - at) < 5
    url, site = files.platform.url, files.platform.url.removesuffix("/api/v3")
    assert set(content) == {
        *("name", "path", "sha", "size", "url", "html_url", "git_url", "download_url", "type", "_links")
    }
    assert (content["path"], content["name"], content["size"]) == ("new folder/ü.txt", "ü.txt", 6)
    assert content["sha"] == blob_sha(b"hello\n")
    assert content["url"] == f"{url}{HELLO}/contents/new%20folder/%C3%BC.txt?ref=main"
    assert (await files.get(content["url"])).status == 200
    assert (await files.get(content["download_url"], token=None)).content == b"hello\n"
    person = {**commit["author"]}
    assert person.pop("date").endswith("Z")
    assert person == {"name": "Alice Arnold", "email": "alice@acme.example"}
    assert commit["committer"] == commit["author"]
    assert commit["url"] == f"{url}{HELLO}/git/commits/{commit['sha']}"
    assert commit["html_url"] == f"{site}/{NAME}/commit/{commit['sha']}"
    assert commit["tree"]["url"] == f"{url}{HELLO}/git/trees/{commit['tree']['sha']}"
    assert commit["parents"] == [
        {"sha": before, "url": f"{url}{HELLO}/git/commits/{before}", "html_url": f"{site}/{NAME}/commit/{before}"}
    ]
    assert commit["verification"] == {
        "verified": False,
        "reason": "unsigned",
        "signature": None,
        "payload": None,
        "verified_at": None,
    }
    assert commit["message"] == "Add a file\n\nwhy"
    assert commit["sha"] in base64.b64decode(commit["node_id"]).decode()
    assert not fsck(files.home(NAME))


async def test_the_right_sha_replaces_a_file(files: FileClient) -> None:
    """200, one commit more, the new bytes; the same sha again is 409 by then."""
    reply = await files.put(f"{HELLO}/contents/README.md", b"new\n", sha=SHA)
    assert (reply.status, reply.json()["content"]["sha"]) == (200, blob_sha(b"new\n"))
    assert files.git(NAME, "diff", "--name-status", "main~1", "main") == "M\tREADME.md"
    again = await files.put(f"{HELLO}/contents/README.md", b"newer\n", sha=SHA)
    assert (again.status, again.json()["message"]) == (409, f"README.md does not match {SHA}")
    assert "errors" not in again.json()
    assert files.git(NAME, "cat-file", "blob", "main:README.md") == "new"


async def test_the_same_content_is_a_commit_without_a_change(files: FileClient) -> None:
    """Identical bytes with the right sha still make a commit, with the tree of its parent."""
    reply = await files.put(f"{HELLO}/contents/README.md", README, sha=SHA)
    assert reply.status == 200
    assert files.git(NAME, "rev-parse", "main") == reply.json()["commit"]["sha"]
    assert files.git(NAME, "diff", "main~1", "main") == ""


async def test_the_sha_of_a_new_path_is_ignored(files: FileClient) -> None:
    """A path that is not there is created whatever sha was sent."""
    assert (await files.put(f"{HELLO}/contents/new", sha="0" * 40)).status == 201


async def test_a_deletion_leaves_no_empty_directory(files: FileClient) -> None:
    """200 with content null; the directory is gone with its last file, the history has both."""
    made = (await files.put(f"{HELLO}/contents/deep/er/file")).json()["content"]
    reply = await files.delete(f"{HELLO}/contents/deep/er/file", sha=made["sha"], author=PERSON, committer=PERSON)
    assert (reply.status, reply.json()["content"]) == (200, None)
    assert reply.json()["commit"]["sha"] == await tip(files)
    assert files.git(NAME, "log", "-1", "--format=%an %ce", "main") == "Ann ann@example.com"
    assert (await files.get(f"{HELLO}/contents/deep")).status == 404
    assert files.git(NAME, "log", "--format=%s", "main", "--", "deep").splitlines() == ["remove", "change"]


async def test_an_empty_repository_gets_its_first_commit(files: FileClient) -> None:
    """A PUT creates main; another branch is 404 even then; a DELETE has nothing to delete."""
    path = "/repos/acme-eng/empty/contents/README.md"
    assert (await files.put(path, branch="dev")).status == 404
    assert (await files.delete(path, sha=SHA)).status == 404
    reply = await files.put(path, branch="main")
    assert (reply.status, reply.json()["commit"]["parents"]) == (201, [])
    assert files.git("acme-eng/empty", "rev-list", "--count", "main") == "1"
    assert (await files.get("/repos/acme-eng/empty/readme")).status == 200


async def test_a_branch_is_written_alone(files: FileClient) -> None:
    """A write to `dev` leaves main as it is; an unknown branch is 404 before anything else."""
    before = await tip(files)
    assert (await files.put(f"{HELLO}/contents/a", branch="dev")).status == 201
    assert (await files.put(f"{HELLO}/contents/b", branch="refs/heads/dev")).status == 201
    assert files.git(NAME, "ls-tree", "--name-only", "dev").split() == ["README.md", "a", "b", "docs"]
    assert await tip(files) == before
    for branch in ("gone", "v1.0", before, "../main", "ma in", "x" * 300):
        assert (await files.put(f"{HELLO}/contents/README.md", branch=branch)).status == 404
        assert (await files.delete(f"{HELLO}/contents/README.md", message=..., branch=branch)).status == 404
    wrong = await files.put(f"{HELLO}/contents/../x", "no base64!", message=..., branch="gone")
    assert (wrong.status, wrong.json()["message"]) == (404, "Branch gone not found")


async def test_people_and_dates_are_the_bodys(files: FileClient) -> None:
    """The author defaults to the committer, the committer to the caller; dates are kept as instants."""
    committer = {**PERSON, "date": "2020-02-29T12:00:00+02:00"}
    author = {"name": "Åsa  Ö", "email": "asa@example.com", "date": "2019-01-01T00:00:00Z"}
    one = (await files.put(f"{HELLO}/contents/1", committer=committer)).json()["commit"]
    two = (await files.put(f"{HELLO}/contents/2", committer=committer, author=author)).json()["commit"]
    three = (await files.put(f"{HELLO}/contents/3", author=author)).json()["commit"]
    assert one["author"] == one["committer"] == {**PERSON, "date": "2020-02-29T10:00:00Z"}
    assert two["author"] == author
    assert (three["author"]["name"], three["committer"]["name"]) == ("Åsa  Ö", "Alice Arnold")
    assert files.git(NAME, "log", "-2", "--format=%an|%at|%cn", "main").splitlines() == [
        "Åsa  Ö|1546300800|Alice Arnold",
        "Åsa  Ö|1546300800|Ann",
    ]
    assert not fsck(files.home(NAME))


MISSING = 'Invalid request.\n\n"{}" wasn\'t supplied.'


WRONG: list[tuple[dict[str, object], str]] = [
    ({"message": ...}, MISSING.format("message")),
    ({"message": " "}, MISSING.format("message")),
    ({"message": 5}, "properties/message"),
    ({"message": "nul\0"}, "properties/message"),
    ({"content": ...}, MISSING.format("content")),
    ({"content": "a"}, "Base64"),
    ({"content": "a-_="}, "Base64"),
    ({"content": "aG!k="}, "Base64"),
    ({"content": "ünicode"}, "Base64"),
    ({"content": ["YQ=="]}, "properties/content"),
    ({"sha": 1}, "properties/sha"),
    ({"branch": 1}, "properties/branch"),
    ({"committer": {"name": "x"}}, MISSING.format("email")),
    ({"committer": {"email": "x@y"}}, MISSING.format("name")),
    ({"author": {"name": "", "email": "x@y"}}, MISSING.format("name")),
    ({"author": "me"}, "properties/author"),
    ({"author": {"name": "a<b", "email": "x@y"}}, "properties/author/name"),
    ({"author": {"name": "a", "email": "x\n@y"}}, "properties/author/email"),
    ({"author": {**PERSON, "date": "yesterday"}}, "properties/author/date"),
    ({"author": {**PERSON, "date": "1969-01-01T00:00:00Z"}}, "properties/author/date"),
    ({"author": {**PERSON, "date": 5}}, "properties/author/date"),
]


async def test_a_wrong_body_is_422_and_changes_nothing(files: FileClient) -> None:
    """Each names the field; no commit is made."""
    before = await tip(files)
    for fields, part in WRONG:
        reply = await files.put(f"{HELLO}/contents/new", **fields)  # type: ignore[arg-type]
        assert (reply.status, part in reply.json()["message"]) == (422, True), fields
    assert await tip(files) == before


async def test_base64_may_have_line_breaks(files: FileClient) -> None:
    """Clients wrap it, and an empty string is an empty file."""
    for number, content in enumerate(("aGk=", "aG\nk=", "  aGk=\r\n")):
        assert (await files.put(f"{HELLO}/contents/new{number}", content)).json()["content"]["size"] == 2
    assert (await files.put(f"{HELLO}/contents/none", "")).json()["content"]["size"] == 0


@pytest.mark.parametrize(("raw", "message"), [(b"{", "Problems parsing JSON"), (b"[]", "Body should be a JSON object")])
async def test_a_body_that_is_no_object_is_400(files: FileClient, raw: bytes, message: str) -> None:
    """Before anything is looked at."""
    reply = await files.platform.ask("PUT", f"{HELLO}/contents/new", raw=raw)
    assert (reply.status, reply.json()["message"]) == (400, message)


UNFIT = [
    "",
    "a//b",
    "a/",
    "%2Fa",
    "..",
    "a/../b",
    "a/%2e%2e/b",
    ".",
    ".git",
    ".GIT/config",
    "a/.git/x",
    "a%00b",
    "git~1",
]


async def test_a_path_that_git_can_not_hold_is_422(files: FileClient) -> None:
    """Empty segments, dots, `.git` in any spelling, NUL: refused, nothing changes."""
    before = await tip(files)
    for path in UNFIT:
        assert (await files.put(f"{HELLO}/contents/{path}")).status == 422, path
        assert (await files.delete(f"{HELLO}/contents/{path}", sha=SHA)).status == 422, path
    assert await tip(files) == before


async def test_a_file_never_replaces_something_else(files: FileClient) -> None:
    """A directory, a submodule, or a path through a file or submodule is 422, with and without a sha."""
    before = await tip(files)
    for path in ("docs", "README.md/below", "README.md/be/low", "third_party/lib", "third_party/lib/x"):
        assert (await files.put(f"{HELLO}/contents/{path}")).status == 422, path
        assert (await files.put(f"{HELLO}/contents/{path}", sha=SHA)).status == 422, path
        assert (await files.delete(f"{HELLO}/contents/{path}", sha=SHA)).status in (404, 422), path
    assert await tip(files) == before


async def test_an_existing_file_needs_its_sha(files: FileClient) -> None:
    """No sha is 422 in the platform's words; a wrong one 409; for a DELETE also, and 404 where nothing is."""
    path = f"{HELLO}/contents/README.md"
    for reply in (await files.put(path), await files.delete(path)):
        assert (reply.status, reply.json()["message"]) == (422, MISSING.format("sha"))
    for reply in (await files.put(path, sha="0" * 40), await files.delete(path, sha="0" * 40)):
        assert (reply.status, reply.json()["message"]) == (409, f"README.md does not match {'0' * 40}")
    assert (await files.delete(f"{HELLO}/contents/gone", sha=SHA)).status == 404
    assert (await files.delete(path, sha=SHA, message=...)).status == 422


async def test_writers_need_rights(files: FileClient) -> None:
    """Owners and members with the scope write; others don't, see private repositories not even, and change nothing."""
    before = await tip(files)
    for token, status in ((None, 401), ("sbx-unknown", 401), (READ_ONLY, 404)):
        assert (await files.put(f"{HELLO}/contents/x", token=token)).status == status
    assert (await files.put("/repos/acme-ops/runbook/contents/x", token=MEMBER)).status == 403
    assert await tip(files) == before
    for number, token in enumerate((MEMBER, OWNER, ADMIN, "sbx-fine-grained", "sbx-installation")):
        assert (await files.put(f"{HELLO}/contents/x{number}", token=token)).status == 201
    assert (await files.put("/repos/acme-ops/runbook/contents/x", token="sbx-installation")).status in (403, 404)
    assert (await files.put("/repos/acme-eng/gone/contents/x")).status == 404


async def test_workflow_files_need_more(files: FileClient) -> None:
    """A token without the `workflow` scope or permission gets 404 below the workflows folder, in any case of it."""
    for path in (".github/workflows/ci.yml", ".GitHub/Workflows/ci.yml"):
        assert (await files.put(f"{HELLO}/contents/{path}", token="sbx-fine-grained")).status == 404
    assert (await files.put(f"{HELLO}/contents/.github/CODEOWNERS", token="sbx-fine-grained")).status == 201
    made = await files.put(f"{HELLO}/contents/.github/workflows/ci.yml", token=ADMIN)
    assert made.status == 201
    sha = made.json()["content"]["sha"]
    path = f"{HELLO}/contents/.github/workflows/ci.yml"
    assert (await files.delete(path, sha=sha, token="sbx-fine-grained")).status == 404


async def test_overlapping_writes_of_one_repository_are_409(start: Start) -> None:
    """Of many at once exactly one goes through, however the name is spelled; other repositories are free."""
    files = FileClient(await start(latency_ms=60))
    statuses: list[int] = []
    others: list[int] = []

    async def write(number: int) -> None:
        owner = "acme-eng" if number % 2 else "ACME-ENG"
        statuses.append((await files.put(f"/repos/{owner}/hello-world/contents/f{number}")).status)

    async def write_elsewhere() -> None:
        others.append((await files.put("/repos/acme-ops/runbook/contents/x")).status)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(write, number)
        group.start_soon(write_elsewhere)
    assert sorted(statuses) == [201] + [409] * 7
    assert others == [201]
    assert files.git(NAME, "rev-list", "--count", "main") == "3"
    assert (await files.put(f"{HELLO}/contents/after")).status == 201


async def test_a_write_holds_its_repository_as_long_as_the_latency(start: Start, clock: HandClock) -> None:
    """The effect comes after the latency; until then another write is 409, at once and without an effect."""
    files = FileClient(await start(clock=clock, latency_ms=1000))
    replies = {}

    async def write(name: str) -> None:
        replies[name] = await files.put(f"{HELLO}/contents/{name}")

    async with anyio.create_task_group() as group:
        group.start_soon(write, "first")
        while not clock.sleepers:
            await anyio.lowlevel.checkpoint()
        group.start_soon(write, "second")
        while clock.sleepers < 2:
            await anyio.lowlevel.checkpoint()
        assert files.git(NAME, "rev-list", "--count", "main") == "2"
        clock.advance(1)
    assert {name: reply.status for name, reply in replies.items()} == {"first": 201, "second": 409}
    assert files.git(NAME, "log", "-1", "--format=%H", "main") == replies["first"].json()["commit"]["sha"]


async def test_the_journal_names_every_commit_and_nothing_else(files: FileClient) -> None:
    """Its `effect` is `commit OWNER/REPO PATH SHA`, canonical, as `git log` has it; refusals have none."""
    await files.put("/repos/ACME-ENG/Hello-World/contents/a%20b", b"1")
    await files.put(f"{HELLO}/contents/README.md", b"1")
    await files.put(f"{HELLO}/contents/README.md", b"1", sha="0" * 40)
    await files.put(f"{HELLO}/contents/README.md", README, sha=SHA)
    await files.delete(f"{HELLO}/contents/README.md", sha=SHA)
    await files.get(f"{HELLO}/contents/a%20b")
    effects = [line["effect"] for line in files.platform.journal()]
    written = [effect for effect in effects if effect]
    assert [effect is None for effect in effects] == [False, True, True, False, False, True]
    shas = files.git(NAME, "log", "--format=%H", "--reverse", "main").splitlines()[2:]
    assert written == [
        f"commit {NAME} a b {shas[0]}",
        f"commit {NAME} README.md {shas[1]}",
        f"commit {NAME} README.md {shas[2]}",
    ]


async def test_a_lost_answer_leaves_its_one_commit(start: Start) -> None:
    """Faults after the effect leave exactly one commit, those before it none."""
    for kind, count in (("error-after", "3"), ("unavailable", "2")):
        files = FileClient(await start(faults={kind: 1.0}))
        assert (await files.put(f"{HELLO}/contents/x")).status in (502, 503)
        assert files.git(NAME, "rev-list", "--count", "main") == count


@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_large_files_are_written_whole(files: FileClient) -> None:
    """A file of several megabytes arrives, as git sees it too."""
    data = bytes(range(256)) * 20_000
    reply = await files.put(f"{HELLO}/contents/large.bin", data)
    assert (reply.status, reply.json()["content"]["sha"]) == (201, blob_sha(data))
    assert files.git(NAME, "cat-file", "-s", "main:large.bin") == str(len(data))


async def test_a_link_is_replaced_by_its_own_sha(files: FileClient) -> None:
    """A symlink's blob is what must match; what is written then is a file."""
    listed = (await files.get(f"{HELLO}/contents/docs")).json()
    sha = next(entry["sha"] for entry in listed if entry["name"] == "latest.md")
    shown = (await files.get(f"{HELLO}/contents/docs/latest.md")).json()["sha"]
    assert (await files.put(f"{HELLO}/contents/docs/latest.md", sha=shown)).status == 409
    assert (await files.put(f"{HELLO}/contents/docs/latest.md", sha=sha)).status == 200
    assert files.git(NAME, "ls-tree", "main", "docs/latest.md").startswith("100644 ")
