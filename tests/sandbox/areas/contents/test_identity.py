"""Validators and download URLs stand for a file of a repository, not for its bytes alone."""

from __future__ import annotations

import base64
from pathlib import Path

from bulk.sandbox import Settings, running
from bulk.sandbox.git.repository import Change
from bulk.sandbox.git.revision import SYMLINK
from tests.sandbox.conftest import HandClock, Start, Visit
from tests.sandbox.file_client import ADMIN, HELLO, FileClient, plant

TWINS = """
repositories:
  - {organization: twin-a, name: app, files: {f.txt: of a, same.txt: same}}
  - {organization: twin-b, name: app, files: {f.txt: of b, same.txt: same}}
"""


async def test_a_readme_that_moved_is_another_answer(start: Start) -> None:
    """Its path is in the answer, so that the same bytes at another path are no 304."""
    files = FileClient(await start())
    shown = await files.get(f"{HELLO}/readme")
    await files.put(f"{HELLO}/contents/.github/README.md", b"# Hello World\n\nStandard seed repository.\n")
    moved = await files.get(f"{HELLO}/readme", If_None_Match=shown.headers["ETag"])
    assert (shown.json()["path"], moved.json()["path"]) == ("README.md", ".github/README.md")
    assert shown.json()["sha"] == moved.json()["sha"]


async def test_a_link_that_became_a_file_is_another_answer(start: Start) -> None:
    """A link and a file may have the same bytes, and are shown otherwise."""
    files = FileClient(await start())
    path = f"{HELLO}/contents/docs/outside"
    link = await files.get(path)
    await files.put(path, b"../../outside", sha=link.json()["sha"])
    file = await files.get(path, If_None_Match=link.headers["ETag"])
    assert (link.json()["type"], file.json()["type"]) == ("symlink", "file")
    plant(files, {"docs/outside": Change(b"../../outside", SYMLINK)})
    assert (await files.get(path, If_None_Match=file.headers["ETag"])).json()["type"] == "symlink"


async def renamed(files: FileClient, clock: HandClock) -> None:
    """Give the name of twin-a to twin-b, and another to twin-a."""
    for old, new in (("twin-a", "twin-c"), ("twin-b", "twin-a")):
        await files.platform.ask("PATCH", f"/admin/organizations/{old}", token=ADMIN, body={"login": new})
        while (await files.get(f"/repos/{new}/app/contents")).status != 200:
            clock.advance(1)
    clock.advance(1)


async def test_a_download_url_leads_to_no_other_repository(start: Start, clock: HandClock, tmp_path: Path) -> None:
    """Where another organization has taken the name, a URL of the former one is 404, whatever the other holds."""
    (tmp_path / "seed.yaml").write_text(TWINS)
    files = FileClient(await start(clock=clock, seed_data=tmp_path / "seed.yaml"))
    names = ("f.txt", "same.txt")
    urls = [(await files.get(f"/repos/twin-a/app/contents/{name}")).json()["download_url"] for name in names]
    await renamed(files, clock)
    assert [(await files.get(url, token=None)).status for url in urls] == [404, 404]


async def test_a_name_that_was_taken_again_is_another_answer(visit: Visit, clock: HandClock, tmp_path: Path) -> None:
    """What the former repository of a name showed is not what the present one shows, also after a restart."""
    (tmp_path / "seed.yaml").write_text(TWINS)
    settings = Settings(seed_data=tmp_path / "seed.yaml", state=tmp_path / "state")
    path = "/repos/twin-a/app/contents/f.txt"
    async with running(settings, clock=clock) as sandbox:
        files = FileClient(visit(sandbox))
        await files.get("/repos/twin-b/app/contents/f.txt")  # git makes it now
        await files.get(path)
        clock.advance(1)
        seen = (await files.get(path)).headers["Last-Modified"]
        assert (await files.get(path, If_Modified_Since=seen)).status == 304
        clock.advance(5)
        await renamed(files, clock)
        present = await files.get(path, If_Modified_Since=seen)
        assert base64.b64decode(present.json()["content"]) == b"of b"
        assert (await files.get(path, If_Modified_Since=present.headers["Last-Modified"])).status == 304
    async with running(settings, clock=clock) as sandbox:
        files = FileClient(visit(sandbox))
        assert (await files.get(path, If_Modified_Since=seen)).status == 200
        assert (await files.get(path, If_Modified_Since=present.headers["Last-Modified"])).status == 304
