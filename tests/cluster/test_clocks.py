"""Clocks of workers are wrong by an hour: leases and budgets are the same, because nobody compares those clocks."""

from pathlib import Path

import psycopg

from tests.cluster.cluster import Cluster, cluster, run_arguments
from tests.crash.work import Work, nothing_lost_or_doubled, nothing_misreported
from tests.e2e.support.judging import windows

WORK = Work(files=24, organizations=5, snapshots=5, refused=2)
LIMIT, WINDOW_S = 40, 2
FAULTS = ("--fault", "drop-after=0.1", "--fault", "error-after=0.05", "--latency", "30")
SHIFTED = """
import time

right = time.time
time.time = lambda: right() + {seconds}
"""


def shifted_worker(made: Cluster, folder: Path, seconds: float) -> None:
    """Start a worker whose machine has a wrong idea of UTC."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SHIFTED.format(seconds=seconds))
    made.home.variables["PYTHONPATH"] = str(folder)
    made.worker()
    del made.home.variables["PYTHONPATH"]


def most_claims(store: str) -> int:
    """How often the shard was claimed that was claimed most often (count)."""
    with psycopg.connect(store) as connection:
        row = connection.execute("SELECT max(epoch) FROM bulk.shard").fetchone()
    assert row is not None
    return int(row[0])


def test_workers_whose_clocks_are_wrong_by_an_hour(store_text: str, tmp_path: Path) -> None:
    """One is an hour fast, one an hour slow. Nobody takes over what the other has while that one lives; when one is
    killed with writes under way, the other does; no window of the budget is exceeded, and every effect happens once
    (failures.md row 89)."""
    with cluster(store_text, tmp_path, WORK, *FAULTS, "--rate-limit", f"core={LIMIT}/{WINDOW_S}", workers=0) as made:
        shifted_worker(made, tmp_path / "fast", 3_600.0)
        shifted_worker(made, tmp_path / "slow", -3_600.0)
        with made.home.running(*run_arguments(store_text)) as waiting:
            made.wait_for_effects(8)
            assert most_claims(store_text) == 1
            made.holder().kill()
            made.shorten_grace()
            out, err = waiting.communicate(timeout=240.0)
            assert waiting.returncode in (1, 6), out + err
        assert most_claims(store_text) > 1
        lines = made.sandbox.journal()
        nothing_lost_or_doubled(WORK, lines, made.sandbox.folder / "state")
        nothing_misreported(WORK, made.home, made.sandbox)
        assert max(map(len, windows(lines, "core"))) <= LIMIT
        assert not [line for line in lines if line["status"] in (403, 429)]


SLOW = (*FAULTS, "--latency", "100", "--rate-limit", "off")
JUMPS = 4
FORWARD = "UPDATE bulk.shard SET lease_until = lease_until - interval '3 hours' WHERE lease_until > clock_timestamp()"


def test_leases_that_all_end_at_once(store_text: str, tmp_path: Path) -> None:
    """The database's clock is set forward by hours, which for leases is as if they were moved back: others take over
    what a living worker is doing. It records nothing any more, and stops with its next renewal; what it had sent is
    settled by who has it now (failures.md row 113)."""
    with cluster(store_text, tmp_path, WORK, *SLOW) as made:
        with made.home.running(*run_arguments(store_text)) as waiting:
            ended = 0
            for jump in range(JUMPS):
                made.wait_for_effects(4 + 6 * jump)
                with psycopg.connect(store_text, autocommit=True) as admin:
                    ended += admin.execute(FORWARD).rowcount
            out, err = waiting.communicate(timeout=100.0)
            assert (waiting.returncode in (1, 6), ended > 0) == (True, True), out + err
        nothing_lost_or_doubled(WORK, made.sandbox.journal(), made.sandbox.folder / "state")
        nothing_misreported(WORK, made.home, made.sandbox)
        with psycopg.connect(store_text) as admin:
            assert admin.execute("SELECT FROM bulk.shard WHERE epoch > 1").fetchall()
            assert not any(worker.poll() for worker in made.workers), "no worker ends over it"
