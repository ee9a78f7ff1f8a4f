"""The one model of a run's end: plain arithmetic in the simple cases, and what holds in every case."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bulk.forecast import Budget, Capacity, Work, forecast, with_losses

NOW = 1_795_480_000.0
CORE, OTHER = ("default", "core"), ("default", "other")
FULL = Capacity(64, 64, 64)


def work(items=640.0, cost=1.0, item_s=0.1, name="a", pays=CORE, **more):
    """What is left of a job of reads."""
    return Work(name, pays, items, cost, item_s, **more)


def lasts(*jobs, budgets=None, capacity=FULL, now=NOW):
    """Seconds until the last of them ends."""
    end_at = forecast(jobs, budgets or {}, capacity, now).end_at
    assert end_at is not None
    return end_at - now


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([work()], 1.0),
        ([work(items=10)], 0.1),
        ([work(items=0)], 0.0),
        ([], 0.0),
        ([work(), work(name="b")], 2.0),
        ([work(), work(name="b", needs=("a",))], 2.0),
        ([work(), work(name="b", pays=OTHER, items=64)], 1.1),
        ([work(items=500, lanes=10, longest=100)], 10.0),
        ([work(items=500, lanes=10, longest=50)], 5.0),
        ([work(items=200, lanes=101, longest=100, lane_s=0.2)], 20.0),
        ([work(), work(name="b", priority=5)], 2.0),
        ([work(), work(name="b", follows=("a",))], 2.0),
        ([work(items=500, lanes=10), work(name="b", items=500, pays=OTHER, lanes=10, follows=("a",))], 5.1),
        ([work(items=50, lanes=1), work(name="b", items=500, lanes=30, follows=("a",))], 5.1),
        ([work(items=500, lanes=30), work(name="b", items=50, lanes=1, follows=("a",))], 5.1),
        ([work(items=0), work(name="b", follows=("a",))], 1.0),
        ([work(items=50, lanes=1), work(items=99, name="b", opened=99, lanes=1, follows=("a",))], 9.9),
        ([work(lanes=1, items=9), work(name="b", items=9, follows=("a",)), work(name="c", needs=("b",))], 2.0),
        ([work(name=str(n), lanes=1, items=20, follows=(str(n - 1),) if n else ()) for n in range(6)], 2.5),
    ],
)
def test_without_limits_it_is_plain_arithmetic(jobs, expected):
    """Items times their time over what is under way; a lane one after the other; what needs another after it."""
    assert lasts(*jobs) == pytest.approx(expected, abs=0.01)


def test_jobs_that_go_on_item_by_item_share_their_time():
    """Two budgets of an hour each: one job after the other takes both, item by item little more than the longer one."""
    budgets = {key: Budget(1_000.0, 1_000.0, 3_600.0) for key in (CORE, OTHER)}
    files, snapshots = work(items=7_000.0), work(items=4_000.0, name="b", pays=OTHER)
    alone = lasts(files, budgets=budgets)
    whole = lasts(files, replace(snapshots, needs=("a",)), budgets=budgets)
    by_key = lasts(files, replace(snapshots, follows=("a",)), budgets=budgets)
    assert whole > 1.4 * alone
    assert alone < by_key < alone + 10.0


@pytest.mark.parametrize(
    ("items", "left", "resets_in", "expected"),
    [
        (100, 100, 7.0, 0.16),
        (101, 100, 7.0, 7.1),
        (400, 100, 7.0, 7.47),
        (401, 100, 7.0, 17.1),
        (950, 100, 7.0, 27.39),
        (300, 0, 7.0, 7.47),
        (5_000_000, 0, 7.0, 7.0 + 10 * (5_000_000 // 300) + 0.3),
    ],
)
def test_with_a_budget_it_is_the_arithmetic_of_windows(items, left, resets_in, expected):
    """What does not fit in this window waits for its real end, and every window after it has its real length."""
    for is_even in (False, True):
        budget = Budget(300.0, float(left), 10.0, NOW + resets_in, is_even=is_even)
        assert lasts(work(items), budgets={CORE: budget}) == pytest.approx(expected, abs=0.1)


def test_a_window_begins_with_its_first_request():
    """A job that begins late opens its window then, at a whole second; one that waits for nothing has opened it."""
    budgets = {CORE: Budget(100.0, 100.0, 10.0), OTHER: Budget(100.0, 100.0, 10.0)}
    first = work(150, pays=OTHER)
    assert lasts(first, budgets=budgets) == pytest.approx(10.1, abs=0.05)
    assert lasts(first, work(150, name="b", needs=("a",)), budgets=budgets, now=NOW + 0.5) == pytest.approx(
        19.6, abs=0.1
    )


def test_what_can_never_be_sent_never_ends():
    """Where a reserve leaves nothing of a budget there is no end; what ends without it has one all the same."""
    found = forecast([work(), work(name="b", pays=OTHER)], {CORE: Budget(0.0, 5.0, 10.0, NOW + 3.0)}, FULL, NOW)
    assert found.end_at is None
    assert set(found.ends) == {"b"}


def test_capacity_grows_from_what_it_is():
    """Starting with fewer in flight costs what is missing until it has doubled often enough."""
    grown = lasts(work(6_400))
    assert lasts(work(6_400), capacity=Capacity(16, 64, 64, 0.1)) == pytest.approx(grown + 0.125, abs=0.01)


JOBS = st.lists(
    st.tuples(
        st.integers(0, 3_000),
        st.sampled_from([CORE, OTHER]),
        st.floats(0.5, 3.0),
        st.floats(0.01, 2.0),
        st.one_of(st.none(), st.tuples(st.integers(1, 40), st.integers(1, 300))),
    ),
    min_size=1,
    max_size=6,
)
BUDGETS = st.dictionaries(
    st.sampled_from([CORE, OTHER]),
    st.builds(
        lambda limit, left, window, resets_in, opens_in, even: Budget(
            float(limit),
            min(float(left), float(limit)),
            float(window),
            NOW + min(resets_in, window),
            NOW + opens_in,
            even,
        ),
        st.integers(5, 500),  # with fewer, thousands of windows pass, and no end is told
        st.integers(0, 500),
        st.integers(1, 100),
        st.floats(0.1, 100.0),
        st.sampled_from([0.0, 0.0, 3.0, 40.0]),
        st.booleans(),
    ),
)


def made(drawn):
    """Work of what was drawn."""
    jobs = []
    for number, (items, pays, cost, item_s, lanes) in enumerate(drawn):
        each = work(items, cost, item_s, str(number), pays)
        if lanes is not None:
            each = replace(each, lanes=float(lanes[0]), longest=float(min(lanes[1], items)))
        jobs.append(each)
    return jobs


@settings(deadline=None)
@given(JOBS.map(lambda drawn: drawn[:1]), BUDGETS, st.integers(1, 50))
@example([(1718, CORE, 1.78125, 0.5, (10, 201))], {CORE: Budget(171.0, 0.0, 6.0, NOW + 1.0, NOW, is_even=False)}, 10)
def test_more_work_never_ends_sooner(drawn, budgets, more):
    """More items of the only job never make its end come before the one that it had. (Of several jobs that share a
    budget this is not a promise: another order of what waits may end sooner, in a run as in its forecast.)"""
    (job,) = made(drawn)
    before, after = (
        forecast([replace(job, items=job.items + extra)], budgets, FULL, NOW).end_at for extra in (0, more)
    )
    assert before is not None
    assert after is not None
    assert after >= before - job.item_s  # what flows evenly may begin within an item


@settings(deadline=None)
@given(JOBS, BUDGETS)
def test_never_before_what_must_be_waited_for(drawn, budgets):
    """No end lies before the end of a pause, before the last reset that the requests need, or before the time that the
    longest lane and all items together take."""
    jobs = made(drawn)
    found = forecast(jobs, budgets, FULL, NOW)
    assert found.end_at is not None
    assert len(found.ends) == len(jobs)
    for each in jobs:
        if each.items:
            assert (
                found.ends[each.name]
                >= NOW + max(each.longest, each.items / min(64.0, each.lanes)) * each.item_s * 0.999
            )
    for key, budget in budgets.items():
        requests = sum(each.items * each.cost for each in jobs if each.pays == key)
        ends = [found.ends[each.name] for each in jobs if each.pays == key and each.items]
        if not ends:
            continue
        assert max(ends) >= budget.opens_at
        beyond = math.ceil((requests - budget.left) / budget.limit - 1e-6)
        if beyond > 0:
            assert budget.reset_at is not None
            assert max(ends) >= budget.reset_at + (beyond - 1) * budget.window_s - 1.01 * beyond - 0.001


@given(st.integers(1, 2_000), st.floats(0.0, 0.1), st.floats(0.1, 20.0), st.integers(0, 100))
def test_lost_answers_only_add(items, share, pause_s, longest):
    """The late end of a range is never before the early one, and grows with the share that is lost."""
    given_work = work(float(items), lanes=20.0 if longest else math.inf, longest=float(min(longest, items)))
    lossy = with_losses(given_work, share, pause_s, 1.0, is_read=False)
    worse = with_losses(given_work, share * 2, pause_s, 1.0, is_read=False)
    assert lasts(given_work) <= lasts(lossy) + 0.001
    assert lasts(lossy) <= lasts(worse) + 0.001


def test_thousands_of_windows_that_hold_nothing_up_are_passed() -> None:
    """A run of days below a limit with short windows has an end: 50,000 items of a lane, a second each."""
    lane = replace(work(50_000.0, item_s=1.0), lanes=1.0, longest=1.0)
    budgets = {CORE: Budget(500.0, 500.0, 1.0, NOW + 1.0, NOW, is_even=True)}
    end_at = forecast([lane], budgets, FULL, NOW).end_at
    assert end_at is not None
    assert abs(end_at - NOW - 50_000.0) < 10.0


@settings(deadline=None, max_examples=100)
@given(JOBS, BUDGETS, st.data())
def test_who_follows_ends_behind_those_that_it_follows(drawn, budgets, data):
    """Whoever follows whom, each job ends, and none before those that it follows; an item of it takes its time."""
    jobs = made(drawn)
    for number in range(1, len(jobs)):
        names = data.draw(st.lists(st.integers(0, number - 1).map(str), unique=True, max_size=2))
        jobs[number] = replace(jobs[number], follows=tuple(names))
    ends = forecast(jobs, budgets, FULL, NOW).ends
    assert set(ends) == {job.name for job in jobs}
    for job in jobs:
        for name in job.follows if job.items else ():
            if jobs[int(name)].items:
                assert ends[job.name] >= ends[name] + job.item_s * 0.999
