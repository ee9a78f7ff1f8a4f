"""A gateway limits requests by the second and names that in headers, and `/rate_limit` names the platform's limit."""

import pytest

from tests.hostile.budgets import Cell, told, use
from tests.hostile.http.limits import Answers, Headers


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("window_s", [1, 2, 3])
@pytest.mark.parametrize("headers", [Headers.RIGHT, Headers.NAMELESS])
def test_windows_of_a_second_beside_an_hour(headers: Headers, window_s: int, is_even: bool) -> None:
    """The length of the hour was kept, by which the ends of two windows of a second were one end: 264 of 664 requests
    were refused, as many in each window as were in flight. Now only what leaves before the first header is."""
    used = use(Cell(headers, Answers.IDLE, limit=20, window_s=window_s, is_even=is_even, latency_s=0.006))
    assert used.share >= 0.99, told(used)
    assert used.refused <= 16, told(used)
    assert sum(refused for _, _, refused in used.spent[1:]) == 0, used.spent
