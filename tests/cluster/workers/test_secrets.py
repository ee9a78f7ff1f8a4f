"""Secrets of items that workers send: they come from each worker's own folder, and never stand in a store."""

from pathlib import Path
from typing import Any

import pytest

from tests.canaries import HOOK_SECRET
from tests.cluster.cluster import Cluster, cluster
from tests.crash.work import ORGANIZATION, Work
from tests.store.places import comes_true

NOTHING = Work(files=0, organizations=0, snapshots=0, refused=0)
HOOKS = 6


def with_hooks(made: Cluster, secret: str) -> None:
    """A manifest that makes webhooks; `secret`: as each item gives it."""
    given: list[dict[str, Any]] = [
        {"org": ORGANIZATION, "config": {"url": f"https://hooks.example.com/{number}", "secret": secret}}
        for number in range(HOOKS)
    ]
    made.home.lines("hooks.items.jsonl", given)
    jobs = {"hooks": {"operation": "webhook.create", "items": "hooks.items.jsonl"}}
    made.home.manifest(made.sandbox.base_url, jobs, limits={"settle": "1s"})


def secret_in(folder: Path) -> Path:
    """A file with the secret, in a new folder, closed to others."""
    folder.mkdir(exist_ok=True)
    path = folder / "secret"
    path.write_text(HOOK_SECRET)
    path.chmod(0o600)
    return folder


def was_sent(made: Cluster) -> bool:
    """Whether the platform has the secret."""
    state = made.sandbox.folder / "state"
    return any(HOOK_SECRET.encode() in path.read_bytes() for path in state.rglob("*") if path.is_file())


@pytest.mark.parametrize("named", ["file:secret", "env:secret"])
def test_a_worker_has_the_secrets_that_items_name(store_text: str, tmp_path: Path, named: str) -> None:
    """One without them leaves the run alone and says why; one with them sends what the file holds. What a store has is
    searched for it at the end of the session.
    """
    with cluster(store_text, tmp_path, NOTHING, workers=0) as made:
        with_hooks(made, named)
        submitted = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes")
        assert submitted.exit_code == 0, submitted.err
        told = made.home.run("status", submitted.out.strip(), "--store", store_text)
        assert told.out.strip().endswith(f"--base-url {made.sandbox.base_url} --secrets DIR")
        without = made.worker()
        assert without.stderr is not None
        said = next(line for line in without.stderr if "WARNING" in line)
        assert "its items name secrets, and this worker has none: --secrets DIR" in said
        made.worker("--secrets", str(secret_in(tmp_path / "held")))
        watched = made.home.run("watch", submitted.out.strip(), "--store", store_text, "--progress", "none")
        assert (watched.exit_code, made.effects(), was_sent(made)) == (0, HOOKS, True), watched.err


def test_workers_of_this_machine_have_those_of_one_process(tmp_path: Path) -> None:
    """With `--workers` they lie where they lie for one process: beside the manifest."""
    with cluster("", tmp_path, NOTHING, workers=0) as made:
        with_hooks(made, "file:secret")
        secret_in(made.home.folder)
        ran = made.home.run("run", "manifest.yaml", "--workers", "2", "--run-dir", "run", "--yes", "--progress", "none")
        assert (ran.exit_code, made.effects(), was_sent(made)) == (0, HOOKS, True), ran.err


def test_an_item_that_holds_one_is_refused(store_text: str, tmp_path: Path) -> None:
    """Before anything of it comes into the store; the message names the item and the way out."""
    with cluster(store_text, tmp_path, NOTHING, workers=0) as made:
        with_hooks(made, HOOK_SECRET)
        ran = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes")
        assert ran.exit_code == 2
        assert "jobs.hooks: item 0 holds a secret, which must not stand in a store: write env:NAME" in ran.err
        assert comes_true(lambda: made.home.run("runs", "--store", store_text, "--json").out.strip() == "[]")
