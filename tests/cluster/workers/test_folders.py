"""Folders of workers: nothing of a dead one stays, and nothing of one that lives is touched."""

import os
import signal
from pathlib import Path

from bulk.clock import Clock
from bulk.cluster.folder import LOCK
from bulk.storage.scratch import NEW_S, PREFIX
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
        return set(place.glob(f"{PREFIX}worker-*"))

    def age() -> None:
        for each in folders():
            os.utime(each, (Clock().now() - 2 * NEW_S,) * 2)

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
