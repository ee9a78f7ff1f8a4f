"""Causes of failures: items with the same code share a cause if their messages differ in names alone. Pure.

A message names what its item names: a repository, a path, a number. Those words are taken out before two messages are
compared, so that fifty thousand of them become one cause with a count and three examples.
"""

import re
from collections.abc import Mapping

import msgspec

MOST_EXAMPLES = 3
MOST_CAUSES = 1_000
"""Further causes of one job, outcome and code are put together: messages that all name new things can't be grouped."""

DIFFERENT = "(different messages)"
"""What a page shows in the place of messages that share nothing."""

SHORTEST_NAME = 3
"""Length of the shortest name that is taken out (characters): a shorter word may mean something else in a message."""

_NUMBER = re.compile(r"\d+")


class Cause(msgspec.Struct):
    """One cause.

    Attributes:
        message: what the messages of its items share; empty where causes of one code were put together.
        count: number of its items.
        examples: places of its first three items among the items that were read.
    """

    job: str
    outcome: str
    code: str
    message: str
    count: int = 0
    examples: list[int] = []


class Causes:
    """The causes of all items that were noted, in the order in which they first occurred.

    Attributes:
        found: all causes so far.
    """

    def __init__(self) -> None:
        self.found: list[Cause] = []
        self._numbers: dict[tuple[str, str, str, str], int] = {}

    def note(self, place: int, kind: tuple[str, str, str], message: str, item: Mapping[str, object]) -> int:
        """Take in an item; returns the number of its cause in `found`.

        Args:
            place: place of the item among the items that were read.
            kind: job, outcome and code of the item.
            item: fields of the item.
        """
        words = common(message, item)
        if len(self.found) >= MOST_CAUSES and (*kind, words) not in self._numbers:
            words = message = ""
        number = self._numbers.setdefault((*kind, words), len(self.found))
        if number == len(self.found):
            self.found.append(Cause(*kind, message))
        cause = self.found[number]
        cause.count += 1
        if cause.message != message:
            cause.message = words
        if len(cause.examples) < MOST_EXAMPLES:
            cause.examples.append(place)
        return number


def common(message: str, item: Mapping[str, object]) -> str:
    """Return `message` with `…` for each name in `item` and each number: the part that other items' messages share."""
    names = [value for value in item.values() if isinstance(value, str) and len(value) >= SHORTEST_NAME]
    for name in sorted(names, key=len, reverse=True):
        message = message.replace(name, "…")
    return _NUMBER.sub("…", message)
