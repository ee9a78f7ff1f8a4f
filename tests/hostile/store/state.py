"""What the second platform knows: values under keys, each with the moments from which it held.

Nothing is ever overwritten: a read can be answered as of a moment ago, and an effect can be entered that begins later.
"""

from collections.abc import Iterator
from typing import Any

Key = tuple[Any, ...]


class State:
    """Values that changed over time. A value of None means that there is nothing."""

    def __init__(self, first_id: int = 7_000_000_025) -> None:
        self._values: dict[Key, list[tuple[float, Any]]] = {}
        self._next_id = first_id

    def set(self, key: Key, value: Any, at: float) -> None:
        """From `at` on (seconds), `key` holds `value`; what was entered for later moments stays."""
        versions = self._values.setdefault(key, [])
        versions.append((at, value))
        versions.sort(key=lambda version: version[0])  # stable: of one moment, the last one entered counts

    def get(self, key: Key, at: float) -> Any:
        """What `key` held at that moment."""
        found = None
        for since, value in self._values.get(key, ()):
            if since > at:
                break
            found = value
        return found

    def under(self, prefix: Key, at: float) -> Iterator[tuple[Key, Any]]:
        """Everything that a key beginning with `prefix` held at that moment, in the order in which keys appeared."""
        for key in list(self._values):
            if key[: len(prefix)] == prefix and (value := self.get(key, at)) is not None:
                yield key, value

    def new_id(self) -> int:
        """A number that no other thing has."""
        self._next_id += 6
        return self._next_id - 6

    def copy(self) -> "State":
        """Another state with the same values; what happens to it happens to it alone."""
        other = State(self._next_id)
        other._values = {key: list(versions) for key, versions in self._values.items()}
        return other
