"""What a page explores is what the run directory holds."""

import base64
import gzip

import msgspec
import pytest

from bulk.report import exploration
from bulk.report.exploration import Exploration, explore
from bulk.report.fold import fold
from bulk.report.timeline import Timeline
from bulk.status import Wait, WaitKind
from tests.report.ledgers import START, bucket, finished, job_status, status


def explored(view) -> Exploration:
    """All of it, as the page gets it: packed and unpacked again."""
    packed = explore(view, fold(view)).packed()
    return msgspec.json.decode(gzip.decompress(base64.b64decode(packed)), type=Exploration)


def test_every_item_that_did_not_succeed_is_there(new_run):
    """In the order of jobs and items, with what is known of each; what succeeded is not."""
    run = new_run(readmes=5, files=2)
    items = [finished(0), finished(1, "failed", request_id="A1", id="mine"), finished(2, "unchanged")]
    items += [finished(3, "unknown", code="unknown_outcome", message="lost")]
    items += [finished(0, "skipped", "files", code="dependency_failed", message="readmes"), finished(1, job="files")]
    found = explored(run.epoch(items, exit_code=6))
    columns = found.items
    assert [columns.jobs[job] for job in columns.job] == ["readmes", "readmes", "files"]
    assert columns.index == [1, 3, 0]
    assert columns.label == ["acme/r1", "acme/r3", "acme/r0"]
    assert [columns.outcomes[each] for each in columns.outcome] == ["failed", "unknown", "skipped"]
    assert [columns.codes[each] for each in columns.code] == ["not_found", "unknown_outcome", "dependency_failed"]
    assert [columns.messages[each] for each in columns.message] == ["Not Found", "lost", "readmes"]
    assert (columns.id, columns.request) == (["mine", None, None], ["A1", None, None])
    assert (columns.status, columns.attempts, columns.cause) == ([404, 404, 404], [1, 1, 1], [0, 1, 2])
    assert columns.at == [START + 1, START + 3, START]
    assert (found.total, found.is_cut, [cause.count for cause in found.causes]) == (3, False, [1, 1, 1])


def test_more_than_a_page_can_hold_are_cut(new_run, monkeypatch):
    """The first so many are there, and the page knows that there are more."""
    monkeypatch.setattr(exploration, "MOST_ITEMS", 2)
    found = explored(new_run(readmes=5).epoch([finished(index, "failed") for index in range(5)], exit_code=1))
    assert (found.items.index, found.total, found.is_cut) == ([0, 1], 5, True)


def test_of_very_many_messages_the_first_are_whole(new_run, monkeypatch):
    """An item beyond them shows what the messages of its cause share; the page does not grow with them."""
    monkeypatch.setattr(exploration, "MOST_MESSAGES", 2)
    messages = ["r0 is gone", "r1 is gone", "r2 is gone", "r0 is gone", "r4 is closed", "r5 is closed"]
    items = [finished(index, "failed", message=message) for index, message in enumerate(messages)]
    columns = explored(new_run(readmes=6).epoch(items, exit_code=1)).items
    shown = [columns.messages[each] for each in columns.message]
    assert shown == ["r0 is gone", "r1 is gone", "r… is gone", "r0 is gone", "r4 is closed", "r… is closed"]


def test_the_curves_are_those_of_the_samples(new_run):
    """Over the time at work: a pause between two starts takes no room; a bucket's reset is where its window ended."""
    run = new_run(readmes=600)
    for start in (START, START + 10_000):
        timeline, minutes = Timeline(START), []
        for second in range(100):
            reset_at = start + (50 if second < 50 else 99_999)
            found = timeline.note(
                status(
                    start + second,
                    jobs=(job_status(items=600, outcomes={"succeeded": 3 * second}),),
                    buckets=(bucket(remaining=5000 - second, used=second, reset_at=reset_at),),
                    waits=(Wait("pace", None, 7, WaitKind.PACE),),
                    concurrency=16,
                    in_flight=second % 16,
                ),
                [second, *[0] * 11],
            )
            minutes += [found] if found is not None else []
        last = status(start + 100)
        with run.open(start) as ledger:
            for minute in minutes:
                ledger.commit([], last, {}, minute)
            ledger.finish(3, "stopped", last)
    curves = explored(run.view).curves
    assert curves.total_s == 200
    assert len(curves.points_s) == 200
    assert curves.points_s[100] == 100
    (core,) = curves.budgets
    assert (core.name, core.limit, core.resets, core.left[:3]) == ("default/core", 5000, [50, 150], [5000, 4999, 4998])
    assert curves.waits == {"pace": [7] * 200}
    assert (curves.concurrency[:2], curves.in_flight[:3]) == ([16, 16], [0, 1, 2])
    assert curves.latencies[1] == [1, *[0] * 11]


@pytest.mark.parametrize("seconds", [1, 239, 240, 241, 5000])
def test_a_curve_has_few_points_however_long_the_run(new_run, seconds):
    """A run of a week is plotted as fast as one of a minute."""
    timeline, run = Timeline(START), new_run()
    last = status(START + seconds)
    with run.open() as ledger:
        for second in range(0, seconds, 1 if seconds < 1000 else 10):
            ledger.commit([], last, {}, timeline.note(status(START + second), [0] * 12))
        ledger.finish(3, "", last)
    assert 1 <= len(explored(run.view).curves.points_s) <= 240


def test_a_run_without_samples_has_its_throughput(new_run):
    """Runs of an older version kept none."""
    curves = explored(new_run().epoch([finished(index) for index in range(3)])).curves
    assert curves.points_s == []
    assert sum(map(sum, curves.outcomes)) == 3
