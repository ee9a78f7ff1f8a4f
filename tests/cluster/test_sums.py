"""The figures of a run in a store are the sums of what its workers have done."""

import json
from collections import Counter
from pathlib import Path

from tests.cluster.cluster import cluster, run_arguments
from tests.crash.work import Work

WORK = Work(files=60, organizations=8, snapshots=10, refused=3)


def test_a_report_counts_what_all_workers_have_sent(store_text: str, tmp_path: Path) -> None:
    """Requests and what was used of each budget are the journal's, also of workers that left the run and came back;
    and whoever waits for it sees how fast it goes."""
    with cluster(store_text, tmp_path, WORK, "--latency", "150") as made:
        name = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes").out.strip()
        made.wait_for_effects(16)
        assert made.home.run("pause", name, "--store", store_text).exit_code == 0
        assert made.home.run("watch", name, "--store", store_text, "--progress", "none").exit_code == 3
        assert made.home.run("resume", name, "--store", store_text).exit_code == 0
        ran = made.home.run(*run_arguments(store_text, "--progress", "json"))
        report = json.loads((made.home.folder / "run/report.json").read_text())
        assert report["requests"] == len(made.sandbox.requests())
        spent = Counter(line["category"] for line in made.sandbox.journal() if line["category"] is not None)
        assert {bucket["category"]: bucket["used"] for bucket in report["buckets"]} == spent
        again = made.home.run("export", name, "--store", store_text, "--run-dir", "again")
        assert again.exit_code == 0, again.err
        heads = [json.loads((made.home.folder / run / "digests.json").read_text())["head"] for run in ("run", "again")]
        assert heads[0] == heads[1], "an export makes the chain anew, from the same lines in the same order"
        assert made.home.run("verify", "again", "--expect", heads[0]).exit_code == 0
        shown = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
        assert any(line.get("per_second", 0) > 0 and line["buckets"] for line in shown), ran.err
