"""How often an item starts over after lost answers and conflicts, and how long it pauses before.

Pure. Source: failures.md rows 22, 25, 78.
"""

RESTARTS = 8
"""So often an item starts over after a lost answer or a conflict (failures.md rows 22, 78)."""
RESTARTS_IN_TROUBLE = 50
"""So often while the platform serves nobody: a quarter of an hour of pauses (failures.md row 25)."""


class Rounds:
    """Those of one item. At first a round counts only where the platform served others meanwhile: one in trouble costs
    nobody an item.

    Args:
        good_answers: that anybody has got so far (count).
    """

    __slots__ = ("_counted", "_good_answers", "number")

    def __init__(self, good_answers: int) -> None:
        self._good_answers = good_answers
        self._counted = self.number = 0

    def is_another(self, good_answers: int) -> bool:
        """Whether there is one more round after this one; its `number` counts from 0."""
        self._counted += good_answers > self._good_answers
        self._good_answers = good_answers
        if self._counted >= RESTARTS or self.number >= RESTARTS_IN_TROUBLE:
            return False
        self.number += 1
        return True


def pause_s(number: int, luck: float) -> float:
    """Seconds before round `number`: doubling from 0.1, at most 5, in long trouble 30. `luck`: 0.0 (half) to 1.0."""
    most_s = 5.0 if number <= RESTARTS else 30.0
    return min(most_s, 0.1 * 2.0 ** min(20, number)) * (0.5 + 0.5 * luck)
