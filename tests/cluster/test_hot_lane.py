"""Half of a run's items are in one lane: nobody else waits for it, and the run takes little longer than that lane."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster, cluster, run_arguments
from tests.crash.work import ORGANIZATION, Work
from tests.e2e.support.judging import arrived, effects, overlaps, span_s

FLEET = Work(files=0, organizations=0, snapshots=0, refused=0)
HOT = FLEET.repository(0)
Lines = Sequence[Mapping[str, Any]]


def hot_lane(made: Cluster, half: int) -> tuple[Lines, Lines]:
    """Write `half` files to one repository and as many to all others: the requests of the one, and of the others."""
    cool = [FLEET.repository(1 + number % (FLEET.repositories - 1)) for number in range(half)]
    items = [
        {"owner": ORGANIZATION, "repo": repo, "path": f"docs/{number}.txt", "content": "aGVsbG8="}
        for number, repo in enumerate(name for pair in zip([HOT] * half, cool, strict=True) for name in pair)
    ]
    made.home.write("files.jsonl", "".join(json.dumps(item) + "\n" for item in items))
    jobs = {"files": {"operation": "contents.put", "items": "files.jsonl", "with": {"message": "Add"}}}
    made.home.manifest(made.sandbox.base_url, jobs, limits={"concurrency": 8, "request_timeout": "5s"})
    ran = made.home.run(*run_arguments(made.store), timeout_s=300.0)
    assert ran.exit_code == 0, ran.err
    lines = made.sandbox.requests(path=f"/repos/{ORGANIZATION}/")
    assert len(effects(lines, "commit")) == 2 * half
    hot = [line for line in lines if f"/{HOT}/" in line["path"]]
    return hot, [line for line in lines if f"/{HOT}/" not in line["path"]]


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_a_hot_lane_holds_up_nobody(store_text: str, tmp_path: Path, workers: int) -> None:
    """It begins at once, one item at a time, and the others are done long before it is."""
    with cluster(store_text, tmp_path, FLEET, "--latency", "30", workers=workers) as made:
        hot, others = hot_lane(made, 40)
        assert list(overlaps(hot)) == []
        began, ended = min(map(arrived, hot)), max(map(arrived, hot))
        assert sum(arrived(line) < began for line in others) < 0.3 * len(others)  # one worker may start later
        assert sum(arrived(line) > began + (ended - began) / 2 for line in others) < 0.5 * len(others)
        assert max(map(arrived, others)) < ended


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_a_run_takes_as_long_as_its_hot_lane(store_text: str, tmp_path: Path) -> None:
    """With four workers and half of the items in one lane: at most a tenth longer."""
    with cluster(store_text, tmp_path, FLEET, "--latency", "20", workers=4) as made:
        hot, others = hot_lane(made, 1_000)
        assert list(overlaps(hot)) == []
        assert span_s([*hot, *others]) <= 1.1 * span_s(hot)
