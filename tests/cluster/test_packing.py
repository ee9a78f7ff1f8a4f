"""What goes to a worker: the manifest, what it names, and its check, which the worker takes."""

import shutil
from pathlib import Path

import anyio
import pytest

from bulk.bundle.checked import load_checked
from bulk.check.checking import check
from bulk.cluster import packing
from bulk.cluster.packing import packed, refuse_what_stays_here, unpacked
from bulk.cluster.submission import Submitted, followed, submit_manifest
from bulk.engine.origin import Origin
from bulk.errors import RunDirectoryError, UsageError
from bulk.ledger import directory
from bulk.manifest.reading import Overrides, read_manifest
from bulk.status import RunStatus, Silence
from bulk.store import address
from bulk.store.connections import StoreConnection
from tests.store.places import StorePlace

MANIFEST = """
version: 1
platform: {base_url: https://code.example.com/api/v3}
jobs:
  orgs: {operation: organization.create, items: orgs.csv}
"""


def bundle(folder: Path) -> tuple[str, set[str]]:
    """Check a manifest, pack it, and bring what was packed to `folder/worker`: its digest, the names."""
    for name in ("home", "check", "worker"):
        (folder / name).mkdir()
    (folder / "home" / "manifest.yaml").write_text(MANIFEST)
    (folder / "home" / "orgs.csv").write_text("login,admin\none,me\ntwo,me\n")
    manifest = read_manifest(folder / "home" / "manifest.yaml", Overrides(), {})
    checked = check(manifest, folder / "check")
    with packed(checked, Origin.of(manifest), folder / "check") as (packed_in, names):
        for name in names:
            target = folder / "worker" / name
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(packed_in / name, target)
    return checked.digest, set(names)


def test_a_worker_takes_the_check_and_keeps_to_the_items(tmp_path: Path) -> None:
    """It finds what was checked elsewhere; items that are not what was checked are refused."""
    digest, names = bundle(tmp_path)
    assert {"check.json", "index.db", "items-orgs.jsonl", "files/orgs.csv"} <= names
    manifest, _ = unpacked(tmp_path / "worker", {"default": "env:BULK_TOKEN"})
    found = load_checked(manifest, tmp_path / "worker")
    assert found is not None
    assert (found.digest, found.jobs[0].items) == (digest, 2)
    (tmp_path / "worker" / "files" / "orgs.csv").write_text("login,admin\nother,me\n")
    with pytest.raises(RunDirectoryError, match="was edited"):
        load_checked(manifest, tmp_path / "worker")


def test_a_check_that_is_too_large_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle has the rest, and the worker checks again."""
    monkeypatch.setattr(packing, "MOST_BYTES", 2_000)
    _, names = bundle(tmp_path)
    assert names == {"manifest.yaml", "origin.json", "files/orgs.csv"}
    manifest, _ = unpacked(tmp_path / "worker", {"default": "env:BULK_TOKEN"})
    assert load_checked(manifest, tmp_path / "worker") is None


def test_needs_by_key_stay_here(tmp_path: Path) -> None:
    """One process alone knows what has ended: the way out is named, and whole jobs are taken."""
    rules = "  rules: {operation: organization-ruleset.list, needs: [NEEDS], items: [{org: one}]}\n"
    (tmp_path / "orgs.csv").write_text("login,admin\none,me\n")
    for needs, words in (("{orgs: {org: login}}", "jobs.rules: needs by key hold within one process"), ("orgs", "")):
        (tmp_path / "m.yaml").write_text(MANIFEST + rules.replace("NEEDS", needs))
        manifest = read_manifest(tmp_path / "m.yaml", Overrides(), {})
        if not words:
            refuse_what_stays_here(manifest)
            continue
        with pytest.raises(UsageError, match=words):
            refuse_what_stays_here(manifest)


def test_what_no_worker_sends_is_not_submitted(shared_store: str, tmp_path: Path) -> None:
    """A platform that is reached without encryption is refused where the manifest is submitted: no worker goes there,
    whatever the manifest insists on, and says so at its start.
    """
    insists = "platform: {base_url: 'http://code.example.com/api/v3', allow_insecure_http: true}"
    jobs = "jobs: {reads: {operation: readme.get, items: [{owner: a, repo: unprotected}]}}"
    (tmp_path / "m.yaml").write_text(f"version: 1\n{insists}\n{jobs}\n")

    async def submitted() -> None:
        with StoreConnection(address.read(shared_store), "tests") as store:
            path = tmp_path / "m.yaml"
            await submit_manifest(path, store, overrides=Overrides(), environ={}, display=Silence())

    with pytest.raises(UsageError, match=r"use https:, or run it without --store"):
        anyio.run(submitted)


def test_equal_reads_are_noted_where_one_is_sent(shared_store: str, tmp_path: Path) -> None:
    """In a store each of them is sent, and no note says otherwise."""
    items = "[{owner: a, repo: b, id: '1'}, {owner: a, repo: b, id: '2'}]"
    text = MANIFEST.partition("jobs:")[0] + f"jobs:\n  reads: {{operation: readme.get, items: {items}}}\n"
    (tmp_path / "m.yaml").write_text(text)
    (tmp_path / "check").mkdir()
    (note,) = check(read_manifest(tmp_path / "m.yaml", Overrides(), {}), tmp_path / "check").notes
    assert "the same read as an earlier one" in note

    async def submitted() -> Submitted:
        with StoreConnection(address.read(shared_store), "tests") as store:
            path = tmp_path / "m.yaml"
            return await submit_manifest(path, store, overrides=Overrides(), environ={}, display=Silence())

    assert anyio.run(submitted).notes == ()


def test_manifests_of_one_name_and_second_are_two_runs(
    shared_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets a name of its own, and the same one again is the run that there is."""
    monkeypatch.setattr(directory, "iso_utc", lambda _: "2026-11-25T08:00:00Z")

    async def submitted(login: str) -> tuple[str, bool]:
        (tmp_path / "named.yaml").write_text(MANIFEST.replace("orgs.csv", f"[{{login: {login}, admin: me}}]"))
        with StoreConnection(address.read(shared_store), "tests") as store:
            path = tmp_path / "named.yaml"
            found = await submit_manifest(path, store, overrides=Overrides(), environ={}, display=Silence())
        return found.name, found.is_new

    first, second, again = (anyio.run(submitted, login) for login in ("one", "two", "one"))
    assert first == ("named-20261125T080000", True)
    assert second == ("named-20261125T080000-2", True)
    assert again == (first[0], False)


class Notes(Silence):
    """A display that keeps what it is told, and stops whoever shows something at the third time."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.updates = 0

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)

    def update(self, status: RunStatus) -> None:
        """Count."""
        self.updates += 1
        if self.updates == 3:
            raise EOFError


@pytest.mark.parametrize(("nobody_s", "said"), [(0.0, 1), (60.0, 0)])
def test_who_waits_for_workers_is_told(shared_store: str, tmp_path: Path, nobody_s: float, said: int) -> None:
    """Where nobody is at work on a run for a while it is said, once, with the command that is missing."""
    place, notes = StorePlace(shared_store, tmp_path), Notes()

    async def wait() -> None:
        with StoreConnection(address.read(shared_store), "tests") as store:
            await followed(place.name, store, notes, nobody_s=nobody_s)

    with pytest.raises(EOFError):
        anyio.run(wait)
    command = f"bulk worker --store {shared_store} --base-url {place.identity.base_url}"
    assert notes.notes == [f"no worker is at work on it: {command}"] * said
    place.close()
