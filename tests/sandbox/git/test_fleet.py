"""Generated fleets: computed, not stored, and real from the first write on."""

from __future__ import annotations

import base64
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.sandbox import Settings, running
from bulk.sandbox.git.directory import GitStore
from bulk.sandbox.git.fleet import Fleet
from bulk.sandbox.git.repository import blob_sha
from tests.sandbox.conftest import Start, Visit
from tests.sandbox.file_client import FileClient, fsck, git

SEED = "repositories: {organization: acme-fleet, count: 20000, readme_bytes: 3000}\n"


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    """A seed file with a fleet of 20,000."""
    file = tmp_path / "fleet.yaml"
    file.write_text(SEED)
    return file


@given(count=st.integers(1, 10**9), data=st.data(), first_id=st.integers(1, 10**9))
def test_names_and_numbers_lead_back_to_the_repository(count: int, data: st.DataObject, first_id: int) -> None:
    """Every name, in any case, and every number means one repository; those beyond the end mean none."""
    fleet = Fleet(1, first_id, count)
    index = data.draw(st.integers(0, count - 1))
    assert fleet.index_of(fleet.name(index)) == fleet.index_of(fleet.name(index).upper()) == index
    assert fleet.index_of_id(first_id + index) == index
    assert fleet.index_of(fleet.name(count)) is None
    assert fleet.index_of_id(first_id + count) is fleet.index_of_id(first_id - 1) is None


@pytest.mark.parametrize("name", ["repo-1", "repo-000001", "repo-0000x", "repo-", "rep-00001", "repo-²0000", ""])
def test_other_names_mean_nothing(name: str) -> None:
    """Too few or too many digits, other digits and other prefixes are not repositories."""
    assert Fleet(1, 1, 20_000).index_of(name) is None


@pytest.mark.parametrize("size", [0, 100, 3000, 60_000])
def test_readmes_differ_and_are_as_long_as_asked(size: int) -> None:
    """The text is ASCII Markdown of the asked length, another one for each repository, the same each time."""
    fleet, again = Fleet(1, 1000, 300, size), Fleet(2, 1000, 300, size)
    readmes = [fleet.readme(index) for index in range(300)]
    assert len(set(readmes)) == 300
    assert all(len(readme) == size or (size == 0 and len(readme) < 100) for readme in readmes)
    assert all(readme.isascii() and readme.startswith(b"# repo-00") and readme.endswith(b"\n") for readme in readmes)
    if size >= 3000:
        assert len({readme.split(b"\n\n", 2)[2] for readme in readmes}) == 13
    assert readmes == [again.readme(index) for index in range(300)]


def test_a_billion_repositories_cost_no_memory() -> None:
    """What a fleet takes does not depend on its count, nor on how many of its READMEs were read."""
    tracemalloc.start()
    fleet = Fleet(1, 1, 10**9)
    for index in range(0, 10**9, 10**6):
        revision = fleet.revision(index, "main")
        assert revision is not None
        assert revision.entry("README.md")
    assert tracemalloc.get_traced_memory()[1] < 200_000
    tracemalloc.stop()


def test_a_real_repository_begins_with_what_the_generated_one_shows(tmp_path: Path) -> None:
    """Commit, tree, blob and date are the same before and after a repository becomes real."""
    fleet = Fleet(1, 1000, 10, created_at=1_735_689_600.0)
    generated = fleet.revision(3, "main")
    made = GitStore(tmp_path, lambda: 2e9).create(1003, "acme", fleet.name(3), lambda new: fleet.fill(3, new))
    real = made.revision("main")
    assert generated is not None
    assert real is not None
    assert real.commit_sha == generated.commit_sha == git(tmp_path / ".by-id" / "1003.git", "rev-parse", "main")
    assert real.changed_at == generated.changed_at == 1_735_689_600.0
    for path in ("", "README.md", "other"):
        assert real.entry(path) == generated.entry(path)
    root, readme = generated.entry(""), generated.entry("README.md")
    assert root is not None
    assert readme is not None
    assert list(real.entries(root)) == list(generated.entries(root))
    assert real.read(readme) == generated.read(readme) == fleet.readme(3)
    assert real.size(readme) == generated.size(readme) == 3000
    assert not fsck(tmp_path / ".by-id" / "1003.git")


@pytest.mark.parametrize(("name", "is_found"), [("refs/heads/main", True), ("heads/main", True), ("dev", False)])
def test_a_generated_repository_has_one_branch_and_one_commit(name: str, is_found: bool) -> None:
    """It is found by the branch's names and the commit's sha, and by nothing else."""
    fleet = Fleet(1, 1, 10)
    assert (fleet.revision(0, name) is not None) == is_found
    sha = fleet.commit_sha(0)
    assert fleet.revision(0, sha)
    assert fleet.revision(0, sha[:7])
    assert fleet.revision(1, sha) is None
    assert fleet.revision(0, sha[:6]) is None


async def test_reads_of_a_fleet_touch_no_disk(start: Start, seed: Path) -> None:
    """README, file, listing and missing file are answered without making a repository; the last index is the end."""
    files = FileClient(await start(seed_data=seed))
    readme = (await files.get("/repos/ACME-fleet/Repo-19999/readme")).json()
    data = base64.b64decode(readme["content"])
    assert (len(data), readme["size"], readme["path"]) == (3000, 3000, "README.md")
    assert readme["sha"] == blob_sha(data)
    assert "/repos/acme-fleet/repo-19999/contents/README.md?ref=main" in readme["url"]
    listed = (await files.get("/repos/acme-fleet/repo-00000/contents/")).json()
    assert [entry["name"] for entry in listed] == ["README.md"]
    assert (await files.get("/repos/acme-fleet/repo-00000/contents/CODEOWNERS")).status == 404
    assert (await files.get("/repos/acme-fleet/repo-20000/readme")).status == 404
    assert not any(home.name.startswith("1000") for home in files.home("x/y").parents[1].glob(".by-id/*"))


async def test_the_first_write_makes_the_repository_and_a_restart_keeps_it(
    visit: Visit, seed: Path, tmp_path: Path
) -> None:
    """A written repository is real, with the README first and the write after it, also in the next start."""
    settings, repository = Settings(seed_data=seed, state=tmp_path / "state"), "/repos/acme-fleet/repo-00007"
    async with running(settings) as sandbox:
        files = FileClient(visit(sandbox))
        before = (await files.get(f"{repository}/readme")).json()
        made = await files.put("/repos/Acme-Fleet/REPO-00007/contents/docs/owners", b"me\n")
        assert made.status == 201
        log = files.git("acme-fleet/repo-00007", "log", "--format=%s", "main").splitlines()
        assert log == ["change", "Add repo-00007"]
        assert files.git("acme-fleet/repo-00007", "rev-parse", "main") == made.json()["commit"]["sha"]
        after = (await files.get(f"{repository}/readme")).json()
        assert (after["sha"], after["content"]) == (before["sha"], before["content"])
        assert [path.name for path in files.home("acme-fleet/x").parent.iterdir()] == ["repo-00007.git"]
    async with running(settings) as sandbox:
        files = FileClient(visit(sandbox))
        assert (await files.get(f"{repository}/contents/docs/owners")).status == 200
        assert (await files.get("/repos/acme-fleet/repo-00008/readme")).status == 200
        assert (await files.get("/repos/acme-fleet/repo-00008/contents/docs")).status == 404
