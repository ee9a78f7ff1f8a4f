"""How many may be in flight: pure decisions, answer by answer."""

import functools
import heapq
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk.govern.concurrency.adaptive_limit import START, AdaptiveLimit

NOW = 1_000.0


def used_up(one: AdaptiveLimit, latency_s: float, count: int) -> None:
    """`count` good answers while all that is allowed is in flight."""
    for _ in range(count):
        one.in_flight = one.allowed - 1
        one.answered(latency_s)


def until(one: AdaptiveLimit, latency_s: float, *, is_part: bool) -> None:
    """Good answers until an experiment is under way, or none is."""
    while one.is_part is not is_part:
        used_up(one, latency_s, 1)


def kept_full(one: AdaptiveLimit, latency: Callable[[int], float], answers: int) -> float:
    """Keep it full; an answer takes what `latency` says of what is in flight as it leaves. Returns the seconds."""
    now, under_way, sent = 0.0, list[tuple[float, int, float]](), 0
    one.in_flight = 0
    for _ in range(answers):
        while one.has_room:
            one.in_flight += 1
            sent += 1
            heapq.heappush(under_way, (now + latency(one.in_flight), sent, now))
        now, _, left_at = heapq.heappop(under_way)
        one.in_flight -= 1
        one.answered(now - left_at)
    return now


def suffer(one: AdaptiveLimit, now: float) -> None:
    """As many bad answers at one moment as are in flight, and some more."""
    for _ in range(one.allowed * 2 + 10):
        one.suffered(now)


def test_what_may_be_in_flight_at_first() -> None:
    """16, or what the user allows; there is room below it."""
    assert [AdaptiveLimit(most).allowed for most in (1, 15, 16, 17, 900)] == [1, 15, 16, 16, 16]
    one = AdaptiveLimit(64)
    one.in_flight = 15
    assert one.has_room
    one.in_flight = 16
    assert not one.has_room


def test_half_as_many_again_in_each_round_at_first() -> None:
    """Half of one more for each good answer, at most twice as many in a round; a late answer adds nothing."""
    one = AdaptiveLimit(900)
    used_up(one, 0.02, 16)
    assert one.limit == 24.0
    used_up(one, 0.02, 24)
    assert one.limit == 36.0
    used_up(one, 0.07, 1)
    assert one.limit == 36.0
    one = AdaptiveLimit(900)
    one.slow_s = 1_000.0
    used_up(one, 0.02, 100)
    assert one.limit == 32.0


def test_it_grows_only_while_it_is_used_up() -> None:
    """Answers while much room is left say nothing about more; and it never passes the user's limit."""
    one = AdaptiveLimit(20)
    for in_flight in range(15):
        one.in_flight = in_flight
        one.answered(0.02)
        assert one.allowed == 16
    used_up(one, 0.02, 50)
    assert one.allowed == 20


@pytest.mark.parametrize("in_flight", [1, 2, 3, 8, 12])
@pytest.mark.parametrize("latency_s", [0.05, 2.0])
def test_who_is_held_back_by_something_else_learns_nothing(in_flight: int, latency_s: float) -> None:
    """Budgets, pacing and lanes: the limit stays what it was, at the start and once the knee is known."""
    one = AdaptiveLimit(1_000)
    for _ in range(5_000):
        one.in_flight = in_flight - 1
        one.answered(latency_s)
    assert one.limit == START
    kept_full(one, lambda n: 0.05 * max(1.0, n / 100), 20_000)
    until(one, 0.05, is_part=False)
    known = one.limit
    for _ in range(5_000):
        one.in_flight = in_flight - 1
        one.answered(latency_s)
    assert one.limit == known


def test_bad_answers_halve_once_in_a_round() -> None:
    """Down to one while the platform suffers, at most by half in a round, which is at least 50 ms."""
    one = AdaptiveLimit(64)
    suffer(one, NOW)
    suffer(one, NOW + 0.049)
    assert one.limit == 8.0
    suffer(one, NOW + 0.05)
    assert one.limit == 4.0
    used_up(one, 1.0, 1)
    suffer(one, NOW + 10.0)
    assert one.limit == 2.0
    suffer(one, NOW + 10.9)
    assert one.limit == 2.0
    for second in range(20, 40):
        suffer(one, NOW + second)
    assert one.limit == 1.0


def test_it_comes_back_on_good_answers() -> None:
    """failures.md row 25: from one in flight back near to where the platform suffered within rounds, past it later."""
    one = AdaptiveLimit(64)
    kept_full(one, lambda n: 0.02, 500)
    assert one.allowed == 64
    one.in_flight = 0
    for second in range(10):
        suffer(one, NOW + second)
    assert one.allowed == 1
    assert kept_full(one, lambda n: 0.02, 400) < 1.0
    assert 60 <= one.allowed < 64
    kept_full(one, lambda n: 0.02, 20_000)
    assert one.allowed == 64


def test_the_place_where_it_suffered_is_kept_clear_of() -> None:
    """A platform that refuses beyond 40 is not driven there again and again: after a while hardly one of a
    hundred answers is bad, and nine tenths of what it can do are used."""
    one, rng, now = AdaptiveLimit(1_000), random.Random(1), 0.0
    under_way = list[tuple[float, float, bool]]()
    good = bad = 0
    while now < 80.0:
        while one.has_room:
            is_good = one.in_flight < 40
            one.in_flight += 1
            heapq.heappush(under_way, (now + (0.05 * (0.9 + 0.2 * rng.random()) if is_good else 0.002), now, is_good))
        now, left_at, is_good = heapq.heappop(under_way)
        one.in_flight -= 1
        if is_good:
            one.answered(now - left_at)
        else:
            one.suffered(now)
        if now > 50.0:
            good, bad = good + is_good, bad + (not is_good)
    assert good > 0.9 * 30.0 * 40 / 0.05
    assert bad < 0.01 * good


