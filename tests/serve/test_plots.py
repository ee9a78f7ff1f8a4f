"""Curves of a run while it goes: they lose nothing, stay small, and a later look goes on where an earlier one was."""

import dataclasses
from pathlib import Path

from bulk.report.run_state import run_state_of
from bulk.report.timeline import Timeline
from bulk.serve.plots import MOST_KEPT, Plots
from tests.report.ledgers import START, Run, bucket, finished, job_status, status

MINUTES = 50
WINDOW_S = 600


def test_a_long_run_has_as_few_points_as_a_short_one(tmp_path: Path) -> None:
    """However often it is looked at while it grows, what ended adds up, each reset shows, and no curve has more than a
    few hundred points; all looks together say what a first look says.
    """
    run = Run(tmp_path / "run", readmes=10**6)
    timeline, plots = Timeline(START), Plots()
    with run.open() as ledger:
        for second in range(MINUTES * 60):
            now = status(
                START + second,
                jobs=(job_status(items=10**6, outcomes={"succeeded": 7 * second, "failed": second // 2}),),
                buckets=(bucket(reset_at=START + (second // WINDOW_S + 1) * WINDOW_S, remaining=5000 - second % 600),),
                in_flight=second % 9,
                concurrency=9,
            )
            minute = timeline.note(now, [3 * second] + [0] * 11)
            assert minute is not None
            if second % 60 == 59:
                ledger.commit([run.record(finished(second))], now, {}, minute)
            if second % 540 == 539:
                plots.of(run.view, run_state_of(run.view, now.at, now), now.at)
        run_state = run_state_of(run.view, now.at, now)
        found, fresh = (each.of(run.view, run_state, now.at) for each in (plots, Plots()))
    assert sum(counts[0] for counts in found.outcomes) == 7 * (MINUTES * 60 - 1)
    assert sum(counts[2] for counts in found.outcomes) == (MINUTES * 60 - 1) // 2
    assert len(found.points_s) <= 240 >= len(found.outcomes)
    assert found.bin_s % 60 == 0
    assert len(found.budgets[0].resets) == MINUTES * 60 // WINDOW_S - 1
    assert sum(map(sum, found.latencies)) == 3 * (MINUTES * 60 - 1)
    assert found == fresh


def test_a_run_that_was_killed_and_resumed_has_no_gap(tmp_path: Path) -> None:
    """The time between two processes is cut out, also where the first one never said its end."""
    run = Run(tmp_path / "run", readmes=100)
    for began_at in (START, START + 9_000):
        timeline = Timeline(began_at)
        with run.open(began_at) as ledger:
            for second in range(20):
                now = status(began_at + second, jobs=(job_status(outcomes={"succeeded": second}),))
                ledger.commit([], now, {}, timeline.note(now, [0] * 12))
    found = Plots().of(run.view, run_state_of(run.view, START + 9_100), START + 9_100)
    assert found.total_s == 38
    assert found.breaks_s == [19]
    assert sum(counts[0] for counts in found.outcomes) == 38


def test_few_runs_are_kept_in_memory(tmp_path: Path) -> None:
    """Looking at many runs keeps the minutes of the newest few."""
    plots = Plots()
    for number in range(MOST_KEPT + 2):
        run = Run(tmp_path / str(number))
        view = run.epoch([finished()])
        plots.of(view, run_state_of(view, START + 20), START + 20)
    assert len(plots._kept) == MOST_KEPT


def test_a_run_that_has_not_begun_has_empty_curves(tmp_path: Path) -> None:
    """A page that is opened in the moment before the first process is written down gets an answer."""
    run = Run(tmp_path / "run")
    view = run.epoch([finished()])
    found = Plots().of(view, dataclasses.replace(run_state_of(view, START + 20), epochs=()), START + 20)
    assert found.total_s == 0
