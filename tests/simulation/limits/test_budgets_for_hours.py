"""Twelve categories for hours, alone and with somebody who spends from the same token: judged by the platform's own
windows.

The short forms have smaller windows; in the long one each of ten hours has 5,000 requests of every category.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.hours import CATEGORIES, Hours, Spent, spend

USED_ALONE, USED_WITH_RIVAL = 0.99, 0.95
MOST_REFUSED = 1e-4
RIVAL = 0.3


def told(spent: Spent) -> str:
    """The figures."""
    return (
        f"{len(CATEGORIES)} categories, {spent.sent:,} requests: {spent.refused} beyond a budget, {spent.after} after "
        f"a limited answer; used {spent.share:.2%} of what others left ({spent.taken:.0%} taken), least "
        f"{min(spent.shares):.2%}; /rate_limit asked {spent.asked:,} times"
    )


def test_twelve_budgets_are_used_up_and_none_is_exceeded(folder: Path, figure: Callable[[str], None]) -> None:
    """Nothing beyond a budget, at least 99% of every window of every category."""
    spent = spend(folder, Hours(limit=60, window_s=60, windows=2))
    figure(told(spent))
    assert spent.refused == 0
    assert min(spent.shares) >= USED_ALONE


@pytest.mark.parametrize("shows_budgets", [True, False])
def test_a_rival_in_bursts_is_made_room_for(folder: Path, shows_budgets: bool, figure: Callable[[str], None]) -> None:
    """failures.md row 32: somebody else takes 30% in bursts, and answers name what is left or do not: next to no
    limited answer, nothing in that category after it until the reset, and at least 95% of the rest is used."""
    spent = spend(folder, Hours(limit=60, window_s=60, windows=2, rival=RIVAL, shows_budgets=shows_budgets))
    figure(told(spent))
    assert spent.refused <= 2
    assert spent.after == 0
    assert spent.share >= USED_WITH_RIVAL
    assert 0.2 <= spent.taken <= RIVAL


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_ten_hours_of_twelve_budgets(folder: Path, figure: Callable[[str], None]) -> None:
    """10 simulated hours, 12 categories of 5,000 an hour: 0 requests beyond a budget, at least 99% of each used."""
    spent = spend(folder, Hours())
    figure(told(spent))
    assert spent.refused == 0
    assert min(spent.shares) >= USED_ALONE


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("shows_budgets", [True, False])
def test_ten_hours_with_a_rival(folder: Path, shows_budgets: bool, figure: Callable[[str], None]) -> None:
    """The same, and somebody else takes 30% in bursts: at most 0.01% limited answers, nothing sent in a category after
    its first until the reset, at least 95% of the rest used."""
    spent = spend(folder, Hours(rival=RIVAL, shows_budgets=shows_budgets))
    figure(told(spent))
    assert spent.refused <= MOST_REFUSED * spent.sent
    assert spent.after == 0
    assert spent.share >= USED_WITH_RIVAL
