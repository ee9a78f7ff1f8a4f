"""What the plots of a report are made from is sampled, stored and read again."""

import zstandard

from bulk.ledger.records import Minute
from bulk.report.timeline import LATER_AFTER_S, Sample, Timeline, read_minutes
from bulk.status import RunStatus, Wait, WaitKind
from tests.report.ledgers import START, bucket, job_status, status

NOTHING = [0] * 12


def at(second: float, succeeded: int = 0, **fields):
    """The status of a run at that second, in which `succeeded` items have succeeded."""
    jobs = (job_status(outcomes={"succeeded": succeeded, "failed": 1}),)
    return status(START + second, jobs=jobs, **fields)


def noted(timeline: Timeline, each: RunStatus, latencies=NOTHING) -> Minute:
    """The minute that must be stored after a sample of `each`."""
    minute = timeline.note(each, latencies)
    assert minute is not None
    return minute


def samples(timeline: Timeline, *statuses, latencies=NOTHING) -> list[Sample]:
    """What a reader finds of them."""
    minutes = {found.minute: found for each in statuses if (found := timeline.note(each, latencies)) is not None}
    return read_minutes(minutes.values())


def test_a_sample_says_what_happened_since_the_one_before():
    """Items and answers are counted from one sample to the next, the first one of a process from its start on."""
    timeline = Timeline(START)
    timeline.note(at(0, 7), NOTHING)
    timeline.note(at(1, 10), [2, *NOTHING[1:]])
    minute = noted(timeline, at(2, 15), [2, 5, *NOTHING[2:]])
    first, second, third = read_minutes([minute])
    assert (first.outcomes, first.latencies) == ({}, [])
    assert (second.outcomes, second.latencies) == ({0: [3, 0, 0, 0, 0]}, [2, *NOTHING[1:]])
    assert (third.outcomes, third.latencies) == ({0: [5, 0, 0, 0, 0]}, [0, 5, *NOTHING[2:]])
    assert [each.at for each in (first, second, third)] == [START, START + 1, START + 2]


def test_a_sample_says_where_things_stood():
    """Budgets, requests in flight, and what was waited for, by kind; a bucket without a limit has nothing to plot."""
    waits = (
        Wait("pace of core, 4/s", None, 5, WaitKind.PACE),
        Wait("pace of scim", None, 2, WaitKind.PACE),
        Wait("old"),
    )
    buckets = (bucket(used=31, reset_at=START + 9.4), bucket("scim", limit=None, remaining=None))
    (sample,) = samples(Timeline(START), at(0, waits=waits, buckets=buckets, concurrency=16, in_flight=9))
    assert (sample.waits, sample.concurrency, sample.in_flight) == ({"pace": 7}, 16, 9)
    (core,) = sample.buckets
    assert (core.name, core.left, core.used, core.reset_at, core.limit) == ("default/core", 2000, 31, START + 9, 5000)


def test_a_status_between_two_samples_adds_none():
    """The status comes four times a second; the end of a process is sampled in any case."""
    timeline = Timeline(START)
    assert timeline.note(at(0), NOTHING) is not None
    assert timeline.note(at(0.5), NOTHING) is None
    assert timeline.note(at(0.95), NOTHING) is not None
    assert timeline.note(at(1.0), NOTHING, is_last=True) is not None


def test_each_minute_has_a_blob_and_a_resume_adds_to_its_own():
    """A process that begins within the last minute of the one before loses nothing of it."""
    timeline = Timeline(START)
    minutes: dict[int, Minute] = {}
    for second in range(150):
        minute = noted(timeline, at(second, second))
        minutes[minute.minute] = minute
    assert len(minutes) == 3
    resumed = Timeline(START, max(minutes.values()))
    last = noted(resumed, at(155, 3))
    minutes[last.minute] = last
    assert [each.at - START for each in read_minutes(minutes.values())] == [*range(150), 155]


def test_after_a_day_samples_are_rarer():
    """Every ten seconds, so that a run of a week keeps a small ledger."""
    timeline = Timeline(START)
    taken = [second for second in range(100) if timeline.note(at(LATER_AFTER_S + 60 + second), NOTHING) is not None]
    assert taken == list(range(0, 100, 10))


def test_a_ledger_keeps_it_with_the_status(new_run):
    """What was committed last is read again, a blob that is damaged is left out, and secrets are not in it."""
    run, timeline = new_run(), Timeline(START)
    first, second = at(59), at(61)
    minutes = [noted(timeline, first), noted(timeline, second)]
    with run.open() as ledger:
        ledger.commit([], first, {}, minutes[0])
        ledger.finish(3, "", second, minutes[1])
    assert run.view.timeline() == minutes
    assert run.view.timeline(newest=True) == minutes[1:]
    broken = [Minute(1, b"x"), Minute(2, zstandard.compress(b"{}")), Minute(3, zstandard.compress(bytes(5_000_000)))]
    assert [each.at for each in read_minutes([*broken, *minutes])] == [START + 59, START + 61]
