"""How often an item starts over after lost answers and conflicts, how long it pauses before, and how much a failure
counts.

Pure. Source: failures.md rows 22, 25, 78.
"""

Served = tuple[int, int]
"""Answers that all items together have got so far, and failures (counts)."""

RESTARTS = 8
"""How often an item starts over after a lost answer or a conflict (failures.md rows 22, 78)."""
RESTARTS_IN_TROUBLE = 50
"""How often it starts over while the platform serves nobody: a quarter of an hour of pauses (failures.md row 25)."""
WRONG_MOST_S = 120.0
"""An item is given up after answers of success that prove nothing for this time (seconds), even if the platform serves
no other item meanwhile: that is not an outage, in which all answers are 5xx or none come."""


def weight(before: Served, after: Served) -> float:
    """Return how much a failure counts against its item: the share of all other requests since `before` that the
    platform served, from 0.0 (none) to 1.0. A platform in trouble fails no item, nor does one that serves a few."""
    good = after[0] - before[0]
    others = good + max(0, after[1] - before[1] - 1)
    return good / others if others else 0.0


def is_enough(weights: float, most: int) -> bool:
    """Return whether failures of such weights together are as many as `most`, to the nearest whole number."""
    return weights >= most - 0.5


class WrongAnswers:
    """Answers of success in a row that did not prove what was asked for. Times are monotonic."""

    __slots__ = ("_count", "_from", "_until")

    def __init__(self) -> None:
        self._count, self._from, self._until = 0, 0.0, 0.0

    def note(self, is_wrong: bool, now: float) -> None:
        """Count an answer, which ends the row unless it `is_wrong`."""
        self._from = self._from if self._count else now
        self._count, self._until = self._count + 1 if is_wrong else 0, now

    def are_enough(self, most: int) -> bool:
        """Return whether there were at least `most`, over `WRONG_MOST_S`."""
        return self._count >= most and self._until - self._from >= WRONG_MOST_S


class RetryBudget:
    """The rounds of one item. Each failure counts by its `weight`. `served`: the counts before the first one."""

    __slots__ = ("_served", "_weights", "_wrong", "number")

    def __init__(self, served: Served) -> None:
        self._served = served
        self._weights = 0.0
        self._wrong = WrongAnswers()
        self.number = 0

    def is_another(self, served: Served, now: float = 0.0, *, is_wrong: bool = False) -> bool:
        """Return whether there is one more round after this one; its `number` counts from 0.

        Args:
            now: monotonic seconds. is_wrong: the round ended with an answer of success that proves nothing.
        """
        self._weights += weight(self._served, served)
        self._served = served
        self._wrong.note(is_wrong, now)
        if is_enough(self._weights, RESTARTS) or self.number >= RESTARTS_IN_TROUBLE or self._wrong.are_enough(RESTARTS):
            return False
        self.number += 1
        return True


def pause_s(number: int, luck: float) -> float:
    """Return the pause before round `number` (seconds): doubling from 0.1, at most 5, in long trouble 30. `luck`: 0.0
    (half of it) to 1.0."""
    most_s = 5.0 if number <= RESTARTS else 30.0
    return min(most_s, 0.1 * 2.0 ** min(20, number)) * (0.5 + 0.5 * luck)


def unexplained_pause_s(number: int, luck: float) -> float:
    """Return the pause (seconds) before a request is sent again that was refused without a reason, `number` times
    before; `luck`: 0.0 (half of it) to 1.0. Only this item waits: nothing says that it is a limit."""
    return 4.0 ** min(3, number) * (0.5 + 0.5 * luck)
