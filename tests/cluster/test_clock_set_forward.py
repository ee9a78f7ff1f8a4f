"""The database's clock is set forward by hours: all leases end at once, while their workers are at work.

Moments of leases that are moved back are the same thing, as nothing else of a shard is compared with that clock.
"""

from pathlib import Path

import psycopg

from tests.cluster.cluster import cluster, run_arguments
from tests.crash.work import Work, nothing_lost_or_doubled, nothing_misreported

WORK = Work(files=24, organizations=5, snapshots=5, refused=2)
FAULTS = ("--fault", "drop-after=0.1", "--fault", "error-after=0.05", "--latency", "100", "--rate-limit", "off")
JUMPS = 4
FORWARD = "UPDATE bulk.shard SET lease_until = lease_until - interval '3 hours' WHERE lease_until > clock_timestamp()"


def test_no_effect_happens_twice(store_text: str, tmp_path: Path) -> None:
    """Others take over what a living worker is doing. It records nothing any more, and stops with its next renewal;
    what it had sent is settled by who has it now (failures.md row 119)."""
    with cluster(store_text, tmp_path, WORK, *FAULTS) as made:
        with made.home.running(*run_arguments(store_text)) as waiting:
            for jump in range(JUMPS):
                made.wait_for_effects(4 + 6 * jump)
                with psycopg.connect(store_text, autocommit=True) as admin:
                    assert admin.execute(FORWARD).rowcount
            out, err = waiting.communicate(timeout=100.0)
            assert waiting.returncode in (1, 6), out + err
        nothing_lost_or_doubled(WORK, made.sandbox.journal(), made.sandbox.folder / "state")
        nothing_misreported(WORK, made.home, made.sandbox)
        with psycopg.connect(store_text) as admin:
            assert admin.execute("SELECT FROM bulk.shard WHERE epoch > 1").fetchall()
            assert not any(worker.poll() for worker in made.workers), "no worker ends over it"
