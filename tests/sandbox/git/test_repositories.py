"""Where repositories come from, and how they follow the names of their organizations."""

from __future__ import annotations

from pathlib import Path

import anyio

from bulk.sandbox import Settings, running
from tests.sandbox.conftest import HandClock, Start, Visit
from tests.sandbox.file_client import ADMIN, FileClient, fsck

SEED = """
repositories:
  - {organization: acme-eng, name: with.dots, private: true, default_branch: trunk,
     files: {README.md: "# Seeded\\n", docs/a/b.txt: deep}}
  - {organization: acme-new, name: bare}
"""


async def renamed(files: FileClient, old: str, new: str, clock: HandClock) -> None:
    """Rename an organization, and wait until that shows."""
    reply = await files.platform.ask("PATCH", f"/admin/organizations/{old}", token=ADMIN, body={"login": new})
    assert reply.status == 202
    while not clock.sleepers:
        await anyio.lowlevel.checkpoint()
    clock.advance(5)
    with anyio.fail_after(60):
        while (await files.get(f"/repos/{new}/runbook/readme")).status != 200:
            await anyio.lowlevel.checkpoint()


async def test_a_seed_file_gives_repositories_their_files(start: Start, tmp_path: Path) -> None:
    """They are the first commit of the default branch; a repository without files is empty."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(SEED)
    files = FileClient(await start(seed_data=seed))
    path = "/repos/acme-eng/with.dots"
    assert not files.home("acme-eng/with.dots").exists()
    assert (await files.get(f"{path}/readme", "raw")).content == b"# Seeded\n"
    assert (await files.get(f"{path}/readme")).json()["url"].endswith("?ref=trunk")
    assert (await files.get(f"{path}/contents/docs/a/b.txt", "raw")).content == b"deep"
    assert (await files.put(f"{path}/contents/new")).status == 201
    assert files.git("acme-eng/with.dots", "rev-list", "--count", "HEAD") == "2"
    assert not fsck(files.home("acme-eng/with.dots"))
    assert (await files.get("/repos/acme-new/bare/readme")).json()["message"] == "This repository is empty."
    assert (await files.put("/repos/acme-new/bare/contents/first")).status == 201


async def test_files_follow_a_renamed_organization(visit: Visit, clock: HandClock, tmp_path: Path) -> None:
    """After a rename, reads, writes, URLs, journal and the directory have the new name; a restart changes nothing."""
    settings = Settings(state=tmp_path / "state", journal=tmp_path / "journal.jsonl")
    async with running(settings, clock=clock) as sandbox:
        files = FileClient(visit(sandbox))
        before = (await files.get("/repos/acme-ops/runbook/contents/README.md")).json()
        await renamed(files, "acme-ops", "acme-run", clock)
        after = (await files.get("/repos/acme-run/runbook/contents/README.md")).json()
        assert (after["sha"], after["url"]) == (before["sha"], before["url"].replace("acme-ops", "acme-run"))
        assert (await files.get("/repos/acme-ops/runbook/contents/README.md")).status == 404
        assert (await files.get(before["download_url"], token=None)).status == 404
        made = (await files.put("/repos/acme-run/runbook/contents/new")).json()["commit"]["sha"]
        assert files.platform.journal()[-1]["effect"] == f"commit acme-run/runbook new {made}"
        assert files.git("acme-run/runbook", "rev-parse", "main") == made
        assert not files.home("acme-ops/runbook").exists()
    async with running(settings, clock=clock) as sandbox:
        files = FileClient(visit(sandbox))
        assert files.git("acme-run/runbook", "rev-parse", "main") == made
        assert (await files.get("/repos/acme-run/runbook/contents/new")).status == 200


async def test_a_start_mends_the_links(visit: Visit, tmp_path: Path) -> None:
    """Links that are wrong or missing, as after a crash in a rename, are right after the next start."""
    settings = Settings(state=tmp_path / "state")
    async with running(settings) as sandbox:
        home = FileClient(visit(sandbox)).home("acme-ops/runbook")
    home.parent.rename(home.parent.with_name("half-renamed"))
    async with running(settings) as sandbox:
        files = FileClient(visit(sandbox))
        assert files.git("acme-ops/runbook", "rev-list", "--count", "main") == "1"
        assert sorted(path.name for path in home.parents[1].glob("[!.]*")) == ["acme-eng", "acme-ops"]
