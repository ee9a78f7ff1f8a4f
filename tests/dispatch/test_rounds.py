"""How often an item starts over, and how long it pauses before: pure."""

import pytest

from bulk.dispatch.rounds import RESTARTS, RESTARTS_IN_TROUBLE, Rounds, pause_s


def test_rounds_count_while_others_are_served() -> None:
    """failures.md rows 22, 25, 78: so many where the platform answers others, more while it serves nobody."""
    served, alone = Rounds(0), Rounds(0)
    assert [served.is_another(number + 1) for number in range(RESTARTS)] == [True] * (RESTARTS - 1) + [False]
    assert [alone.is_another(0) for _ in range(RESTARTS_IN_TROUBLE + 1)] == [True] * RESTARTS_IN_TROUBLE + [False]
    assert (served.number, alone.number) == (RESTARTS - 1, RESTARTS_IN_TROUBLE)
    once = Rounds(0)
    assert all(once.is_another(1) for _ in range(RESTARTS_IN_TROUBLE)), "only the first round saw a new answer"
    assert not once.is_another(1)


@pytest.mark.parametrize(
    ("number", "seconds"),
    [(0, 0.1), (1, 0.2), (5, 3.2), (6, 5.0), (RESTARTS, 5.0), (RESTARTS + 1, 30.0), (RESTARTS_IN_TROUBLE, 30.0)],
)
def test_pauses_grow(number: int, seconds: float) -> None:
    """Doubling, with a most; the luckless wait for all of it, the lucky for half."""
    assert pause_s(number, 1.0) == pytest.approx(seconds)
    assert pause_s(number, 0.0) == pytest.approx(seconds / 2)
