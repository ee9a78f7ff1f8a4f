"""How often an item starts over, and how long it pauses before: pure."""

import pytest

from bulk.execute.requests.retry_budget import (
    RESTARTS,
    RESTARTS_IN_TROUBLE,
    WRONG_MOST_S,
    RetryBudget,
    is_enough,
    pause_s,
    weight,
)


def test_rounds_count_while_others_are_served() -> None:
    """failures.md rows 22, 25, 78: `RESTARTS` where the platform answers others, more while it serves nobody."""
    served, alone = RetryBudget((0, 0)), RetryBudget((0, 0))
    assert [served.is_another((number + 1, 0)) for number in range(RESTARTS)] == [True] * (RESTARTS - 1) + [False]
    assert [alone.is_another((0, 0)) for _ in range(RESTARTS_IN_TROUBLE + 1)] == [True] * RESTARTS_IN_TROUBLE + [False]
    assert (served.number, alone.number) == (RESTARTS - 1, RESTARTS_IN_TROUBLE)
    once = RetryBudget((0, 0))
    assert all(once.is_another((1, 0)) for _ in range(RESTARTS_IN_TROUBLE)), "only the first round saw a new answer"
    assert not once.is_another((1, 0))


def test_wrong_answers_that_stay_end_an_item_sooner() -> None:
    """failures.md row 78: with nobody else served, as many as count otherwise, and over two minutes. Any other end of a
    round begins a new row."""
    slow, quick, mixed = RetryBudget((0, 0)), RetryBudget((0, 0)), RetryBudget((0, 0))
    step_s = WRONG_MOST_S / (RESTARTS - 1)
    rounds = [slow.is_another((0, 0), 7.0 + number * step_s, is_wrong=True) for number in range(RESTARTS)]
    assert rounds == [True] * (RESTARTS - 1) + [False]
    assert all(quick.is_another((0, 0), number * 1.0, is_wrong=True) for number in range(2 * RESTARTS))
    assert all(mixed.is_another((0, 0), number * step_s, is_wrong=number % 7 != 0) for number in range(40))


def test_a_round_counts_as_far_as_others_were_served() -> None:
    """failures.md row 25: where every second answer is an error, an item has nearly twice as many rounds."""
    half, most = RetryBudget((0, 0)), 2 * RESTARTS - 2
    answers = [half.is_another((number, 2 * number)) for number in range(1, most + 2)]
    assert answers == [True] * most + [False]


@pytest.mark.parametrize(
    ("good", "failures", "share"), [(0, 0, 0.0), (0, 1, 0.0), (0, 9, 0.0), (5, 1, 1.0), (3, 4, 0.5), (1, 10, 0.1)]
)
def test_what_a_failure_counts(good: int, failures: int, share: float) -> None:
    """The share of the others that were served; its own failure is not one of the others."""
    assert weight((70, 30), (70 + good, 30 + failures)) == pytest.approx(share)


def test_nearly_as_many_are_enough() -> None:
    """Failures here and there among others don't give an item another try."""
    assert is_enough(5.5, 6)
    assert not is_enough(5.4, 6)


@pytest.mark.parametrize(
    ("number", "seconds"),
    [(0, 0.1), (1, 0.2), (5, 3.2), (6, 5.0), (RESTARTS, 5.0), (RESTARTS + 1, 30.0), (RESTARTS_IN_TROUBLE, 30.0)],
)
def test_pauses_grow(number: int, seconds: float) -> None:
    """Doubling, with a most; the luckless wait for all of it, the lucky for half."""
    assert pause_s(number, 1.0) == pytest.approx(seconds)
    assert pause_s(number, 0.0) == pytest.approx(seconds / 2)
