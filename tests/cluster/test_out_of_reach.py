"""What a worker needs of the store is out of its reach: it goes on when it can, and asks now and then."""

import signal
from pathlib import Path

import anyio
import psycopg
import pytest

from bulk.clock import Clock
from bulk.cluster.engine_tag import engine_tag
from bulk.cluster.submission import followed
from bulk.errors import RunDirectoryError
from bulk.report.timeline import merged
from bulk.status import RunStatus, Silence
from bulk.store import export, runs
from tests.cluster.cluster import cluster, run_arguments
from tests.crash.work import ORGANIZATION, Work
from tests.e2e.support.platform import has_ended
from tests.store.places import StorePlace, comes_true, connection_to

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


@pytest.mark.parametrize("is_exported", [False, True])
def test_a_run_that_became_complete_is_taken_home_by_the_same_command(
    store_text: str, tmp_path: Path, is_exported: bool
) -> None:
    """Who waited for it was killed, or could not write its results, or was killed as they had got their name and not
    yet a report: nothing is sent again. The next is a new run."""
    with cluster(store_text, tmp_path, FLEET, "--latency", "40", workers=1) as made:
        at = {"owner": ORGANIZATION, "repo": FLEET.repository(0), "content": "aA==", "message": "Add"}
        jobs = {"files": {"operation": "contents.put", "items": [{**at, "path": f"{n}.txt"} for n in range(6)]}}
        made.home.manifest(made.sandbox.base_url, jobs, limits={"settle": "1s"})
        with made.home.running(*run_arguments(store_text)) as waiting:
            made.wait_for_effects(2)
            waiting.kill()
        with psycopg.connect(store_text, autocommit=True) as admin:
            complete = "SELECT FROM bulk.run WHERE state = 'complete'"
            assert comes_true(lambda: bool(admin.execute(complete).fetchall()))
        if is_exported:
            with connection_to(store_text) as store:
                export.export(store, runs.find(store, runs.list_all(store)[0].name), made.home.folder / "run", merged)
        for run_dir, outcome in (("run", "succeeded"), ("again", "unchanged")):
            ran = made.home.run("run", "manifest.yaml", "--store", store_text, "--run-dir", run_dir, "--yes")
            assert ran.exit_code == 0, ran.err
            assert {line["outcome"] for line in made.home.results(run_dir)} == {outcome}
            assert (made.home.folder / run_dir / "report.html").is_file()
        assert made.effects() == 6


def test_a_run_that_can_not_be_read_is_left_alone(store_text: str, tmp_path: Path) -> None:
    """Its bundle is not there, or its row is damaged: a worker says so once in a while, and has time for other runs
    (failures.md row 100). Whatever such a run is called, the worker stays in its own folder.
    """
    folder, elsewhere = tmp_path / "of-worker", tmp_path / "elsewhere"
    with cluster(store_text, tmp_path, FLEET, workers=0) as made:
        place, damaged = StorePlace(store_text, tmp_path), StorePlace(store_text, tmp_path)
        place.sql(
            "UPDATE run SET engine = %s, identity = jsonb_set(identity, '{base_url}', to_jsonb(%s::text))",
            engine_tag(),
            made.sandbox.base_url,
        )
        damaged.sql("UPDATE run SET identity = '{}' WHERE id = %s", damaged.run)
        elsewhere.with_name(f"elsewhere-{place.run}").mkdir()
        place.sql("UPDATE run SET name = %s WHERE id = %s", str(elsewhere), place.run)
        worker = made.worker("--dir", str(folder))
        made.home.manifest(made.sandbox.base_url, {"reads": {"operation": "license.get", "items": [{}]}})
        ran = made.home.run("run", "manifest.yaml", "--store", store_text, "--yes", "--progress", "none")
        assert ran.exit_code == 0, ran.err
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=30)
        assert 1 <= err.count("has no bundle") <= 5
        assert 1 <= err.count("the store is damaged") <= 5
        assert elsewhere.with_name(f"elsewhere-{place.run}").exists()
        damaged.sql("DELETE FROM run WHERE id = %s", damaged.run)


def test_a_store_that_is_put_right_again_ends_no_worker(store_text: str, tmp_path: Path) -> None:
    """Its tables are gone for a while, as when a copy of it is brought back: who waits for runs waits on, and does the
    next one (failures.md row 95)."""
    with cluster(store_text, tmp_path, FLEET, workers=1) as made, psycopg.connect(store_text, autocommit=True) as admin:
        (worker,) = made.workers
        # it asks every second, and only what it has met makes it wait for longer
        met = """
            SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'bulk worker'
                AND now() - query_start > interval '2.5 seconds'"""
        assert comes_true(lambda: bool(admin.execute("SELECT FROM bulk.worker").fetchall()))
        admin.execute("ALTER SCHEMA bulk RENAME TO away")
        assert comes_true(lambda: bool(admin.execute(met).fetchall())), "it has not met that"
        admin.execute("ALTER SCHEMA away RENAME TO bulk")
        assert not has_ended(worker, 1.0), worker.communicate()
        made.home.manifest(made.sandbox.base_url, {"reads": {"operation": "license.get", "items": [{}]}})
        ran = made.home.run("run", "manifest.yaml", "--store", store_text, "--yes", "--progress", "none")
        assert ran.exit_code == 0, ran.err


class Breaking(Silence):
    """Takes the tables of a store away with the first word of a run, and brings them back when that was met."""

    def __init__(self, place: StorePlace) -> None:
        self.place, self.heard = place, 0

    def update(self, status: RunStatus) -> None:
        """See `Display`."""
        self.heard += 1
        if self.heard == 1:
            self.place.sql("ALTER SCHEMA bulk RENAME TO away")


async def test_who_waits_for_a_run_waits_until_the_store_is_back(store_text: str, tmp_path: Path) -> None:
    """The run goes on meanwhile; who can't use the store from the beginning is told so at once (failures.md row 95)."""
    place, clock = StorePlace(store_text, tmp_path), Clock()
    shown = Breaking(place)
    with connection_to(store_text) as store:
        async with anyio.create_task_group() as group:

            async def put_right() -> None:
                while not shown.heard:
                    await clock.sleep(0.01)
                await clock.sleep(1.0)
                place.sql("UPDATE away.run SET state = 'paused'")
                place.sql("ALTER SCHEMA away RENAME TO bulk")

            group.start_soon(put_right)
            run = await followed(place.name, store, shown)
        assert run.state == "paused"
        place.sql("ALTER SCHEMA bulk RENAME TO away")
        with pytest.raises(RunDirectoryError):
            await followed(place.name, store, Silence())
        place.sql("ALTER SCHEMA away RENAME TO bulk")
    place.close()
