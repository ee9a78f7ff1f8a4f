"""Folders of workers: nothing of a dead one stays, and nothing of one that lives is touched."""

import os
import signal
from pathlib import Path

import pytest

from bulk.clock import Clock
from bulk.cluster.folder import LOCK, NEW_S, PREFIX, sweep
from tests.cluster.cluster import cluster
from tests.crash.work import Work
from tests.store.places import comes_true

WORK = Work(files=60, organizations=4, snapshots=4, refused=1)


def test_what_a_killed_worker_leaves_goes_with_the_next(store_text: str, tmp_path: Path) -> None:
    """A worker that starts takes away the folders of killed ones, with the bundle in them; one that stands still keeps
    its own.
    """
    place = tmp_path / "tmp"
    place.mkdir()

    def folders() -> set[Path]:
        return set(place.glob(f"{PREFIX}*"))

    def age() -> None:
        for each in folders():
            os.utime(each / LOCK, (Clock().now() - 2 * NEW_S,) * 2)

    with cluster(store_text, tmp_path, WORK, "--latency", "60", workers=0) as made:
        made.home.variables["TMPDIR"] = str(place)
        submitted = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes")
        assert submitted.exit_code == 0, submitted.err
        killed = made.worker()
        made.wait_for_effects(4)
        (first,) = folders()
        assert len(list(first.iterdir())) == 2, "its lock, and the run"
        killed.kill()
        killed.wait(60)
        run_state = made.worker()
        assert comes_true(lambda: len(folders() - {first}) == 1)
        assert first.exists(), "it may be new"
        (second,) = folders() - {first}
        assert comes_true((second / LOCK).exists)
        run_state.send_signal(signal.SIGSTOP)
        age()
        third = made.worker()
        assert comes_true(lambda: not first.exists())
        assert second.exists()
        run_state.send_signal(signal.SIGCONT)
        watched = made.home.run("watch", submitted.out.strip(), "--store", store_text, "--progress", "none")
        assert watched.exit_code in (0, 1), watched.err
        for worker in (run_state, third):
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == 0
        assert folders() == set()


def test_nothing_else_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder without a lock, no link, no other user's, nothing of another name; what is swept is gone as a whole."""
    for name in ("dead", "fresh", "bare", "linked"):
        (tmp_path / f"{PREFIX}{name}").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    (tmp_path / f"{PREFIX}linked" / LOCK).symlink_to(tmp_path / "other" / LOCK)
    for name in (f"{PREFIX}dead", f"{PREFIX}fresh", "other"):
        (tmp_path / name / LOCK).touch()
        (tmp_path / name / "run").mkdir()
        (tmp_path / name / "run" / "index.db").write_bytes(b"x")
    now = Clock().now() + 2 * NEW_S
    os.utime(tmp_path / f"{PREFIX}fresh" / LOCK, (now, now))
    own = os.geteuid()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "geteuid", lambda: own + 1)
        assert sweep(tmp_path, now) == 0
    assert sweep(tmp_path, now) == 1
    left = {each.name.removeprefix(PREFIX) for each in tmp_path.iterdir()}
    assert left == {"fresh", "bare", "linked", "link", "other"}
    assert (tmp_path / "other" / "run" / "index.db").exists()
