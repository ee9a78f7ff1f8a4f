"""The arithmetic of a bucket."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.budgets.buckets import Bucket


def bucket(limit: int = 10, free: int | None = None, **more: float) -> Bucket:
    return Bucket(limit, limit if free is None else free, reset_at=1_000.0, window_s=60.0, **more)  # type: ignore[arg-type]


def test_the_cap_is_hard() -> None:
    """Nothing is let out of an empty bucket, not even by a caller who did not ask."""
    one = bucket(free=0)
    assert one.available == 0
    with pytest.raises(ValueError, match="empty"):
        one.reserve_one()


def test_the_reserve_is_left() -> None:
    """What is reserved for others is never available."""
    one = bucket(limit=10, reserve=4)
    while one.available:
        one.reserve_one()
    assert one.free == 4


def test_what_cost_nothing_comes_back_whatever_window_it_left_in() -> None:
    """A request that was under way when a window ended is counted in the next one as long as nobody knows; answered
    304 it cost nothing in either."""
    one = bucket()
    one.reserve_one()
    one.pass_time(1_000.0)
    one.observe(10, 10, 1_060.0, overlap=1, now=1_000.0)
    assert (one.own, one.free) == (1, 9)
    one.give_back()
    assert (one.own, one.free) == (0, 10)


def test_what_was_answered_before_the_end_counts_before_it() -> None:
    """The `Date` of an answer shows that a request under way at the end of a window was counted before."""
    one = bucket()
    for _ in range(3):
        one.reserve_one()
    one.pass_time(1_000.5)
    one.observe(10, 10, 1_060.0, overlap=3, now=1_000.0)
    assert (one.window, one.own, one.free) == (2, 3, 7)
    one.counted_before(1, made_at=1_000.0)
    assert (one.own, one.free) == (2, 8)
    one.counted_before(1, made_at=1_001.0)
    assert (one.own, one.free) == (2, 8)


def test_numbers_that_may_not_know_of_requests_under_way() -> None:
    """A number that the platform names never raises what is left by requests that it may not have counted."""
    one = bucket(limit=100)
    for _ in range(30):
        one.reserve_one()
    one.observe(100, 100, 1_000.0, overlap=30, now=950.0)
    assert one.free == 70


def test_a_rival_is_believed_and_the_newest_number_counts() -> None:
    """Once somebody else spends from it, what may not be counted yet is taken off each new number, and given again once
    it is counted; more than the lowest number allows is not."""
    one = bucket(limit=100)
    one.observe(100, 60, 1_000.0, overlap=0, now=950.0)
    assert (one.free, one.has_rival) == (60, True)
    one.observe(100, 58, 1_000.0, overlap=5, now=951.0)
    assert one.free == 53
    one.observe(100, 56, 1_000.0, overlap=0, now=952.0)
    assert one.free == 56


def test_late_words_of_an_old_window_are_ignored() -> None:
    """An answer that was overtaken by the reset changes nothing."""
    one = bucket(limit=100)
    assert one.observe(100, 100, 1_060.0, overlap=0, now=1_001.0)
    assert not one.observe(100, 3, 1_000.0, overlap=0, now=1_002.0)
    assert one.free == 100


def test_a_reset_that_jitters_by_a_second_is_the_same_window() -> None:
    """A platform that computes the reset anew each time does not hand out its budget again."""
    one = bucket(limit=100, free=0)
    assert not one.observe(100, 0, 1_001.0, overlap=0, now=950.0)
    assert one.free == 0


@given(limit=st.integers(-5, 50), remaining=st.integers(-10, 100), overlap=st.integers(0, 30), reset=st.floats(0, 1e12))
def test_nonsense_is_clamped(limit: int, remaining: int, overlap: int, reset: float) -> None:
    """failures.md row 31: whatever the platform names, what is left stays between nothing and the limit."""
    one = bucket(limit=20)
    one.observe(max(0, limit), remaining, reset, overlap, now=990.0)
    assert 0 <= one.free <= max(20, limit)
    assert one.available >= 0


@dataclass
class Platform:
    """A platform that counts: the truth that the bucket must never go beyond."""

    limit: int
    used: int = 0
    refused: int = 0
    under_way: list[tuple[int, int]] = field(default_factory=list)


@given(
    limit=st.integers(1, 30),
    steps=st.lists(
        st.tuples(st.sampled_from(["send", "arrive", "answer", "free", "lost"]), st.integers(0, 9)), max_size=200
    ),
)
def test_never_beyond_the_budget_whatever_the_order(limit: int, steps: list[tuple[str, int]]) -> None:
    """Requests arrive and are answered in any order, some cost nothing, some answers are lost: never one too many."""
    one, used = bucket(limit=limit), 0
    travelling: list[tuple[int, int]] = []
    arrived: list[tuple[int, int, bool, int]] = []
    for verb, pick in steps:
        if verb == "send" and one.available:
            one.reserve_one()
            travelling.append((one.mark, one.window))
        elif verb in ("arrive", "free") and travelling:
            mark, window = travelling.pop(pick % len(travelling))
            used += verb == "arrive"
            assert used <= limit
            arrived.append((mark, window, verb == "free", limit - used))
        elif verb in ("answer", "lost") and arrived:
            mark, window, is_free, remaining = arrived.pop(pick % len(arrived))
            one.in_flight -= 1
            if verb == "answer":
                if is_free:
                    one.give_back()
                one.observe(limit, remaining, 1_000.0, one.overlap(mark), now=950.0)
    assert used + len(travelling) <= limit


@given(limit=st.integers(1, 200), answers=st.integers(0, 200))
def test_all_of_it_can_be_used(limit: int, answers: int) -> None:
    """Without others, one request after the other, the whole limit is let out."""
    one, used = bucket(limit=limit), 0
    while one.available:
        one.reserve_one()
        mark = one.mark
        used += 1
        one.in_flight -= 1
        one.observe(limit, limit - used, 1_000.0, one.overlap(mark), now=950.0)
    assert used == limit


def test_a_refusal_empties_its_window_for_good() -> None:
    """failures.md row 32: no word reopens a window in which a request was refused, not even one asked for after that,
    which may be late; a new window does."""
    one = bucket(limit=100, free=5)
    one.exhaust()
    one.observe(100, 3, 1_000.0, overlap=0, now=950.0)
    one.observe(100, 7, 1_000.0, overlap=0, now=953.0, is_asked=True)
    assert one.available == 0
    assert one.observe(100, 100, 1_060.0, overlap=0, now=1_000.0)
    assert one.available == 100


def test_what_others_take_at_once_is_remembered() -> None:
    """The last of a bucket is contested: as much as somebody else was seen to take in one burst, a tenth at most."""
    one = bucket(limit=1_000)
    one.observe(1_000, 970, 1_000.0, overlap=0, now=940.0)
    one.observe(1_000, 950, 1_000.0, overlap=0, now=940.5)
    assert one.burst == 50
    one.observe(1_000, 940, 1_000.0, overlap=0, now=945.0)
    assert one.burst == 50
    one.observe(1_000, 51, 1_000.0, overlap=0, now=950.0)
    assert one.burst == 100
    contested = []
    for left in (51, 50, 0):
        one.observe(1_000, left, 1_000.0, overlap=0, now=951.0)
        contested.append(one.is_contested)
    assert contested == [True, True, False]
    assert not bucket(limit=1_000, free=1).is_contested


def test_what_others_took_long_ago_is_forgotten() -> None:
    """Each window in which nobody else spent halves what is known of bursts."""
    one = bucket(limit=1_000)
    one.observe(1_000, 980, 1_000.0, overlap=0, now=940.0)
    bursts = []
    for window in range(1, 7):
        one.observe(1_000, 1_000, 1_000.0 + 60.0 * window, overlap=0, now=940.0 + 60.0 * window)
        bursts.append(one.burst)
    assert bursts == [20, 10, 5, 2, 1, 0]
