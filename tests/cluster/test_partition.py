"""A worker is cut off from the store alone: it sends nothing any more, another one takes over, and it comes back."""

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bulk.clock import Clock
from tests.cluster.cluster import LEASE_S, Cluster, cluster, run_arguments
from tests.crash.work import ORGANIZATION, Work, nothing_lost_or_doubled
from tests.e2e.support.platform import has_ended
from tests.store.proxy import Link, link_to
from tests.tries import quickest

WORK = Work(files=60, organizations=10, snapshots=12, refused=3)
FAULTS = ("--fault", "drop-after=0.1", "--fault", "error-after=0.05", "--latency", "60")
READS = 150
SILENT_AFTER_S = 5.0
"""Longest time for which leased tokens may be used without the store, where the lease is no shorter (seconds)."""
ENDS_S = 8.0
"""A request's time limit of these runs, what a store may say nothing, and what a busy machine takes (seconds)."""
TAKES_S = 1.0
"""A request that left in time arrives at most this much later (seconds), on a busy machine, too."""


def is_silent(made: Cluster, seconds: float) -> bool:
    """Whether the platform is not asked for anything by the one worker for `seconds`."""
    sent = len(made.sandbox.journal())
    assert not has_ended(made.workers[0], seconds), made.workers[0].communicate()
    return len(made.sandbox.journal()) == sent


def with_reads(made: Cluster, count: int) -> None:
    """Add `count` reads, which need no word of the store before they leave."""
    manifest = json.loads((made.home.folder / "manifest.yaml").read_text())
    made.home.lines("reads.jsonl", [{"owner": ORGANIZATION, "repo": WORK.repository(n)} for n in range(count)])
    manifest["jobs"]["reads"] = {"operation": "readme.get", "items": "reads.jsonl"}
    made.home.write("manifest.yaml", json.dumps(manifest))


def cut_off(made: Cluster, link: Link, *more: str, silent_after_s: float, seconds: float) -> None:
    """The only worker is cut off with requests under way; nothing is sent any more after `silent_after_s`."""
    made.worker(*more, store=made.store)
    made.wait_for_effects(20)
    link.part()
    assert not has_ended(made.workers[0], silent_after_s + TAKES_S), made.workers[0].communicate()
    assert is_silent(made, seconds)


def judged(made: Cluster, run_dir: str, count: int) -> None:
    """Every item ended once, every effect is there once."""
    ended = Counter((line["job"], line["index"]) for line in made.home.results(run_dir))
    assert set(ended.values()) == {1}
    assert len(ended) == sum(WORK.jobs.values()) + count
    nothing_lost_or_doubled(WORK, made.sandbox.journal(), made.sandbox.folder / "state")


def test_a_worker_without_its_store_is_replaced(store_text: str, tmp_path: Path) -> None:
    """It is silent when its lease is over, another worker does the rest, every effect happens once; healed, it works
    again (failures.md row 88)."""
    with (
        link_to(store_text) as (link, far),
        cluster(far, tmp_path, WORK, *FAULTS, workers=0, direct=store_text) as made,
    ):
        with_reads(made, READS)
        with made.home.running(*run_arguments(store_text)) as waiting:
            cut_off(made, link, silent_after_s=LEASE_S, seconds=1.0)
            made.worker(store=store_text)
            made.shorten_grace()
            out, err = waiting.communicate(timeout=240.0)
            assert waiting.returncode in (1, 6), out + err
        link.heal()
        judged(made, "run", READS)
        made.workers[1].kill()
        manifest = made.home.folder / "manifest.yaml"
        manifest.write_text(manifest.read_text().replace("reads.jsonl", "again.jsonl"))
        made.home.lines("again.jsonl", [{"owner": ORGANIZATION, "repo": WORK.repository(n)} for n in range(10)])
        options = ("--store", store_text, "--job", "reads", "--run-dir", "again", "--progress", "none")
        again = made.home.run("run", "manifest.yaml", *options)
        assert again.exit_code == 0, again.err
        assert len(made.home.results("again")) == 10


@pytest.mark.parametrize(("signals", "within_s"), [(1, ENDS_S), (2, 2.5)])
def test_a_worker_that_is_told_to_end_waits_little(
    store_text: str, tmp_path: Path, figure: Callable[[str], None], signals: int, within_s: float
) -> None:
    """Cut off from its store, with requests under way, some of whose answers are lost: it ends within seconds of the
    first signal, and at once at the second.
    """
    took_s = quickest(lambda number: _told_to_end(store_text, tmp_path / str(number), signals), within_s)
    figure(f"signal {signals}: ended after {took_s:.1f} s")
    assert took_s <= within_s


def _told_to_end(store_text: str, folder: Path, signals: int) -> float:
    """How long it takes after the last of `signals` (seconds)."""
    folder.mkdir()
    with (
        link_to(store_text) as (link, far),
        cluster(far, folder, WORK, *FAULTS, workers=0, direct=store_text) as made,
    ):
        assert made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes").exit_code == 0
        cut_off(made, link, silent_after_s=0.0, seconds=0.0)
        worker, began = made.workers[0], Clock().monotonic()
        worker.send_signal(signal.SIGTERM)
        if signals == 2:
            assert not has_ended(worker, 0.5)
            began = Clock().monotonic()
            worker.send_signal(signal.SIGTERM)
        assert has_ended(worker, 60.0)
        took_s = Clock().monotonic() - began
        assert worker.returncode == 0, worker.communicate()
    return took_s


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_a_long_partition_costs_time_alone(store_text: str, tmp_path: Path) -> None:
    """Cut off for 60 s, twice as long as a real lease, a lone worker sends nothing, and then goes on by itself."""
    with link_to(store_text) as (link, far), cluster(far, tmp_path, WORK, *FAULTS, workers=0) as made:
        with_reads(made, 4_000)
        with made.home.running(*run_arguments(store_text)) as waiting:
            cut_off(made, link, "--lease", "30", silent_after_s=SILENT_AFTER_S, seconds=60.0 - SILENT_AFTER_S)
            link.heal()
            out, err = waiting.communicate(timeout=200.0)
            assert waiting.returncode in (1, 6), out + err
        assert made.workers[0].poll() is None
        judged(made, "run", 4_000)
