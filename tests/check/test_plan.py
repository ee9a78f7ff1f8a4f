"""The plan: requests, windows and the predicted end, by arithmetic that can be followed."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.bundle.checked import Checked, JobCheck
from bulk.check.plan import plan
from bulk.forecast import WRITE_S
from bulk.quantities import Share
from bulk.status import BucketStatus
from tests.manifest.making import ReadThing, SecretThing, WriteThing, a_job, a_manifest

NOW = 1_000.0
FIRST_S = 0.2
"""Without limits: the question for them, and the one request that goes ahead (two latencies)."""


def a_plan(tmp_path, jobs, checks, buckets=(), **more):
    limits = {
        name: more.pop(name) for name in ("reserve", "concurrency", "waves", "gate", "gate_after_s") if name in more
    }
    checked = Checked(a_manifest(tmp_path, *jobs, **limits), tuple(checks), ("a note",), "")
    return plan(checked, buckets, NOW, **more)


def reads(count):
    return JobCheck(items=count, least_requests=count, most_requests=count)


def bucket(limit, remaining, reset_at, category="core", window_s=None):
    return BucketStatus(
        credential="default",
        category=category,
        limit=limit,
        remaining=remaining,
        reset_at=reset_at,
        window_s=window_s,
    )


READ = a_job(ReadThing(), [])


@pytest.mark.parametrize(
    ("items", "remaining", "windows", "done_at"),
    [
        (0, 40, 0, NOW),
        (40, 40, 1, NOW),
        (41, 40, 2, 1_010.0),
        (140, 40, 2, 1_010.0),
        (141, 40, 3, 1_110.0),
        (100, 0, 1, 1_010.0),
        (101, 0, 2, 1_110.0),
    ],
)
def test_windows_are_counted(tmp_path, items, remaining, windows, done_at):
    """What does not fit in this window waits for its reset, and then whole windows are spent."""
    found = a_plan(tmp_path, [READ], [reads(items)], [bucket(100, remaining, 1_010.0, window_s=100.0)])
    (used,) = found.buckets
    assert (used.most_windows, used.most_done_at) == (windows, done_at)
    assert found.most_finish_at is not None
    assert done_at <= found.most_finish_at <= done_at + 0.5 if windows != 1 else done_at <= found.most_finish_at


def test_the_reserve_is_left_alone(tmp_path):
    """The reserve is taken off every window; one that leaves nothing never ends."""
    told = [bucket(100, 40, 1_010.0, window_s=100.0)]
    found = a_plan(tmp_path, [READ], [reads(100)], told, reserve=Share(fraction=0.1))
    assert (found.buckets[0].reserve, found.buckets[0].most_windows, found.buckets[0].most_done_at) == (10, 2, 1_010.0)
    never = a_plan(tmp_path, [READ], [reads(100)], [bucket(100, 40, 1_010.0)], reserve=Share(count=100))
    assert (never.buckets[0].most_windows, never.most_finish_at) == (None, None)


def test_an_untouched_bucket_shows_how_long_a_window_is(tmp_path):
    """Where nothing was spent yet, the time to the reset is a whole window; else it is judged, and that is said."""
    short = a_plan(tmp_path, [READ], [reads(250)], [bucket(100, 100, NOW + 5)])
    assert short.buckets[0].most_done_at == NOW + 10
    minute = a_plan(tmp_path, [READ], [reads(250)], [bucket(100, 99, NOW + 55)])
    assert minute.buckets[0].most_done_at == NOW + 55 + 60
    assert any("has not been seen yet: 60 seconds are assumed" in note for note in minute.notes)
    hourly = a_plan(tmp_path, [READ], [reads(12_500)], [bucket(5_000, 4_999, NOW + 55)])
    assert hourly.buckets[0].most_done_at == NOW + 55 + 3_600
    past = a_plan(tmp_path, [READ], [reads(150)], [bucket(100, 0, NOW - 5)])
    assert past.buckets[0].most_done_at == NOW + 3_600


@pytest.mark.parametrize(("items", "remaining", "ends"), [(90, 0, 3_600), (90, 40, 3_600), (110, 0, 7_200)])
def test_a_window_whose_end_nobody_named_may_have_just_begun(tmp_path, items, remaining, ends):
    """Where no end can be read, what is left counts, and the rest waits for a whole window."""
    found = a_plan(tmp_path, [READ], [reads(items)], [bucket(100, remaining, None)])
    assert found.buckets[0].most_done_at == NOW + ends
    assert found.most_finish_at is not None
    assert found.most_finish_at >= NOW + ends


def test_without_limits_latency_and_lanes_decide(tmp_path):
    """A bucket without limit ends with the work: what may be in flight, or the longest lane where that takes longer."""
    free = [bucket(None, None, None)]
    found = a_plan(tmp_path, [READ], [reads(6_400)], free, latency_s=0.1)
    assert found.most_finish_at == pytest.approx(NOW + FIRST_S + 10.125)  # 16 in flight, doubled twice
    assert a_plan(tmp_path, [READ], [reads(640)], free, concurrency=16).most_finish_at == pytest.approx(
        NOW + FIRST_S + 4
    )
    lane = JobCheck(items=640, lanes=2, longest_lane=("a", 600), least_requests=640, most_requests=1920)
    laned = a_plan(tmp_path, [a_job(WriteThing(), [])], [lane])
    assert (laned.longest_lane, laned.longest_lane_items) == ("a", 600)
    assert laned.longest_lane_s == pytest.approx(600 * (0.3 + WRITE_S))
    assert laned.least_finish_at == pytest.approx(NOW + FIRST_S + 60)
    assert laned.most_finish_at == pytest.approx(NOW + FIRST_S + laned.longest_lane_s)
    assert laned.lossy_finish_at is not None
    assert laned.lossy_finish_at > laned.most_finish_at


def test_jobs_share_buckets_by_credential_and_category(tmp_path):
    """Requests of jobs add up in their bucket; other categories and credentials are other buckets."""
    jobs = [
        READ,
        a_job(ReadThing(), [], number=1, name="b"),
        a_job(ReadThing(), [], number=2, name="c", credential="admin"),
        a_job(WriteThing(), [], number=3, name="d"),
    ]
    checks = [reads(10), reads(20), reads(5), JobCheck(items=3, least_requests=3, most_requests=9)]
    found = a_plan(tmp_path, jobs, checks)
    assert [(used.credential, used.category, used.least_requests, used.most_requests) for used in found.buckets] == [
        ("default", "core", 30, 30),
        ("admin", "core", 5, 5),
        ("default", "things", 3, 9),
    ]
    assert (found.items, found.least_requests, found.most_requests) == (38, 38, 44)


def test_notes_say_what_can_not_be_undone(tmp_path):
    """What is irreversible and what is saved is said, before the notes of the check."""
    jobs = [a_job(SecretThing(), [], name="orgs", save="{place}.json"), a_job(SecretThing(), [], number=1, name="none")]
    found = a_plan(tmp_path, jobs, [reads(1), reads(0)])
    assert found.notes == (
        "job orgs: thing.keep cannot be undone (1 item)",
        "job orgs: each result is saved to saved/{place}.json",
        "a note",
    )


@pytest.mark.parametrize(
    ("items", "needs", "gates"),
    [((20, 20), False, 2), ((20, 2), False, 2), ((20, 20), True, 4), ((20, 1), True, 2), ((1, 1), True, 0)],
)
def test_the_pauses_between_waves_are_in_every_end(tmp_path, items, needs, gates):
    """Waves of 1, 2 and the rest have two gates between them; those of a job that waits for another come behind."""
    jobs = [
        a_job(WriteThing(), [], name="a"),
        a_job(WriteThing(), [], number=1, name="b", needs=("a",) if needs else ()),
    ]
    checks = [JobCheck(items=count, least_requests=count, most_requests=2 * count) for count in items]
    waves = (Share(count=1), Share(count=2))
    plain, gated = (
        a_plan(tmp_path, jobs, checks, waves=waves, gate_after_s=pause_s, latency_s=0.1) for pause_s in (0.0, 600.0)
    )
    for name in ("least_finish_at", "most_finish_at", "lossy_finish_at"):
        assert getattr(gated, name) == pytest.approx(getattr(plain, name) + gates * 600.0)


def test_a_gate_that_a_person_opens_is_said_to_be_in_no_end(tmp_path):
    """Nobody knows when that will be."""
    found = a_plan(tmp_path, [a_job(WriteThing(), [])], [reads(3)], waves=(Share(count=1),), gate="manual")
    assert found.notes[0].startswith("its waves are opened by hand")


def test_a_plan_is_data(tmp_path):
    """`bulk plan --json` prints it as it is."""
    found = a_plan(tmp_path, [READ], [reads(3)], [bucket(100, 40, 1_010.0)])
    data = msgspec.json.decode(msgspec.json.encode(found))
    assert data["buckets"][0]["remaining"] == 40
    assert data["jobs"][0]["name"] == "x"


@given(st.integers(0, 5_000), st.integers(1, 500), st.integers(0, 500), st.integers(0, 600), st.floats(1, 100))
def test_windows_suffice_and_are_not_too_many(tmp_path_factory, items, limit, remaining, reserve, until_reset):
    """The windows that are counted hold the requests, and one fewer would not."""
    remaining = min(remaining, limit - 1)
    found = a_plan(
        tmp_path_factory.getbasetemp(),
        [READ],
        [reads(items)],
        [bucket(limit, remaining, NOW + until_reset, window_s=100.0)],
        reserve=Share(count=reserve),
    )
    (used,) = found.buckets
    first, usable = max(0, remaining - reserve), limit - reserve
    if items <= first or not items:
        assert used.most_done_at == NOW
    elif usable <= 0:
        assert used.most_done_at is None
    else:
        assert used.most_done_at is not None
        resets = round((used.most_done_at - NOW - until_reset) / 100.0) + 1
        assert first + resets * usable >= items > first + (resets - 1) * usable
