"""Two workers do a run together; one of them is killed, frozen, stopped: every effect is there once."""

import random
import signal
import time
from pathlib import Path

import pytest

from tests.cluster.cluster import LEASE_S, Cluster, cluster, run_arguments
from tests.crash.work import Work, nothing_lost_or_doubled, nothing_misreported, saved_files_are_whole
from tests.e2e.support.platform import Process, has_ended
from tests.store.postgres import new_store, search_for_secrets

WORK = Work(files=120, organizations=20, snapshots=24, refused=6)
SHORT = Work(files=60, organizations=8, snapshots=10, refused=3)
FAULTS = ("--fault", "drop-after=0.1", "--fault", "error-after=0.05", "--latency", "40")
TAKES_S = 1.0
"""What was sent in time arrives at most this much later (seconds)."""
GRACE_S = 7.0
"""A request's time limit of these runs, and what is added to it (seconds)."""


def judged(made: Cluster, waiting: Process, work: Work = WORK) -> None:
    """By the sandbox's journal and git history."""
    out, err = waiting.communicate(timeout=240.0)
    assert waiting.returncode in (1, 6), out + err
    lines = made.sandbox.journal()
    nothing_lost_or_doubled(work, lines, made.sandbox.folder / "state")
    nothing_misreported(work, made.home, made.sandbox)
    saved_files_are_whole(work, made.home.folder / "run")


def test_a_run_is_paused_and_goes_on_with_another_worker(store_text: str, tmp_path: Path) -> None:
    """After `bulk pause` nothing is sent; a worker that is told to end gives back what it has; the other goes on."""
    with cluster(store_text, tmp_path, SHORT, *FAULTS) as made:
        submitted = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes")
        name = submitted.out.strip()
        again = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes")
        assert again.out.strip() == name
        made.wait_for_effects(16)
        assert made.home.run("pause", name, "--store", store_text).exit_code == 0
        watched = made.home.run("watch", name, "--store", store_text, "--progress", "none")
        assert watched.exit_code == 3, watched.err
        sent = len(made.sandbox.requests())
        made.workers[0].send_signal(signal.SIGTERM)
        assert made.workers[0].wait(60) == 0
        assert len(made.sandbox.requests()) == sent
        assert made.home.run("resume", name, "--store", store_text).exit_code == 0
        with made.home.running(*run_arguments(store_text)) as waiting:
            judged(made, waiting, SHORT)
        undone = made.home.run("undo", "run", "-o", "undo.yaml")
        assert undone.exit_code == 0, undone.err
        kept = (made.home.folder / "undo.txt").read_text().count("files #")  # their answers were lost
        assert f"undo: {SHORT.files - kept} items in 1 job" in undone.out
        assert made.home.run("check", "undo.yaml").exit_code == 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_a_worker_that_was_frozen_finds_its_work_taken(store_text: str, tmp_path: Path, seed: int) -> None:
    """Whoever sleeps through its leases writes nothing of them afterwards, and works again soon."""
    begins = random.Random(seed).randrange(20, 120)
    with cluster(store_text, tmp_path, WORK, *FAULTS) as made, made.home.running(*run_arguments(store_text)) as waiting:
        made.wait_for_effects(begins)
        made.workers[0].send_signal(signal.SIGSTOP)
        time.sleep(LEASE_S + GRACE_S + 2.0)  # noqa: TID251 - another process
        made.workers[0].send_signal(signal.SIGCONT)
        judged(made, waiting)
        assert made.workers[0].poll() is None


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(17))
def test_workers_are_killed_again_and_again(store_text: str, tmp_path: Path, seed: int) -> None:
    """Workers are killed at random moments, one or both at once, and others take their places."""
    dice, kills = random.Random(seed), 6
    with cluster(store_text, tmp_path, WORK, *FAULTS) as made, made.home.running(*run_arguments(store_text)) as waiting:
        steps = sorted(dice.sample(range(10, 150), kills))
        for place, effects in enumerate(steps):
            made.wait_for_effects(effects, seconds=90.0)
            alive = [worker for worker in made.workers if worker.poll() is None]
            victims = alive if place % 3 == 2 else [dice.choice(alive)]
            for victim in victims:
                victim.kill()
            for _ in victims:
                made.worker()
        judged(made, waiting)


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("away_s", [*range(1, 20), 60])
def test_a_store_that_crashes_is_waited_for(tmp_path: Path, away_s: float) -> None:
    """PostgreSQL crashes with writes under way and comes back: nothing is sent without a lease, no worker is started
    anew, every effect happens once."""
    from bulk.store.server.private_server import Server

    server = Server()
    try:
        server.start()
        store = new_store(server.store())
        with cluster(store, tmp_path, WORK, *FAULTS) as made:
            submitted = made.home.run("submit", "manifest.yaml", "--store", store, "--yes")
            made.wait_for_effects(20 + 5 * (int(away_s) % 20))
            server.stop(signal.SIGQUIT)
            assert not has_ended(made.workers[0], min(away_s, LEASE_S + TAKES_S))
            sent = len(made.sandbox.journal())
            if away_s > LEASE_S + TAKES_S:
                assert not has_ended(made.workers[0], away_s - LEASE_S - TAKES_S)
                assert len(made.sandbox.journal()) == sent
            server.start()
            watched = made.home.run(
                "watch", submitted.out.strip(), "--store", store, "--progress", "none", timeout_s=300.0
            )
            assert watched.exit_code in (1, 6), watched.err
            assert [worker.poll() for worker in made.workers] == [None, None]
            nothing_lost_or_doubled(WORK, made.sandbox.journal(), made.sandbox.folder / "state")
        search_for_secrets(store)
    finally:
        server.remove()
