"""Budgets of a platform whose `Date` is wrong, or of several clocks: nothing stalls, and nearly all is used."""

from dataclasses import replace

import pytest

from tests.hostile.budgets import Cell, told, use
from tests.hostile.http.limits import Answers, Headers
from tests.hostile.test_budgets import USED, holds


@pytest.mark.parametrize("skew_s", [-86_400.0, 5.0])
@pytest.mark.parametrize("is_grid", [True, False])
def test_a_wrong_clock_of_this_machine(skew_s: float, is_grid: bool) -> None:
    """failures.md row 34: the platform's `Date` counts, not this machine's clock."""
    holds(use(Cell(Headers.RIGHT, Answers.NOT_FOUND, limit=50, windows=5, skew_s=skew_s, is_grid=is_grid)))


@pytest.mark.parametrize("date_s", [-5.0, -30.0, -300.0, -3_000.0])
@pytest.mark.parametrize("is_even", [True, False])
def test_a_date_behind_the_windows(date_s: float, is_even: bool) -> None:
    """failures.md row 34: `Date` is of a slower clock than the windows: from the third one on they tell the time, and
    until then each is seen to be over when headers and `/rate_limit` say so."""
    used = use(Cell(Headers.RIGHT, Answers.RIGHT, limit=300, window_s=60, windows=8, is_even=is_even, date_s=date_s))
    assert used.longest_s <= 70.0, told(used)
    assert used.refused == 0, told(used)
    assert sum(served for _, served, _ in used.spent[4:]) >= 0.9 * 4 * 300, used.spent


AGES = 1e12
"""Beyond the first and the last moment that a `Date` can name (seconds)."""


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("answers", [Answers.RIGHT, Answers.NOT_FOUND])
@pytest.mark.parametrize(
    "nodes_s", [(0.0, 300.0), (300.0, 0.0), (0.0, 30.0), (0.0, 5.0), (0.0, 120.0, 0.0, 0.0), (300.0, 0.0, 7.0)]
)
def test_nodes_whose_clocks_differ(nodes_s: tuple[float, ...], answers: Answers, is_even: bool) -> None:
    """Behind one address each answer comes from another node: the clock that was chosen stays, so that no window looks
    over with every other answer. 243 requests were refused in 60, and items failed."""
    used = use(Cell(Headers.RIGHT, answers, limit=40, window_s=20, windows=6, nodes_s=nodes_s, is_even=is_even))
    assert used.refused <= 2, told(used)
    assert used.share >= 0.9, told(used)
    assert not used.is_stalled, told(used)


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("answers", [Answers.RIGHT, Answers.NOT_FOUND])
@pytest.mark.parametrize("nodes_s", [(0.0, -180.0), (0.0, 180.0), (0.0, 90.0, -200.0), (-400.0, 0.0, 0.0)])
@pytest.mark.parametrize("window_s", [10, 60])
def test_nodes_whose_clocks_differ_by_minutes(
    window_s: int, nodes_s: tuple[float, ...], answers: Answers, is_even: bool
) -> None:
    """Which of them answers is chance. By the slowest clock the window seemed to last for minutes more, so that 9 of
    200 requests were sent in each of ten windows, or all of them in one of twelve: one look tells the clocks apart."""
    cell = Cell(Headers.RIGHT, answers, limit=200, window_s=window_s, windows=8, nodes_s=nodes_s, is_even=is_even)
    used = use(replace(cell, is_random=True))
    assert used.refused <= 1, told(used)
    assert used.share >= 0.92, told(used)
    assert not used.is_stalled, told(used)


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("headers", [Headers.RIGHT, Headers.ABSENT])
@pytest.mark.parametrize("window_s", [20, 60])
def test_answers_about_limits_that_are_kept_on_the_way(window_s: int, headers: Headers, is_even: bool) -> None:
    """For ten seconds, each question is answered with the same bytes, and their `Date`: that is no slower clock. Of 160
    requests that were spread over a window up to 27 were refused."""
    cell = Cell(headers, Answers.RIGHT, limit=200, window_s=window_s, windows=8, kept_s=10.0, is_even=is_even)
    used = use(cell)
    assert used.refused == 0, told(used)
    assert used.share >= 0.96, told(used)


@pytest.mark.parametrize("answers", [Answers.RIGHT, Answers.NOT_FOUND])
@pytest.mark.parametrize(
    "nodes_s", [(-AGES,), (AGES,), (-AGES, AGES), (0.0, 0.0, 0.0, -AGES), (-AGES, 0.0, 0.0), (AGES, 0.0, 0.0, 0.0)]
)
def test_a_date_that_is_none(nodes_s: tuple[float, ...], answers: Answers) -> None:
    """1970 and 9999, of all answers or of some: ends of windows and this machine's clock agree that it is nonsense. 67
    windows in a row were not used."""
    used = use(Cell(Headers.RIGHT, answers, limit=40, window_s=20, windows=6, nodes_s=nodes_s))
    assert used.refused <= 2, told(used)
    assert used.share >= 0.9, told(used)
    assert not used.is_stalled, told(used)


@pytest.mark.parametrize("date_s", [-7_200.0, -1_800.0, 300.0, 7_200.0])
def test_a_date_that_makes_ends_nonsense(date_s: float) -> None:
    """failures.md row 34: by a `Date` that is far off, windows end too late or ended long ago: requests find out. An
    end that was too far away to be one is none either when it has come nearer."""
    used = use(Cell(Headers.RIGHT, Answers.NOT_FOUND, limit=300, window_s=3_600, windows=3, date_s=date_s))
    assert used.share >= USED, told(used)
    assert used.longest_s <= 3_600 + 61, told(used)
