"""Why items did not succeed, each cause once: items with one code whose messages differ only in what they name. Pure.

A message names what its item names: a repository, a path, a number. Those words are taken out before two messages are
compared, so that fifty thousand of them become one cause with a count and three examples.
"""

import re
from collections.abc import Mapping

import msgspec

MOST_EXAMPLES = 3
MOST_CAUSES = 1_000
"""Further ones of a code are put together: a message that names a thing of its own each time groups nothing."""

SHORTEST_NAME = 3
"""A shorter word of an item may stand in a message for something else (characters)."""

_NUMBER = re.compile(r"\d+")


class Cause(msgspec.Struct):
    """One cause.

    Attributes:
        message: what their messages share; empty where causes of one code were put together.
        count: items.
        examples: places of the first three of them among the items that were read.
    """

    job: str
    outcome: str
    code: str
    message: str
    count: int = 0
    examples: list[int] = []


class Causes:
    """The causes of all items that were noted, in the order in which they came.

    Attributes:
        found: each of them.
    """

    def __init__(self) -> None:
        self.found: list[Cause] = []
        self._numbers: dict[tuple[str, str, str, str], int] = {}

    def note(self, place: int, kind: tuple[str, str, str], message: str, item: Mapping[str, object]) -> int:
        """Take in an item; returns the number of its cause in `found`.

        Args:
            place: of the item among those that were read.
            kind: its job, outcome and code.
            item: its fields.
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
    """Return what `message` shares with those of other items: without the names in `item`, and without numbers."""
    names = [value for value in item.values() if isinstance(value, str) and len(value) >= SHORTEST_NAME]
    for name in sorted(names, key=len, reverse=True):
        message = message.replace(name, "…")
    return _NUMBER.sub("…", message)
