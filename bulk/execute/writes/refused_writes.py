"""Tells which refusals of writes are looked into before they are believed. Pure.

A proxy that sends a write twice passes on the answer to the second one, "exists already" or "not found", and a gateway
may say anything. So the effect of a refused write is looked for. Where very many items are refused for a reason of
their own, such as a wrong scope, that must not cost a read for each: of each operation and status the first refusals
are looked into, and a part of the others. Once a refused write was done all the same, all of its kind are looked into.
"""

LOOKS_FIRST = 100
"""How many refusals of an operation with one status are looked into without exception (count)."""

LOOKS_THEN = 100
"""After `LOOKS_FIRST`, one refusal in this many is looked into (count)."""

TWICE_FIRST = 3
"""How many of the first refusals are looked into twice, or until the settle time is over (count)."""

SECOND_LOOK_S = 2.0
"""The pause before the second look at what a platform may do in the background (seconds)."""

Kind = tuple[str, int]
"""An operation's name and the status of the refusal."""


class RefusedWrites:
    """The refused writes of one process of a run."""

    def __init__(self) -> None:
        self._seen: dict[Kind, int] = {}
        self._lies: set[Kind] = set()

    def looks(self, kind: Kind) -> int:
        """Count a refusal, and return how often the effect of its write is looked for: 0, 1 or 2 times."""
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        if seen <= TWICE_FIRST:
            return 2
        return 1 if seen <= LOOKS_FIRST or seen % LOOKS_THEN == 0 or kind in self._lies else 0

    def is_waited_for(self, kind: Kind) -> bool:
        """Return whether the effect of a write that was just counted is looked for until the settle time is over, where
        its refusal may be about that effect."""
        return self._seen.get(kind, 0) <= TWICE_FIRST or kind in self._lies

    def was_done(self, kind: Kind) -> None:
        """Note that a write was done although it was refused in this way."""
        self._lies.add(kind)
