"""Limits of a run in a store that are set while workers work on it: they hold for all of them, and after a resume."""

import json
from pathlib import Path
from typing import Any

import psycopg

from tests.cluster.cluster import Cluster, cluster
from tests.crash.work import ORGANIZATION, Work
from tests.serve.conftest import Asker, asking
from tests.store.places import comes_true

READS = Work(files=0, organizations=0, snapshots=0, refused=0)
ITEMS, MISSING = 400, 30


def submitted(made: Cluster) -> str:
    """A run of some reads that fail, and of many that follow; its name."""
    jobs: dict[str, Any] = {}
    for job, names in {
        "missing": [f"gone-{number}" for number in range(MISSING)],
        "many": [READS.repository(number) for number in range(ITEMS)],
    }.items():
        made.home.lines(
            f"{job}.jsonl", [{"owner": ORGANIZATION, "repo": name, "id": str(n)} for n, name in enumerate(names)]
        )
        jobs[job] = {"operation": "readme.get", "items": f"{job}.jsonl"}
    limits = {"concurrency": 8, "request_timeout": "5s", "pace": "burst"}
    made.home.manifest(made.sandbox.base_url, jobs, limits=limits)
    return made.home.run("submit", "manifest.yaml", "--store", made.store).out.strip()


def page(asker: Asker, name: str) -> dict[str, Any]:
    """What the page says of the run."""
    return dict(asker.get(f"/runs/store:{name}").data)


def test_what_is_set_holds_for_all_workers(store_text: str, tmp_path: Path) -> None:
    """Set before any worker is there, while they work, and over a stop: concurrency is divided among them, and
    a limit of failures stops the run, which goes on when it is taken away.
    """
    with (
        cluster(store_text, tmp_path, READS, "--latency", "60", workers=0) as made,
        asking(tmp_path, cache=tmp_path / "cache", store=store_text) as asker,
    ):
        name = submitted(made)
        ran = made.home.run("set", name, "concurrency=2", "--store", store_text, "--json")
        assert json.loads(ran.out)["concurrency"] == 2
        made.worker()
        made.worker()
        assert comes_true(lambda: len(made.sandbox.requests()) >= 20, 40.0)
        assert comes_true(lambda: page(asker, name)["run"]["status"]["concurrency"] == 2)
        assert comes_true(lambda: page(asker, name)["run"]["status"]["in_flight"] <= 2)
        # two at a time still: the last item comes after the limit, however slow the machine is
        set_to = asker.post(f"/runs/store:{name}/set", {"concurrency": "2", "failures": "3"}).data["in_force"]
        assert (set_to["concurrency"], set_to["failures"]) == (2, 3)
        assert page(asker, name)["limits"] == set_to
        assert comes_true(lambda: page(asker, name)["run"]["state"] == "stopped", 60.0)
        assert "more than limits.failures allows" in page(asker, name)["run"]["why"]
        set_to = asker.post(f"/runs/store:{name}/set", {"concurrency": "8", "failures": "none"}).data["in_force"]
        assert (set_to["concurrency"], set_to["failures"]) == (8, None)
        assert asker.post(f"/runs/store:{name}/resume", {}).data["state"] == "running"
        assert comes_true(lambda: page(asker, name)["run"]["state"] == "complete", 90.0)
        ended = page(asker, name)["run"]["outcomes"]
        assert (ended["succeeded"], ended["failed"]) == (ITEMS, MISSING)
        verbs = [(each["verb"], each["args"]) for each in page(asker, name)["actions"]]
        assert verbs[0] == ("set", {"concurrency": "2"})
        assert ("set", {"concurrency": "8", "failures": "none"}) in verbs


def test_a_resume_has_a_duration_of_its_own(store_text: str, tmp_path: Path) -> None:
    """A run that `max_duration` has stopped goes on when it is resumed, and so does one that is retried long after: as
    on one machine, the time counts from then on (failures.md row 101)."""
    at = {"owner": ORGANIZATION, "repo": READS.repository(0)}
    jobs = {"reads": {"operation": "readme.get", "items": [at, {"owner": ORGANIZATION, "repo": "gone"}]}}
    with cluster(store_text, tmp_path, READS, workers=0) as made:
        made.home.manifest(made.sandbox.base_url, jobs, limits={"max_duration": "1h", "settle": "1s"})
        name = made.home.run("submit", "manifest.yaml", "--store", store_text).out.strip()
        of_run = (name, "--store", store_text)

        def watched() -> str:
            return made.home.run("watch", *of_run, "--progress", "none").err

        with psycopg.connect(store_text, autocommit=True) as admin:
            admin.execute("UPDATE bulk.run SET began_at = began_at - interval '2 hours'")
            made.worker()
            assert "is stopped: limits.max_duration is over" in watched()
            for verb in ("resume", "retry"):
                assert made.home.run(verb, *of_run).exit_code == 0
                assert "is complete" in watched()
                admin.execute("UPDATE bulk.action SET at = at - 7200.0")
