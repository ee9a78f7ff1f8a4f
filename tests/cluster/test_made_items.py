"""Items that are made from another job's results in a run of several workers: the same ones, whoever makes them."""

import json
import urllib.request
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests.cluster.cluster import Cluster, cluster, run_arguments
from tests.crash.work import ORGANIZATION, Work
from tests.e2e.support.judging import effects

FLEET = Work(files=0, organizations=0, snapshots=0, refused=0)
FAULTS = ("--fault", "drop-after=0.1", "--fault", "error-after=0.05", "--latency", "40")
CONTENT = "aGVsbG8="


def manifest(made: Cluster, reads: int, **more: Any) -> None:
    """Read `reads` READMEs, write a file for each of them, and read each file."""
    at = [{"owner": ORGANIZATION, "repo": FLEET.repository(n), "id": f"made/{n}.txt"} for n in range(reads)]
    made.home.lines("repos.jsonl", at)
    made.home.write("TEXT", "hello")
    where = {"owner": "item.owner", "repo": "item.repo", "path": "item.id"}
    jobs: Mapping[str, Any] = {
        "readmes": {"operation": "readme.get", "items": "repos.jsonl"},
        "files": {
            "operation": "contents.put",
            "with": {"message": "Add", "content_file": "TEXT"},
            "items": {"from": "readmes", "each": "item", "map": where},
            **more,
        },
        "kept": {
            "operation": "contents.get",
            "items": {"from": "files", "each": "item", "map": {**where, "path": "item.path"}},
        },
    }
    made.home.manifest(made.sandbox.base_url, jobs, limits={"settle": "1s", "concurrency": 8, "request_timeout": "2s"})


def test_who_takes_over_makes_the_same_items(store_text: str, tmp_path: Path) -> None:
    """The worker that writes them is killed: every item ends once, with its effect, and what comes after has them."""
    with cluster(store_text, tmp_path, FLEET, *FAULTS) as made:
        manifest(made, 26)
        with made.home.running(*run_arguments(store_text)) as waiting:
            made.wait_for_effects(6)
            made.holder("make").kill()
            made.shorten_grace()
            out, err = waiting.communicate(timeout=240.0)
            assert waiting.returncode == 0, out + err
        with psycopg.connect(store_text) as connection:
            taken_over = "SELECT max(epoch) FROM bulk.shard WHERE kind = 'make'"
            assert connection.execute(taken_over).fetchone() == (2,)
        results = made.home.results("run")
        assert Counter((line["job"], line["index"]) for line in results) == Counter(
            (job, index) for job in ("readmes", "files", "kept") for index in range(26)
        )
        paths = {line["index"]: line["item"]["path"] for line in results if line["job"] == "files"}
        assert paths == {index: f"made/{index}.txt" for index in range(26)}
        assert len(effects(made.sandbox.journal())) == 26
        assert [job["items"] for job in made.home.report("run")["jobs"]] == [26, 26, 26]


def put_file(made: Cluster, repo: str, path: str) -> None:
    """Somebody else writes a file."""
    request = urllib.request.Request(
        f"{made.sandbox.base_url}/repos/{ORGANIZATION}/{repo}/contents/{path}",
        json.dumps({"message": "Late", "content": CONTENT}).encode(),
        {"Authorization": f"Bearer {made.home.token}"},
        method="PUT",
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 201


def test_what_a_retry_finds_comes_behind(store_text: str, tmp_path: Path) -> None:
    """An item that failed gives none; retried, it gives one more, and those that there were keep their places."""
    with cluster(store_text, tmp_path, FLEET, workers=1) as made:
        manifest(made, 20, needs_policy="any-outcome")
        at = [{"owner": ORGANIZATION, "repo": FLEET.repository(n), "id": f"made/{n}.txt"} for n in range(20)]
        paths = ["later.txt" if n == 5 else "README.md" for n in range(20)]
        made.home.lines("repos.jsonl", [{**one, "path": path} for one, path in zip(at, paths, strict=True)])
        text = (made.home.folder / "manifest.yaml").read_text()
        made.home.write("manifest.yaml", text.replace("readme.get", "contents.get"))
        ran = made.home.run(*run_arguments(store_text))
        assert ran.exit_code == 1, ran.err
        ended = Counter((line["job"], line["outcome"]) for line in made.home.results("run"))
        assert ended == {("readmes", "succeeded"): 19, ("readmes", "failed"): 1, ("files", "succeeded"): 19,
                         ("kept", "succeeded"): 19}  # fmt: skip
        put_file(made, FLEET.repository(5), "later.txt")
        name = json.loads(made.home.run("runs", "--store", store_text, "--json").out)[0]["run_dir"]
        assert made.home.run("retry", name, "--store", store_text).exit_code == 0
        watched = made.home.run("watch", name, "--store", store_text, "--progress", "none")
        assert watched.exit_code == 0, watched.err
        assert made.home.run("export", name, "--store", store_text, "--run-dir", "whole").exit_code == 0
        files = {line["index"]: line["item"]["path"] for line in made.home.results("whole") if line["job"] == "files"}
        first = [n for n in range(20) if n != 5]
        assert files == {index: f"made/{n}.txt" for index, n in enumerate([*first, 5])}
        assert len(effects(made.sandbox.journal(), "commit")) == 21
