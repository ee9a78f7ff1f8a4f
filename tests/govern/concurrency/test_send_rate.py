"""A front end that refuses what comes too fast: the rate that it lets through is found, and kept."""

import heapq
import random
from collections import deque
from collections.abc import Callable
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk.govern.concurrency.rate_curve import LEAST_PER_S
from bulk.govern.concurrency.send_rate import SendRate

FrontEnd = Callable[[float], bool]
TRIP_S, SERVICE_S = 0.004, 0.05


def leaky(rate: float, burst: float) -> FrontEnd:
    """A leaky bucket as nginx has it: what is refused does not count."""
    excess, last = 0.0, -1_000.0

    def lets_through(now: float) -> bool:
        nonlocal excess, last
        filled = max(0.0, excess - (now - last) * rate + 1.0) if last >= 0.0 else 0.0
        if filled > burst:
            return False
        excess, last = filled, now
        return True

    return lets_through


def windows(rate: float, length_s: float) -> FrontEnd:
    """As many in each window as it has seconds, times the rate."""
    window, count = -1, 0

    def lets_through(now: float) -> bool:
        nonlocal window, count
        if int(now / length_s) != window:
            window, count = int(now / length_s), 0
        count += 1
        return count <= rate * length_s

    return lets_through


def sliding(rate: float) -> FrontEnd:
    """A sliding second in which also what is refused counts, as HAProxy has it."""
    came = deque[float]()

    def lets_through(now: float) -> bool:
        while came and came[0] <= now - 1.0:
            came.popleft()
        came.append(now)
        return len(came) <= rate

    return lets_through


def at_random(share: float, seed: int, front_end: FrontEnd = lambda _: True) -> FrontEnd:
    """Another front end that refuses this share of all, whatever their rate is."""
    dice = random.Random(seed)
    return lambda now: dice.random() >= share and front_end(now)


def played(
    front_end: FrontEnd, seconds: float, since: float = 0.0, *, most: int = 64, one: SendRate | None = None
) -> tuple[float, float]:
    """Send for `seconds`, at most `most` in flight; return what was served in a second, and refused for each of these,
    from `since` on."""
    one, dice = one or SendRate(), random.Random(1)
    now, in_flight, under_way = 0.0, 0, list[tuple[float, float, bool]]()
    served = refused = 0
    while now < seconds:
        wait_s = one.wait_s(now) if one.is_bound else 0.0
        if in_flight < most and wait_s <= 1e-9:
            if one.is_bound:
                one.take(now)
            is_served = front_end(now)
            in_flight += 1
            took_s = SERVICE_S if is_served else TRIP_S
            heapq.heappush(under_way, (now + took_s * dice.uniform(0.9, 1.1), now, is_served))
            continue
        next_s = now + wait_s if in_flight < most else float("inf")
        if not under_way or under_way[0][0] > next_s:
            now = next_s
            continue
        now, sent_at, is_served = heapq.heappop(under_way)
        in_flight -= 1
        one.answers += 1
        if not is_served:
            one.refused(sent_at, now)
        served += is_served and now >= since
        refused += not is_served and now >= since
    return served / (seconds - since), refused / max(1, served)


KINDS: dict[str, Callable[[], FrontEnd]] = {
    "burst 0": lambda: leaky(40.0, 0.0),
    "burst 10": lambda: leaky(40.0, 10.0),
    "burst 50": lambda: leaky(40.0, 50.0),
    "1 s": lambda: windows(40.0, 1.0),
    "10 s": lambda: windows(40.0, 10.0),
    "sliding": lambda: sliding(40.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nearly_all_that_is_let_through_is_used(kind: str) -> None:
    """At least 0.9 of the rate of any front end, with less than a tenth of refusals."""
    per_s, refused = played(KINDS[kind](), 120.0, 40.0)
    assert per_s >= 0.9 * 40.0
    assert refused < 0.1


@pytest.mark.parametrize("rate", [5.0, 300.0])
def test_slow_and_fast_ones_are_found_as_well(rate: float) -> None:
    """A few requests in a second, or some hundred."""
    per_s, refused = played(leaky(rate, 10.0), 60.0, 30.0)
    assert per_s >= 0.9 * rate
    assert refused < 0.1


def test_a_limit_that_looks_like_chance_is_found_all_the_same() -> None:
    """Where a few requests in a second are let through, half the rate may be refused in the same measure. What is put
    up with then falls as soon as most answers are refusals."""
    per_s, refused = played(sliding(10.0), 120.0, 30.0)
    assert per_s >= 0.65 * 10.0
    assert refused < 0.25


def test_a_front_end_that_is_gone_is_forgotten() -> None:
    """Where nothing is refused any more, all leave as before within a minute."""
    limited, one = leaky(40.0, 10.0), SendRate()
    per_s, _ = played(lambda now: now > 10.0 or limited(now), 70.0, 69.0, most=8, one=one)
    assert not one.is_bound
    assert per_s > 0.9 * 8 / SERVICE_S


def test_a_few_refusals_bind_nothing() -> None:
    """One refusal in a hundred has another cause than the rate."""
    one = SendRate()
    per_s, _ = played(at_random(0.01, 2), 5.0, one=one)
    assert not one.is_bound
    assert per_s > 0.9 * 64 / SERVICE_S


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_what_is_refused_at_random_slows_nothing_down(share: float) -> None:
    """Half the rate is refused in the same measure: so the rate is not the reason, and comes back soon."""
    per_s, _ = played(at_random(share, 7), 50.0, 25.0, most=8)
    assert per_s > 0.8 * 8 / SERVICE_S


def test_a_limit_among_refusals_at_random_is_found() -> None:
    """It is told from them by what comes of half the rate, mostly soon."""
    shares = []
    for seed in range(8):
        per_s, refused = played(at_random(0.1, seed, leaky(40.0, 10.0)), 90.0, 30.0, most=16)
        shares.append(per_s / 36.0)
        assert refused < 0.4
    assert mean(shares) > 0.5


def of_two_meanings(mixed: bool, seconds: float) -> SendRate:
    """What comes of refusals that may have another reason: half of 100 answers a second, or all that are sent after
    the first tenth of a second."""
    one = SendRate()
    for number in range(int(100 * seconds)):
        now = 10.0 + number / 100
        one.answers += 1
        if number % 2 if mixed else number > 10:
            one.refused(now - 0.01, now, is_sure=False)
    return one


def test_an_outage_is_no_limit_of_the_rate() -> None:
    """Refusals that may have another reason count where others are served meanwhile, and only after some seconds."""
    assert not of_two_meanings(mixed=False, seconds=8.0).is_bound
    assert not of_two_meanings(mixed=True, seconds=2.0).is_bound
    assert of_two_meanings(mixed=True, seconds=4.0).is_bound


@settings(max_examples=25)
@given(answers=st.lists(st.tuples(st.booleans(), st.floats(0.0, 5.0)), max_size=60))
def test_whatever_is_answered_requests_leave(answers: list[tuple[bool, float]]) -> None:
    """No request ever waits for longer than the least rate says, and no time runs backwards."""
    one, now = SendRate(), 10.0
    for is_refused, passed_s in answers:
        now += passed_s
        wait_s = one.wait_s(now) if one.is_bound else 0.0
        assert 0.0 <= wait_s <= 1.0 / LEAST_PER_S + 1e-6
        now += wait_s
        if one.is_bound:
            one.take(now)
        one.answers += 1
        if is_refused:
            one.refused(now, now + 0.01)
        now += 0.01
