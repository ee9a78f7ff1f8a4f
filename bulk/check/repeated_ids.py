"""Finds items of one job that carry the same `id`, so that a line of the results names one item only.

Like equal reads, they are found by 128-bit hashes in a temporary file, so that memory does not grow with the items.
"""

import heapq
from collections.abc import Iterator
from pathlib import Path

from bulk.bundle.duplicate_reads import DuplicateFinder
from bulk.flaws import MOST_FLAWS, Flaws

_LINE_BITS = 32
_LAST_LINE = 2**_LINE_BITS - 1


class IdFinder:
    """Collects the ids of one job, in the order of its items. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Look for repeated ids; `folder` is where the temporary file may lie."""
        self._finder = DuplicateFinder(folder)

    def __enter__(self) -> "IdFinder":
        self._finder.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._finder.__exit__()

    def add(self, given: str, index: int, line: int) -> None:
        """Add the id of one item, with the place of the item."""
        key = given.encode("utf-8", "surrogatepass")
        self._finder.add_key(key, index << _LINE_BITS | min(line, _LAST_LINE))

    def note_repeats(self, flaws: Flaws, place: str) -> None:
        """Note a flaw for each item whose id an earlier item has; `place` is the path of the file."""
        count = 0

        def repeats() -> Iterator[tuple[int, int]]:
            nonlocal count
            for _, number, first in self._finder.found(0):
                count += 1
                yield number, first

        listed = heapq.nsmallest(MOST_FLAWS, repeats())
        for number, first in listed:
            line, first_line = number & _LAST_LINE, first & _LAST_LINE
            where = (
                f"on line {first_line}" if first_line != line else f"by item {first >> _LINE_BITS:,} on the same line"
            )
            flaws.add(place, line, "id", f"given twice; first {where}: each item of a job needs an id of its own")
        flaws.count_only(count - len(listed))
