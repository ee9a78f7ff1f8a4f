"""Bad answers: how many are everyday life, and when half as many in flight is of use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.concurrency.overload import ALARM, MOST, USUAL, Overload


def until_alarm(one: Overload, limit: float, good_between: int) -> int | None:
    """Bad answers with `good_between` good ones between two, up to the alarm (count); None: a hundred raise none."""
    for bad in range(1, 101):
        if one.was_bad(limit):
            return bad
        for _ in range(good_between):
            assert not one.was_good(limit)
    return None


@pytest.mark.parametrize(("limit", "bad"), [(1.0, 4), (16.0, 5), (100.0, 14), (1_000.0, None)])
def test_a_row_of_bad_answers_is_a_sign(limit: float, bad: int | None) -> None:
    """More than three, and more than a tenth of what is in flight; of a thousand a hundred are not enough."""
    assert until_alarm(Overload(), limit, 0) == bad


@pytest.mark.parametrize(("good_between", "bad"), [(9, 7), (20, None), (99, None)])
def test_what_comes_now_and_then_is_none(good_between: int, bad: int | None) -> None:
    """One of ten is too many after a while, one of 21 or of a hundred never is."""
    assert until_alarm(Overload(), 10.0, good_between) == bad


def fallen(bad: int, good: int, limit: float = 8.0) -> Overload:
    """The limit fell after that number of answers."""
    one = Overload()
    for _ in range(bad):
        one.was_bad(limit)
    one.seen += good
    one.fell(2)
    assert (one.skip, one.seen, one.bad, one.excess) == (2, 0.0, 0.0, 0.0)
    return one


def test_an_experiment_sees_what_left_after_the_fall() -> None:
    """What was under way says nothing of it; it ends after 12 bad answers' worth, and the whole of what is allowed."""
    one = fallen(10, 30)
    assert one.before == 0.25
    assert [one.was_good(8.0) for _ in range(2 + 48)] == [False] * 49 + [True]
    one = fallen(10, 30)
    assert [one.was_good(60.0) for _ in range(2 + 60)] == [False] * 61 + [True]
    assert one.conclude()
    assert (one.before, one.skip, one.tolerated) == (0.0, 0, USUAL)


@pytest.mark.parametrize(("bad", "helped"), [(3, True), (4, False), (19, False), (20, True), (30, True)])
def test_what_stays_the_same_has_another_cause(bad: int, helped: bool) -> None:
    """Two fifths of the share of before, 25%, and it is put up with from then on, twice as much and a fiftieth; a half
    never is."""
    one = fallen(10, 30)
    one.bad, one.seen = float(bad), 40.0
    assert one.is_alike() is not helped
    assert one.conclude() is helped
    assert one.tolerated == (USUAL if helped else pytest.approx(min(MOST, 2 * bad / 40 + 0.02)))


def test_an_experiment_is_not_ended_by_a_few() -> None:
    """During one it takes twice as many bad answers to fall again."""
    assert until_alarm(fallen(10, 30), 10.0, 0) == 9


def test_what_is_put_up_with_is_forgotten() -> None:
    """Where bad answers become fewer, fewer are put up with; answers of long ago count half."""
    one = Overload(tolerated=0.4)
    one.was_bad(8.0)
    for _ in range(2_000):
        one.was_good(8.0)
    assert one.tolerated == USUAL
    assert one.bad <= 0.5
    assert one.seen < 2_000


def test_a_share_of_nothing_is_none() -> None:
    """Before any answer nothing is known, and nothing is alike."""
    assert Overload().share == 0.0
    assert not Overload().is_alike()


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(1.0, 1_000.0)), max_size=300))
def test_whatever_comes(steps: list[tuple[int, float]]) -> None:
    """What is put up with stays between the usual and a half; counts are never negative."""
    one = Overload()
    for what, limit in steps:
        if what < 2:
            one.was_good(limit)
        elif one.was_bad(limit) or what == 3:
            assert one.excess > ALARM or what == 3
            one.fell(int(limit)) if one.before == 0.0 else one.conclude()
        assert USUAL <= one.tolerated <= MOST
        assert min(one.excess, one.seen, one.bad, one.skip, one.before) >= 0.0
        assert one.bad <= one.seen