@pytest.mark.parametrize("share", [0.01, 0.05, 0.12])
def test_errors_that_have_another_cause_do_not_hold_it_down(share: float) -> None:
    """One server of eight is broken: all that the user allows is allowed, as fewer in flight would change nothing."""
    one, rng, now = AdaptiveLimit(100), random.Random(2), 0.0
    under_way = list[tuple[float, float, bool]]()
    sum_limit = rounds = 0.0
    while now < 20.0:
        while one.has_room:
            is_good = rng.random() >= share
            one.in_flight += 1
            heapq.heappush(under_way, (now + (0.05 * (0.9 + 0.2 * rng.random()) if is_good else 0.002), now, is_good))
        now, left_at, is_good = heapq.heappop(under_way)
        one.in_flight -= 1
        if is_good:
            one.answered(now - left_at)
        else:
            one.suffered(now)
        if now > 10.0:
            sum_limit, rounds = sum_limit + one.limit, rounds + 1
    assert sum_limit / rounds > 0.9 * 100


@pytest.mark.parametrize("latency_s", [0.001, 0.05, 3.0])
def test_flat_latency_reaches_the_users_limit(latency_s: float) -> None:
    """Where nobody ever waits, all that the user allows is in flight after a dozen rounds, and stays."""
    one = AdaptiveLimit(1_000)
    while one.allowed < 1_000:
        took_s = kept_full(one, lambda n: latency_s, 50)
        assert took_s <= 50 * latency_s
        assert one.mean_s == pytest.approx(latency_s)
    for _ in range(20):
        kept_full(one, lambda n: latency_s, 1_000)
        assert one.limit == 1_000


@pytest.mark.parametrize("knee", [1, 2, 3, 5, 8, 16, 50, 200])
@pytest.mark.parametrize("network", [0.0, 3.0])
def test_the_knee_is_found(knee: int, network: float) -> None:
    """Whatever the platform can do at once, 0.9 to 3 times of it is allowed, from above and from below."""
    one = AdaptiveLimit(1_000)
    kept_full(one, lambda n: 0.05 * max(1.0 + network, n / knee), 400 * max(knee, 8))
    whole = knee * (1.0 + network)
    assert 0.9 * whole <= one.whole <= 3.0 * whole + 1.0


def _jittered(rng: random.Random, scale: float, knee: int, in_flight: int) -> float:
    return scale * (0.5 + rng.random()) * max(1.0, in_flight / knee)


@settings(max_examples=25)
@given(st.integers(-6, 6), st.integers(1, 200), st.integers(0, 2**32))
def test_scaled_latencies_change_no_decision(power: int, knee: int, seed: int) -> None:
    """A platform that is 64 times as fast, or as slow, is given the same number in flight."""
    limits = []
    for scale in (1.0, 2.0**power):
        one, seen = AdaptiveLimit(500), list[float]()
        latency = functools.partial(_jittered, random.Random(seed), scale, knee)
        for _ in range(4):
            kept_full(one, latency, 100)
            seen.append(one.limit)
        limits.append(seen)
    assert limits[0] == limits[1]


MOST = st.one_of(st.integers(1, 20), st.integers(1, 2_000))
STEPS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 40), st.sampled_from((0.0, 1e-12, 0.001, 0.02, 0.5, 60.0))), max_size=60
)


@given(MOST, STEPS)
def test_whatever_comes(most: int, steps: list[tuple[int, int, float]]) -> None:
    """The limit stays between 1 and what is allowed; bad answers and long turns never raise it."""
    one, now = AdaptiveLimit(most), 0.0
    for what, count, latency_s in steps:
        now += latency_s
        before = one.limit
        if what < 6:
            for _ in range(count):
                one.in_flight = max(0, one.allowed - 1 - what // 4 * count)
                one.answered(latency_s)
        elif what < 8:
            for _ in range(count):
                one.suffered(now)
            assert before / 2 <= max(1.0, one.limit)
            assert one.limit <= before
        elif what == 8:
            one.turned(latency_s, count / 40)
            assert one.limit <= before
        elif count == 1:
            one.cap(max(1, most // 2))
        assert 1.0 <= one.limit <= one.most
        assert 1.0 <= one.whole <= max(2.0, one.most)
        assert 1 <= one.allowed <= one.most


def test_a_change_while_a_part_is_in_flight_is_looked_at_again() -> None:
    """Fewer in flight can't be slower: an experiment that says so is repeated once, then it is believed."""
    one = AdaptiveLimit(1_000)
    kept_full(one, lambda n: 0.05 * max(1.0, n / 20), 20_000)
    until(one, 0.05, is_part=True)
    whole = one.whole
    used_up(one, 5.0, one.round.skip)
    until(one, 5.0, is_part=False)
    assert one.whole == whole
    assert one.is_doubted


def test_this_machine_may_hold_less() -> None:
    """failures.md row 51: fewer open files than the user allows; a later, larger word raises nothing. Who waits is told
    so, once all that there is room for is allowed."""
    one = AdaptiveLimit(64)
    one.cap(100)
    assert (one.most, one.allowed, one.obstacle) == (64, 16, "concurrency")
    one.cap(20)
    assert (one.most, one.allowed, one.obstacle) == (20, 16, "concurrency")
    one.cap(10)
    assert (one.most, one.allowed, one.obstacle) == (10, 10, "concurrency, as few files may be open")
    one.cap(30)
    assert (one.most, one.allowed, one.obstacle) == (10, 10, "concurrency, as few files may be open")
    for _ in range(5):
        one.suffered(1.0)
    assert (one.allowed, one.obstacle) == (5, "concurrency")
