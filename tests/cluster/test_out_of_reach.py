"""Connections to the store that drop, as a pooler's do: the run goes on, and the worker is none the worse."""

from pathlib import Path

import psycopg

from tests.cluster.cluster import cluster
from tests.crash.work import ORGANIZATION, Work

FLEET = Work(files=0, organizations=0, snapshots=0, refused=0)
ITEMS = 40
DROP = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'bulk worker%'"""


def test_connections_that_drop_cost_moments(store_text: str, tmp_path: Path) -> None:
    """All connections of the only worker drop with writes under way: it does the rest, every effect happens once."""
    with cluster(store_text, tmp_path, FLEET, "--latency", "40", workers=1) as made:
        at = [{"owner": ORGANIZATION, "repo": FLEET.repository(n), "path": f"{n}.txt"} for n in range(ITEMS)]
        made.home.lines("files.jsonl", [{**one, "content": "aA=="} for one in at])
        jobs = {"files": {"operation": "contents.put", "items": "files.jsonl", "with": {"message": "Add"}}}
        made.home.manifest(made.sandbox.base_url, jobs, limits={"concurrency": 4, "request_timeout": "2s"})
        name = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes").out.strip()
        made.wait_for_effects(8)
        made.shorten_grace()
        with psycopg.connect(store_text, autocommit=True) as connection:
            assert connection.execute(DROP).fetchall()
        watched = made.home.run("watch", name, "--store", store_text, "--progress", "none")
        assert watched.exit_code == 0, watched.err
        assert made.effects() == ITEMS
        assert made.workers[0].poll() is None
