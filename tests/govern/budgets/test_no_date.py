"""Budgets of a platform that sends no `Date`: the ends that it names tell the time, whatever this machine's clock says.

`python -m tests.hostile.budgets` prints the whole matrix.
"""

from dataclasses import replace

import pytest

from tests.hostile import budgets
from tests.hostile.budgets import Cell, told, use
from tests.hostile.http.limits import Answers, Headers
from tests.hostile.test_budgets import LOOKS, USED


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("skew_s", [0.0, 30.0, -30.0])
@pytest.mark.parametrize("headers", [*budgets.HEADERS, Headers.ZERO, Headers.FAR, Headers.PAST])
def test_a_right_rate_limit_tells_the_time(headers: Headers, skew_s: float, is_even: bool) -> None:
    """No `Date` comes, and this machine's clock may be half a minute wrong: a right `/rate_limit` shows when windows
    are open and when they are over, whatever headers say, and all is used from the first one on. Nonsense costs a look.
    """
    used = use(Cell(headers, Answers.RIGHT, windows=8, has_date=False, skew_s=skew_s, is_even=is_even))
    assert not used.is_stalled, told(used)
    assert used.share >= USED, told(used)
    assert used.refused <= (headers is Headers.WRONG), told(used)


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("answers", [Answers.NOT_FOUND, Answers.FROZEN, Answers.SAME, Answers.MISSING])
@pytest.mark.parametrize("skew_s", [0.0, 30.0, -30.0, -3_600.0])
@pytest.mark.parametrize("windows", [11, pytest.param(20, marks=pytest.mark.soak)])
def test_right_headers_tell_the_time(windows: int, answers: Answers, skew_s: float, is_even: bool) -> None:
    """No `Date` comes, and `/rate_limit` says nothing good: the first window is waited for, then looks halve what is
    not known of the time, and after a few of them at least 99% of each window is used."""
    used = use(Cell(Headers.RIGHT, answers, windows=windows, has_date=False, skew_s=skew_s, is_even=is_even))
    assert used.longest_s <= 15.5, told(used)
    assert used.refused <= LOOKS, told(used)
    last = used.spent[6:-1]
    assert sum(served for _, served, _ in last) >= USED * 100 * len(last), used.spent
    assert last[-1][0] - last[0][0] <= 10.1 * (len(last) - 1), used.spent


@pytest.mark.parametrize("is_even", [True, False])
def test_ends_that_are_always_far_away_without_date(is_even: bool) -> None:
    """No `Date`, no `/rate_limit`, and an end that is always most of an hour away: a request goes and sees, and from
    then on windows tell the time; a second look shows that such an end tells none."""
    used = use(Cell(Headers.FAR, Answers.NOT_FOUND, windows=20, has_date=False, is_even=is_even))
    assert used.longest_s <= 17.0, told(used)
    assert used.share >= 0.9, told(used)
    assert used.refused <= 1, told(used)


@pytest.mark.parametrize("is_even", [True, False])
def test_looks_without_date_are_few(is_even: bool) -> None:
    """Where this machine's clock was right about an hour's window all along, at most eight looks are refused in it, and
    none in later ones: by then the clock is known."""
    used = use(Cell(Headers.RIGHT, Answers.NOT_FOUND, window_s=3_600, windows=3, has_date=False, is_even=is_even))
    assert used.share >= USED, told(used)
    assert [refused for _, _, refused in used.spent[1:]] == [0, 0], used.spent
    assert used.refused <= 8, told(used)


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("skew_s", [0.0, 30.0, -30.0])
@pytest.mark.parametrize("window_s", [60, 3_600])
def test_right_headers_tell_the_time_of_longer_windows(window_s: int, skew_s: float, is_even: bool) -> None:
    """The same in windows of a minute and an hour: after at most eight looks in the first one and a few in the next
    two, windows follow each other without a gap of a fiftieth, and are used in full."""
    cell = Cell(Headers.RIGHT, Answers.NOT_FOUND, limit=300, window_s=window_s, windows=7, has_date=False)
    used = use(replace(cell, skew_s=skew_s, is_even=is_even))
    assert used.spent[0][2] <= 8, used.spent
    assert used.refused <= 8 + LOOKS, used.spent
    last = used.spent[3:-1]
    assert sum(served for _, served, _ in last) >= USED * 300 * len(last), used.spent
    assert last[-1][0] - last[0][0] <= 1.02 * window_s * (len(last) - 1), used.spent
